# SPDX-License-Identifier: Apache-2.0
"""CSV, byte by byte.

Python's own csv module works on decoded text and knows other rules for carriage returns, quotes in
the middle of a field and blank lines, so the oracle has a reader of its own. The rules are in
README.md, section "CSV".
"""
import re

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FIELD_END = re.compile(rb"[,\n]")


class UnclosedQuote(ValueError):
    """Such a file has no answer: nobody knows what its author meant."""


def read_records(data):
    """Yields (line, fields) for every record of a file, the header included.

    `line` is the physical line, from 1, at which the record starts; `fields` are bytes, unquoted.
    """
    position = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
    line = 1
    while position < len(data):
        fields, following = _read_record(data, position)
        yield line, fields
        line += data.count(b"\n", position, following)
        position = following


def _read_record(data, position):
    """Returns the fields of the record at `position`, and where the next record starts."""
    end = data.find(b"\n", position)
    text = data[position:] if end < 0 else data[position:end]
    if b'"' not in text:
        # Without a quote a record is a line.
        return _cut_carriage_return(text).split(b","), len(data) if end < 0 else end + 1

    fields = []
    while True:
        value, position = _read_quoted(data, position)
        match = FIELD_END.search(data, position)
        end = match.start() if match else len(data)
        tail = data[position:end]
        if match and match[0] == b",":
            fields.append(value + tail)
            position = end + 1
            continue
        fields.append(value + _cut_carriage_return(tail))
        return fields, end + 1 if match else end


def _read_quoted(data, position):
    """Reads a quoted part, if there is one at `position`; returns it and where it ends."""
    if data[position : position + 1] != b'"':
        return b"", position
    value = b""
    position += 1
    while True:
        quote = data.find(b'"', position)
        if quote < 0:
            raise UnclosedQuote("a quoted field is never closed")
        value += data[position:quote]
        if data[quote + 1 : quote + 2] != b'"':
            return value, quote + 1
        value += b'"'
        position = quote + 2


def _cut_carriage_return(text):
    """Cuts off the carriage return that belongs to a line end, or is the last byte of a file."""
    return text[:-1] if text.endswith(b"\r") else text
