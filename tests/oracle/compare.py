#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the oracle's answers with those of `millrace run --format json`.

    python3 compare.py ORACLE_JSON MILLRACE_JSON

Rows are compared byte for byte, columns by position; of the audit, files, bytes, records, kept,
dropped and nulled of every table. Prints each difference, and exits with 1 if there is any.
"""
import json
import sys

sys.dont_write_bytecode = True

NUMBERS = ("INT", "DECIMAL", "DOUBLE")
COUNTS = ("files", "bytes", "records", "kept")
ABSENT = "(absent)"


class Number(str):
    """A number of a JSON document, by its characters: 75.000 and 75.0 are two."""


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_int=Number, parse_float=Number, parse_constant=Number)


def show(value):
    return value if value is ABSENT else json.dumps(value)


class Comparison:
    def __init__(self):
        self.differences = []

    def check(self, place, expected, actual):
        if expected != actual:
            self.differences.append(f"{place}: oracle {show(expected)}, millrace {show(actual)}")

    def queries(self, oracle, millrace):
        self.check("queries", sorted(oracle), sorted(millrace))
        for name in sorted(oracle.keys() & millrace.keys()):
            self.query(name, oracle[name], millrace[name])

    def query(self, name, oracle, millrace):
        width = len(oracle["columns"])
        self.check(f"{name} number of columns", width, len(millrace["columns"]))
        expected = oracle["rows"]
        actual = millrace["rows"]
        self.check(f"{name} number of rows", len(expected), len(actual))
        types = [column["type"] for column in millrace["columns"]]
        for index in range(max(len(expected), len(actual))):
            left = expected[index] if index < len(expected) else ABSENT
            right = actual[index] if index < len(actual) else ABSENT
            self.check(f"{name} row {index + 1}", left, right)
            if right is not ABSENT:
                self.types(f"{name} row {index + 1}", types, right)

    def types(self, place, types, row):
        """A number must be written as one, a text as a string."""
        for position, (kind, value) in enumerate(zip(types, row), start=1):
            wanted = kind.startswith(NUMBERS) and not kind.endswith("]")
            if value is not None and isinstance(value, Number) != wanted:
                self.differences.append(
                    f"{place} column {position}: {show(value)} is no JSON of type {kind}"
                )

    def audit(self, oracle, millrace):
        self.check("tables", sorted(oracle), sorted(millrace))
        for name in sorted(oracle.keys() & millrace.keys()):
            for count in COUNTS:
                actual = millrace[name].get(count, ABSENT)
                self.check(f"table {name} {count}", oracle[name][count], actual)
            for kind in ("dropped", "nulled"):
                actual = millrace[name].get(kind, [])
                self.entries(f"table {name} {kind}", oracle[name][kind], actual)

    def entries(self, place, oracle, millrace):
        expected = {(entry["column"] or "", entry["reason"]): entry for entry in oracle}
        actual = {(entry.get("column") or "", entry["reason"]): entry for entry in millrace}
        self.check(f"{place} number of entries", len(oracle), len(millrace))
        for key in sorted(expected.keys() | actual.keys()):
            left = self.counted(expected.get(key))
            right = self.counted(actual.get(key))
            self.check(f"{place} {key[0] or 'record'} \"{key[1]}\"", left, right)

    @staticmethod
    def counted(entry):
        return ABSENT if entry is None else [entry["count"], entry["first"]]


def compare(oracle, millrace):
    """Returns the differences, a line each."""
    comparison = Comparison()
    audit = millrace.get("audit", {})
    comparison.check("audit balanced", True, audit.get("balanced", ABSENT))
    comparison.queries(oracle["queries"], millrace["queries"])
    comparison.audit(oracle["tables"], audit.get("tables", {}))
    return comparison.differences


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: compare.py ORACLE_JSON MILLRACE_JSON")
    differences = compare(load(sys.argv[1]), load(sys.argv[2]))
    for difference in differences:
        print(difference)
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
