#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster on several hosts, as docs/howto/several-hosts.md sets it up, outlives the loss of one.

Method: four hosts in namespaces, each with a disk of its own; three have a broker of one RabbitMQ
cluster, a worker and a monitor each, two of them a gateway, and the fourth is spare. All read the
same cluster file; the key is copied to each of them; gateways want TLS and a token. In the middle of
a job a host loses its power, and its worker is started under its name on the spare one: the job goes
on, and the answer must be that of one process. Also here: what systemd says of the unit. Prints TAP;
words on the command line choose tests by parts of their names. MILLRACE is the binary.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import hosts
from cluster import (MILLRACE, RABBIT, RETRY_FOR, SOURCE_DIR, Amqp, Broker, Suite, environment,
                     poll, run, tail, without_history)
from hosts import Agent, Network, wait_until
from timing import scaled, setting
from monitored import HEARTBEAT_PERIOD_MAX_S
from world import CHUNK, difference

suite = Suite()
test = suite.test

NODES = {"g1": "a", "g2": "b", "w1": "a", "w2": "b", "w3": "c", "m1": "a", "m2": "b", "m3": "c"}
BROKERS = "abc"
SPARE = "d"
PORT = 7100
TOKEN = "only-for-this-test"
READY_S = 120
BACK_S = 90
JOB_S = 180


class HostBroker(Broker):
    """A member of the RabbitMQ cluster, on a host, for all hosts."""

    def __init__(self, host, members, folder):
        super().__init__(folder / host.name, home=folder / "home")
        self.host = host
        self.node = f"rabbit@{host.address}"
        self.members = [f"rabbit@{member.address}" for member in members]
        self.port, self.dist_port, self.epmd_port = 5672, 25672, 4369  # Nobody else is there.

    @property
    def uri(self):
        return f"amqp://guest:guest@{self.host.address}:{self.port}/"

    def write_files(self):
        super().write_files()
        lines = ["cluster_formation.peer_discovery_backend = classic_config",
                 "cluster_formation.randomized_startup_delay_range.min = 0",
                 "cluster_formation.randomized_startup_delay_range.max = 1"]
        lines += [f"cluster_formation.classic_config.nodes.{number} = {member}"
                  for number, member in enumerate(self.members, 1)]
        with open(self.folder / "rabbitmq.conf", "a") as file:
            file.write("\n".join(lines) + "\n")

    def env(self):
        words = ",".join(self.host.address.split("."))
        return dict(super().env(), ERL_EPMD_ADDRESS=self.host.address,
                    RABBITMQ_USE_LONGNAME="true", RABBITMQ_NODE_IP_ADDRESS="0.0.0.0",
                    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=
                    f"-kernel inet_dist_use_interface {{{words}}} -kernel net_ticktime {scaled(8):.0f}")

    def start(self):
        self.write_files()
        (self.folder / "pid").unlink(missing_ok=True)
        with open(self.folder / "stdout", "ab") as out:
            if self.epmd is None:
                self.epmd = self.host.spawn(["epmd", "-port", self.epmd_port], env=self.env(),
                                            stdout=out, stderr=out)
            self.process = self.host.spawn([RABBIT + "rabbitmq-server"], env=self.env(),
                                           stdout=out, stderr=out)

    def is_ready(self):
        def look():
            with Amqp(self.port):
                return True
        try:
            return self.host.within(look)
        except OSError:
            return False

    def ctl(self, *words):
        done = subprocess.run(
            [*self.host.enter, RABBIT + "rabbitmqctl", "-q", "-l", "-n", self.node, *words],
            env=self.env(), capture_output=True, timeout=scaled(READY_S), text=True)
        assert done.returncode == 0, f"rabbitmqctl {words}: {done.stdout} {done.stderr}"
        return done.stdout


class World:
    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-hosts-"))
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
        self.hosts = {name: self.network.host(name) for name in [*BROKERS, SPARE]}
        self.agents = {}
        for name, host in self.hosts.items():
            self.agents[name] = Agent(host, self.file, self.folder)
            self.stack.callback(self.agents[name].close)
        members = [self.hosts[name] for name in BROKERS]
        self.brokers = {name: HostBroker(self.hosts[name], members, self.folder / "brokers")
                        for name in BROKERS}
        for broker in self.brokers.values():
            self.stack.callback(broker.close)
            broker.start()
        self.make_secrets()
        self.write_file()
        self.wait_for_brokers()
        for node, host in NODES.items():
            self.agents[host].start(node)
        for gateway in ("g1", "g2"):
            wait_until(f"{gateway} is ready", lambda gateway=gateway: "event=connected" in
                       self.log(NODES[gateway], gateway), READY_S)

    def wait_for_brokers(self, *names):
        """Until each of these knows these, and no others."""
        names = names or tuple(BROKERS)
        for name in names:
            poll(f"the broker of {name} is ready", self.brokers[name].is_ready, READY_S)
        count = "length(rabbit_nodes:all_running())."
        for name in names:
            poll(f"the broker of {name} knows {len(names)}",
                 lambda name=name: self.brokers[name].ctl("eval", count).strip() ==
                 str(len(names)), READY_S)

    def openssl(self, name, *words):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout",
                        f"{self.folder}/{name}.key", "-out", f"{self.folder}/{name}.pem", "-subj",
                        f"/CN={name}", *words], check=True, capture_output=True)

    def make_secrets(self):
        """As docs/howto/several-hosts.md says."""
        names = ",".join(f"IP:{self.hosts[NODES[gateway]].address}" for gateway in ("g1", "g2"))
        self.openssl("ca")
        self.openssl("gateway", "-CA", f"{self.folder}/ca.pem", "-CAkey", f"{self.folder}/ca.key",
                     "-addext", "basicConstraints=critical,CA:FALSE", "-addext",
                     f"subjectAltName={names}")
        token = self.folder / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)

    def write_file(self):
        address = {node: self.hosts[host].address for node, host in NODES.items()}
        lines = ["[cluster]", "name = hosts", "queues = quorum"]
        lines += [f"broker = {broker.uri}" for broker in self.brokers.values()]
        lines += [f"data_dir = {self.network.data_dir}", f"token_file = {self.folder}/token",
                  f"tls_certificate = {self.folder}/gateway.pem",
                  f"tls_key = {self.folder}/gateway.key", "sync_period = 100ms", "window = 8"]
        lines += ["[gateways]", *(f"{name} = {address[name]}:{PORT}" for name in ("g1", "g2"))]
        lines += ["[workers]", *(f"{name} = {address[name]}" for name in ("w1", "w2", "w3"))]
        lines += ["[monitors]", *(f"{name} = {address[name]}:{PORT + 1}"
                                  for name in ("m1", "m2", "m3"))]
        lines += [f"heartbeat_period = {setting(0.2, HEARTBEAT_PERIOD_MAX_S)}", f"failure_timeout = {setting(2)}",
                  f"lease = {setting(2)}", f"driver_timeout = {setting(10)}"]
        self.file.write_text("\n".join([*lines, *hosts.drivers()]) + "\n")
        run("key", "-c", self.file)
        key = self.network.data_dir / "key"
        for host in self.hosts.values():
            shutil.copy2(key, host.disk / "key")  # Keeps its mode: only its owner may read it.
        key.unlink()

    # Looking.

    def log(self, host, node):
        return (self.hosts[host].disk / node / "log").read_text(errors="replace")

    def drives(self, target):
        """How often drivers were told to start a node."""
        found = 0
        for node in ("m1", "m2", "m3"):
            with contextlib.suppress(OSError):
                found += len(re.findall(rf"event=drive action=\w+ target={target} ",
                                        self.log(NODES[node], node)))
        return found

    # Doing.

    @property
    def client_env(self):
        return environment(MILLRACE_STATE_DIR=str(self.folder / "state"),
                           MILLRACE_CLUSTER_TOKEN=TOKEN,
                           MILLRACE_CLUSTER_CA=f"{self.folder}/ca.pem")

    @property
    def gateways(self):
        return ",".join(f"https://{self.hosts[NODES[name]].address}:{PORT}"
                        for name in ("g1", "g2"))

    @contextlib.contextmanager
    def job(self):
        """A job that runs meanwhile; its answer must be right."""
        self.count += 1
        out, err = (self.folder / f"client{self.count}.{kind}" for kind in ("out", "err"))
        with open(out, "wb") as out_file, open(err, "wb") as err_file:
            client = self.hosts[SPARE].spawn(
                [MILLRACE, "submit", "movies", self.movies, "-g", self.gateways, "--format",
                 "json", *CHUNK, *RETRY_FOR], stdout=out_file, stderr=err_file, env=self.client_env)
        try:
            poll("the job has begun", lambda: "job " in err.read_text() or
                 client.poll() is not None)
            yield client
            try:
                code = client.wait(scaled(JOB_S))
            except subprocess.TimeoutExpired:
                code = "none"
            assert code == 0, f"exit {code}: {err.read_text()[-2000:]}"
            answer = without_history(out.read_text())
            assert answer == self.expected, difference(answer, self.expected)
        finally:
            if client.poll() is None:
                client.kill()
                client.wait()

    def lose(self, name):
        """The power of a host."""
        self.network.cut(self.hosts[name])
        self.agents[name].lose()
        self.brokers[name].close()
        self.brokers[name].epmd = None

    def bring_back(self, name):
        """It boots: its broker is a service of its own, and monitors start what belongs there.
        Brokers have to have noticed its death, as they have when a host has really booted: of two
        lives of one Erlang node, the second is not let in."""
        self.wait_for_brokers(*(other for other in BROKERS if other != name))
        self.network.heal(self.hosts[name])
        self.brokers[name].start()
        with self.agents[name].lock:
            self.hosts[name].is_up = True

    def lose_during_job(self, name, worker):
        with self.job() as client:
            self.lose(name)
            assert client.poll() is None, "the job had ended before"
            poll("monitors try to start it where it was", lambda: self.drives(worker) > 0, BACK_S)
            assert self.agents[SPARE].start(worker)
        assert "event=connected" in self.log(SPARE, worker)

    def move_back(self, name, worker):
        """All that belongs on the host runs there again, and the worker nowhere else."""
        agent = self.agents[name]
        self.bring_back(name)
        others = [node for node, host in NODES.items() if host == name and node != worker]
        for node in others:
            poll(f"{node} is back", lambda node=node: agent.runs(node), BACK_S)
        self.wait_for_brokers()
        assert not agent.runs(worker), f"{worker} was started while it ran elsewhere"
        self.agents[SPARE].kill(worker)
        poll(f"{worker} is back", lambda: agent.runs(worker), BACK_S)
        with self.job():
            pass

    def state(self):
        parts = []
        for node, host in [*NODES.items(), ("w1", SPARE), ("w3", SPARE)]:
            parts += [f"--- {node} on {host}: {self.agents[host].pid(node)}",
                      tail(self.hosts[host].disk / node / "log", 12),
                      tail(self.folder / f"{node}.stderr", 4)]
        return "\n".join(parts)

    def repair(self):
        for name in BROKERS:
            if not self.hosts[name].is_up:
                self.bring_back(name)
        self.wait_for_brokers()


@test("hosts with one file and one key are one cluster")
def _(world):
    with world.job():
        pass
    status = world.hosts[SPARE].spawn([MILLRACE, "status", "-g", world.gateways],
                                      env=world.client_env, stdout=subprocess.PIPE)
    said = status.communicate(timeout=scaled(60))[0].decode()
    assert status.returncode == 0, said
    for node in NODES:
        assert re.search(rf"\b{node}\b", said), said


@test("a client without the token is refused")
def _(world):
    env = {**world.client_env, "MILLRACE_CLUSTER_TOKEN": "wrong"}
    status = world.hosts[SPARE].spawn([MILLRACE, "status", "-g", world.gateways], env=env,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = status.communicate(timeout=scaled(60))[1].decode()
    assert status.returncode != 0 and "token" in said, said


@test("a node whose key is another one is not heard")
def _(world):
    key = world.hosts[SPARE].disk / "key"
    right = key.read_text()
    key.write_text("0" * 63 + "1\n")
    try:
        for node in ("m1", "m2", "m3"):
            assert "event=datagrams-refused" not in world.log(NODES[node], node)
        stranger = world.hosts[SPARE].spawn([MILLRACE, "node", "-c", world.file, "-n", "w1"],
                                            env=environment(), stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL)
        poll("monitors refuse it", lambda: all(
            "event=datagrams-refused" in world.log(NODES[node], node)
            for node in ("m1", "m2", "m3")), BACK_S)
        stranger.kill()
        stranger.wait()
    finally:
        key.write_text(right)
        shutil.rmtree(world.hosts[SPARE].disk / "w1", ignore_errors=True)
    assert world.drives("w1") == 0
    with world.job():
        pass


@test("a host is lost: its worker goes on elsewhere, under the same name")
def _(world):
    world.lose_during_job("c", "w3")


@test("the host is back: monitors start what belongs there, but not what runs elsewhere")
def _(world):
    world.move_back("c", "w3")


@test("a host with a gateway is lost, and comes back")
def _(world):
    world.lose_during_job("a", "w1")
    world.move_back("a", "w1")


@test("systemd finds nothing wrong with the unit")
def _(world):
    unit = pathlib.Path(SOURCE_DIR) / "deploy" / "systemd" / "millrace@.service"
    verify_unit(world.folder, unit)


def verify_unit(folder, unit):
    """With the program that is tested in its place, since none may be installed."""
    copy = folder / "millrace@w1.service"
    copy.write_text(unit.read_text().replace("/usr/local/bin/millrace", MILLRACE))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)],
                          capture_output=True, text=True, timeout=scaled(60))
    said = [line for line in done.stderr.splitlines() if "millrace" in line]
    assert done.returncode == 0 and not said, done.stderr
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=30",
                           str(copy)], capture_output=True, text=True, timeout=scaled(60))
    print("# " + (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


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
