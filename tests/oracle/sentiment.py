# SPDX-License-Identifier: Apache-2.0
"""The sentiment of a text, by the model in src/engine/exec/expr/sentiment.model.

The rules are those of README.md: what the words of a text are, how they and their pairs are hashed,
and how the file holds a weight for some of the hashes. Written plainly, to be compared with.

    sentiment.py VECTORS    writes the file of texts and scores again, with the scores of the model
"""
import functools
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL_FILE = os.path.join(HERE, "..", "..", "src", "engine", "exec", "expr", "sentiment.model")
HEADER = struct.Struct("<8sIIIIQ")
MASK = (1 << 64) - 1

TOKEN = re.compile(
    rb"(?P<tag><[^<>]{0,254}>)"
    rb"|(?P<not>(?P<stem>[a-z0-9\x80-\xff]*?)n't(?![a-z0-9\x80-\xff]))"
    rb"|(?P<word>[a-z0-9\x80-\xff]+)"
    rb"|(?P<ending>'[a-z0-9\x80-\xff]{1,2}(?![a-z0-9\x80-\xff]))"
    rb"|(?P<mark>[!?])"
    rb"|(?P<join>[ \t\n\r'`/\"-])"
    rb"|(?P<other>.)",
    re.DOTALL,
)


class ModelError(Exception):
    pass


def mix(value):
    for _ in range(2):
        value ^= value >> 32
        value = value * 0xD6E8FEB86659FD93 & MASK
    return value ^ value >> 32


def hash_word(word):
    value = 0xCBF29CE484222325
    for start in range(0, len(word), 8):
        piece = int.from_bytes(word[start : start + 8], "little")
        value = (value ^ piece) * 0x9E3779B97F4A7C15 & MASK
        value ^= value >> 32
    return mix(value)


def hash_pair(first, second):
    return mix((first * 0x9E3779B97F4A7C15 + second) & MASK)


def features(text):
    """The set of hashes of a text's words, signs and pairs."""
    found = set()
    before = None

    def add(word):
        nonlocal before
        value = hash_word(word)
        found.add(value)
        if before is not None:
            found.add(hash_pair(before, value))
        before = value

    for match in TOKEN.finditer(text.lower()):
        if match["not"] is not None:
            if match["stem"]:
                add(match["stem"])
            add(b"n't")
        elif match["word"] is not None or match["ending"] is not None:
            add(match[0])
        elif match["join"] is None:
            before = None
            if match["mark"] is not None:
                found.add(hash_word(match[0]))
    return found


class Model:
    def __init__(self, data):
        if len(data) < HEADER.size:
            raise ModelError("the file is cut off")
        magic, version, self.buckets, used, zero, checksum = HEADER.unpack_from(data)
        if magic != b"millsent" or version != 1 or zero != 0:
            raise ModelError("this is not a sentiment model of version 1")
        if not 1 <= self.buckets <= 16380 or len(data) != HEADER.size + 8 * self.buckets:
            raise ModelError("the file has not the size that it says")
        value = 0xCBF29CE484222325
        for byte in data[:24] + data[HEADER.size :]:
            value = (value ^ byte) * 0x100000001B3 & MASK
        if value != checksum:
            raise ModelError("the checksum is wrong")
        self.slots = struct.unpack_from(f"<{4 * self.buckets}H", data, HEADER.size)
        if used != sum(slot != 0 for slot in self.slots):
            raise ModelError("the slots in use are not as many as it says")

    def slot(self, feature):
        """The place of the feature's slot, or None."""
        first = 4 * ((feature >> 32) * self.buckets >> 32)
        fingerprint = ((feature >> 8 & 0xFFFF) * 1023 >> 16) + 1
        for place in range(first, first + 4):
            if self.slots[place] >> 6 == fingerprint:
                return place
        return None

    def score(self, text):
        """The sum of the weights of a text, and of their absolute values."""
        places = {self.slot(feature) for feature in features(text)} - {None}
        total = magnitude = 0
        for place in places:
            slot = self.slots[place]
            weight = (slot & 31) ** 2
            total += -weight if slot & 32 else weight
            magnitude += weight
        return total, magnitude


@functools.lru_cache(maxsize=4)
def load_model(path):
    with open(path, "rb") as file:
        return Model(file.read())


def polarity(text, model=None):
    """From -1.0 to 1.0; 0.0 for a text without anything known."""
    total, magnitude = (model or load_model(MODEL_FILE)).score(text)
    return 0.0 if magnitude == 0 else float(total) / float(magnitude)


def sentiment(text):
    return b"positive" if polarity(text) >= 0 else b"negative"


def read_vectors(path):
    """(total, magnitude, text, the text as written) of each line; \\xNN stands for a byte."""
    with open(path, "rb") as file:
        for line in file.read().split(b"\n")[:-1]:
            total, magnitude, written = line.split(b"\t")
            text = re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), written)
            yield int(total), int(magnitude), text, written


def main():
    vectors = list(read_vectors(sys.argv[1]))
    with open(sys.argv[1], "wb") as out:
        for _, _, text, written in vectors:
            out.write(b"%d\t%d\t%s\n" % (*load_model(MODEL_FILE).score(text), written))


if __name__ == "__main__":
    main()
