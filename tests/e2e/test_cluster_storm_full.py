#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clusters that are never left alone: kills without end, brokers that die, all parts replaced.

Method: as in test_cluster.py, with larger jobs, so that there is time for many faults. What is
chosen by chance comes from a seed that is printed. Runs only in the full suite. Prints TAP; words
on the command line choose tests by parts of their names. MILLRACE is the binary.
"""
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time

from cluster import BrokerTrio, Suite, poll
from timing import scaled, setting
from world import CHUNKS, Meanwhile, World, large

SEED = int(os.environ.get("SEED", "7"))

suite = Suite()
test = suite.test


@test("a process killed every second through a whole job changes nothing")
def _(world):
    cluster = world.cluster
    dice = random.Random(SEED)
    print(f"# SEED={SEED}")

    def kill_one():
        cluster.restart(dice.choice(list(cluster.nodes)))
        time.sleep(scaled(1))

    client = world.submit(data=large(world))
    with Meanwhile(client, kill_one) as storm:
        world.check(client, "movies", large(world), seconds=300)
    assert storm.count > 3, storm.count
    cluster.expect_clean()


@test("a broker killed every few seconds through a whole job changes nothing")
def _(world):
    cluster = world.cluster
    kills = []

    def kill_broker():
        if len(kills) < 6:
            cluster.broker.kill()
            cluster.broker.start()
            cluster.broker.wait()
            kills.append(1)
        time.sleep(scaled(2))

    client = world.submit(data=large(world))
    with Meanwhile(client, kill_broker):
        world.check(client, "movies", large(world), seconds=300)
    assert kills
    cluster.expect_clean()


@test("every process and every disk may be replaced one after another during one job")
def _(world):
    cluster = world.cluster
    moments = [("PUT", CHUNKS, 20 + 200 * i, lambda name=name: cluster.lose_disk(name))
               for i, name in enumerate(cluster.nodes)]

    def replace_broker():
        cluster.broker.kill()
        cluster.broker.start()
        cluster.broker.wait()

    moments.append(("PUT", CHUNKS, 1200, replace_broker))
    world.disturbed(*moments, data=large(world), seconds=300)


@test("a worker may be stopped for longer than the broker waits for it, and go on")
def _(world):
    cluster = world.cluster

    def stop_for_long():
        cluster.freeze("w1")
        time.sleep(scaled(20))
        cluster.thaw("w1")

    world.disturbed(("PUT", CHUNKS, 30, stop_for_long), seconds=120)


@test("a job whose client is gone is removed when its time is over")
def _(world):
    world.restart_all(MILLRACE_CLUSTER_CLIENT_TIMEOUT=setting(3))
    try:
        with world.proxied() as (proxy, url):
            client = world.submit(gateway=url)
            proxy.at("PUT", CHUNKS, 30, client.kill)
            poll("the client is dead", lambda: client.process.poll() is not None)
        (world.cluster.folder / "state" / "jobs" / client.job).unlink()
        world.cluster.expect_clean()
    finally:
        world.restart_all()


def folder_size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*")
               if path.is_file() and path.name != "log")


@test("after a hundred jobs, folders and what a restart reads are as after one")
def _(world):
    cluster = world.cluster
    tiny = world.data("tiny")

    def left_after(count):
        for _ in range(count):
            world.check(world.submit(data=tiny), "movies", tiny)
        cluster.expect_clean()
        cluster.restart("w1")
        log = cluster.nodes["w1"].folder / "log"
        replayed = poll("w1 is back", lambda: re.search(
            r"event=replayed (jobs=0 .*)", log.read_text().rsplit("event=started", 1)[1]))
        return {name: folder_size(node.folder) for name, node in cluster.nodes.items()}, \
            replayed.group(1)

    first, first_replayed = left_after(1)
    last, last_replayed = left_after(100)
    assert all(last[name] <= first[name] + 4096 for name in first), f"{first} {last}"
    assert last_replayed == first_replayed, f"{last_replayed}, not {first_replayed}"


@test("three brokers as one may lose any of them in turn")
def _(_):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-trio-"))
    trio = BrokerTrio(folder)
    with World(brokers=trio, queues="quorum") as world:
        try:
            moments = []
            for i, member in enumerate(trio.members):
                moments.append(("PUT", CHUNKS, 20 + 400 * i, member.kill))

                def back(member=member):
                    member.start()
                    member.wait()

                moments.append(("PUT", CHUNKS, 220 + 400 * i, back))
            world.disturbed(*moments, data=large(world), seconds=300)
        except BaseException:
            print("\n".join("# " + line for line in world.state().splitlines()))
            raise
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(suite.run(sys.argv[1:], World))
