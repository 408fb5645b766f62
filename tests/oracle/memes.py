# SPDX-License-Identifier: Apache-2.0
"""memes: posts and comments of a meme forum."""
from tables import DOUBLE, INT, TEXT, Table
from values import average_double, average_exact, double_units, format_double, format_text

TABLES = [
    Table(
        "posts",
        ["posts.csv", "the-reddit-irl-dataset-posts.csv"],
        [("id", TEXT, True), ("score", INT, True), ("url", TEXT, False)],
    ),
    Table(
        "comments",
        ["comments.csv", "the-reddit-irl-dataset-comments.csv"],
        [("permalink", TEXT, True), ("body", TEXT, False), ("sentiment", DOUBLE, False)],
    ),
]


def _post_of(permalink):
    """The part after the first `/comments/` up to the next `/`; None when there is none."""
    _, found, rest = permalink.partition(b"/comments/")
    return rest.split(b"/")[0] if found else None


def _comments(tables):
    """(post id, body, sentiment) of the comments that count."""
    for permalink, body, sentiment in tables["comments"]:
        post = _post_of(permalink)
        if post is not None and body not in (None, b"[deleted]", b"[removed]"):
            yield post, body, sentiment


def _average_score(tables):
    scores = [score for _, score, _ in tables["posts"]]
    return average_exact(sum(scores), len(scores))


def q1(tables, parameters):
    return [[format_double(_average_score(tables))]]


def q2(tables, parameters):
    average = _average_score(tables)
    mentioned = set()
    for post, body, _ in _comments(tables):
        lower = body.lower()  # Of bytes: ASCII letters only.
        if any(word in lower for word in parameters["keywords"]):
            mentioned.add(post)
    urls = {
        url
        for post, score, url in tables["posts"]
        if url is not None and float(score) > average and post in mentioned
    }
    return [[format_text(url)] for url in sorted(urls)]


def q3(tables, parameters):
    by_label = {}
    for post, _, sentiment in _comments(tables):
        if sentiment is not None:
            units, count = by_label.get(post, (0, 0))
            by_label[post] = (units + double_units(sentiment), count + 1)
    # A post that is there twice meets each of its comments twice, and the sum is rounded but once.
    copies = {}
    for post, _, url in tables["posts"]:
        if url is not None and post in by_label:
            copies[(post, url)] = copies.get((post, url), 0) + 1
    averages = []
    for (post, url), times in copies.items():
        units, count = by_label[post]
        averages.append((-average_double(units * times, count * times), post, url))
    return [
        [format_text(post), format_text(url), format_double(-negative)]
        for negative, post, url in sorted(averages)[:1]
    ]


KEYWORDS = [b"university", b"college", b"student", b"teacher", b"professor"]

# name: (function, tables read, columns, parameters)
QUERIES = {
    "q1": (q1, ["posts"], ["average"], {}),
    "q2": (q2, ["posts", "comments"], ["url"], {"keywords": KEYWORDS}),
    "q3": (q3, ["posts", "comments"], ["id", "url", "average"], {}),
}
