#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may talk to a cluster, and whom clients trust, as a user meets it.

Method: one cluster that is open to all addresses, with TLS by a CA made for this run and a token in a
file; clients come with and without what they need, `curl` among them. Then cluster files that are
wrong in one way each. Prints TAP; words on the command line choose tests by parts of their names.
MILLRACE is the binary.
"""
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import warnings

from cluster import MILLRACE, WAIT_S, Suite, free_ports, poll
from timing import scaled, setting

suite = Suite()
test = suite.test
TOKEN = "correct-horse"
READY_S = 120  # For `up`.
warnings.filterwarnings("ignore", category=DeprecationWarning)  # Old versions are the point.


class Certificates:
    """ca, server (for 127.0.0.1 and localhost) and stranger, each NAME.pem and NAME.key."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "openssl.conf").write_text("[req]\ndistinguished_name = dn\n[dn]\n")
        authority = ["basicConstraints=critical,CA:TRUE", "keyUsage=keyCertSign"]
        self.make("ca", authority)
        self.make("stranger", authority)
        self.make("server", ["subjectAltName=IP:127.0.0.1,DNS:localhost"],
                  ["-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key")])

    def path(self, name):
        return str(self.folder / name)

    def make(self, name, extensions, signer=()):
        added = [word for extension in extensions for word in ("-addext", extension)]
        subprocess.run(["openssl", "req", "-x509", "-config", self.path("openssl.conf"), "-nodes",
                        "-days", "2", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-subj", f"/CN={name}", "-keyout",
                        self.path(name + ".key"), "-out", self.path(name + ".pem"), *added,
                        *signer], check=True, capture_output=True)


def read(path):
    return path.read_text() if path.exists() else ""


class World:
    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-security-"))
        self.tls = Certificates(self.folder)
        self.ca = self.tls.path("ca.pem")
        self.port, self.other_port = free_ports(2)
        self.url = f"https://127.0.0.1:{self.port}"
        token = self.folder / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        self.file = self.write("cluster.ini", f"0.0.0.0:{self.port}",
                               "tls_certificate = server.pem\ntls_key = server.key\n"
                               "token_file = token\n")
        self.run("gen", "movies", self.folder / "movies", "--scale", "0.002", "--quiet")
        self.up = None
        self.start()
        return self

    def __exit__(self, *_):
        if self.up is not None:
            self.up.send_signal(signal.SIGTERM)
            self.up.wait(timeout=scaled(60))
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name, address, lines):
        path = self.folder / name
        path.write_text(f"[cluster]\nname = s\ndata_dir = {name}-data\n"
                        f"ready_timeout = {setting(READY_S)}\n{lines}"
                        f"[gateways]\ng1 = {address}\n[workers]\ncount = 1\n")
        return path

    def run(self, *words, code=0, **env):
        done = subprocess.run([MILLRACE, *map(str, words)], capture_output=True, text=True,
                              timeout=scaled(60), cwd=self.folder,
                              env={**os.environ, "MILLRACE_STATE_DIR": str(self.folder / "state"),
                                   **env})
        assert done.returncode == code, f"exit {done.returncode}: {words}\n{done.stderr}"
        return done

    def start(self):
        with open(self.folder / "out", "wb") as out, open(self.folder / "err", "wb") as err:
            self.up = subprocess.Popen([MILLRACE, "up", "-c", self.file], stdout=out, stderr=err,
                                       stdin=subprocess.DEVNULL)
        poll("ready", lambda: self.said("out") or self.up.poll() is not None, READY_S + WAIT_S)
        assert self.said("out") == "ready\n", self.said("err")

    def said(self, name):
        return (self.folder / name).read_text()

    def curl(self, *words):
        done = subprocess.run(["curl", "-sS", "-m", f"{scaled(10):.0f}", "-o", "/dev/null", "-w",
                               "%{http_code}", *words], capture_output=True, text=True,
                              timeout=scaled(20))
        return done.stdout if done.returncode == 0 else done.stderr

    def refused(self, lines, *words, address=None, command="gateway"):
        """The node does not start, and says all of the words."""
        address = address or f"0.0.0.0:{self.other_port}"
        path = self.write("wrong.ini", address, "broker = amqp://127.0.0.1:1\n" + lines)
        name = "g1" if command == "gateway" else "w1"
        done = self.run(command, "-c", path, "-n", name, code=2)
        for word in words:
            assert word in done.stderr, done.stderr

    def state(self):
        return self.said("err") if (self.folder / "err").exists() else ""

    def repair(self):
        if self.up is None or self.up.poll() is not None:
            self.start()


@test("with its CA and the token, a cluster answers over https")
def _(world):
    done = world.run("submit", "movies", world.folder / "movies", "-g", world.url, "--ca", world.ca,
                     "--verify", "--format", "csv", MILLRACE_CLUSTER_TOKEN=TOKEN)
    assert "verified: equal to run" in done.stderr, done.stderr
    known = {"MILLRACE_CLUSTER_TOKEN": TOKEN, "MILLRACE_CLUSTER_CA": world.ca}
    assert "g1" in world.run("status", "-g", f"https://localhost:{world.port}", **known).stdout
    world.run("jobs", "-g", world.url, **known)
    header = f"Authorization: Bearer {TOKEN}"
    assert world.curl("--cacert", world.ca, "-H", header, world.url + "/v1/jobs") == "200"


@test("without the token or with another one, calls are refused")
def _(world):
    assert world.curl("--cacert", world.ca, world.url + "/v1/jobs") == "401"
    done = world.run("jobs", "-g", world.url, "--ca", world.ca, code=2,
                     MILLRACE_CLUSTER_TOKEN="wrong")
    assert "token" in done.stderr, done.stderr


@test("another CA, none, or a file that is none: told at once, and what to do")
def _(world):
    stranger = world.tls.path("stranger.pem")
    # Whoever would try again would do so for a day.
    submit = ["submit", "movies", world.folder / "movies", "--retry-for", 86400]
    for command in (["status"], ["jobs"], submit):
        done = world.run(*command, "-g", world.url, "--ca", stranger, code=2,
                         MILLRACE_CLUSTER_TOKEN=TOKEN)
        assert "certificate" in done.stderr and "CA" in done.stderr, done.stderr
    done = world.run("jobs", "-g", world.url, code=2)
    assert "CA" in done.stderr, done.stderr
    done = world.run("jobs", "-g", world.url, "--ca", "nowhere.pem", code=2)
    assert "nowhere.pem" in done.stderr, done.stderr


@test("http at an https port is told, and harms nobody")
def _(world):
    done = world.run("jobs", "-g", f"127.0.0.1:{world.port}", code=3, MILLRACE_CLUSTER_TOKEN=TOKEN)
    assert "https" in done.stderr, done.stderr
    assert not world.curl(f"http://127.0.0.1:{world.port}/healthz").startswith("2")


@test("TLS before 1.2 is not spoken")
def _(world):
    def version(highest):
        context = ssl.create_default_context(cafile=world.ca)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = highest
        with socket.create_connection(("127.0.0.1", world.port), timeout=scaled(10)) as plain, \
                context.wrap_socket(plain, server_hostname="localhost") as session:
            return session.version()
    assert version(ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
    assert version(ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
    try:
        raise AssertionError(version(ssl.TLSVersion.TLSv1_1))
    except (ssl.SSLError, OSError):
        pass


@test("a gateway is not opened to others without token and TLS, unless told to")
def _(world):
    tls = "tls_certificate = server.pem\ntls_key = server.key\n"
    both_ways = ("insecure = yes", "0.0.0.0")
    world.refused("", "without a token and without TLS", *both_ways)
    world.refused("token = t\n", "without TLS", "tls_certificate", *both_ways)
    world.refused(tls, "without a token", "token_file", *both_ways)
    path = world.write("open.ini", f"0.0.0.0:{world.other_port}", "")
    done = world.run("up", "-c", path, code=2)
    assert "insecure = yes" in done.stderr, done.stderr


@test("a key or a token that others can read is refused, with the command that helps")
def _(world):
    for name, lines in (("server.key", "tls_certificate = server.pem\ntls_key = open\n"),
                        ("token", "token_file = open\n")):
        shutil.copy(world.folder / name, world.folder / "open")
        (world.folder / "open").chmod(0o640)
        world.refused(lines, "chmod 600", "open", address=f"127.0.0.1:{world.other_port}")


@test("files that are of no use are named")
def _(world):
    here = f"127.0.0.1:{world.other_port}"
    world.refused("tls_certificate = server.pem\ntls_key = stranger.key\n", "server.pem",
                  "stranger.key", address=here)
    world.refused("tls_certificate = server.key\ntls_key = server.key\n", "no certificate",
                  "server.key", address=here)
    world.refused("broker = amqps://127.0.0.1:1\nbroker_ca = openssl.conf\n", "openssl.conf",
                  "no certificate", address=here, command="worker")


@test("what a node with a secret has in memory is out of reach of its own user")
def _(world):
    # The kernel gives what can be read of such a process to root; so somebody else has to run it.
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-hidden-"))
    program = shutil.copy(MILLRACE, folder / "millrace")
    shutil.copy(pathlib.Path(MILLRACE).with_name("millrace-cluster"), folder)
    port = free_ports(1)[0]
    try:
        for name, monitors in (("plain", ""), ("watched", f"[monitors]\nm1 = 127.0.0.1:{port}\n")):
            file = folder / f"{name}.ini"
            file.write_text("[cluster]\nbroker = amqp://127.0.0.1:1\n"
                            f"data_dir = {name}\n[gateways]\ng1 = 127.0.0.1:1\n[workers]\ncount = 1\n"
                            + monitors)
            os.chown(folder, user.get("user", -1), -1)
            if monitors:
                subprocess.run([program, "key", "-c", file], check=True, capture_output=True, **user)
            with subprocess.Popen([program, "worker", "-c", file, "-n", "w1"], **user,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as node:
                poll("the worker runs", lambda: "\n" in read(folder / name / "w1" / "pid"))
                owner = os.stat(f"/proc/{node.pid}/environ").st_uid
                node.kill()
            assert owner == (0 if monitors else user.get("user", os.geteuid())), (name, owner)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@test("a private broker is not opened to others, unless told to")
def _(world):
    path = world.write("open.ini", f"127.0.0.1:{world.other_port}",
                       "broker = start\nbroker_host = 0.0.0.0\n")
    for command in ("broker", "up"):
        done = world.run(command, "-c", path, code=2)
        assert "broker_host" in done.stderr and "insecure = yes" in done.stderr, done.stderr


if __name__ == "__main__":
    if shutil.which("openssl") is None:
        print("1..0 # SKIP openssl is not installed")
        sys.exit(0)
    sys.exit(suite.run(sys.argv[1:], World))
