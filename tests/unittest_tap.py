#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unittest_tap.py - runs one file of Python unit tests and reports in TAP.

A test that makes sub-tests counts as these sub-tests, because each of them is a comparison of its
own and one of many hundred must not hide behind a single `ok`.

usage: unittest_tap.py FILE
"""
import importlib.util
import pathlib
import sys
import unittest


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0
        self.sub_tests = {}

    def say(self, good, test, suffix="", error=None):
        self.number += 1
        name = test.id().split(".", 1)[-1].replace("#", " ").replace("\n", " ")
        print(f"{'ok' if good else 'not ok'} {self.number} - {name}{suffix}", flush=True)
        if error:
            # unittest's own way of writing it leaves out its own frames.
            for line in self._exc_info_to_string(error, test).splitlines():
                print("# " + line, flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self.sub_tests[test.id()] = True
        self.say(err is None, subtest, error=err)

    def addSuccess(self, test):
        if test.id() not in self.sub_tests:
            self.say(True, test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say(False, test, error=err)

    def addError(self, test, err):
        super().addError(test, err)
        self.say(False, test, error=err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say(True, test, suffix=f" # SKIP {reason}")

    def addExpectedFailure(self, test, err):
        self.say(True, test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.say(False, test, suffix=" succeeded unexpectedly")


def main():
    path = pathlib.Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    result = TapResult()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    print(f"1..{result.number}")
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
