# SPDX-License-Identifier: Apache-2.0
"""Values: how each type is read from the bytes of a field, and how a result is written.

A parser takes the bytes of a non-empty field and returns the value, or None when the bytes are not
of that type. Nothing is trimmed: a space is a character like any other. In memory

    INT        int
    DECIMAL    int, the value times 10 ** scale
    DOUBLE     float, never -0.0, never infinite
    DATE       bytes `YYYY-MM-DD`: fixed width, so that bytes compare as dates do
    TIMESTAMP  (date, `HH:MM:SS`, microseconds): compares as times do
    TEXT       bytes: text is compared by bytes, and need not be UTF-8
"""
import datetime
import functools
import re
import sys
from fractions import Fraction

# A field of five thousand zeros is a number too.
sys.set_int_max_str_digits(0)

INT_SYNTAX = re.compile(rb"([+-]?[0-9]+)(\.0*)?")
DECIMAL_SYNTAX = re.compile(rb"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))")
DOUBLE_SYNTAX = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
DATE_SYNTAX = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})")
TIMESTAMP_SYNTAX = re.compile(
    rb"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T](([0-9]{2}):([0-9]{2}):([0-9]{2}))(?:\.([0-9]{1,6}))?"
)

# Doubles are whole multiples of this: sums of them are sums of integers.
DOUBLE_UNITS = 2**1074


@functools.lru_cache(maxsize=1 << 16)
def parse_int(field):
    match = INT_SYNTAX.fullmatch(field)
    if match is None:
        return None
    value = int(match[1])
    return value if -(2**63) <= value < 2**63 else None


@functools.lru_cache(maxsize=1 << 16)
def parse_decimal(field, precision, scale):
    match = DECIMAL_SYNTAX.fullmatch(field)
    if match is None:
        return None
    whole = match[2] or b""
    decimals = match[3] or match[4] or b""
    exact = Fraction(int(whole + decimals), 10 ** len(decimals)) * 10**scale
    # Rounded half away from zero: the sign is set aside, so "up" is "away".
    magnitude = (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)
    if magnitude >= 10**precision:
        return None
    return -magnitude if match[1] == b"-" else magnitude


def parse_double(field):
    if DOUBLE_SYNTAX.fullmatch(field) is None:
        return None
    value = float(field)
    if value in (float("inf"), float("-inf")):
        return None
    return value + 0.0  # -0.0 becomes 0.0


@functools.lru_cache(maxsize=1 << 16)
def parse_date(field):
    match = DATE_SYNTAX.fullmatch(field)
    if match is None:
        return None
    try:
        datetime.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None
    return field


def parse_timestamp(field):
    match = TIMESTAMP_SYNTAX.fullmatch(field)
    if match is None or parse_date(match[1]) is None:
        return None
    if int(match[3]) > 23 or int(match[4]) > 59 or int(match[5]) > 59:
        return None
    microseconds = int((match[6] or b"0").ljust(6, b"0"))
    return match[1], match[2], microseconds


def format_int(value):
    return None if value is None else str(value)


def format_decimal(value, scale):
    if value is None:
        return None
    digits = str(abs(value)).rjust(scale + 1, "0")
    text = digits[:-scale] + "." + digits[-scale:] if scale > 0 else digits
    return "-" + text if value < 0 else text


def format_double(value):
    return None if value is None else repr(value + 0.0)


def format_text(value):
    """JSON is UTF-8: bytes that are not become U+FFFD, one for each maximal broken part."""
    return None if value is None else value.decode("utf-8", errors="replace")


def format_date(value):
    return format_text(value)


def format_timestamp(value):
    if value is None:
        return None
    date, time, microseconds = value
    text = date.decode() + " " + time.decode()
    return text + ("." + f"{microseconds:06}".rstrip("0") if microseconds else "")


def format_list(value):
    return None if value is None else [format_text(element) for element in value]


def average_exact(total, count):
    """avg of INT and DECIMAL: the exact quotient, rounded once. `total` is an int or a Fraction."""
    return float(Fraction(total) / count) if count else None


def double_units(value):
    """A double as a whole number of 2**-1074, for exact sums."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (DOUBLE_UNITS // denominator)


def average_double(units, count):
    """avg of DOUBLE: the exact sum rounded to a double, then divided by the count."""
    return float(Fraction(units, DOUBLE_UNITS)) / float(count) + 0.0 if count else None
