# SPDX-License-Identifier: Apache-2.0
"""answers.py - whether two engines gave the same answer.

A value is a text, or None. Texts must be equal; whole numbers too, to the digit; other numbers to
a relative 1e-9, since peers add doubles in any order. NULL and the empty text count as one, because
CSV read by Python tells them apart no more. Where the order of rows is not fixed by the question,
both answers are sorted first.
"""
import csv
import io
import math
import re
from decimal import Decimal

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
TOLERANCE = 1e-9


class AnswersDiffer(Exception):
    """Names the question, the peer and the first row that differs."""


def from_csv(data):
    """The rows of one answer as `millrace run --format csv` prints it."""
    rows = list(csv.reader(io.StringIO(data.decode("utf-8", "surrogateescape"), newline="")))
    return rows[1:]


def from_csv_of_many(data, names):
    """name: rows, of the answers to several questions: each stands under a line that names it."""
    if len(names) == 1:
        return {names[0]: from_csv(data)}
    text = data.decode("utf-8", "surrogateescape")
    parts = re.split(rf"^# ({'|'.join(names)})\n", text, flags=re.MULTILINE)
    return {name: from_csv(part.rstrip("\n").encode("utf-8", "surrogateescape"))
            for name, part in zip(parts[1::2], parts[2::2])}


def same_value(one, other):
    one, other = one or "", other or ""
    if one == other:
        return True
    if not (NUMBER.fullmatch(one) and NUMBER.fullmatch(other)):
        return False
    exact, their = Decimal(one), Decimal(other)
    if exact == their:
        return True
    if exact == exact.to_integral_value() and their == their.to_integral_value():
        return False
    return math.isclose(float(exact), float(their), rel_tol=TOLERANCE, abs_tol=0)


def same_row(one, other):
    return len(one) == len(other) and all(map(same_value, one, other))


def _sort_key(row):
    """Equal for values that count as equal, but for the rare one at the edge of a rounding."""
    return [f"{float(value):.6e}" if value and NUMBER.fullmatch(value) else value or ""
            for value in row]


def compare(label, peer, ours, theirs, is_ordered):
    """Raises AnswersDiffer unless the answers are equal."""
    if not is_ordered:
        ours, theirs = sorted(ours, key=_sort_key), sorted(theirs, key=_sort_key)
    for index, (one, other) in enumerate(zip(ours, theirs), 1):
        if not same_row(one, other):
            raise AnswersDiffer(f"{label}: {peer} answers otherwise in row {index}:\n"
                                f"  millrace  {one}\n  {peer:<9} {list(other)}")
    if len(ours) != len(theirs):
        more, longer = ("millrace", ours) if len(ours) > len(theirs) else (peer, theirs)
        first = list(longer[min(len(ours), len(theirs))])
        raise AnswersDiffer(f"{label}: millrace has {len(ours)} rows, {peer} {len(theirs)}; the "
                            f"first that only {more} has: {first}")
