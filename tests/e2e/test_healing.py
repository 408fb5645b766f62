#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Monitors bring back what dies, leave alone what was stopped, and believe no liar.

Method: one cluster on this host, started by `up`, with two gateways, three workers and three
monitors that miss a node after a second, and for some tests a second one that uses its broker.
Clients run all analyses while a node is killed every second; nodes are stopped by operators;
forged and recorded datagrams are sent to everybody; a driver hangs. Answers must be those of one
process. test_healing_full.py has more of it. Prints TAP; words on the command line choose tests by
parts of their names. MILLRACE is the binary, SEED chooses who is killed.
"""
import contextlib
import json
import os
import stat
import subprocess
import sys
import time

from cluster import Proxy, Suite, poll
from timing import scaled
from monitored import (DRIVER_TIMEOUT_S, GATEWAYS, MONITORS, FAILURE_TIMEOUT_S, WORKERS, Clients, Relay,
                     Storm, World, expect_not_fooled)
from world import CHUNKS, SCALES, missing

SEED = int(os.environ.get("SEED", "7"))
STORM_S = 6
LIES = 100000

suite = Suite()
test = suite.test


@test("a node is killed every second while three clients work, and all answers are right")
def _(world):
    cluster = world.cluster
    storm = Storm(cluster, GATEWAYS + WORKERS + MONITORS, SEED)
    print(f"# SEED={SEED}")
    with Clients(cluster, SCALES) as clients:
        storm.blow(STORM_S)
    storm.settle()
    print(f"# {storm.told()}; {sum(clients.answers.values())} answers")
    assert len(storm.kills) >= STORM_S // 2, storm.kills
    cluster.expect_clean()
    cluster.expect_lawful()


@test("what was stopped on purpose stays so until a hand starts it, and no recording changes that")
def _(world):
    cluster = world.cluster
    relay = Relay({name: cluster.ports[name] for name in MONITORS})
    try:
        told = cluster.command("stop", "-c", cluster.file, "w3")[1]
        assert "w3 has stopped" in told and "millrace worker -c" in told, told
        stopped = time.time()
        first = cluster.start_by_hand("w3", **relay.env())
        cluster.wait_state("w3", "up")
        cluster.command("stop", "-c", cluster.file, "w3")  # The order goes through the relay.
        assert first.wait(scaled(10)) == 0
        assert relay.to_node and len(relay.to_monitors) > 10

        relay.replay()
        time.sleep(scaled(FAILURE_TIMEOUT_S * 1.2))
        assert cluster.seen("w3").state == "stopped" and cluster.pid("w3") is None
        assert not cluster.drives(stopped), cluster.drives(stopped)

        second = cluster.start_by_hand("w3", **relay.env())
        before = cluster.wait_state("w3", "up")
        relay.replay()  # Among it farewells, and the order to stop.
        time.sleep(scaled(FAILURE_TIMEOUT_S * 1.5))
        assert second.poll() is None and cluster.seen("w3").incarnation == before.incarnation

        second.kill()
        second.wait()
        killed = time.monotonic()
        while time.monotonic() < killed + scaled(FAILURE_TIMEOUT_S * 1.5):
            relay.replay()  # Nobody lives by it.
        cluster.wait_back({"w3": before.incarnation}, "w3")
        assert cluster.drives(stopped)[0][2] == "w3", cluster.drives(stopped)
    finally:
        relay.close()
    assert cluster.seen("w3").restarts > 0
    cluster.expect_clean()


@test("forged, altered and cut datagrams do nothing but count")
def _(world):
    expect_not_fooled(world.cluster, LIES, SEED)


@test("chaos kills while it verifies, and the timeline of a job tells what happened")
def _(world):
    cluster = world.cluster
    out, _ = cluster.command("chaos", "-c", cluster.file, "--kill", "w*,m*", "--count", "1",
                             "--seed", SEED, "--every", f"{scaled(1):.1f}", "--verify", "movies",
                             world.data.folder / "movies")
    assert "answers equal: yes" in out and "kills: " in out, out
    before = cluster.wait_calm()[2]

    proxy = Proxy({name: cluster.ports[name] for name in GATEWAYS})
    proxy.at("PUT", CHUNKS, 20, lambda: cluster.kill("w1"))
    cluster.submit("movies", "--job", "monitored-job", gateway=f"http://127.0.0.1:{proxy.port}")
    proxy.close()
    cluster.wait_back({"w1": before["w1"].incarnation}, "w1")
    out, _ = cluster.command("jobs", "monitored-job", "-g", cluster.url(), "--json")
    events = json.loads(out)["timeline"]["events"]
    about = [event["what"] for event in events if event.get("node", "") in ("", "w1")]
    order = [about.index(what) for what in
             ("submitted", "suspected", "restarting", "resumed", "complete", "done")]
    assert order == sorted(order), events
    text, _ = cluster.command("jobs", "monitored-job", "-g", cluster.url())
    assert "restarting" in text and "resumed" in text, text


@test("the key is nobody else's to read, and stands nowhere else")
def _(world):
    cluster = world.cluster
    key = cluster.home / "key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.chmod(0o640)
    try:
        refused = cluster.command("stop", "-c", cluster.file, "w1", code=2)[1]
        assert f"chmod 600 {key}" in refused, refused
        refused = cluster.command("worker", "-c", cluster.file, "-n", "w1", code=1)[1]
        assert "in use by process" in refused or f"chmod 600 {key}" in refused, refused
    finally:
        key.chmod(0o600)
    secret = key.read_text().strip()
    shown = subprocess.run(["ps", "axeww"], capture_output=True, text=True, check=True).stdout
    assert str(cluster.file) in shown and secret not in shown
    for path in cluster.folder.rglob("*"):
        if path.is_file() and path != key:
            with contextlib.suppress(OSError):
                text = path.read_bytes()
                assert secret.encode() not in text, path
                assert bytes.fromhex(secret) not in text, path


@test("a driver that hangs delays nobody but the node it hangs for")
def _(world):
    cluster = world.commanded()
    before, since = cluster.incarnations(), time.time()
    leader = cluster.leader()
    other = next(name for name in MONITORS if name != leader)
    (cluster.folder / "hang-w1").write_text("")
    cluster.kill("w1")
    poll("the driver is told", lambda: cluster.drives(since))
    begin = time.monotonic()
    cluster.kill("w2", "g1", other)
    cluster.wait_back(before, "w2", "g1", other, seconds=DRIVER_TIMEOUT_S * 4)
    print(f"# the others were back after {time.monotonic() - begin:.1f} s")

    def drives():
        return [(line.event, line.fields["target"]) for line in cluster.lines()
                if line.event in ("drive", "driven") and line.seconds >= since]

    # A node may be back before the driver that started it has said so.
    poll("the others' drivers are done", lambda: all(("driven", node) in drives()
                                                     for node in ("w2", "g1", other)))
    order = drives()
    assert order[0] == ("drive", "w1"), order
    if ("driven", "w1") in order:
        assert order.index(("driven", "w1")) > order.index(("driven", "w2")), order
    (cluster.folder / "hang-w1").unlink()
    cluster.wait_back(before, "w1")
    assert cluster.leader() == leader


if __name__ == "__main__":
    if missing():
        print(f"1..0 # SKIP {missing()}")
        sys.exit(0)
    sys.exit(suite.run(sys.argv[1:], World))
