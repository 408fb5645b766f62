#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster with monitors heals itself: whatever is killed comes back, and the answer is right.

Method: one cluster on this host with a broker of its own and three monitors, started by `up`. In the
middle of a job something is killed or stopped; the answer must be that of one process, and what was
killed must run again under another process number. Then all is ended, well or badly, and nothing may
be left. Prints TAP; words on the command line choose tests by parts of their names. MILLRACE is the
binary.
"""
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from cluster import (MILLRACE, RETRY_FOR, WAIT_S, Proxy, Suite, environment, free_ports, is_alive,
                     poll, run, tail, without_history)
from timing import scaled, setting
from monitored import HEARTBEAT_PERIOD_MAX_S, READY_S
from world import CHUNK, CHUNKS, RABBIT, difference

suite = Suite()
test = suite.test

WORKERS = ["w1", "w2", "w3"]
GATEWAYS = ["g1", "g2"]
MONITORS = ["m1", "m2", "m3"]
NODES = ["broker/supervisor", *GATEWAYS, *WORKERS, *MONITORS]
BACK_S = 40


def is_held(folder):
    """Whether a process has the lock of a folder."""
    try:
        with open(folder / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


class World:
    """A folder with a cluster file, and `up` on it."""

    def __enter__(self):
        self.up = None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-monitors-"))
        self.data = self.folder / "data"
        self.file = self.folder / "cluster.ini"
        ports = free_ports(len(GATEWAYS) + len(MONITORS))
        self.ports = dict(zip(GATEWAYS + MONITORS, ports))
        lines = ["[cluster]", "name = watched", "broker = start", "data_dir = data",
                 "sync_period = 100ms", "window = 16", f"ready_timeout = {setting(READY_S)}",
                 "[gateways]"]
        lines += [f"{name} = 127.0.0.1:{self.ports[name]}" for name in GATEWAYS]
        lines += ["[workers]", f"count = {len(WORKERS)}", "[monitors]"]
        lines += [f"{name} = 127.0.0.1:{self.ports[name]}" for name in MONITORS]
        lines += [f"heartbeat_period = {setting(0.1, HEARTBEAT_PERIOD_MAX_S)}", f"failure_timeout = {setting(1)}",
                  f"stall_timeout = {setting(5)}", f"lease = {setting(1)}"]
        self.file.write_text("\n".join(lines) + "\n")
        self.movies = self.folder / "movies"
        run("gen", "movies", self.movies, "--scale", "0.01")
        self.expected = without_history(run("run", "movies", self.movies, "--format", "json",
                                            *CHUNK))
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.up is not None:
            self.up.kill()
            self.up.wait()
            self.wait_for_nothing()
        if "KEEP" in os.environ:  # For whoever looks for a cause.
            print(f"# {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        """`up`, until it is ready."""
        with open(self.folder / "out", "wb") as out, open(self.folder / "err", "ab") as err:
            self.up = subprocess.Popen([MILLRACE, "up", "-c", self.file.name], stdout=out,
                                       stderr=err, stdin=subprocess.DEVNULL, cwd=self.folder,
                                       env=environment())
        poll("the cluster is ready",
             lambda: self.said("out") == "ready\n" or self.up.poll() is not None,
             READY_S + WAIT_S)
        assert self.up.poll() is None, self.said("err")

    def said(self, name):
        return (self.folder / name).read_text(errors="replace")

    def pid(self, node):
        """None: it does not run."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.data / node / "pid").read_text())
            return pid if is_alive(pid) else None
        return None

    def pids(self):
        found = {node: self.pid(node) for node in NODES}
        assert all(found.values()), f"not all run: {found}"
        return {**found, "broker": self.pid("broker")}

    def kill(self, *nodes, number=signal.SIGKILL):
        for node in nodes:
            os.kill(self.pid(node), number)

    def wait_back(self, before, *nodes):
        for node in nodes:
            poll(f"{node} is back", lambda node=node: self.pid(node) not in (None, before[node]),
                 BACK_S)

    def leader(self):
        """Who was elected last."""
        terms = []
        for name in MONITORS:
            with contextlib.suppress(OSError):
                log = (self.data / name / "log").read_text()
                terms += [(int(term), name)
                          for term in re.findall(r"event=election state=leader term=(\d+)", log)]
        return max(terms, default=(0, None))

    def orders(self):
        """What drivers were told: (action, node, incarnation, term)."""
        pattern = r"event=drive action=(\w+) target=(\S+) incarnation=(\d+) term=(\d+)"
        return [match for name in MONITORS
                for match in re.findall(pattern, (self.data / name / "log").read_text())]

    def disturbed(self, action):
        """A job in the middle of which something happens."""
        proxy = Proxy({name: self.ports[name] for name in GATEWAYS})
        reached = []

        def act():
            reached.append(True)
            action()

        proxy.at("PUT", CHUNKS, 20, act)
        done = subprocess.run(
            [MILLRACE, "submit", "movies", str(self.movies), "-g", f"http://127.0.0.1:{proxy.port}",
             "--format", "json", *CHUNK, *RETRY_FOR], capture_output=True, text=True, timeout=scaled(120),
            env=environment(MILLRACE_STATE_DIR=str(self.folder / "state")))
        proxy.close()
        assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"
        assert reached, "the moment did not come"
        answer = without_history(done.stdout)
        assert answer == self.expected, difference(answer, self.expected)

    def heal(self, *nodes, number=signal.SIGKILL):
        """Kills them in the middle of a job, and waits until they are back."""
        before = self.pids()
        self.disturbed(lambda: self.kill(*nodes, number=number))
        self.wait_back(before, *nodes)
        return before

    def wait_for_nothing(self, seconds=20):
        poll("nothing is left", lambda: not any(is_held(self.data / node) for node in NODES),
             seconds)

    def state(self):
        parts = [self.said("err")]
        for node in NODES:
            parts += [f"--- {node}: {self.pid(node)}", tail(self.data / node / "log", 15)]
        return "\n".join(parts)

    def repair(self):
        if self.up is not None:
            self.up.kill()
            self.up.wait()
            self.wait_for_nothing(30)
        self.start()


@test("up starts all, and monitors choose a leader")
def _(world):
    world.pids()
    assert (world.data / "key").stat().st_mode & 0o777 == 0o600
    assert (world.data / "broker" / "uri").stat().st_mode & 0o777 == 0o600
    poll("there is a leader", lambda: world.leader()[1], BACK_S)
    assert world.orders() == [], world.orders()


@test("a worker and a gateway that are killed come back, and the answer is right")
def _(world):
    before = world.heal("w1", "g1")
    after = world.pids()
    for node in ("g2", "w2", "w3", *MONITORS, "broker/supervisor"):
        assert after[node] == before[node], f"{node} was started again"
    assert sorted(order[1] for order in world.orders()) == ["g1", "w1"], world.orders()


@test("the leader is killed: another one leads, and starts it again")
def _(world):
    term, name = world.leader()
    world.heal(name)
    poll("there is another leader", lambda: world.leader()[0] > term, BACK_S)
    assert world.leader()[1] != name, world.leader()


@test("a worker that was stopped is killed and started again")
def _(world):
    world.heal("w2", number=signal.SIGSTOP)


@test("all workers are killed at once")
def _(world):
    world.heal(*WORKERS)


@test("the agent of the broker is killed, and the broker with it")
def _(world):
    before = world.heal("broker/supervisor")
    poll("RabbitMQ ended too", lambda: not is_alive(before["broker"]), BACK_S)


@test("the broker itself is killed", full=True)
def _(world):
    before = world.heal("broker")
    world.wait_back(before, "broker/supervisor")


@test("all monitors are killed at once, and come back")
def _(world):
    before = world.pids()
    world.kill(*MONITORS)
    world.wait_back(before, *MONITORS)
    assert "no monitor is left" in world.said("err")
    after = world.pids()
    for node in (*WORKERS, *GATEWAYS, "broker/supervisor"):
        assert after[node] == before[node], f"{node} was started again"


@test("SIGTERM ends all of it, and nobody starts anything again")
def _(world):
    pids = world.pids()
    world.up.send_signal(signal.SIGTERM)
    code = world.up.wait(timeout=scaled(60))
    world.up = None
    assert code == 0, f"exit {code}: {world.said('err')}"
    left = [node for node, pid in pids.items() if is_alive(pid)]
    assert not left, f"still there: {left}"
    world.wait_for_nothing(0)
    assert "killing it" not in world.said("err"), world.said("err")


@test("up that is killed leaves nothing behind")
def _(world):
    world.start()
    pids = world.pids()
    world.up.kill()
    world.up.wait()
    world.up = None
    poll("all have ended", lambda: not any(is_alive(pid) for pid in pids.values()), 10)
    world.wait_for_nothing(0)


@test("up stops what was left behind, but not for a file that it can't run", full=True)
def _(world):
    with open(world.folder / "err", "ab") as err:
        stray = subprocess.Popen([MILLRACE, "worker", "-c", world.file.name, "-n", "w3"],
                                 stdout=err, stderr=err, stdin=subprocess.DEVNULL,
                                 cwd=world.folder, env=environment())
    poll("it runs", lambda: is_held(world.data / "w3"))
    elsewhere = world.folder / "elsewhere.ini"
    elsewhere.write_text(world.file.read_text().replace("m2 = 127.0.0.1", "m2 = 192.0.2.1"))
    refused = subprocess.run([MILLRACE, "up", "-c", elsewhere.name], capture_output=True, text=True,
                             timeout=scaled(60), cwd=world.folder, env=environment())
    assert refused.returncode == 1, refused.stderr
    assert "monitor m2: 192.0.2.1 is no address of this host" in refused.stderr, refused.stderr
    assert "stopping it" not in refused.stderr and stray.poll() is None, refused.stderr
    world.start()
    assert f"w3 still runs, as process {stray.pid}; stopping it" in world.said("err")
    stray.wait(timeout=scaled(10))
    assert world.pid("w3") != stray.pid


if __name__ == "__main__":
    if not pathlib.Path(RABBIT + "rabbitmq-server").exists():
        print("1..0 # SKIP RabbitMQ is not installed")
        sys.exit(0)
    sys.exit(suite.run(sys.argv[1:], World))
