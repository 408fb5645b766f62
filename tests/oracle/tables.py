# SPDX-License-Identifier: Apache-2.0
"""Tables: which files they are, what is kept of each record, and the audit about the rest."""
import fnmatch
import os

import csv_reader
import values


class InputError(Exception):
    """The data cannot be read at all: no file, or a column that is not there."""


class Type:
    def __init__(self, name, parse):
        self.parse = parse
        article = "an" if name[0] in "AEIO" else "a"
        self.reason = f"not {article} {name}"


INT = Type("INT", values.parse_int)
DATE = Type("DATE", values.parse_date)
TIMESTAMP = Type("TIMESTAMP", values.parse_timestamp)
DOUBLE = Type("DOUBLE", values.parse_double)
TEXT = Type("TEXT", lambda field: field)


def decimal(precision, scale):
    return Type(
        f"DECIMAL({precision},{scale})",
        lambda field: values.parse_decimal(field, precision, scale),
    )


class Table:
    """A declared table: patterns of which the first that matches counts, and columns in order.

    A column is (name, type, required): a required one is NOT NULL.
    """

    def __init__(self, name, patterns, columns):
        self.name = name
        self.patterns = patterns
        self.columns = columns


class Book:
    """What happened to the records of one table."""

    def __init__(self):
        self.files = 0
        self.bytes = 0
        self.records = 0
        self.kept = 0
        self.dropped = {}
        self.nulled = {}

    def as_json(self):
        return {
            "files": self.files,
            "bytes": self.bytes,
            "records": self.records,
            "kept": self.kept,
            "dropped": _entries(self.dropped),
            "nulled": _entries(self.nulled),
        }


def _entries(counts):
    return [
        {"column": column, "reason": reason, "count": count, "first": first}
        for (column, reason), (count, first) in sorted(counts.items())
    ]


def _count(counts, column, reason, place):
    # Records come in order of file and position, so the first seen is the first.
    count, first = counts.get((column, reason), (0, place))
    counts[(column, reason)] = (count + 1, first)


def find_files(table, data_dir):
    """Names relative to data_dir, in order of their bytes."""
    for pattern in table.patterns:
        folder, _, file_pattern = pattern.rpartition("/")
        try:
            entries = os.listdir(os.path.join(data_dir, folder))
        except (FileNotFoundError, NotADirectoryError):
            continue
        names = [
            os.path.join(folder, entry)
            for entry in entries
            if fnmatch.fnmatchcase(entry, file_pattern)
            and not entry.startswith(".")
            and os.path.isfile(os.path.join(data_dir, folder, entry))
        ]
        if names:
            return sorted(names, key=os.fsencode)
    raise InputError(f"table {table.name}: no file {' or '.join(table.patterns)} in {data_dir}")


def _column_places(table, name, header):
    places = []
    for column, _, _ in table.columns:
        wanted = column.encode()
        if wanted not in header:
            there = ", ".join(values.format_text(other) for other in header)
            raise InputError(f"{name}: no column {column}; there are: {there}")
        places.append(header.index(wanted))
    return places


def _read_fields(table, fields, book, place):
    """Returns the row of declared columns, or None when the record is dropped."""
    row = []
    unreadable = []
    for field, (column, kind, required) in zip(fields, table.columns):
        value = kind.parse(field) if field else None
        if value is None and required:
            _count(book.dropped, column, kind.reason if field else "empty", place)
            return None
        if value is None and field:
            unreadable.append((column, kind.reason))
        row.append(value)
    # Only now is it known that the record is kept.
    for column, reason in unreadable:
        _count(book.nulled, column, reason, place)
    return tuple(row)


def read_table(table, data_dir):
    """Returns (rows, book). A row is a tuple of values in the order of the declared columns."""
    book = Book()
    rows = []
    for name in find_files(table, data_dir):
        with open(os.path.join(data_dir, name), "rb") as file:
            data = file.read()
        book.files += 1
        book.bytes += len(data)
        if not data:
            continue
        records = csv_reader.read_records(data)
        _, header = next(records, (1, [b""]))
        places = _column_places(table, name, header)
        for line, fields in records:
            book.records += 1
            place = f"{name}:{line}"
            if len(fields) != len(header):
                _count(book.dropped, "", "wrong number of fields", place)
                continue
            row = _read_fields(table, [fields[index] for index in places], book, place)
            if row is not None:
                book.kept += 1
                rows.append(row)
    return rows, book
