#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real cluster under faults: whatever is killed, lost or stopped, the answer is that of one
process, and nothing is left behind.

Method: three workers, two gateways and a private RabbitMQ, all as processes. Clients go through a
proxy that takes another gateway for every request and breaks something at a chosen one. Prints TAP;
words on the command line choose tests by parts of their names. MILLRACE is the binary.
"""
import sys
import time

from cluster import Amqp, Suite, poll, run
from timing import scaled
from world import AUDIT, BY_SHARDS, CHUNKS, RESULTS, World, crash_at

suite = Suite()
test = suite.test


# --- Kills. ---

@test("three clients at once are answered while a worker, a gateway and the broker are killed")
def _(world):
    cluster = world.cluster
    clients = {name: world.submit(name) for name in ("movies", "coffee", "memes")}

    def applied():
        view = cluster.view(clients["coffee"].job)
        return sum(scan["applied"] for scan in view["scans"]) if view else 0

    poll("some chunks are applied", lambda: applied() > 10)
    cluster.kill("w1")
    cluster.kill("g1")
    cluster.start("w1")
    cluster.start("g1")
    before = applied()
    poll("more chunks are applied", lambda: applied() > before)
    cluster.broker.kill()
    cluster.broker.start()
    for name, client in clients.items():
        world.check(client, name)
    cluster.expect_clean()


@test("joins by shards give the same rows, while workers are killed in the middle and at the end")
def _(world):
    world.disturbed_all(("PUT", CHUNKS, 200, lambda: world.cluster.restart("w2")),
                        ("PUT", r"/end$", 4, lambda: world.cluster.restart("w3")),
                        words=BY_SHARDS)


@test("joins by shards are sifted as in one process, while a worker is killed")
def _(world):
    words = ("--broadcast-limit", "10K")  # The hashes of a table are small enough, it is not.
    plan = run("explain", "movies", world.data("movies"), *words)
    assert "Bloom filter of build side" in plan, plan
    with world.happening(("PUT", CHUNKS, 60, lambda: world.cluster.restart("w2"))) as url:
        world.check(world.submit("movies", *words, gateway=url), "movies", None, *words)


def crash_plans():
    """What each node is to die of, so that every point is met in few jobs: a process that has died
    is started again without. Emissions and results are few; gateways have none of them."""
    points = ["before-log", "after-log", "before-acknowledge", "after-acknowledge",
              "before-publish", "after-publish", "before-confirm", "after-confirm", "before-emit",
              "after-emit", "before-result", "after-result"]
    of_gateways = [point for point in points[2:8]]
    plans = []
    for i in range(4):
        plan = dict(zip(("w1", "w2", "w3"), points[3 * i:3 * i + 3]))
        plan.update(zip(("g1", "g2"), of_gateways[2 * i:2 * i + 2]))
        plans.append({node: f"{point}:{1 if 'emit' in point or 'result' in point else 3}"
                      for node, point in plan.items()})
    return plans


for crash_plan in crash_plans():
    @test("nodes may die at: " + ", ".join(f"{node} {words}" for node, words in crash_plan.items()))
    def _(world, crash_plan=crash_plan):
        crash_at(world, crash_plan)


@test("a worker and a gateway that are asked to end do so with exit code 0 in the middle of a job")
def _(world):
    cluster = world.cluster
    codes = []

    def ask():
        for name in ("w2", "g1"):
            codes.append(cluster.terminate(name))
            cluster.start(name)

    world.disturbed(("PUT", CHUNKS, 30, ask))
    assert codes == [0, 0], codes


# --- Losses. ---

@test("a worker's folder may be lost in the middle of a phase")
def _(world):
    world.disturbed(("PUT", CHUNKS, 60, lambda: world.cluster.lose_disk("w1")))


@test("a worker's folder may be lost between done and the last row")
def _(world):
    world.disturbed(("GET", RESULTS, 2, lambda: world.cluster.lose_disk("w1")),
                    ("GET", AUDIT, 1, lambda: world.cluster.lose_disk("w2")))


@test("a worker may be stopped for longer than anybody waits, and go on")
def _(world):
    cluster = world.cluster

    def stop_for_a_while():
        cluster.freeze("w3")
        time.sleep(scaled(3))  # It is time that matters here.
        cluster.thaw("w3")

    world.disturbed(("PUT", CHUNKS, 40, stop_for_a_while))


@test("queues may be purged and deleted in the middle of a job")
def _(world):
    names = world.cluster.queue_names()

    def purge():
        with Amqp(world.cluster.broker.port) as amqp:
            for name in names:
                amqp.purge(name)

    def delete():
        with Amqp(world.cluster.broker.port) as amqp:
            for name in names:
                amqp.delete(name)

    world.disturbed(("PUT", CHUNKS, 30, purge), ("PUT", CHUNKS, 80, delete))


if __name__ == "__main__":
    sys.exit(suite.run(sys.argv[1:], World))
