#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulated monitors keep their promises for 100,000 seeds.

Method: as in test_sim.py. Runs only in the full suite. Prints TAP; words on the command line choose
tests by parts of their names. MILLRACE is the binary.
"""
import sys

from simulation import blocks, keeps_promises, main, test


def monitors_test(seeds):
    @test(f"monitors keep their promises for seeds {seeds}")
    def _():
        keeps_promises(seeds, "--monitors")


for each in blocks(100000, 10000):
    monitors_test(each)

if __name__ == "__main__":
    sys.exit(main())
