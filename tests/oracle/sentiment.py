"""The mood of a text, by a list of words with weights."""
import functools
import os
import re

WORD_FILE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "exec", "sentiment_words.txt"
)
TOKEN = re.compile(rb"[A-Za-z']+")
NEGATIONS = (b"not", b"no", b"never")


def parse_words(lines):
    weights = {}
    for line in lines:
        line = line.rstrip(b"\r\n")
        if line and not line.startswith(b"#"):
            word, weight = line.split(b"\t")
            weights[word] = int(weight)
    return weights


@functools.lru_cache(maxsize=1)
def load_words(path):
    with open(path, "rb") as file:
        return parse_words(file)


def tokens(text):
    return [run.lower().strip(b"'") for run in TOKEN.findall(text)]


def polarity(text, weights=None):
    """From -1.0 to 1.0; 0.0 for a text without any known word."""
    if weights is None:
        weights = load_words(WORD_FILE)
    total = 0
    magnitude = 0
    before = b""
    for token in tokens(text):
        weight = weights.get(token, 0)
        magnitude += abs(weight)
        negated = before in NEGATIONS or before.endswith(b"n't")
        total += -weight if negated else weight
        before = token
    return 0.0 if magnitude == 0 else float(total) / float(magnitude)


def sentiment(text):
    return b"positive" if polarity(text) >= 0 else b"negative"
