#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_oracle.py - the oracle's own parts do what README.md says.

Goal: a difference between millrace and the oracle should be a question about the rules, not about
the oracle. Method: the reader is compared with a state machine that looks at one byte at a time,
on every short text over the bytes that matter; values, lists and audit by tables of cases; the
data sets in dirty/ are read whole, and the comparison must find each change made to an answer.

    python3 tests/oracle/test_oracle.py
"""
import copy
import itertools
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import compare
import csv_reader
import literals
import make_dirty
import oracle
import sentiment
import tables
import values

HERE = os.path.dirname(os.path.abspath(__file__))


def naive_records(data):
    """The rules of CSV as a machine of three states, a byte at a time; None: an unclosed quote."""
    if data.startswith(csv_reader.BYTE_ORDER_MARK):
        data = data[3:]
    records = []
    fields, value, state, fresh, line, start = [], b"", "plain", True, 1, 1
    index = 0
    pending = False  # Whether a record has begun that has not ended.
    while index < len(data):
        byte = data[index : index + 1]
        following = data[index + 1 : index + 2]
        pending = True
        if state == "quoted":
            if byte == b'"' and following == b'"':
                value += b'"'
                index += 1
            elif byte == b'"':
                state = "plain"
            else:
                value += byte
        elif byte == b'"' and fresh:
            state = "quoted"
        elif byte == b",":
            fields.append(value)
            value = b""
        elif byte == b"\n":
            records.append((start, [*fields, value]))
            fields, value, pending = [], b"", False
        elif byte == b"\r" and following in (b"\n", b""):
            pass
        else:
            value += byte
        fresh = state == "plain" and byte in (b",", b"\n")
        line += byte == b"\n"
        if not pending:
            start = line
        index += 1
    if state == "quoted":
        return None
    if pending:
        records.append((start, [*fields, value]))
    return records


def read_or_refuse(data):
    try:
        return list(csv_reader.read_records(data))
    except csv_reader.UnclosedQuote:
        return None


class Reader(unittest.TestCase):
    def test_the_reader_agrees_with_the_machine_on_every_short_text(self):
        for length in range(8):
            for letters in itertools.product(b'a,"\n\r', repeat=length):
                data = bytes(letters)
                self.assertEqual(read_or_refuse(data), naive_records(data), data)

    def test_a_byte_order_mark_is_skipped_at_the_start_only(self):
        mark = csv_reader.BYTE_ORDER_MARK
        records = list(csv_reader.read_records(mark + b'"a",b\n' + mark + b"c,d"))
        self.assertEqual(records, [(1, [b"a", b"b"]), (2, [mark + b"c", b"d"])])

    def test_cases(self):
        cases = {
            b"": [],
            b"\n": [[b""]],
            b"a,b": [[b"a", b"b"]],
            b"a,": [[b"a", b""]],
            b'"a""b"': [[b'a"b']],
            b'"a"b"c",d': [[b'ab"c"', b"d"]],
            b'a"b,c"d': [[b'a"b', b'c"d']],
            b"a\r\r\nb\rc\r": [[b"a\r"], [b"b\rc"]],
            b'"a\r\n,"\r\n': [[b"a\r\n,"]],
        }
        for data, expected in cases.items():
            records = [fields for _, fields in csv_reader.read_records(data)]
            self.assertEqual(records, expected, data)


class Values(unittest.TestCase):
    def check(self, parse, cases):
        for field, expected in cases.items():
            self.assertEqual(parse(field), expected, field)

    def test_integers(self):
        good = {b"5": 5, b"+5": 5, b"-5": -5, b"17272.0": 17272, b"5.": 5, b"007": 7, b"-0": 0}
        limits = {b"9223372036854775807": 2**63 - 1, b"-9223372036854775808": -(2**63)}
        beyond = [b"9223372036854775808", b"-9223372036854775809"]
        bad = [b" 5", b"5 ", b" ", b"1.5", b"1e3", b".0", b"+", b"--1", b"5\n", b"5\x00", b"0x1"]
        self.check(values.parse_int, {**good, **limits, **dict.fromkeys(beyond + bad)})
        self.assertEqual(values.parse_int(b"0" * 5000 + b"1"), 1)
        self.assertIsNone(values.parse_int(b"9" * 5000))

    def test_decimals_round_half_away_from_zero(self):
        cases = {
            b"75": 75000,
            b"-0.5": -500,
            b".5": 500,
            b"5.": 5000,
            b"+1.0005": 1001,
            b"-1.0005": -1001,
            b"1.00049999": 1000,
            b"-0.0004": 0,
            b"999.9994": 999999,
            b"999.9995": None,
            b"1000": None,
        }
        bad = dict.fromkeys([b".", b"-", b"1e2", b"1,5", b" 1", b"1.2.3", b"nan", b"1\n"])
        self.check(lambda field: values.parse_decimal(field, 6, 3), {**cases, **bad})

    def test_doubles(self):
        good = {b"0.5": 0.5, b".5": 0.5, b"5.": 5.0, b"+1e-5": 1e-5, b"1E2": 100.0, b"1e-400": 0.0}
        bad = [b"nan", b"inf", b"1e309", b"-1e309", b"0x1", b"e5", b"1e", b".", b" 1", b"1_0"]
        self.check(values.parse_double, {**good, **dict.fromkeys(bad)})
        self.assertEqual(repr(values.parse_double(b"-0.0")), "0.0")

    def test_dates_and_timestamps(self):
        self.assertEqual(values.parse_date(b"2004-02-29"), b"2004-02-29")
        for field in [b"2003-02-29", b"0000-01-01", b"2003-2-1", b"2003-01-01 ", b"2003-13-01"]:
            self.assertIsNone(values.parse_date(field), field)
        cases = {
            b"2024-01-01 00:00:00": "2024-01-01 00:00:00",
            b"2024-01-01T23:59:59.120": "2024-01-01 23:59:59.12",
            b"2024-01-01 00:00:00.000000": "2024-01-01 00:00:00",
            b"2024-01-01 00:00:00.000001": "2024-01-01 00:00:00.000001",
        }
        for field, text in cases.items():
            self.assertEqual(values.format_timestamp(values.parse_timestamp(field)), text)
        bad = [b"24:00:00", b"10:60:00", b"10:00:60", b"10:00", b"10:00:00.", b"10:00:00.1234567"]
        for time in bad:
            self.assertIsNone(values.parse_timestamp(b"2024-01-01 " + time), time)
        self.assertIsNone(values.parse_timestamp(b"2024-02-30 10:00:00"))

    def test_formats(self):
        self.assertEqual(values.format_decimal(75000, 3), "75.000")
        self.assertEqual(values.format_decimal(-500, 3), "-0.500")
        self.assertEqual(values.format_decimal(-5, 0), "-5")
        for value, text in {3.0: "3.0", 1e-5: "1e-05", 1e16: "1e+16"}.items():
            self.assertEqual(values.format_double(value), text)
        self.assertEqual(values.format_double(-0.0), "0.0")
        self.assertEqual(values.format_text(b"a\xe2\x82b\xff"), "a\ufffdb\ufffd")
        self.assertIsNone(values.format_text(None))

    def test_averages(self):
        self.assertEqual(values.average_exact(2**53 + 1, 1), float(2**53))
        self.assertIsNone(values.average_exact(0, 0))
        units = sum(values.double_units(value) for value in (1e300, 0.1, -1e300, 5e-324))
        self.assertEqual(values.average_double(units, 1), 0.1)
        tiny = values.average_double(values.double_units(-5e-324), 2)
        self.assertEqual(values.format_double(tiny), "0.0")


class Lists(unittest.TestCase):
    def test_names(self):
        cases = {
            "[]": [],
            "[{'name': 'a'}, {'name': \"it's\"}]": ["a", "it's"],
            " \n[{'id': -1, 'name': 'a'},]\t": ["a"],
            "[{'name': None}, {'name': 1}, {'id': 2}, 'name', None, [{'name': 'x'}]]": [],
            "[{'name': 'a', 'name': 'b'}]": ["b"],
            r"[{'name': 'a\'\x41\u00e9\n\q'}]": ["a'A\u00e9\n\\q"],
            "[{'name': ('a')}]": ["a"],
        }
        for text, expected in cases.items():
            names = [name.decode() for name in literals.names(text.encode())]
            self.assertEqual(names, expected)

    def test_what_is_no_list_has_no_names(self):
        name = "{'name': 'a'}"
        bad = ["", "None", "[", name, f"[{name}", f"({name},)", f"[{name}],", f"[{name}] x"]
        inside = ["{1}", "dict()", "1+2", "1j", "1+2j", "b'x'", "f'x'", "'x' 'y'", "x", "..."]
        bad += [f"[{name}, {value}]" for value in inside]
        bad += [f"[{name}, *[1]]", f"[{name}, {{**{{}}}}]", f"[{name}, 'x'\n'y']"]
        bad += ["[{'name': 'a\nb'}]", f"([{name}])"]
        for text in bad:
            self.assertEqual(literals.names(text.encode()), (), text)
        self.assertEqual(literals.names(b"[{'name': '\xff'}]"), ())


class Sentiment(unittest.TestCase):
    VECTORS = os.path.join(HERE, "..", "unit", "engine", "exec", "expr", "sentiment_vectors.tsv")

    def test_the_vectors_have_their_scores(self):
        model = sentiment.load_model(sentiment.MODEL_FILE)
        vectors = list(sentiment.read_vectors(self.VECTORS))
        self.assertGreater(len(vectors), 50)
        for total, magnitude, text, _ in vectors:
            self.assertEqual(model.score(text), (total, magnitude), text)
            expected = total / magnitude if magnitude else 0.0
            self.assertEqual(sentiment.polarity(text), expected, text)

    def test_a_damaged_model_is_refused(self):
        with open(sentiment.MODEL_FILE, "rb") as file:
            data = file.read()
        damaged = [b"", data[:31], data[:-1], data + b"x", b"x" + data[1:]]
        for place in (8, 12, 16, 20, 24, 32, len(data) - 1):
            damaged.append(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        for number, model in enumerate(damaged):
            with self.assertRaises(sentiment.ModelError, msg=str(number)):
                sentiment.Model(model)

    def test_features_are_the_words_and_their_pairs(self):
        def words(*wanted):
            hashes = [sentiment.hash_word(word) for word in wanted]
            pairs = zip(hashes, hashes[1:])
            return set(hashes) | {sentiment.hash_pair(first, second) for first, second in pairs}

        cases = {
            b"": words(),
            b"Good FILM": words(b"good", b"film"),
            b"isn't it's": words(b"is", b"n't", b"it", b"'s"),
            b"n't": words(b"n't"),
            b"'quoted' well-made": words(b"quoted", b"well", b"made"),
            b"a, b": words(b"a") | words(b"b"),
            b"a <i>b": words(b"a") | words(b"b"),
            b"a! b": words(b"a") | words(b"!") | words(b"b"),
        }
        for text, expected in cases.items():
            self.assertEqual(sentiment.features(text), expected, text)


class Audit(unittest.TestCase):
    TABLE = tables.Table(
        "t",
        ["t/*.csv", "t*.csv"],
        [("a", tables.INT, True), ("b", tables.DATE, True), ("c", tables.DOUBLE, False)],
    )

    def read(self, files):
        with tempfile.TemporaryDirectory() as folder:
            make_dirty.write_set(folder, files)
            return tables.read_table(self.TABLE, folder)

    def test_a_record_counts_once_under_its_first_declared_fault(self):
        rows, book = self.read(
            {
                "t/b.csv": b"c,b,a,x\n1,2001-01-01,1,\nx,bad,bad,\nx,bad,2,\nx,2001-01-01,3,\n",
                "t/a.csv": b"a,b,c\n\n1,,\n,,\n1,2001-01-01,\n",
                "t/c.csv": b"",
                "t.csv": b"not read",
            }
        )
        day = b"2001-01-01"
        self.assertEqual(rows, [(1, day, None), (1, day, 1.0), (3, day, None)])
        self.assertEqual((book.files, book.records, book.kept), (3, 8, 3))
        expected = {
            ("", "wrong number of fields"): (1, "t/a.csv:2"),
            ("a", "empty"): (1, "t/a.csv:4"),
            ("a", "not an INT"): (1, "t/b.csv:3"),
            ("b", "empty"): (1, "t/a.csv:3"),
            ("b", "not a DATE"): (1, "t/b.csv:4"),
        }
        self.assertEqual(book.dropped, expected)
        self.assertEqual(book.nulled, {("c", "not a DOUBLE"): (1, "t/b.csv:5")})

    def test_missing_files_and_columns_are_errors(self):
        for files in [{"x.csv": b""}, {"t.csv": b"a,b\n"}, {"t.csv": b"\n"}, {"t.csv": b"A,b,c\n"}]:
            with self.assertRaises(tables.InputError):
                self.read(files)


def as_millrace(answer):
    """The answer in the shape millrace prints it, with every value as a string."""
    shaped = copy.deepcopy(answer)
    for query in shaped["queries"].values():
        query["columns"] = [{"name": name, "type": "TEXT"} for name in query["columns"]]
    return {"queries": shaped["queries"], "audit": {"balanced": True, "tables": shaped["tables"]}}


class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_dirty_set_has_a_balanced_audit(self):
        sets = 0
        for analysis in sorted(oracle.ANALYSES):
            root = os.path.join(HERE, "dirty", analysis)
            for name in sorted(os.listdir(root)):
                answer = oracle.answer(analysis, os.path.join(root, name))
                for book in answer["tables"].values():
                    dropped = sum(entry["count"] for entry in book["dropped"])
                    self.assertEqual(book["records"], book["kept"] + dropped)
                sets += 1
        self.assertGreaterEqual(sets, 6)

    def test_answers_of_the_tied_sets_are_those_worked_out_by_hand(self):
        movies = oracle.answer("movies", os.path.join(HERE, "dirty", "movies", "ties"))["queries"]
        self.assertEqual(movies["q3"]["rows"], [["4", "Same", "3.5"], ["9", "Zo", "2.5"]])
        self.assertEqual(movies["q4"]["rows"][:4], [["l", "8"], ["L", "4"], ["g", "4"], ["k", "4"]])
        coffee = oracle.answer("coffee", os.path.join(HERE, "dirty", "coffee", "ties"))["queries"]
        expected = [["2024-01", "Nine a", "4"], ["2024-02", "Two", "0"]]
        self.assertEqual(coffee["q2a"]["rows"], expected)
        self.assertEqual(coffee["q4"]["rows"][6], ["Twin", "9", None, "2"])
        memes = oracle.answer("memes", os.path.join(HERE, "dirty", "memes", "ties"))["queries"]
        self.assertEqual(memes["q3"]["rows"], [["b", "https://z.example/B", "0.3333333333333333"]])

    def test_parameters_and_a_choice_of_queries(self):
        data = os.path.join(HERE, "dirty", "coffee", "values")
        settings = [("minimum", "100.125"), ("last_year", "2024")]
        answer = oracle.answer("coffee", data, ["q1"], settings)
        self.assertEqual(list(answer["tables"]), ["transactions"])
        self.assertEqual(answer["queries"]["q1"]["rows"], [])
        with self.assertRaises(tables.InputError):
            oracle.answer("coffee", data, ["q1"], [("since", "2000-01-01")])

    def test_the_comparison_finds_every_change(self):
        data = os.path.join(HERE, "dirty", "coffee", "values")
        answer = json.loads(json.dumps(oracle.answer("coffee", data)))
        millrace = as_millrace(answer)
        self.assertEqual(compare.compare(answer, millrace), [])

        def changed(change):
            other = copy.deepcopy(millrace)
            change(other)
            return compare.compare(answer, other)

        audit = lambda other: other["audit"]["tables"]["transactions"]
        changes = [
            lambda other: other["queries"]["q1"]["rows"][1].__setitem__(1, "75.0"),
            lambda other: other["queries"]["q1"]["rows"].pop(),
            lambda other: other["queries"]["q4"]["rows"][1].__setitem__(2, ""),
            lambda other: other["queries"].pop("q3"),
            lambda other: other["audit"].__setitem__("balanced", False),
            lambda other: other["audit"]["tables"].pop("users"),
            lambda other: audit(other).__setitem__("records", 1),
            lambda other: audit(other)["dropped"].pop(),
            lambda other: audit(other)["nulled"][0].__setitem__("first", "elsewhere:1"),
        ]
        for change in changes:
            self.assertTrue(changed(change))

    def test_a_number_is_compared_by_its_characters(self):
        path = os.path.join(self.folder.name, "numbers.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"a": 75.000, "b": 1e-05, "c": "x", "d": 10}')
        loaded = compare.load(path)
        self.assertEqual(loaded, {"a": "75.000", "b": "1e-05", "c": "x", "d": "10"})
        self.assertIsInstance(loaded["a"], compare.Number)

    def test_the_same_seed_makes_the_same_bytes(self):
        for analysis in oracle.ANALYSES:
            first = make_dirty.make_random(analysis, 7)
            self.assertEqual(first, make_dirty.make_random(analysis, 7))

    def test_made_sets_can_be_read(self):
        made = {"movies": [make_dirty.MOVIES_BYTES], "coffee": [make_dirty.COFFEE_BYTES]}
        made["memes"] = [make_dirty.MEMES_BYTES]
        for analysis, sets in made.items():
            sets += [make_dirty.make_random(analysis, seed) for seed in range(20)]
            for files in sets:
                with tempfile.TemporaryDirectory() as folder:
                    make_dirty.write_set(folder, files)
                    json.dumps(oracle.answer(analysis, folder))


if __name__ == "__main__":
    unittest.main()
