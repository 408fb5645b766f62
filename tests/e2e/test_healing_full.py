#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kind of node killed, stopped and kept from starting; two minutes of storm; a million lies.

Method: as in test_healing.py, with all that takes longer. Times from a kill to the moment when the
monitors see the node up again are printed, and are bounds only in the large. Runs only in the full
suite. Prints TAP; words on the command line choose tests by parts of their names. MILLRACE is the
binary, SEED chooses who is killed.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from cluster import MILLRACE, Proxy, Suite, is_alive, poll, run
from timing import scaled, setting
from monitored import (GATEWAYS, MONITORS, FAILURE_TIMEOUT_S, WORKERS, Clients, Storm, Monitored, World,
                     expect_not_fooled)
from world import CHUNKS, SCALES, missing

SEED = int(os.environ.get("SEED", "7"))
STORM_S = 120
LIES = 1000000
MEDIAN_S = FAILURE_TIMEOUT_S + 3

suite = Suite()
test = suite.test


def heal(cluster, action, *nodes):
    """In the middle of a job something is done to nodes: seconds until all are back."""
    before = cluster.incarnations()
    proxy = Proxy({name: cluster.ports[name] for name in GATEWAYS})
    begun, failures = [], []

    def work():
        try:
            cluster.submit("movies", gateway=f"http://127.0.0.1:{proxy.port}")
        except BaseException as failure:
            failures.append(failure)

    def act():
        begun.append(time.monotonic())
        action(*nodes)

    proxy.at("PUT", CHUNKS, 20, act)
    job = threading.Thread(target=work)
    job.start()
    poll("the job is in its middle", lambda: begun)
    cluster.wait_back(before, *nodes)
    seconds = time.monotonic() - begun[0]
    job.join()
    proxy.close()
    for failure in failures:
        raise failure
    return seconds


@test("every node that is killed comes back, one after another")
def _(world):
    cluster = world.cluster
    leader = cluster.leader()
    for node in cluster.nodes:
        kind = "the leader" if node == leader else node
        print(f"# {kind} was back after {heal(cluster, cluster.kill, node):.1f} s", flush=True)
    cluster.expect_clean()
    cluster.expect_lawful()


@test("all workers, all gateways, all but the monitors at once come back")
def _(world):
    cluster = world.cluster
    for nodes in (WORKERS, GATEWAYS, WORKERS + GATEWAYS):
        print(f"# {len(nodes)} at once: {heal(cluster, cluster.kill, *nodes):.1f} s", flush=True)
    cluster.expect_clean()


@test("the leader dies while it starts another node, and both come back")
def _(world):
    cluster = world.cluster
    before, since = cluster.wait_calm(), time.time()
    leader = before[1]
    cluster.kill("w1")
    poll("the driver is told", lambda: cluster.drives(since))
    cluster.kill(leader)
    cluster.wait_back({node: seen.incarnation for node, seen in before[2].items()}, "w1", leader)
    assert cluster.view()[0] > before[0]
    cluster.expect_clean()
    cluster.expect_lawful()


@test("the last monitor starts the others, whichever it is")
def _(world):
    cluster = world.cluster
    for last in MONITORS:
        before = cluster.incarnations()
        others = [name for name in MONITORS if name != last]
        begin, since = time.monotonic(), time.time()
        cluster.kill(*others)
        cluster.wait_back(before, *others)
        print(f"# {last} had the others back after {time.monotonic() - begin:.1f} s", flush=True)
        first = cluster.drives(since)[0]
        assert first[1] == last, first
        assert cluster.incarnations()[last] == before[last], f"{last} was started anew"
        cluster.wait_calm()
    cluster.expect_clean()
    cluster.expect_lawful()


@test("a node that is stopped by SIGSTOP is killed and replaced")
def _(world):
    cluster = world.cluster

    def freeze(*nodes):
        cluster.signal(signal.SIGSTOP, *nodes)

    for node in ("w2", "g1", "m1", cluster.leader()):
        pid = cluster.pid(node)
        print(f"# {node}: {heal(cluster, freeze, node):.1f} s", flush=True)
        poll(f"what was {node} is gone", lambda pid=pid: not is_alive(pid), 5)
    cluster.expect_clean()


@test("a broker that hangs is killed with its agent, and replaced")
def _(world):
    cluster = world.cluster
    since = time.time()
    rabbit = int((cluster.home / "broker" / "pid").read_text())
    seconds = heal(cluster, lambda _: os.kill(rabbit, signal.SIGSTOP), "broker")
    print(f"# it was back after {seconds:.1f} s")
    poll("what hung is gone", lambda: not is_alive(rabbit), 5)
    hung = [line for line in cluster.lines() if line.event == "hung" and line.seconds > since]
    assert hung and hung[0].fields["target"] == "broker", hung
    cluster.expect_clean()


@test("all monitors die at once, and nobody else is disturbed")
def _(world):
    cluster = world.cluster
    before, begin = cluster.incarnations(), time.monotonic()
    cluster.kill(*MONITORS)
    cluster.wait_back(before, *MONITORS)
    print(f"# there was a leader again after {time.monotonic() - begin:.1f} s")
    after = cluster.incarnations()
    assert all(after[node] == before[node] for node in cluster.nodes if node not in MONITORS)
    cluster.expect_clean()
    cluster.expect_lawful()


@test("a leader that sleeps for longer than its lease wakes up as nobody")
def _(world):
    timing = {"failure_timeout": setting(3), "lease": setting(0.5)}
    with Monitored(world.data, world.cluster.broker_uri(), monitors=timing) as cluster:
        before, since = cluster.wait_calm(), time.time()
        leader = before[1]
        pid = cluster.pid(leader)
        cluster.signal(signal.SIGSTOP, leader)
        cluster.kill("w1")
        time.sleep(scaled(2.2))  # Nobody is missed yet, and somebody else leads.
        os.kill(pid, signal.SIGCONT)
        cluster.wait_back({"w1": before[2]["w1"].incarnation}, "w1")
        after = cluster.wait_calm()
        assert cluster.pid(leader) == pid, f"{leader} was started anew"
        assert after[1] != leader and after[0] > before[0], after[:2]
        drives = cluster.drives(since)
        assert [(drive[1], drive[2]) for drive in drives] == [(after[1], "w1")], drives
        cluster.expect_lawful()


@test("a node that a hand has ended by SIGTERM stays down, also under the next leader")
def _(world):
    cluster = world.cluster
    for node in ("w2", "g2", "m1", cluster.leader()):
        since = time.time()
        before = cluster.incarnations()
        cluster.signal(signal.SIGTERM, node)
        poll(f"{node} has ended", lambda node=node: cluster.pid(node) is None)
        cluster.wait_state(node, "stopped")
        leader = cluster.leader()
        cluster.kill(leader)
        cluster.wait_back(before, leader)
        time.sleep(scaled(FAILURE_TIMEOUT_S * 3))
        assert cluster.pid(node) is None and cluster.seen(node).state == "stopped"
        assert not [drive for drive in cluster.drives(since) if drive[2] == node]
        if node in WORKERS + GATEWAYS:
            told = cluster.status_of(node)
            assert told["state"] == "stopped", told

        hand = cluster.start_by_hand(node)
        again = cluster.wait_state(node, "up")
        hand.kill()
        hand.wait()
        cluster.wait_back({node: again.incarnation}, node)
        cluster.wait_calm()
    cluster.expect_clean()


@test("a gateway whose port is taken is reported as broken, with the reason, and tried further")
def _(world):
    cluster = world.cluster
    port = cluster.ports["g2"]
    before = cluster.incarnations()
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        cluster.kill("g2")

        def take():
            try:
                thief.bind(("127.0.0.1", port))
                return True
            except OSError:
                return False

        poll("the port is taken", take, 0.9)
        thief.listen()
        seen = cluster.wait_state("g2", "broken", 60)
        # It sends heartbeats for a moment each time before it ends, and is suspected then.
        told = poll("status says so", lambda: next(
            (told for told in [cluster.status_of("g2")] if told["state"] == "broken"), None))
        for problem in (seen.problem, told["problem"]):
            assert str(port) in problem and "in use" in problem, problem
        cluster.submit("movies", gateway=f"http://127.0.0.1:{cluster.ports['g1']}")
    cluster.wait_back(before, "g2")
    cluster.expect_clean()


@test("a worker that can't be started is broken, and its jobs fail in time and name it")
def _(world):
    cluster = world.commanded()
    before = cluster.incarnations()
    (cluster.folder / "fail-w3").write_text("")
    proxy = Proxy({name: cluster.ports[name] for name in GATEWAYS})
    proxy.at("PUT", CHUNKS, 20, lambda: cluster.kill("w3"))
    failed = cluster.submit("movies", gateway=f"http://127.0.0.1:{proxy.port}", code=1, seconds=30)
    proxy.close()
    assert "w3" in failed, failed
    cluster.wait_state("w3", "broken", 60)
    told = cluster.status_of("w3")
    assert told["state"] == "broken" and "no host for w3" in told["problem"], told
    assert cluster.command("status", "-g", cluster.url())[0].count("no host for w3") == 1
    (cluster.folder / "fail-w3").unlink()
    cluster.wait_back(before, "w3")
    cluster.submit("movies")


@test("two minutes of storm change no answer and leave nothing behind")
def _(world):
    cluster = world.cluster
    storm = Storm(cluster, GATEWAYS + WORKERS + MONITORS, SEED, seldom=["broker"])
    print(f"# SEED={SEED}", flush=True)
    with Clients(cluster, SCALES) as clients:
        storm.blow(STORM_S)
    storm.settle(120)
    print(f"# {storm.told()}; {sum(clients.answers.values())} answers", flush=True)
    assert len(storm.kills) > STORM_S // 3, storm.kills
    assert all(clients.answers.values()), clients.answers
    assert storm.median() < scaled(MEDIAN_S), storm.times
    cluster.expect_clean()
    cluster.expect_lawful()


def victims(text):
    """Whom chaos chose, in order, whether or not they were spared."""
    return re.findall(r"^\S+ (?:kill|stop) (\S+) \(|^\S+ (\S+) is .*: spared$", text, re.M)


@test("chaos draws the same nodes for the same seed, and others for another")
def _(world):
    cluster = world.cluster
    drawn = []
    for seed in (SEED, SEED, SEED + 1):
        out, _ = cluster.command("chaos", "-c", cluster.file, "--count", "4", "--seed", seed)
        assert "back after: median" in out and f"seed {seed}" in out, out
        drawn.append(sorted(a or b for a, b in victims(out)))
        cluster.wait_calm()
    assert len(drawn[0]) == 4 and drawn[0] == drawn[1] != drawn[2], drawn


@test("chaos --all spares the broker and one monitor, and all are back")
def _(world):
    cluster = world.cluster
    before = cluster.incarnations()
    out, _ = cluster.command("chaos", "-c", cluster.file, "--all")
    assert out.count("the last monitor that lives: spared") == 1, out
    assert "kills: 7 (" in out and "kill broker" not in out, out
    cluster.wait_calm()
    after = cluster.incarnations()
    same = [node for node in cluster.nodes if before[node] == after[node]]
    assert len(same) == 2 and "broker" in same, same
    cluster.expect_clean()


@test("chaos --stop stops nodes, and goes on when they were replaced")
def _(world):
    cluster = world.cluster
    out, _ = cluster.command("chaos", "-c", cluster.file, "--stop", "--kill", "w1,g1", "--stop-for",
                             f"{scaled(0.3):.1f}")
    assert "is resumed" in out and "stops: 2" in out, out
    out, _ = cluster.command("chaos", "-c", cluster.file, "--stop", "--kill", "w1,g1")
    assert "stops: 2" in out, out
    cluster.expect_clean()


@test("chaos --verify fails when the job does")
def _(world):
    cluster = world.cluster
    data = cluster.folder / "changing"
    run("gen", "movies", data, "--scale", "0.05")
    enough = threading.Event()

    def change():
        while not enough.wait(0.05):
            os.utime(data / "ratings.csv")

    changer = threading.Thread(target=change)
    changer.start()
    try:
        out, err = cluster.command("chaos", "-c", cluster.file, "--kill", "w1", "--verify",
                                   "movies", data, code=1)
    finally:
        enough.set()
        changer.join()
        shutil.rmtree(data)
    assert "answers equal: NO" in out and "changed" in err, (out, err)
    cluster.wait_calm()
    poll("no job is left", lambda: not cluster.status()["work"]["jobs"], 90)


@test("status tells the same as the monitors, once or again and again")
def _(world):
    cluster = world.cluster
    view = cluster.wait_calm()
    told = poll("a gateway has heard of all", lambda: cluster.status()["cluster"])
    assert told["leader"] == view[1] and told["term"] == view[0], told
    assert sorted(node["name"] for node in told["nodes"]) == sorted(cluster.nodes), told
    for node in told["nodes"]:
        seen = view[2][node["name"]]
        assert node["state"] == "up" and node["incarnation"] == str(seen.incarnation), node
    text, _ = cluster.command("status", "-g", cluster.url())
    assert "monitor *" in text and all(node in text for node in cluster.nodes), text

    for words in (["--json"], []):
        watching = subprocess.Popen([MILLRACE, "status", "-g", cluster.url(), "--watch", *words],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env=cluster.client_env())
        cluster.kill("w1")
        time.sleep(scaled(4.5))
        watching.send_signal(signal.SIGINT)
        out, err = watching.communicate(timeout=scaled(10))
        assert watching.returncode == 0, err
        if words:
            frames = [json.loads(line) for line in out.splitlines()]
            states = [node["state"] for frame in frames for node in frame["cluster"]["nodes"]
                      if node["name"] == "w1"]
            assert len(frames) >= 2 and states[-1] == "up", states
        else:
            assert out.count("monitor *") >= 2, out
        cluster.wait_calm()


@test("a million forged, altered and cut datagrams do nothing but count")
def _(world):
    cluster, since = world.cluster, time.time()
    expect_not_fooled(cluster, LIES, SEED)

    def refused():
        return sum(int(line.fields["count"]) for line in cluster.lines(*cluster.nodes)
                   if line.event == "datagrams-refused" and line.seconds > since)

    poll("nearly all were counted", lambda: refused() > LIES * 0.9, 15)


@test("up refuses a key that others may read, and a folder that has an up already")
def _(world):
    cluster = world.cluster
    _, busy = cluster.command("up", "-c", cluster.file, code=1)
    assert f"in use by process {cluster.up.pid}" in busy, busy
    cluster.expect_clean()

    other = cluster.folder / "other.ini"
    other.write_text(cluster.file.read_text().replace("data_dir = data", "data_dir = other"))
    (cluster.folder / "other").mkdir()
    key = cluster.folder / "other" / "key"
    key.write_text("ab" * 32 + "\n")
    key.chmod(0o644)
    monitor = cluster.command("monitor", "-c", other, "-n", "m1", code=2)[1]
    assert f"chmod 600 {key}" in monitor and "abab" not in monitor, monitor


@test("up that is killed leaves nothing within five seconds, and starts again")
def _(world):
    cluster = world.cluster
    world.close_second()
    cluster.up.kill()
    cluster.up.wait()
    begin = time.monotonic()
    poll("nothing is left", lambda: not cluster.leftovers(), 5)
    print(f"# nothing was left after {time.monotonic() - begin:.1f} s")
    cluster.operator.close()
    cluster.start_up()
    cluster.submit("movies")
    cluster.expect_clean()


if __name__ == "__main__":
    if missing():
        print(f"1..0 # SKIP {missing()}")
        sys.exit(0)
    sys.exit(suite.run(sys.argv[1:], World))
