#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_answers.py - millrace's answers and audit are those of the oracle, on every data set.

Goal: a second implementation, written from the rules alone, finds what our own tests repeat as a
mistake. Method: the sets in dirty/, those that make_dirty.py writes, and generated ones, each with
one thread and with several; rows are compared byte for byte, the audit number by number. With
TEST_FULL=1 there are many more random sets.

    MILLRACE=build/release/millrace python3 tests/oracle/test_answers.py
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import compare
import oracle

MILLRACE = os.environ.get("MILLRACE", "build/release/millrace")
FULL = os.environ.get("TEST_FULL") == "1"
RANDOM_SETS = 200 if FULL else 10
GENERATED_SCALE = "0.001"
THREADS = ("1", "4")


def data_sets(folder):
    """The (analysis, path) of every set in folder/ANALYSIS/NAME."""
    return [
        (analysis, os.path.join(folder, analysis, name))
        for analysis in sorted(os.listdir(folder))
        for name in sorted(os.listdir(os.path.join(folder, analysis)))
    ]


class Answers(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    def run_millrace(self, *arguments):
        done = subprocess.run([MILLRACE, *arguments], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace")[-2000:])
        return done.stdout

    def check_set(self, analysis, data_dir):
        with open(self.path("oracle.json"), "w", encoding="utf-8") as file:
            json.dump(oracle.answer(analysis, data_dir), file)
        expected = compare.load(self.path("oracle.json"))
        for threads in THREADS:
            name = os.path.basename(data_dir)
            with self.subTest(analysis=analysis, set=name, threads=threads):
                output = self.run_millrace(
                    "run", analysis, data_dir, "--format", "json", "--threads", threads
                )
                with open(self.path("millrace.json"), "wb") as file:
                    file.write(output)
                differences = compare.compare(expected, compare.load(self.path("millrace.json")))
                shown = "\n".join(differences[:20])
                self.assertFalse(differences, f"{len(differences)} differences\n{shown}")

    def test_the_kept_sets(self):
        for analysis, data_dir in data_sets(os.path.join(HERE, "dirty")):
            self.check_set(analysis, data_dir)

    def test_the_made_sets(self):
        made = self.path("made")
        command = [sys.executable, os.path.join(HERE, "make_dirty.py"), made]
        subprocess.run([*command, "--random", str(RANDOM_SETS), "--seed", "1"], check=True)
        for analysis, data_dir in data_sets(made):
            self.check_set(analysis, data_dir)

    def test_generated_data(self):
        for analysis in ("coffee", "memes", "movies"):
            data_dir = self.path(analysis + "-generated")
            self.run_millrace("gen", analysis, data_dir, "--scale", GENERATED_SCALE, "--seed", "7")
            self.check_set(analysis, data_dir)


if __name__ == "__main__":
    unittest.main()
