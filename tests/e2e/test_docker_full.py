#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster of containers, as `millrace compose` writes it, heals itself by the Engine's API.

Method: a private Docker engine; both images are built from the working tree, on a Debian that is
made here. The files of `compose` are used as they are, by another user than root. In the middle of
jobs, which clients in containers of their own submit, containers are killed with `docker kill`; the
monitors must have them started again, and the answer must be that of one process on this host.
Prints TAP; words on the command line choose tests by parts of their names. MILLRACE is the binary.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import engine
from cluster import MILLRACE, RETRY_FOR, Suite, poll, run, tail, without_history
from timing import scaled, setting
from monitored import HEARTBEAT_PERIOD_MAX_S
from world import CHUNK, difference

suite = Suite()
test = suite.test

USER = 10001  # Of the image.
NAME = "boxes"
GATEWAYS = ["g1", "g2"]
WORKERS = ["w1", "w2", "w3"]
MONITORS = ["m1", "m2", "m3"]
NODES = ["broker", *GATEWAYS, *WORKERS, *MONITORS]
READY_S = 180
BACK_S = 120
JOB_S = 240

CLUSTER = f"""[cluster]
name = {NAME}
broker = start
sync_period = 100ms
window = 8
[gateways]
g1 = 127.0.0.1:7101
g2 = 127.0.0.1:7102
[workers]
count = {len(WORKERS)}
[monitors]
m1 = 127.0.0.1:7201
m2 = 127.0.0.1:7202
m3 = 127.0.0.1:7203
heartbeat_period = {setting(0.25, HEARTBEAT_PERIOD_MAX_S)}
failure_timeout = {setting(2)}
lease = {setting(2)}
stall_timeout = {setting(30)}
start_timeout = {setting(10)}
"""
ADDRESSES = "g1:7101,g2:7102"


class Client:
    """One container that submits."""

    def __init__(self, world, number, *words):
        self.out, self.err = (world.folder / f"client{number}.{kind}" for kind in ("out", "err"))
        self.container = f"client{number}"
        command = ["docker-compose", "-f", "clients.yml", "run", "--rm", "-T", "--name",
                   self.container, "client", "submit", "movies", "/data", "-g", ADDRESSES,
                   "--format", "json", *CHUNK, *RETRY_FOR, *words]
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(command, cwd=world.deploy, env=world.env, stdout=out,
                                            stderr=err, stdin=subprocess.DEVNULL)

    @property
    def errors(self):
        return self.err.read_text(errors="replace")

    def wait_begun(self):
        poll("a job has begun", lambda: re.search(r"^job ", self.errors, re.M) or
             self.process.poll() is not None, READY_S)
        assert self.process.poll() is None, self.errors

    def answer(self):
        code = self.process.wait(scaled(JOB_S))
        assert code == 0, f"exit {code}: {self.errors}"
        return without_history(self.out.read_text())


class World:
    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-docker-"))
        self.deploy = self.folder / "deploy"
        self.movies = self.folder / "movies"
        self.clients = []
        self.stack = contextlib.ExitStack()
        self.stack.callback(self.remove_files)
        try:
            self.engine = self.stack.enter_context(engine.Engine(self.folder / "engine"))
            self.env = dict(self.engine.env, MILLRACE_DATA=str(self.movies))
            self.make()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_):
        for client in self.clients:
            if client.process.poll() is None:
                client.process.kill()
                client.process.wait()
        self.stack.close()

    def remove_files(self):
        if "KEEP" in os.environ:  # For whoever looks for a cause.
            print(f"# {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def make(self):
        """Images, data, files: all but a running cluster."""
        self.folder.chmod(0o755)
        self.engine.make_base()
        print(f"# image of nodes: {self.engine.build('millrace', '--target', 'node'):.0f} s")
        print(f"# image of the broker: "
              f"{self.engine.build('millrace-broker', '--target', 'broker'):.0f} s", flush=True)
        run("gen", "movies", self.movies, "--scale", "0.05")
        self.expected = without_history(run("run", "movies", self.movies, "--format", "json",
                                            *CHUNK))
        file = self.folder / "cluster.ini"
        file.write_text(CLUSTER + f"docker_socket = {self.engine.socket}\n")
        run("compose", "-c", file, "--output", self.deploy)
        given = self.deploy / ".env"
        given.write_text(re.sub(r"MILLRACE_USER=.*", f"MILLRACE_USER={USER}:{USER}",
                                given.read_text()))
        for path in ("key", "data", "state"):
            os.chown(self.deploy / path, USER, USER)

    def compose(self, file, *words, seconds=300):
        done = subprocess.run(["docker-compose", "-f", file, *words], cwd=self.deploy,
                              env=self.env, capture_output=True, text=True,
                              timeout=scaled(seconds))
        assert done.returncode == 0, f"{words}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
        return done.stdout

    def start(self):
        self.compose("system.yml", "up", "-d")
        for node in NODES:
            poll(f"{node} is well", lambda node=node: self.health(node) == "healthy", READY_S)

    # Containers.

    def state_of(self, node):
        found = self.engine.inspect(f"{NAME}-{node}")
        return found["State"] if found else {}

    def health(self, node):
        state = self.state_of(node)
        return state.get("Health", {}).get("Status") if state.get("Running") else None

    def started(self):
        return {node: self.state_of(node)["StartedAt"] for node in NODES}

    def wait_back(self, before, *nodes):
        for node in nodes:
            poll(f"{node} is back",
                 lambda node=node: self.state_of(node).get("StartedAt") != before[node] and
                 self.health(node) == "healthy", BACK_S)

    # Logs of monitors.

    def lines(self, pattern):
        found = []
        for name in MONITORS:
            with contextlib.suppress(OSError):
                text = (self.deploy / "data" / name / "log").read_text(errors="replace")
                found += [(*match, name) for match in re.findall(pattern, text)]
        return found

    def leader(self):
        terms = self.lines(r"event=election state=leader term=(\d+)")
        return max(((int(term), name) for term, name in terms), default=(0, None))

    def drives(self):
        """(time, target) of all that drivers were told, in order."""
        pattern = r"(?m)^(\S+) .*event=drive action=\w+ target=(\w+)"
        return sorted(found[:2] for found in self.lines(pattern))

    # Jobs.

    def submit(self, *words):
        client = Client(self, len(self.clients) + 1, *words)
        self.clients.append(client)
        return client

    def check(self, client):
        answer = client.answer()
        assert answer == self.expected, difference(answer, self.expected)

    def heal(self, *nodes):
        """A job during which containers are killed: it must be right, and they must come back."""
        before, drives = self.started(), len(self.drives())
        client = self.submit()
        client.wait_begun()
        self.engine.docker("kill", *(f"{NAME}-{node}" for node in nodes))
        assert client.process.poll() is None, "the job had ended before"
        self.check(client)
        self.wait_back(before, *nodes)
        driven = {target for _, target in self.drives()[drives:]}
        assert driven >= set(nodes), f"{nodes} were killed, {driven} were driven"
        after = self.started()
        others = [node for node in NODES if node not in nodes and after[node] != before[node]]
        assert not others, f"started again without need: {others}"

    def state(self):
        parts = [self.engine.docker("ps", "-a", check=False).stdout]
        for node in NODES:
            folder = "broker/supervisor" if node == "broker" else node
            parts += [f"--- {node}", tail(self.deploy / "data" / folder / "log", 15),
                      self.engine.docker("logs", "--tail", "5", f"{NAME}-{node}",
                                         check=False).stderr]
        for client in self.clients[-2:]:
            parts += [f"--- client: exit={client.process.poll()}", client.errors[-2000:]]
        return "\n".join(parts)

    def repair(self):
        for client in self.clients:
            if client.process.poll() is None:
                self.engine.docker("rm", "-f", client.container, check=False)
                client.process.wait(scaled(60))
        self.compose("system.yml", "down")
        self.start()


@test("images are small, and don't run as root")
def _(world):
    base = world.engine.inspect(engine.BASE)["Size"]
    for image, limit in (("millrace", 60), ("millrace-broker", 400)):
        found = world.engine.inspect(image)
        size = (found["Size"] - base) / 1e6
        print(f"# {image}: {found['Size'] / 1e6:.0f} MB, of which Debian {base / 1e6:.0f} MB")
        assert size < limit, f"{image} adds {size:.0f} MB"
        assert found["Config"]["User"] == "millrace", found["Config"]["User"]


@test("docker-compose starts all of it, and all are well")
def _(world):
    world.start()
    poll("there is a leader", lambda: world.leader()[1], BACK_S)
    for node in NODES:
        user = world.engine.docker("exec", f"{NAME}-{node}", "id", "-u").stdout.strip()
        assert user == str(USER), f"{node} runs as {user}"
    world.check(world.submit())
    assert world.drives() == [], world.drives()


@test("a worker and a gateway are killed")
def _(world):
    world.heal("w1", "g1")


@test("the leader of the monitors is killed")
def _(world):
    term, name = world.leader()
    world.heal(name)
    poll("there is another leader", lambda: world.leader()[0] > term, BACK_S)


@test("the broker is killed")
def _(world):
    world.heal("broker")


@test("a client is killed, and goes on")
def _(world):
    client = world.submit("--job", "interrupted")
    client.wait_begun()
    world.engine.docker("kill", client.container)
    client.process.wait(scaled(60))
    again = world.submit("--job", "interrupted")
    world.check(again)


@test("chaos kills by the Engine's API, and the answer is right")
def _(world):
    drives = len(world.drives())
    done = subprocess.run(
        ["docker-compose", "-f", "system.yml", "run", "--rm", "-T", "--no-deps", "-v",
         f"{world.movies}:/movies:ro", "m1", "chaos", "-c", "/etc/millrace/cluster.ini", "--kill",
         "w*,g*", "--count", "1", "--every", f"{scaled(0.2):.1f}", "--for", f"{scaled(1):.1f}",
         "--seed", "3", "--verify",
         "movies", "/movies"],
        cwd=world.deploy, env=world.env, capture_output=True, text=True,
        timeout=scaled(JOB_S))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert len(world.drives()) > drives, done.stdout + done.stderr


@test("what is taken down stays down")
def _(world):
    drives = world.drives()
    begin = time.monotonic()
    world.compose("system.yml", "stop")
    for node in NODES:
        state = world.state_of(node)
        assert not state["Running"], f"{node} runs"
        assert state["ExitCode"] == 0, f"{node}: {state}"
    print(f"# stopped within {time.monotonic() - begin:.0f} s")
    assert world.drives() == drives, world.drives()[len(drives):]
    world.compose("system.yml", "up", "-d")
    for node in NODES:
        poll(f"{node} is well", lambda node=node: world.health(node) == "healthy", READY_S)
    world.check(world.submit())
    world.compose("system.yml", "down")
    assert not world.engine.docker("ps", "-aq").stdout.strip()


if __name__ == "__main__":
    reason = engine.missing()
    if not pathlib.Path(MILLRACE).exists():
        reason = f"there is no {MILLRACE}"
    if reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(0)
    sys.exit(suite.run(sys.argv[1:], World))
