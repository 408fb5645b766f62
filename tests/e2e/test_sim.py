#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulated clusters keep the promises under faults, and planted mistakes are found.

Method: `millrace sim` runs the roles of a real cluster under a seeded scheduler. Many seeds with all
kinds of faults; each profile, whose budgets of repair the program checks itself; and every mistake
that can be planted into the workers, until it is found. The same for monitors. Many more seeds are
those of test_sim_full.py and test_sim_monitors_full.py. MILLRACE is the binary. Prints TAP.
"""
import re
import sys

from simulation import PROFILES, keeps_promises, main, sim, test

SEEDS = "1..2000"
PROFILE_SEEDS = "1..200"
# Mistake: the profile that finds it. How soon depends on the build, which is part of every job's
# manifest and so of the way its chunks take; the seeds are many times what it takes.
MUTATIONS = {
    "applies-twice": "mixed",
    "counts-wrong": "mixed",
    "forgets-end": "mixed",
    "ignores-sent": "mixed",
    "uses-half-copy": "mixed",
    "holds-chunk": "mixed",
    "has-no-lease": "mixed",
    "never-doubles": "slow-maps",
    "sends-one-barrier": "slow-maps",
}
MUTATION_SEEDS = "1..5000"
MONITORS_MUTATIONS = ["no-lease", "votes-at-once", "no-term", "obeys-any", "orders-any"]
MONITORS_MUTATION_SEEDS = "1..2000"


@test(f"all promises are kept for seeds {SEEDS}")
def _():
    keeps_promises(SEEDS)


def profile_test(profile):
    @test(f"profile {profile} stays within its budget")
    def _():
        keeps_promises(PROFILE_SEEDS, "--profile", profile)


def mutation_test(mutation, profile):
    @test(f"the planted mistake {mutation} is found")
    def _():
        out, err = sim("--seeds", MUTATION_SEEDS, "--profile", profile, "--mutation", mutation,
                       "--stop", check=1)
        assert re.search(r"^seed \d+: ", out, re.MULTILINE), out
        assert re.search(r"^  millrace sim --seeds \d+ .*--trace$", out, re.MULTILINE), out
        assert "seeds failed" in err, err


for name in PROFILES:
    profile_test(name)
for name, where in MUTATIONS.items():
    mutation_test(name, where)


@test(f"monitors keep their promises for seeds {SEEDS}")
def _():
    keeps_promises(SEEDS, "--monitors")


def monitors_mutation_test(mutation):
    @test(f"the mistake {mutation}, planted into monitors and nodes, is found")
    def _():
        out, err = sim("--monitors", "--seeds", MONITORS_MUTATION_SEEDS, "--mutation", mutation,
                       "--stop", check=1)
        assert re.search(r"^seed \d+: ", out, re.MULTILINE), out
        assert re.search(r"^  millrace sim --monitors --seeds \d+ .*--trace$", out,
                         re.MULTILINE), out
        assert "seeds failed" in err, err


for name in MONITORS_MUTATIONS:
    monitors_mutation_test(name)


@test("the same seed of monitors gives the same trace, line by line")
def _():
    first, _ = sim("--monitors", "--seeds", "11", "--trace", check=0)
    second, _ = sim("--monitors", "--seeds", "11", "--trace", check=0)
    assert len(first.splitlines()) > 20, first
    assert first == second


@test("the same seed gives the same trace, line by line")
def _():
    first, _ = sim("--seeds", "11", "--trace", check=0)
    second, _ = sim("--seeds", "11", "--trace", check=0)
    assert len(first.splitlines()) > 100, first
    assert first == second
    other, _ = sim("--seeds", "12", "--trace", check=0)
    assert first != other


@test("what can't be meant is refused")
def _():
    for words in (["--seeds", "9..1"], ["--seeds", "x"], ["--profile", "clam"],
                  ["--mutation", "nonsense"], ["--processes", "0"], ["extra"],
                  ["--monitors", "--mutation", "applies-twice"],
                  ["--monitors", "--profile", "calm"]):
        out, err = sim(*words, check=2)
        assert out == "" and err.startswith("millrace: "), (words, out, err)


if __name__ == "__main__":
    sys.exit(main())
