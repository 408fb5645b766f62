#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coverage.py - which lines and branches the tests run, by room; `./dev coverage` calls it.

Builds the flavour `coverage`, runs the unit tests, the SQL files and the end-to-end suites of the
default run on it, and has gcovr add up what the compiler counted. --write puts the table into
docs/TESTING.md. Nodes that are killed write no counts: what only they run is missing here.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

import run
from run import ROOT, builder

FLAVOUR = "coverage"
PAGE = ROOT / "docs" / "TESTING.md"
BEGIN, END = "<!-- coverage -->", "<!-- end of coverage -->"


def suites(pattern):
    units = sorted((ROOT / "tests" / "unit").rglob("test_*.c"))
    scripts = [path for path in run.end_to_end_scripts()
               if not path.stem.endswith("_full") and path.stem not in ("test_installed", "test_docs")]
    every = [*run.unit_suites(FLAVOUR, "unit/", units, False),
             *run.script_suites(FLAVOUR, "e2e/", scripts, run.FULL_LIMIT_S)]
    return [suite for suite in every if re.search(pattern, suite.name)]


def forget(folder):
    """Counts of an earlier run would be added to those of this one."""
    for path in folder.rglob("*.gcda"):
        path.unlink()


def counted(folder):
    """{room: [lines, lines run, branches, branches run]}"""
    done = subprocess.run(
        ["gcovr", "--root", ROOT, "--filter", r"src/", "--exclude", r".*sentiment_builtin",
         "--gcov-ignore-parse-errors", "--json-summary", "-", folder],
        cwd=ROOT, check=True, capture_output=True, text=True)
    rooms = collections.defaultdict(lambda: [0, 0, 0, 0])
    for entry in json.loads(done.stdout)["files"]:
        room = str(pathlib.PurePath(entry["filename"]).parent).removeprefix("src/")
        for name in (room, "all"):
            for i, key in enumerate(("line_total", "line_covered", "branch_total",
                                     "branch_covered")):
                rooms[name][i] += entry[key]
    return rooms


def table(rooms):
    lines = ["| room | lines | run | branches | taken |", "| --- | ---: | ---: | ---: | ---: |"]
    for room in sorted(rooms, key=lambda name: (name == "all", name)):
        total, covered, branches, taken = rooms[room]
        lines.append(f"| {room if room == 'all' else f'`{room}`'} | {total:,} "
                     f"| {100 * covered / max(total, 1):.1f} % | {branches:,} "
                     f"| {100 * taken / max(branches, 1):.1f} % |")
    return "\n".join(lines)


def write(text):
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


def main():
    parser = argparse.ArgumentParser(prog="./dev coverage", description=__doc__.split("\n")[0])
    parser.add_argument("pattern", nargs="?", default="", help="only suites whose name matches")
    parser.add_argument("--write", action="store_true", help="put the table into docs/TESTING.md")
    options = parser.parse_args()
    chosen = suites(options.pattern)
    report = run.Report(False)
    targets = sorted({target for suite in chosen for target in suite.targets})
    folder = builder.build(FLAVOUR, targets, quiet=True)
    forget(folder)
    run.run_parallel(chosen, report)
    text = table(counted(folder))
    print(text)
    if options.write:
        write(text)
    print(report.last_line())
    sys.exit(1 if report.total.failed else 0)


if __name__ == "__main__":
    main()
