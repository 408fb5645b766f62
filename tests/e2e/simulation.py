# SPDX-License-Identifier: Apache-2.0
"""simulation.py - what the suites of `millrace sim` share: a way to run it, and TAP.

    @test("a sentence")             registers a test
    sim("--seeds", "1..9", check=0) runs it to its end; gives stdout and stderr
    keeps_promises(...)             no seed fails
    sys.exit(main())                runs the tests; words on the command line choose some of them

MILLRACE is the binary.
"""
import os
import re
import subprocess
import sys
import traceback

from timing import scaled

MILLRACE = os.path.abspath(os.environ.get("MILLRACE", "build/release/millrace"))
TIMEOUT_S = 1800  # Of one run.

PROFILES = ["calm", "slow-maps", "full-queues", "worker-death", "gateway-death", "broker-death",
            "pause", "lost-disk"]

TESTS = []


def test(sentence):
    def register(function):
        TESTS.append((sentence, function))
        return function
    return register


def sim(*words, check):
    done = subprocess.run([MILLRACE, "sim", *words], capture_output=True, timeout=scaled(TIMEOUT_S),
                          text=True, errors="replace")
    if done.returncode != check:
        raise AssertionError(f"exit {done.returncode}, expected {check}: {words}\n"
                             f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}")
    return done.stdout, done.stderr


def keeps_promises(seeds, *words):
    out, err = sim("--seeds", seeds, *words, check=0)
    assert out == "", out
    assert re.search(r"[\d,]+ seeds, [\d,]+ (jobs|datagrams)", err), err


def blocks(last, size):
    """1..last, cut into ranges as `--seeds` takes them: one that fails says soon where."""
    return [f"{first}..{first + size - 1}" for first in range(1, last + 1, size)]


def main():
    only = sys.argv[1:]
    chosen = [(s, f) for s, f in TESTS if not only or any(word in s for word in only)]
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    for number, (sentence, function) in enumerate(chosen, 1):
        try:
            function()
            print(f"ok {number} - {sentence}", flush=True)
        except Exception:  # A test that breaks is a test that fails; the next one still runs.
            failed += 1
            print(f"not ok {number} - {sentence}")
            for line in traceback.format_exc().splitlines()[-25:]:
                print(f"# {line}")
            sys.stdout.flush()
    return 1 if failed else 0
