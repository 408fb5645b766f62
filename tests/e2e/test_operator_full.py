#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an operator of a monitored cluster sees and does: status, timelines, stop, chaos.

Method: one cluster with monitors on this host, as in test_monitors_full.py. Nodes are killed by `chaos`,
stopped by `stop`; what `status` and `jobs` tell of it must be so. Prints TAP; words on the command
line choose tests by parts of their names. MILLRACE is the binary.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from cluster import MILLRACE, Suite, environment, poll, run
from timing import scaled
from test_monitors_full import BACK_S, GATEWAYS, MONITORS, NODES, WORKERS, World
from world import CHUNK, RABBIT

suite = Suite()
test = suite.test


def gateways(world):
    return ",".join(f"127.0.0.1:{world.ports[name]}" for name in GATEWAYS)


def call(world, *words, code=0, seconds=180):
    """Runs a command, and gives what it printed."""
    done = subprocess.run([MILLRACE, *map(str, words)], capture_output=True, text=True,
                          timeout=scaled(seconds), cwd=world.folder,
                          env=environment(MILLRACE_STATE_DIR=str(world.folder / "state")))
    assert done.returncode == code, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    world.last_errors = done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def status(world):
    return json.loads(call(world, "status", "-g", gateways(world), "--json"))["cluster"]


def states(world):
    return {node["name"]: node.get("state") for node in status(world)["nodes"]}


def settle(world):
    """Until the monitors' leader says that all are up."""
    poll("all are up", lambda: set(states(world).values()) == {"up"}
         and status(world).get("leader"), BACK_S)


def start(world, role, name):
    """A node, as by hand."""
    with open(world.folder / "err", "ab") as err:
        return subprocess.Popen(
            [MILLRACE, role, "-c", world.file.name, "-n", name, "--exit-with-supervisor", "data"], stdout=err,
            stderr=err, stdin=subprocess.DEVNULL, cwd=world.folder, env=environment())


@test("status has every node, its life, the leader and the queues")
def _(world):
    settle(world)
    told = status(world)
    nodes = {node["name"]: node for node in told["nodes"]}
    assert sorted(nodes) == sorted(["broker", *GATEWAYS, *WORKERS, *MONITORS]), nodes
    for name, node in nodes.items():
        assert re.fullmatch(r"\d{13}", node["incarnation"]), node
        assert node["uptime_ms"] > 0 and node["resident_bytes"] > 0, node
    assert told["leader"] in MONITORS and told["term"] >= 1, told
    assert nodes["w1"]["maps"] and nodes["w1"]["role"] == "worker"
    queues = {queue["name"]: queue for queue in told["queues"]}
    assert queues["work.0"]["consumers"] == len(WORKERS), queues
    assert all(queues[f"inbox.{name}"]["consumers"] == 1 for name in GATEWAYS + WORKERS), queues
    text = call(world, "status", "-g", gateways(world))
    assert f"led by {told['leader']} *" in text and "monitor *" in text, text


@test("a killed node has another life, and the timeline of the job tells why")
def _(world):
    settle(world)
    before = {node["name"]: node["incarnation"] for node in status(world)["nodes"]}
    run("gen", "movies", world.folder / "more", "--scale", "0.1")
    out = call(world, "chaos", "-c", world.file.name, "--kill", "w2", "--every",
               f"{scaled(0.2):.1f}", "--verify", "movies", world.folder / "more")
    assert "answers equal: yes" in out and re.search(r"kills: \d+ \(w2 \d+\)", out), out
    assert re.search(r"\d\d:\d\d:\d\d\.\d kill w2 \(worker\)\n", out), out
    assert re.search(r"w2 is back after \d+\.\d s", out), out
    job = re.search(r"^job (\w+)", world.last_errors, re.MULTILINE).group(1)
    told = json.loads(call(world, "jobs", job, "-g", gateways(world), "--json"))["timeline"]
    happened = [(event["what"], event.get("node")) for event in told["events"]]
    for event in (("submitted", None), ("killed", "w2"), ("suspected", "w2"), ("resumed", "w2")):
        assert event in happened, told
    settle(world)
    after = {node["name"]: node["incarnation"] for node in status(world)["nodes"]}
    assert [name for name in before if before[name] != after[name]] == ["w2"], (before, after)


@test("a job tells what happened to it, also after its end; one that never was is unknown")
def _(world):
    settle(world)
    run("submit", "movies", world.movies, "-g", gateways(world), "--job", "told", "--quiet", *CHUNK)
    told = json.loads(call(world, "jobs", "told", "-g", gateways(world), "--json"))
    events = told["timeline"]["events"]
    names = [event["what"] for event in events]
    assert names[0] == "submitted" and names[-1] == "done", names
    assert "complete" in names and names.count("phase") == 2, names
    ages = [event["ms_ago"] for event in events]
    assert ages == sorted(ages, reverse=True), ages
    text = call(world, "jobs", "told", "-g", gateways(world))
    assert re.search(r"\d\d:\d\d:\d\d\.\d\W+\+0\.0 s\W+submitted", text), text
    assert "there is no job never" in call(world, "jobs", "never", "-g", gateways(world), code=2)


@test("what was stopped on purpose stays so, until somebody starts it")
def _(world):
    settle(world)
    call(world, "stop", "-c", world.file.name, "w3", "m1")
    assert world.pid("w3") is None and world.pid("m1") is None
    poll("it is told", lambda: states(world)["w3"] == states(world)["m1"] == "stopped", BACK_S)
    time.sleep(scaled(3))  # Longer than the failure timeout.
    assert world.pid("w3") is None and world.pid("m1") is None, "somebody started it"
    out = call(world, "chaos", "-c", world.file.name, "--kill", "w3", code=1)
    assert "w3 is stopped on purpose: spared" in out and "w3 was named, and was not disturbed" in out, out
    assert "spared" in call(world, "chaos", "-c", world.file.name, "--kill", "w3*")
    nodes = [start(world, "worker", "w3"), start(world, "monitor", "m1")]
    settle(world)
    for node, name in zip(nodes, ("w3", "m1")):  # They are wanted again.
        os.kill(node.pid, signal.SIGKILL)
        node.wait()
        poll("it is started", lambda: world.pid(name) not in (None, node.pid), BACK_S)
        settle(world)


@test("all are killed at once, but the broker and one monitor, and come back")
def _(world):
    settle(world)
    before = world.pids()
    out = call(world, "chaos", "-c", world.file.name, "--all")
    assert "is the last monitor that lives: spared" in out, out
    assert "broker" not in out, out
    assert f"kills: {len(NODES) - 2} " in out, out
    world.wait_back(before, *GATEWAYS, *WORKERS)
    settle(world)


@test("monitors that are named are killed to the last, and those that are stopped stay so")
def _(world):
    settle(world)
    before = world.pids()
    out = call(world, "chaos", "-c", world.file.name, "--kill", ",".join(MONITORS))
    assert "spared" not in out and "kills: 3 " in out, out
    world.wait_back(before, *MONITORS)
    settle(world)
    call(world, "stop", "-c", world.file.name, "m*", seconds=25)  # Nobody can answer.
    poll("it is told", lambda: "all monitors were stopped" in world.said("err"), BACK_S)
    time.sleep(scaled(3))  # Longer than `up` lets a cluster be without monitors.
    assert [world.pid(name) for name in MONITORS] == [None] * 3, "somebody started them"
    nodes = [start(world, "monitor", name) for name in MONITORS]
    settle(world)
    for node in nodes:  # They are wanted again.
        os.kill(node.pid, signal.SIGKILL)
    for node, name in zip(nodes, MONITORS):
        node.wait()
        poll("it is started", lambda: world.pid(name) not in (None, node.pid), BACK_S)
    settle(world)


@test("nodes that are stopped like SIGSTOP are replaced, and do no harm when they go on")
def _(world):
    settle(world)
    out = call(world, "chaos", "-c", world.file.name, "--kill", "w1,g1", "--stop")
    assert "stops: 2 " in out and "w1 is back" in out and "g1 is back" in out, out
    settle(world)


@test("the same seed draws the same nodes in the same order", full=True)
def _(world):
    runs = []
    for _ in range(2):
        settle(world)
        out = call(world, "chaos", "-c", world.file.name, "--count", "1", "--seed", "11", "--every",
                   f"{scaled(6):.1f}", "--for", f"{scaled(20):.1f}")
        runs.append(re.findall(r"kill (\w+)", out))
    size = min(map(len, runs))
    assert size >= 2 and runs[0][:size] == runs[1][:size], runs


@test("wrong words are refused before anything is done")
def _(world):
    for words, expected in (
            (("chaos", "-c", world.file.name), "--kill NAMES, --count N or --all"),
            (("chaos", "-c", world.file.name, "--kill", "w9"), "no node `w9`"),
            (("chaos", "-c", world.file.name, "--all", "--count", "1"), "--all goes with neither"),
            (("chaos", "-c", world.file.name, "--all", "--verify"), "needs an analysis"),
            (("stop", "-c", world.file.name, "w9"), "no node `w9`"),
            (("stop", "-c", world.file.name), "stop needs")):
        said = call(world, *words, code=2)
        assert expected in said, said


if __name__ == "__main__":
    if not pathlib.Path(RABBIT + "rabbitmq-server").exists():
        print("1..0 # SKIP RabbitMQ is not installed")
        sys.exit(0)
    sys.exit(suite.run(sys.argv[1:], World))
