#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real cluster whose workers only map (w1, w2) or only fold (w3, w4), under faults.

Method: as in test_cluster.py. Who maps is seen at the broker, as the consumers of work queues; who
folds is seen in the logs of a job that workers keep and read back when they are started again.
Prints TAP; words on the command line choose tests by parts of their names. MILLRACE is the binary.
"""
import json
import re
import sys

from cluster import Amqp, Suite, poll, run
from world import AUDIT, BY_SHARDS, CHUNKS, World

MAPPERS = ("w1", "w2")
FOLDERS = ("w3", "w4")

suite = Suite()
test = suite.test


class Watch:
    """Of the work queues: how many workers take chunks from each."""

    def __init__(self, cluster):
        self.amqp = Amqp(cluster.broker.port)
        self.names = [name for name in cluster.queue_names() if ".work." in name]
        assert len(self.names) == 2, cluster.queue_names()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.amqp.socket.close()

    def consumers(self):
        return [self.amqp.consumers(name) for name in self.names]

    def expect(self, count):
        poll(f"{count} workers take chunks", lambda: self.consumers() == [count, count], 20)


def restart(world, *names):
    return lambda: [world.cluster.restart(name) for name in names]


@test("status says who maps and who folds, and only who maps takes chunks")
def _(world):
    cluster = world.cluster
    told = json.loads(run("status", "-g", cluster.url(), "--json"))
    workers = {node["name"]: (node.get("maps", False), node.get("folds", False))
               for node in told["cluster"]["nodes"] if node["role"] == "worker"}
    assert workers == {"w1": (True, False), "w2": (True, False),
                       "w3": (False, True), "w4": (False, True)}, workers
    with Watch(cluster) as watch:
        watch.expect(2)
        for name in FOLDERS:
            cluster.kill(name)
        assert watch.consumers() == [2, 2], watch.consumers()
        for name in FOLDERS:
            cluster.start(name)
        for name in MAPPERS:
            cluster.kill(name)
        watch.expect(0)
        for name in MAPPERS:
            cluster.start(name)
        watch.expect(2)


@test("all analyses are answered while workers of both kinds are killed")
def _(world):
    cluster = world.cluster
    with Watch(cluster) as watch:
        def without_mappers():
            with cluster.lock:  # Nobody else starts one meanwhile.
                for name in MAPPERS:
                    cluster.kill(name)
                try:
                    watch.expect(0)  # Also in the middle of jobs nobody else takes chunks.
                finally:
                    for name in MAPPERS:
                        cluster.start(name)

        world.disturbed_all(("PUT", CHUNKS, 60, restart(world, "w1")),
                            ("PUT", CHUNKS, 140, restart(world, "w3")),
                            ("PUT", CHUNKS, 220, without_mappers),
                            ("PUT", r"/end$", 4, restart(world, "w2", "w4")))
        watch.expect(2)


def replayed(world, name):
    """How many records a worker reads back from its logs; kills and starts it."""
    path = world.cluster.nodes[name].folder / "log"
    line = re.compile(r"event=replayed jobs=(\d+) records=(\d+)")
    before = len(line.findall(path.read_text()))
    world.cluster.restart(name)
    found = poll(f"{name} has read its logs",
                 lambda: line.findall(path.read_text())[before:])
    assert found[0][0] == "1", f"{name} has {found[0][0]} jobs"
    return int(found[0][1])


@test("who only maps keeps no input of joins by shards, and who only folds keeps all, under kills")
def _(world):
    records = {}

    def look():
        records.update({name: replayed(world, name) for name in MAPPERS + FOLDERS})

    with world.happening(("PUT", CHUNKS, 40, restart(world, "w1")),
                         ("PUT", CHUNKS, 80, restart(world, "w3")),
                         ("GET", AUDIT, 1, look)) as url:
        client = world.submit("movies", *BY_SHARDS, gateway=url)
        world.check(client, "movies", None, *BY_SHARDS)
    assert all(records[name] == 1 for name in MAPPERS), records  # The job itself.
    assert all(records[name] > 100 for name in FOLDERS), records  # What each chunk gave.


if __name__ == "__main__":
    sys.exit(suite.run(sys.argv[1:], lambda: World(workers=4, roles=(2, 2))))
