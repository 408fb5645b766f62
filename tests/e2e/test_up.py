#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`millrace up`, and the commands around it, as a user calls them.

Method: one cluster on this host, started by `up` with a broker of its own. Its processes are killed
and counted; other clusters, with files that are wrong in one way each, are refused. Prints TAP; words
on the command line choose tests by parts of their names. MILLRACE is the binary.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from cluster import MILLRACE, RETRY_FOR, WAIT_S, Suite, poll
from timing import scaled, setting

suite = Suite()
test = suite.test

READY_S = 120  # For `up`.


def free_ports(count):
    """Below those that the system gives to connections, so that they stay free."""
    ports = []
    while len(ports) < count:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


def is_alive(pid):
    """Zombies are dead: who reaps them is none of our business."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def children(pid):
    try:
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True,
                                text=True, check=False).stdout
    except OSError:
        return []
    return [int(word) for word in listed.split()]


class World:
    """A folder with a cluster file, and `up` on it."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-up-"))
        self.ports = free_ports(2)
        self.gateways = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        self.file = self.write("cluster.ini", "data")
        self.data = self.folder / "data"
        self.run("gen", "movies", self.folder / "movies", "--scale", "0.005", "--quiet")
        self.up = None
        return self

    def __exit__(self, *_):
        if self.up is not None:
            self.up.kill()
            self.up.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name, data, gateways=None, more=""):
        lines = gateways or [f"g{i + 1} = 127.0.0.1:{port}" for i, port in enumerate(self.ports)]
        path = self.folder / name
        path.write_text(f"[cluster]\nname = up\nbroker = start\ndata_dir = {data}\n"
                        f"ready_timeout = {setting(READY_S)}\n[gateways]\n"
                        + "\n".join(lines) + "\n[workers]\ncount = 2\n" + more)
        return path

    def env(self, **more):
        return {**os.environ, "MILLRACE_STATE_DIR": str(self.folder / "state"), **more}

    def run(self, *words, code=0, seconds=60):
        done = subprocess.run([MILLRACE, *map(str, words)], capture_output=True, text=True,
                              timeout=scaled(seconds), env=self.env(), cwd=self.folder)
        assert done.returncode == code, f"exit {done.returncode}: {words}\n{done.stderr}"
        return done

    def start(self, **env):
        """`up`, until it is ready."""
        out, err = self.folder / "out", self.folder / "err"
        with open(out, "wb") as to, open(err, "wb") as errors:
            self.up = subprocess.Popen([MILLRACE, "up", "-c", self.file], stdout=to, stderr=errors,
                                       stdin=subprocess.DEVNULL, env=self.env(**env))
        poll("the cluster is ready", lambda: self.said("out") or self.up.poll() is not None,
             READY_S + WAIT_S)
        assert self.said("out") == "ready\n", self.said("err")

    def stop(self, number=signal.SIGTERM):
        processes = self.processes()
        self.up.send_signal(number)
        code = self.up.wait(timeout=scaled(60))
        assert code == 0, f"exit {code}: {self.said('err')}"
        assert self.said("out") == "ready\n"
        left = [pid for pid in processes if is_alive(pid)]
        assert not left, f"still there: {left}"
        self.up = None

    def said(self, name):
        return (self.folder / name).read_text()

    def pid(self, node):
        return int((self.data / node / "pid").read_text())

    def kill(self, node):
        """Gives what waits until `up` has started it again."""
        before = self.pid(node)
        os.kill(before, signal.SIGKILL)
        return lambda: poll(f"{node} is back", lambda: self.is_back(node, before), 90)

    def is_back(self, node, before):
        try:
            pid = self.pid(node)
        except (FileNotFoundError, ValueError):  # It is just being written.
            return False
        return pid != before and is_alive(pid)

    def processes(self):
        direct = children(self.up.pid)
        return direct + [pid for child in direct for pid in children(child)]

    def verify(self):
        done = self.run("submit", "movies", self.folder / "movies", "-g", self.gateways, *RETRY_FOR,
                        "--verify", "--format", "csv", seconds=120)
        assert "verified: equal to run" in done.stderr, done.stderr

    def state(self):
        return self.said("err") if (self.folder / "err").exists() else ""

    def repair(self):
        if self.up is not None and self.up.poll() is not None:
            self.up = None
        if self.up is None:
            self.start()


@test("up says ready once, and then jobs are answered")
def _(world):
    world.start()
    world.verify()
    for name in ("g1", "g2", "w1", "w2", "broker"):
        assert is_alive(world.pid(name)), name
        assert (world.data / name / "log").exists(), name


@test("the broker's password is in no list of processes")
def _(world):
    uri = (world.data / "broker" / "uri").read_text()
    password = uri.split("@")[0].rsplit(":", 1)[1]
    assert len(password) > 16, uri
    processes = [world.up.pid, *world.processes()]
    assert len(processes) > 4, processes
    for pid in processes:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        assert password not in words, words.replace("\0", " ")


@test("status and jobs tell what there is, for people and for programs")
def _(world):
    text = world.run("status", "-g", world.gateways).stdout
    assert "w1" in text and "w2" in text and "no jobs" in text, text
    told = json.loads(world.run("status", "-g", world.gateways, "--json").stdout)
    assert [gateway["ok"] for gateway in told["gateways"]] == [True, True], told
    nodes = {node["name"]: node for node in told["cluster"]["nodes"]}
    assert nodes["w1"]["answers"] and nodes["w2"]["answers"], nodes
    assert json.loads(world.run("jobs", "-g", world.gateways, "--json").stdout)["jobs"] == []
    world.run("jobs", "nobody", "-g", world.gateways, code=2)
    world.run("cancel", "nobody", "-g", world.gateways, code=2)
    alone = world.run("status", "-g", "127.0.0.1:1", code=3).stderr
    assert "the gateway could not be reached: " in alone, alone
    for words in (["status"], ["jobs"], ["cancel", "nobody"]):
        both = world.run(*words, "-g", "127.0.0.1:1,127.0.0.1:2", code=3).stderr
        assert "none of the 2 gateways could be reached: " in both, both
        assert "does the cluster run?" in both, both
    for wrong in ("127.0.0.1:99999", "127.0.0.1"):
        refused = world.run("status", "-g", wrong, code=2).stderr
        assert "port" in refused, refused


@test("what is in the way of a second cluster is named")
def _(world):
    busy = world.run("up", "-c", world.file, code=1).stderr
    assert f"in use by process {world.up.pid}; does this cluster run already?" in busy, busy
    (world.folder / "file").write_text("in the way")
    no_folder = world.run("up", "-c", world.write("no.ini", "file/data"), code=1).stderr
    assert "cannot make the folder" in no_folder and "already" not in no_folder, no_folder
    taken = world.run("up", "-c", world.write("taken.ini", "taken"), code=1).stderr
    assert f"g1: port {world.ports[0]} of 127.0.0.1 is in use" in taken, taken
    elsewhere = world.write("elsewhere.ini", "elsewhere", [f"g1 = 192.0.2.1:{world.ports[0]}"])
    refused = world.run("up", "-c", elsewhere, code=1).stderr
    assert "192.0.2.1 is no address of this host" in refused, refused
    running = world.run("clean", "-c", world.file, code=2).stderr
    assert "still runs" in running, running


@test("a node whose folder is in use says so, and soon gives up")
def _(world):
    for role, name in (("worker", "w1"), ("gateway", "g1")):
        refused = world.run(role, "-c", world.file, "-n", name, "--broker", "amqp://127.0.0.1:1",
                            code=1, seconds=4).stderr
        assert f"{name}: waiting for process {world.pid(name)} to leave" in refused, refused
        assert f"is in use by process {world.pid(name)}" in refused, refused


@test("a job that no gateway took leaves no journal, and no advice")
def _(world):
    gateways = "127.0.0.1:1,127.0.0.1:2"
    retry_for = round(scaled(3))
    failed = world.run("submit", "movies", world.folder / "movies", "-g", gateways, "--retry-for",
                       retry_for, code=3).stderr
    assert failed.count("no gateway answers yet") == 1, failed
    told = re.search(r"http://127.0.0.1:1, http://127.0.0.1:2 for (\d+) s more", failed)
    assert told and 1 <= int(told.group(1)) <= retry_for - 2, failed
    assert "--job" not in failed, failed
    assert not list((world.folder / "state" / "jobs").iterdir())


@test("a journal whose files have changed can be cancelled, also when its job is gone")
def _(world):
    journal = world.folder / "state" / "jobs" / "monday"
    submit = ["submit", "movies", world.folder / "movies", "--job", "monday", "--quiet", "-g"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = subprocess.Popen(
            [MILLRACE, *map(str, submit), f"127.0.0.1:{silent.getsockname()[1]}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=world.env())
        poll("there is a journal", journal.exists)
        client.kill()
        client.wait()
    os.utime(world.folder / "movies" / "ratings.csv")
    changed = world.run(*submit, world.gateways, code=1).stderr
    assert "ratings.csv has changed since the job began; take another id" in changed, changed
    assert "millrace cancel monday -g" in changed, changed
    told = world.run("cancel", "monday", "-g", world.gateways).stderr
    assert "its journal is removed" in told and not journal.exists(), told
    world.run("cancel", "monday", "-g", world.gateways, code=2)


@test("names of nodes that are wrong are corrected")
def _(world):
    other = world.run("worker", "-c", world.file, "-n", "g1", code=2).stderr
    assert "g1 is a gateway" in other, other
    wrong = world.run("gateway", "-c", world.file, "-n", "g3", code=2).stderr
    assert "did you mean `g" in wrong, wrong


@test("a worker, a gateway and the broker that are killed come back")
def _(world):
    for name in ("w1", "g2", "broker"):
        world.kill(name)()
        told = f"{name}: it has ended" if name == "broker" else f"{name} was killed by signal 9"
        poll("it is told", lambda: told in world.said("err"))
    world.verify()


@test("every row of a large result comes once although both gateways are killed on the way")
def _(world):
    rows, data = world.folder / "rows", world.folder / "ratings"
    rows.mkdir()
    (rows / "tables.sql").write_text(
        "CREATE TABLE ratings (userId INT NOT NULL, movieId INT NOT NULL, rating DECIMAL(6,3) "
        "NOT NULL, timestamp INT NOT NULL) FROM 'ratings.csv';\n")
    (rows / "all.sql").write_text("SELECT userId, movieId, rating, timestamp FROM ratings")
    world.run("gen", "movies", data, "--scale", "0.02", "--quiet")
    expected = world.run("run", rows, data, "--format", "csv").stdout.encode()
    assert expected.count(b"\n") > 500000
    with open(world.folder / "submit.err", "wb") as err:
        client = subprocess.Popen(
            [MILLRACE, "submit", rows, data, "-g", world.gateways, "--format", "csv",
             *RETRY_FOR],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, env=world.env())
    reading = threading.Timer(scaled(60), client.kill)  # Whatever happens, the pipe ends.
    reading.start()
    try:
        got = client.stdout.read(1000)
        wait = world.kill("g1")
        got += client.stdout.read(len(expected) // 2)
        wait()
        wait = world.kill("g2")
        got += client.stdout.read()
        wait()
        assert client.wait() == 0, world.said("submit.err")
    finally:
        reading.cancel()
        client.kill()
        client.wait()
        client.stdout.close()
    assert got == expected, f"{len(got)} bytes, not {len(expected)}"


@test("a node that keeps dying does not end a cluster that was ready")
def _(world):
    aside = world.data / "w2-aside"
    before, ended = world.pid("w2"), "w2 ended with code 1; restarting it in "
    (world.data / "w2").rename(aside)
    (world.data / "w2").write_text("in the way")
    os.kill(before, signal.SIGKILL)
    poll("it was started more than five times", lambda: world.said("err").count(ended) > 6, 60)
    assert world.up.poll() is None, world.said("err")
    assert ended + "5.0 s" in world.said("err"), world.said("err")
    (world.data / "w2").unlink()
    aside.rename(world.data / "w2")
    poll("w2 is back", lambda: world.is_back("w2", before), 30)
    world.verify()


@test("SIGTERM ends all of it, and clean removes what is left")
def _(world):
    world.stop()
    assert not (world.data / "w1" / "pid").exists()
    world.run("clean", "-c", world.file)
    assert not (world.data / "broker").exists()
    assert not (world.data / "w1" / "jobs").exists()
    assert (world.data / "w1" / "log").exists()


@test("a crash point with a count is hit once, and Ctrl-C ends all as well")
def _(world):
    world.start(MILLRACE_CRASH="after-log@w2:5")
    world.verify()
    assert world.said("err").count("w2 was killed by signal 9") == 1, world.said("err")
    world.stop(signal.SIGINT)


@test("up that is killed leaves nothing behind")
def _(world):
    world.start()
    processes = world.processes()
    assert len(processes) >= 5, processes
    world.up.kill()
    world.up.wait()
    poll("all have ended", lambda: not any(is_alive(pid) for pid in processes), 10)
    world.up = None


@test("a node that can't start fails the cluster, with its reason")
def _(world):
    shutil.rmtree(world.data / "w2")
    (world.data / "w2").write_text("in the way")
    failed = world.run("up", "-c", world.file, code=1, seconds=120).stderr
    assert "w2 ended with code 1 5 times within a second of its start" in failed, failed
    (world.data / "w2").unlink()


if __name__ == "__main__":
    sys.exit(suite.run(sys.argv[1:], World))
