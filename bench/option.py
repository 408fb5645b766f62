# SPDX-License-Identifier: Apache-2.0
"""option.py - what the commands of ./dev bench share: kinds of arguments, and where they speak."""
import argparse
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def number_above_zero(kind):
    def parse(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError("must be above 0")
        return value
    parse.__name__ = kind.__name__
    return parse


def names_among(known):
    def parse(text):
        names = [] if text == "none" else text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"no {name!r}; there are {', '.join(known)}")
        return names
    return parse


def add_common(add):
    """What the commands have that measure millrace alone."""
    add("--threads", type=number_above_zero(int), default=os.cpu_count(),
        help="of `run`; default: one per core")
    add("--seed", type=int, default=1, help="of the data; default: 1")
    add("--repeat", type=number_above_zero(int), default=3,
        help="rounds; the best counts; default: 3")
    add("--json", type=pathlib.Path, metavar="FILE", help="also write all numbers there")
    add("--folder", type=pathlib.Path, default=ROOT / "build" / "bench",
        help="where data is put while this runs; default: build/bench")
    add("--millrace", default=str(ROOT / "build" / "release" / "millrace"), help="the program")


def parse(parser, words):
    options = parser.parse_args(words)
    if shutil.which(options.millrace) is None:
        parser.error(f"no program {options.millrace}: ./dev build makes it")
    return options
