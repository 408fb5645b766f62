#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every crash point in every kind of node, at several moments, and every loss of a disk.

Method: as in test_cluster.py, one fault at a time. Runs only in the full suite. Prints TAP; words
on the command line choose tests by parts of their names. MILLRACE is the binary.
"""
import sys

from cluster import Suite
from world import AUDIT, CHUNKS, RESULTS, World, crash_at

POINTS = ("before-log", "after-log", "before-acknowledge", "after-acknowledge", "before-publish",
          "after-publish", "before-confirm", "after-confirm", "before-emit", "after-emit",
          "before-result", "after-result")
OF_GATEWAYS = POINTS[2:8]
FEW = ("before-emit", "after-emit", "before-result", "after-result")

suite = Suite()
test = suite.test


def register(node, point, count):
    @test(f"{node} may die at {point}, time {count}")
    def _(world):
        # A worker may have fewer of the rare ones than that.
        crash_at(world, {node: f"{point}:{count}"}, must_die=count < 5 and point not in FEW)


for each_point in POINTS:
    for each_count in (1, 2, 20, 60):
        if each_point not in FEW or each_count < 20:
            register("w2", each_point, each_count)
for each_point in OF_GATEWAYS:
    for each_count in (1, 2, 20):
        register("g1", each_point, each_count)


@test("a chance of dying at every log, publish and acknowledgement leaves the answer right")
def _(world):
    words = "before-log:p0.02,after-publish:p0.02,before-acknowledge:p0.02"
    world.restart_all(["w1", "w2", "w3"], MILLRACE_CRASH=words)
    before = world.cluster.deaths()
    try:
        world.check(world.submit(), seconds=180)
        assert world.cluster.deaths() > before + 2, world.cluster.deaths() - before
    finally:
        world.restart_all(["w1", "w2", "w3"])
    world.cluster.expect_clean()


MOMENTS = (("PUT", CHUNKS, 1), ("PUT", CHUNKS, 5), ("PUT", CHUNKS, 30), ("PUT", CHUNKS, 125),
           ("PUT", r"/end$", 1), ("PUT", r"/end$", 3), ("GET", RESULTS, 1), ("GET", RESULTS, 5),
           ("GET", AUDIT, 1), ("GET", AUDIT, 3))

for each_node in ("w1", "w2", "w3"):
    for each_method, each_pattern, each_time in MOMENTS:
        @test(f"{each_node} may lose its folder at {each_method} {each_pattern}, time {each_time}")
        def _(world, node=each_node, moment=(each_method, each_pattern, each_time)):
            world.disturbed((*moment, lambda: world.cluster.lose_disk(node)))


@test("all workers may lose their folders at once")
def _(world):
    def lose_all():
        for name in ("w1", "w2", "w3"):
            world.cluster.lose_disk(name)

    world.disturbed(("PUT", CHUNKS, 60, lose_all))


if __name__ == "__main__":
    sys.exit(suite.run(sys.argv[1:], World))
