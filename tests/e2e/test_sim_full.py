#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulated clusters keep the promises for 100,000 seeds, and for many of each profile.

Method: as in test_sim.py. Runs only in the full suite. Prints TAP; words on the command line choose
tests by parts of their names. MILLRACE is the binary.
"""
import sys

from simulation import PROFILES, blocks, keeps_promises, main, test

PROFILE_SEEDS = "1..3000"


def mixed_test(seeds):
    @test(f"all promises are kept for seeds {seeds}")
    def _():
        keeps_promises(seeds)


def profile_test(profile):
    @test(f"profile {profile} stays within its budget for seeds {PROFILE_SEEDS}")
    def _():
        keeps_promises(PROFILE_SEEDS, "--profile", profile)


for name in PROFILES:
    profile_test(name)
for each in blocks(100000, 10000):
    mixed_test(each)

if __name__ == "__main__":
    sys.exit(main())
