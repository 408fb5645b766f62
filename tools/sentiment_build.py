#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sentiment_build.py - makes src/engine/exec/expr/sentiment.model from the public data sets, and measures it.

    sentiment_build.py TRAINER DATA build MODEL      trains on all that may be learnt from
    sentiment_build.py TRAINER DATA check MODEL      the same into a scratch file: are they equal?
    sentiment_build.py TRAINER DATA measure MODEL    figures: of this model on sentences, and of one
                                                     trained without a fifth of reviews and
                                                     descriptions on that fifth
    sentiment_build.py TRAINER DATA lists FOLDER     the same figures for word lists

TRAINER is the program sentiment_train. docs/reference/sentiment.md says what DATA holds and where
it comes from. Files are turned into the trainer's own format (label, tab, text) in a scratch folder.
"""
import csv
import hashlib
import io
import lzma
import os
import re
import subprocess
import sys
import tempfile

FILMS = 5000  # The first so many of the film table.
COSTS = {"sentences": "0.3*", "reviews": "0.9", "overviews": "0.15"}


def fail(message):
    sys.exit(f"sentiment_build.py: {message}")


def find(folder, *names):
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return fail(f"{folder} has no {' or '.join(names)}")


def read_text(path):
    opener = lzma.open if path.endswith(".xz") else open
    with opener(path, "rb") as file:
        return file.read().decode("utf-8")


def read_table(path):
    csv.field_size_limit(1 << 30)
    return csv.DictReader(io.StringIO(read_text(path), newline=""))


def read_sentences(path):
    for line in read_text(path).split("\n")[1:]:
        if line:
            first, second = line.split("\t")[:2]
            # One edition has the label first, the other last.
            yield (first, second) if first in ("0", "1") else (second, first)


def read_reviews(folder):
    """From the table, or from the original folders aclImdb/train/pos and neg."""
    if os.path.isdir(os.path.join(folder, "aclImdb")):
        for label, name in (("1", "pos"), ("0", "neg")):
            place = os.path.join(folder, "aclImdb", "train", name)
            for file in sorted(os.listdir(place)):
                yield label, read_text(os.path.join(place, file))
        return
    for row in read_table(find(folder, "imdb_train.csv", "imdb_train.csv.xz")):
        yield ("1" if row["sentiment"] == "positive" else "0"), row["review"]


def read_overviews(folder):
    for number, row in enumerate(read_table(find(folder, "movies_metadata.csv"))):
        if number == FILMS:
            break
        if (row["overview"] or "").strip():
            yield "n", row["overview"]


def one_line(text):
    return text.replace("\n", " ").replace("\r", " ")


def is_held(text):
    """A fifth, by content."""
    return hashlib.sha256(text.encode()).digest()[0] % 5 == 0


class Corpus:
    def __init__(self, data, scratch):
        sources = {
            "sentences": read_sentences(find(data, "sst2_train.tsv", "train.tsv")),
            "dev": read_sentences(find(data, "sst2_dev.tsv", "dev.tsv")),
            "reviews": read_reviews(data),
            "overviews": read_overviews(data),
        }
        self.scratch = scratch
        self.texts = {
            name: [(label, one_line(text)) for label, text in source]
            for name, source in sources.items()
        }

    def write(self, name, suffix="", keep=lambda text: True):
        path = os.path.join(self.scratch, name + suffix)
        with open(path, "wb") as out:
            for label, text in self.texts[name]:
                if keep(text):
                    out.write(f"{label}\t{text}\n".encode())
        return path

    def write_kept(self, name):
        return self.write(name, ".kept", lambda text: not is_held(text))

    def write_held(self, name):
        return self.write(name, ".held", is_held)


def run(*words):
    try:
        return subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout.decode()
    except (OSError, subprocess.CalledProcessError) as error:
        return fail(str(error))


def train(trainer, model, files):
    run(trainer, "train", model, *(f"{path}={COSTS[name]}" for name, path in files.items()))


def train_all(trainer, corpus, model):
    train(trainer, model, {name: corpus.write(name) for name in COSTS})


def print_scores(title, trainer, model, *paths):
    print(title)
    for line in run(trainer, "score", model, *paths).splitlines():
        print("   ", line.rpartition("/")[2])


def measure(trainer, corpus, model):
    print_scores("this model:", trainer, model, corpus.write("dev"), corpus.write("overviews"))
    without = os.path.join(corpus.scratch, "without.model")
    files = {name: corpus.write_kept(name) for name in COSTS}
    files["sentences"] = corpus.write("sentences")
    train(trainer, without, files)
    print_scores("one trained without a fifth of reviews and overviews:", trainer, without,
                 corpus.write("dev"), corpus.write_held("reviews"), corpus.write_held("overviews"))


def check(trainer, corpus, model):
    again = os.path.join(corpus.scratch, "again.model")
    train_all(trainer, corpus, again)
    with open(again, "rb") as left, open(model, "rb") as right:
        if left.read() != right.read():
            fail(f"the data gives another model than {model}")
    print(f"{model} is what the data gives, byte for byte")


# --- Word lists, used as their own programs do in the simplest case: the sum of known words. ---

WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*")


def read_lists(folder):
    def lines(name):
        return read_text(os.path.join(folder, name)).splitlines()

    afinn = {}
    for line in lines("AFINN-en-165.txt"):
        word, _, value = line.rpartition("\t")
        afinn[word] = float(value)
    vader = {}
    for line in lines("vader_lexicon.txt"):
        if line.count("\t") >= 2:
            word, value = line.split("\t")[:2]
            vader[word] = float(value)
    values = {}
    for line in lines("en-sentiment.xml"):
        match = re.search(r'<word form="([^"]*)".* polarity="([^"]*)"', line)
        if match:
            values.setdefault(match[1], []).append(float(match[2]))
    pattern = {word: sum(found) / len(found) for word, found in values.items()}
    return {"AFINN": afinn, "VADER": vader, "TextBlob": pattern}


NEGATIONS = {"not", "no", "never", "cannot"}


def list_score(words, text):
    """A word after a negation counts the other way round."""
    total, before = 0.0, ""
    for word in WORD.findall(text.lower().replace(" n't", "n't")):
        value = words.get(word, 0.0)
        total += -value if before in NEGATIONS or before.endswith("n't") else value
        before = word
    return total


def measure_lists(corpus, folder):
    held = [pair for pair in corpus.texts["reviews"] if is_held(pair[1])]
    for name, words in read_lists(folder).items():
        figures = []
        for texts in (corpus.texts["dev"], held):
            right = sum((list_score(words, text) >= 0) == (label == "1") for label, text in texts)
            figures.append(f"{100 * right / len(texts):.1f} %")
        overviews = corpus.texts["overviews"]
        positive = sum(list_score(words, text) >= 0 for _, text in overviews)
        figures.append(f"{100 * positive / len(overviews):.1f} % positive")
        print(f"{name} ({len(words)} words): sentences {figures[0]}, reviews {figures[1]},"
              f" overviews {figures[2]}")


def main():
    actions = {
        "build": train_all,
        "check": check,
        "measure": measure,
        "lists": lambda _, corpus, folder: measure_lists(corpus, folder),
    }
    if len(sys.argv) != 5 or sys.argv[3] not in actions:
        fail("usage: sentiment_build.py TRAINER DATA build|check|measure|lists MODEL|FOLDER")
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Corpus(sys.argv[2], scratch)
        actions[sys.argv[3]](sys.argv[1], corpus, sys.argv[4])


if __name__ == "__main__":
    main()
