#!/usr/bin/env python3
"""sentiment_table.py WORDS HEADER - makes the hash table of exec/sentiment.c from its word list.

Open addressing, at most a quarter full, so that most words of a text, which are not in the list,
are refused by the first slot; slots are numbers of words, so that they stay in the nearest cache.
"""
import re
import sys

FACTOR = 31
WEIGHT_MAX = 5


def fail(message):
    sys.exit(f"sentiment_table.py: {message}")


def read_words(path):
    words = {}
    with open(path, encoding="ascii") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            match = re.fullmatch(r"([a-z](?:[a-z']*[a-z])?)\t(-?[0-9]+)", line)
            if match is None:
                fail(f"{path}:{number}: expected a lower-case word, a tab and a weight")
            word, weight = match[1], int(match[2])
            if word in words:
                fail(f"{path}:{number}: {word} is there twice")
            if weight == 0 or abs(weight) > WEIGHT_MAX:
                fail(f"{path}:{number}: the weight is not -{WEIGHT_MAX} to {WEIGHT_MAX}, or is 0")
            words[word] = weight
    return words


def hash_word(word):
    value = 0
    for byte in word.encode():
        value = (value * FACTOR + byte) & 0xFFFFFFFF
    return value


def place(words):
    """Slots with numbers of words, counted from 1; 0 is free."""
    count = 64
    while count < 4 * len(words):
        count *= 2
    slots = [0] * count
    for number, word in enumerate(words, 1):
        slot = hash_word(word) % count
        while slots[slot] != 0:
            slot = (slot + 1) % count
        slots[slot] = number
    return slots


def header(weights):
    words = sorted(weights)
    slots = place(words)
    longest = max(map(len, words))
    yield "/* sentiment_table.h - made by tools/sentiment_table.py from sentiment_words.txt. */"
    yield "#ifndef EXEC_SENTIMENT_TABLE_H"
    yield "#define EXEC_SENTIMENT_TABLE_H"
    yield "#include <stdint.h>"
    yield f"#define SENTIMENT_HASH_FACTOR {FACTOR}u"
    yield f"#define SENTIMENT_SLOT_MASK {len(slots) - 1}u"
    yield "struct sentiment_word {"
    yield f"    char text[{longest + 1}];"
    yield "    uint8_t size;"
    yield "    int8_t weight;"
    yield "};"
    yield f"static const struct sentiment_word sentiment_words[{len(words)}] = {{"
    for word in words:
        yield f'    {{"{word}", {len(word)}, {weights[word]}}},'
    yield "};"
    yield "/* Number of the word, from 1; 0: free. */"
    yield f"static const uint16_t sentiment_slots[{len(slots)}] = {{"
    for slot, number in enumerate(slots):
        if number != 0:
            yield f"    [{slot}] = {number},"
    yield "};"
    yield "#endif"


def main():
    if len(sys.argv) != 3:
        fail("usage: sentiment_table.py WORDS HEADER")
    words = read_words(sys.argv[1])
    if not words:
        fail("the list is empty")
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write("\n".join(header(words)) + "\n")


if __name__ == "__main__":
    main()
