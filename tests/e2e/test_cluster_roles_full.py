#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers that only map (w1, w2) or only fold (w3, w4), joins by shards and results of many pages:
every crash point, storms, and readers slower than anybody waits.

Method: as in test_cluster_roles.py. What is chosen by chance comes from a seed that is printed.
Runs only in the full suite. Prints TAP; words on the command line choose tests by parts of their
names. MILLRACE is the binary.
"""
import os
import random
import sys
import time

from cluster import Suite, poll
from timing import scaled, setting
from world import (BY_SHARDS, CHUNKS, Meanwhile, World, crash_at, crash_with_many_rows, expect_rows,
                   large, many_rows, submit_many_rows)

SEED = int(os.environ.get("SEED", "7"))
# Who only maps logs no more than the job and copies, and emits nothing; audit are the only result
# it has. Who only folds waits for no confirms: what folds emit is asked for when it does not come.
OF_MAPPERS = (("before-log", 1), ("after-log", 1), ("before-acknowledge", 5),
              ("after-acknowledge", 5), ("before-publish", 5), ("after-publish", 5),
              ("before-confirm", 5), ("after-confirm", 5), ("before-result", 1),
              ("after-result", 1))
OF_FOLDERS = (("before-log", 40), ("after-log", 40), ("before-acknowledge", 40),
              ("after-acknowledge", 40), ("before-publish", 2), ("after-publish", 2),
              ("before-emit", 2), ("after-emit", 2), ("before-result", 2), ("after-result", 2))

suite = Suite()
test = suite.test


# --- Roles. ---

def register(node, point, count, words):
    how = ", with joins by shards" if words else ""
    @test(f"{node} may die at {point}, time {count}{how}")
    def _(world):
        crash_at(world, {node: f"{point}:{count}"}, words=words)


for each_words in ((), BY_SHARDS):
    for each_point, each_count in OF_MAPPERS:
        register("w1", each_point, each_count, each_words)
    for each_point, each_count in OF_FOLDERS:
        register("w3", each_point, each_count, each_words)


def storm(world, words):
    cluster = world.cluster
    dice = random.Random(SEED)
    print(f"# SEED={SEED}")

    def kill_one():
        cluster.restart(dice.choice(list(cluster.nodes)))
        time.sleep(scaled(1))  # A rhythm; nothing waits for it.

    client = world.submit("movies", *words, data=large(world))
    with Meanwhile(client, kill_one) as kills:
        world.check(client, "movies", large(world), *words, seconds=300)
    assert kills.count > 3, kills.count
    cluster.expect_clean()


@test("a process killed every second changes nothing where workers have roles")
def _(world):
    storm(world, ())


@test("a process killed every second changes nothing where joins go by shards")
def _(world):
    storm(world, BY_SHARDS)


@test("all analyses are joined by shards while workers of both kinds are killed")
def _(world):
    restart = world.cluster.restart
    world.disturbed_all(("PUT", CHUNKS, 100, lambda: restart("w1")),
                        ("PUT", CHUNKS, 200, lambda: restart("w4")),
                        ("PUT", r"/end$", 4, lambda: (restart("w2"), restart("w3"))),
                        words=BY_SHARDS)


@test("every worker may lose its folder while joins go by shards")
def _(world):
    names = ("w1", "w2", "w3", "w4")
    world.disturbed_all(*(("PUT", CHUNKS, 80 + 100 * i,
                           lambda name=name: world.cluster.lose_disk(name))
                          for i, name in enumerate(names)), words=BY_SHARDS)


# --- Results of many pages. ---

@test("gateways may die in the middle of every page, at its beginning and at its end")
def _(world):
    cluster = world.cluster
    expected = many_rows(world)
    for share in (0, 0.01, 0.5, 0.999):
        died = []

        def die(name, died=died):
            died.append(name)
            cluster.restart(name)

        with world.proxied() as (proxy, url):
            for count in (1, 3, 5, 7, 9):  # Every other one is the same page again, whole.
                proxy.cut("/results/large", count, share, die)
            client = submit_many_rows(world, gateway=url)
            client.wait()
            expect_rows(client.out_path.read_bytes(), expected)
        assert len(died) == 5, f"{share}: {died}"
    cluster.expect_clean()


for each_count in (1, 2, 3, 4, 5):
    for each_point in ("before-result", "after-result"):
        @test(f"the worker that has a large result may die at {each_point}, time {each_count}")
        def _(world, words=f"{each_point}:{each_count}"):
            crash_with_many_rows(world, ("w3", "w4"), words)


@test("gateways with a chance of dying at everything they send give a large result whole")
def _(world):
    cluster = world.cluster
    before = cluster.deaths()
    world.restart_all(["g1", "g2"], MILLRACE_CRASH="before-publish:p0.02,after-publish:p0.02")
    try:
        for _ in range(5):
            client = submit_many_rows(world)
            client.wait(seconds=180)
            expect_rows(client.out_path.read_bytes(), many_rows(world))
        assert cluster.deaths() > before + 2, cluster.deaths() - before
    finally:
        world.restart_all(["g1", "g2"])
    cluster.expect_clean()


@test("a reader so slow that the job is removed meanwhile gets every row once")
def _(world):
    cluster = world.cluster
    expected = many_rows(world)
    world.restart_all(MILLRACE_CLUSTER_CLIENT_TIMEOUT=setting(3))
    try:
        client = submit_many_rows(world, pipe=True)
        got = client.read(1000)
        for name in cluster.ports:
            poll(f"the job is not listed by {name}", lambda name=name: cluster.jobs(name) == [])
        got += client.read(len(expected))
        client.wait()
    finally:
        world.restart_all()
    expect_rows(got, expected)
    cluster.expect_clean()


if __name__ == "__main__":
    sys.exit(suite.run(sys.argv[1:], lambda: World(workers=4, roles=(2, 2))))
