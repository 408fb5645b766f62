#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers whose folds outgrow the memory that a job may have.

Method: a job with half a million groups on workers with a small memory_limit, which are looked at
while they work. Prints TAP; words on the command line choose tests by parts of their names.
MILLRACE is the binary.
"""
import sys
import threading
import time

from cluster import Suite, run, temporary_files
from world import World

suite = Suite()
test = suite.test


class Spies:
    """Which workers have temporary files open, at some time."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.seen = set()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.over.is_set():
            for name, node in list(self.cluster.nodes.items()):
                process = node.process
                if name.startswith("w") and process and temporary_files(process.pid):
                    self.seen.add(name)
            time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def groups(world):
    """(words of the job, what one process answers)"""
    folder, data = world.folder / "rows", world.folder / "spilled"
    (folder / "groups.sql").write_text(
        "SELECT userId, movieId, timestamp, count(*) AS n, sum(rating) AS total FROM ratings\n"
        "GROUP BY userId, movieId, timestamp ORDER BY total DESC, userId, movieId, timestamp;\n")
    if not data.exists():
        run("gen", "movies", data, "--scale", "0.03")
    words = (folder, data, "--query", "groups", "--format", "csv")
    return words, run("run", *words)


@test("workers go on in files, and the answer is that of one process")
def _(world):
    words, expected = groups(world)
    with Spies(world.cluster) as spies:
        client = world.cluster.submit(*words)
        client.wait()
    assert client.out_path.read_text() == expected
    assert spies.seen, "no worker had a temporary file"
    world.cluster.expect_clean()


@test("a worker that is killed while it spills leaves nothing, and loses nothing")
def _(world):
    words, expected = groups(world)
    with Spies(world.cluster) as spies:
        client = world.cluster.submit(*words)
        while not spies.seen and client.process.poll() is None:
            time.sleep(0.005)
        for name in sorted(spies.seen):
            world.cluster.restart(name)
        client.wait()
    assert spies.seen, "no worker had a temporary file"
    assert client.out_path.read_text() == expected
    world.cluster.expect_clean()


if __name__ == "__main__":
    sys.exit(suite.run(sys.argv[1:], lambda: World(memory_limit="24M")))
