#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Monitors on hosts of their own, and a network that fails: one leader acts at a time.

Method: four hosts in namespaces, three with a monitor each, the fourth with broker, gateways and
workers; `driver = command` asks each host's agent, over that same network. Monitors are cut off, or
only heard or only hearing, while a job runs and a worker is killed. The logs of the monitors must
show that at no time two of them were leaders, and that whoever ordered something was the leader
then; the worker must come back, and the answer must be that of one process. Prints TAP; words on the
command line choose tests by parts of their names. MILLRACE is the binary.
"""
import contextlib
import datetime
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

import hosts
from cluster import (MILLRACE, RABBIT, RETRY_FOR, Suite, environment, poll, run, tail,
                     without_history)
from hosts import Agent, Network, wait_until
from timing import scaled, setting
from monitored import HEARTBEAT_PERIOD_MAX_S
from world import CHUNK, difference

suite = Suite()
test = suite.test

MONITORS = {"m1": "a", "m2": "b", "m3": "c"}
OTHERS = ["broker", "g1", "g2", "w1", "w2", "w3"]
PORT = 7100
READY_S = 120
BACK_S = 60
JOB_S = 120
LINE = re.compile(r"^(\S+) level=\w+ node=(\w+) (event=\S+.*)$", re.M)


class World:
    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-network-"))
        self.file = self.folder / "cluster.ini"
        self.movies = self.folder / "movies"
        self.count = 0
        self.stack = contextlib.ExitStack()
        self.stack.callback(self.remove_files)
        try:
            self.make()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_):
        self.stack.close()

    def remove_files(self):
        if "KEEP" in os.environ:  # For whoever looks for a cause.
            print(f"# {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def make(self):
        run("gen", "movies", self.movies, "--scale", "0.05")
        self.expected = without_history(run("run", "movies", self.movies, "--format", "json",
                                            *CHUNK))
        self.network = self.stack.enter_context(Network(self.folder))
        self.hosts = {name: self.network.host(name) for name in "abcd"}
        self.home = self.hosts["d"]
        self.write_file()
        self.agents = {}
        for name, host in self.hosts.items():
            self.agents[name] = Agent(host, self.file, self.folder)
            self.stack.callback(self.agents[name].close)
        for node in OTHERS:
            self.agents["d"].start(node)
        for node, host in MONITORS.items():
            self.agents[host].start(node)
        for gateway in ("g1", "g2"):
            wait_until(f"{gateway} is ready", lambda gateway=gateway: "event=connected" in
                       self.log("d", gateway), READY_S)
        self.settled()

    def write_file(self):
        home = self.home.address
        lines = ["[cluster]", "name = net", "broker = start", f"broker_host = {home}",
                 f"data_dir = {self.network.data_dir}", f"key_file = {self.folder}/key",
                 "insecure = yes", f"ready_timeout = {setting(READY_S)}", "sync_period = 100ms", "window = 8", "[gateways]",
                 f"g1 = {home}:{PORT + 1}", f"g2 = {home}:{PORT + 2}", "[workers]"]
        lines += [f"w{number} = {home}" for number in (1, 2, 3)]
        lines += ["[monitors]"]
        lines += [f"{node} = {self.hosts[host].address}:{PORT}" for node, host in MONITORS.items()]
        lines += [f"heartbeat_period = {setting(0.1, HEARTBEAT_PERIOD_MAX_S)}", f"failure_timeout = {setting(1)}",
                  f"lease = {setting(1)}", f"driver_timeout = {setting(10)}"]
        self.file.write_text("\n".join([*lines, *hosts.drivers()]) + "\n")
        run("key", "-c", self.file)

    # Looking.

    def log(self, host, node):
        return (self.hosts[host].disk / node / "log").read_text(errors="replace")

    def history(self):
        """(time, monitor, text) of all that monitors have written, in order."""
        found = []
        for node, host in MONITORS.items():
            with contextlib.suppress(OSError):
                found += LINE.findall(self.log(host, node))
        return sorted((datetime.datetime.fromisoformat(when), node, text)
                      for when, node, text in found)

    def reigns(self):
        """[begin, end, monitor, term] of all leaders; the last of each monitor may have no end."""
        reigns = {node: [] for node in MONITORS}
        for when, node, text in self.history():
            state = re.match(r"event=election state=(\w+) term=(\d+)", text)
            begins_anew = text.startswith(("event=started", "event=stopping"))
            if (state or begins_anew) and reigns[node] and reigns[node][-1][1] is None:
                reigns[node][-1][1] = when
            if state and state.group(1) == "leader":
                reigns[node].append([when, None, node, int(state.group(2))])
        return sorted(reign for list_ in reigns.values() for reign in list_)

    def leader(self):
        """The monitor that leads, and its term; None: nobody, or not only one."""
        now = [(node, term) for _, end, node, term in self.reigns() if end is None]
        return now[0] if len(now) == 1 else None

    def settled(self):
        """All are up and one leads; gives its name."""
        for node, host in {**MONITORS, **{name: "d" for name in OTHERS}}.items():
            wait_until(f"{node} runs", lambda node=node, host=host:
                       self.agents[host].runs(node), BACK_S)
        return poll("there is one leader", self.leader, BACK_S)[0]

    def drives(self):
        """(time, monitor, action, target, term) of all that drivers were told."""
        pattern = re.compile(r"event=drive action=(\w+) target=(\w+) incarnation=\d+ term=(\d+)")
        return [(when, node, match.group(1), match.group(2), int(match.group(3)))
                for when, node, text in self.history() if (match := pattern.match(text))]

    def check_leaders(self):
        """No two reigns overlap, terms grow, and only who reigns acts; but any monitor may start a
        silent one."""
        reigns = self.reigns()
        for before, after in zip(reigns, reigns[1:]):
            assert before[1] is not None and before[1] <= after[0], \
                f"two leaders at a time: {before} {after}"
            assert before[3] < after[3], f"terms do not grow: {before} {after}"
        for drive in self.drives():
            when, node, action, target, term = drive
            reigned = any(begin <= when and (end is None or when <= end)
                          for begin, end, *leader in reigns if leader == [node, term])
            assert reigned or (action == "start" and target in MONITORS), \
                f"{drive} by who did not lead: {reigns}"

    # Doing.

    @contextlib.contextmanager
    def job(self):
        """A job that runs meanwhile; its answer must be right."""
        self.count += 1
        out, err = (self.folder / f"client{self.count}.{kind}" for kind in ("out", "err"))
        gateways = f"{self.home.address}:{PORT + 1},{self.home.address}:{PORT + 2}"
        with open(out, "wb") as out_file, open(err, "wb") as err_file:
            client = self.home.spawn(
                [MILLRACE, "submit", "movies", self.movies, "-g", gateways, "--format", "json",
                 *CHUNK, *RETRY_FOR], stdout=out_file, stderr=err_file,
                env=environment(MILLRACE_STATE_DIR=str(self.folder / "state")))
        try:
            poll("the job has begun", lambda: "job " in err.read_text() or
                 client.poll() is not None)
            yield client
            code = client.wait(scaled(JOB_S))
            assert code == 0, f"exit {code}: {err.read_text()}"
            answer = without_history(out.read_text())
            assert answer == self.expected, difference(answer, self.expected)
        finally:
            if client.poll() is None:
                client.kill()
                client.wait()

    def lose_worker(self, node):
        """Killed; the monitors must have it started again."""
        agent = self.agents["d"]
        before = agent.pid(node)
        with agent.lock:
            agent.end(node)
        poll(f"{node} is back", lambda: agent.pid(node) not in (None, before), BACK_S)

    def during(self, host, disturb, has_new_leader, worker):
        """A worker is lost while the network is disturbed at a host, which is then healed."""
        was = self.leader()
        drives = len(self.drives())
        with self.job():
            disturb(self.hosts[host])
            if has_new_leader:
                poll("another one leads", lambda: (self.leader() or was)[1] > was[1], BACK_S)
            self.lose_worker(worker)
            time.sleep(scaled(1))
            self.network.heal(self.hosts[host])
        self.settled()
        self.check_leaders()
        driven = [drive[3] for drive in self.drives()[drives:]]
        assert worker in driven, driven
        assert not set(driven) & (set(OTHERS) - {worker}), f"driven without need: {driven}"

    def follower_host(self):
        leader = self.settled()
        return next(host for node, host in MONITORS.items() if node != leader)

    def leader_host(self):
        return MONITORS[self.settled()]

    def state(self):
        parts = [f"{begin} {end} {node} {term}" for begin, end, node, term in self.reigns()]
        parts += [str(drive) for drive in self.drives()[-20:]]
        for node, host in {**MONITORS, **{name: "d" for name in OTHERS}}.items():
            folder = "broker/supervisor" if node == "broker" else node
            parts += [f"--- {node}: {self.agents[host].pid(node)}",
                      tail(self.hosts[host].disk / folder / "log", 12),
                      tail(self.folder / f"{node}.stderr", 4)]
        return "\n".join(parts)

    def repair(self):
        for host in self.hosts.values():
            self.network.heal(host)
        self.settled()


@test("three hosts agree on a leader, and a worker of a fourth comes back")
def _(world):
    world.settled()
    with world.job():
        world.lose_worker("w1")
    world.check_leaders()


@test("a follower is cut off")
def _(world):
    world.during(world.follower_host(), world.network.cut, False, "w1")


@test("the leader is cut off: another one leads and acts")
def _(world):
    world.during(world.leader_host(), world.network.cut, True, "w2")


@test("the leader is not heard any more, but hears, and its commands arrive")
def _(world):
    world.during(world.leader_host(), world.network.mute, True, "w3")


@test("the leader hears nobody any more, but is heard")
def _(world):
    world.during(world.leader_host(), world.network.deafen, True, "w1")


@test("a follower that hears nobody does not depose the leader")
def _(world):
    before = world.settled(), len(world.reigns())
    world.during(world.follower_host(), world.network.deafen, False, "w2")
    assert (world.settled(), len(world.reigns())) == before, world.reigns()


@test("no two monitors reach each other: nobody acts, then one does")
def _(world):
    world.settled()
    for host in "abc":
        world.network.cut(world.hosts[host])
    poll("nobody leads", lambda: all(end for _, end, _, _ in world.reigns()), BACK_S)
    drives = len([drive for drive in world.drives() if drive[3] in OTHERS])
    with world.agents["d"].lock:
        world.agents["d"].end("w3")
    time.sleep(scaled(4))
    after = [drive for drive in world.drives() if drive[3] in OTHERS]
    assert len(after) == drives, after[drives:]
    for host in "abc":
        world.network.heal(world.hosts[host])
    world.settled()
    world.check_leaders()
    with world.job():
        pass


if __name__ == "__main__":
    reason = hosts.missing()
    if not pathlib.Path(RABBIT + "rabbitmq-server").exists():
        reason = "RabbitMQ is not installed"
    if not pathlib.Path(MILLRACE).exists():
        reason = f"there is no {MILLRACE}"
    if reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(0)
    sys.exit(suite.run(sys.argv[1:], World))
