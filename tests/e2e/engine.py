# SPDX-License-Identifier: Apache-2.0
"""engine.py - a private Docker engine for tests: nothing of it outlives the test.

    with Engine(folder) as engine:
        engine.docker("ps")
        engine.make_base()

The engine lives in namespaces of its own, so that its bridges, its rules of the packet filter, its
mounts and all its processes end with it and disturb no other engine; slirp4netns, a process that
sends on what containers send, is its way out. Both are children of the test, and end however that
ends.
"""
import contextlib
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import time

from cluster import SOURCE_DIR, poll, tail
from timing import scaled

BASE = "millrace-base:12"  # A Debian 12 that is made here: no image has to be pulled.
PROGRAMS = ("dockerd", "docker", "docker-compose", "containerd", "runc", "debootstrap", "ip",
            "iptables", "nsenter", "slirp4netns", "unshare")


def missing():
    """Why no engine can run here; None: one can."""
    if os.geteuid() != 0:
        return "a Docker engine needs root"
    lacking = [program for program in PROGRAMS if not shutil.which(program)]
    if lacking:
        return "not installed: " + " ".join(lacking)
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    done = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.strip()


def child_of(pid):
    """None: it has none yet."""
    with contextlib.suppress(OSError, IndexError):
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    return None


class Engine:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.socket = self.folder / "docker.sock"
        self.log = self.folder / "dockerd.log"
        self.children = []
        self.pid = None  # Of dockerd, the first process of its namespace.

    @property
    def env(self):
        return dict(os.environ, DOCKER_HOST=f"unix://{self.socket}",
                    DOCKER_CONFIG=str(self.folder / "config"))

    def spawn(self, *words):
        with open(self.log, "ab") as log:
            child = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=log,
                                     stderr=log)
        self.children.append(child)
        return child

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        folder = self.folder
        daemon = self.spawn(
            "unshare", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child", "sh",
            "-c", 'ip link set lo up && exec "$@"', "sh", "dockerd", "--data-root", folder / "data",
            "--exec-root", folder / "exec", "--pidfile", folder / "pid", "-H",
            f"unix://{self.socket}")
        try:
            self.pid = poll("a namespace", lambda: child_of(daemon.pid))
            self.spawn("slirp4netns", "--configure", "--mtu=65520", "--disable-host-loopback",
                       self.pid, "tap0")
            poll("the engine answers",
                 lambda: self.docker("info", check=False).returncode == 0 or
                 daemon.poll() is not None)
            assert daemon.poll() is None, tail(self.log)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Containers, then the engine, then its files."""
        with contextlib.suppress(Exception):
            names = self.docker("ps", "-aq").stdout.split()
            if names:
                self.docker("rm", "-f", *names)
        with contextlib.suppress(OSError, TypeError, IndexError, subprocess.TimeoutExpired):
            os.kill(self.pid, signal.SIGTERM)
            self.children[0].wait(scaled(20))
        for child in self.children:
            child.kill()
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def docker(self, *words, check=True, seconds=900, **more):
        done = subprocess.run(["docker", *map(str, words)], env=self.env, capture_output=True,
                              text=True, errors="replace", timeout=scaled(seconds), **more)
        if check and done.returncode != 0:
            raise AssertionError(f"docker {words}: {done.stdout[-3000:]} {done.stderr[-1000:]}")
        return done

    def inspect(self, name):
        """None: there is nothing of that name."""
        done = self.docker("inspect", name, check=False)
        return json.loads(done.stdout)[0] if done.returncode == 0 else None

    def make_base(self):
        """A minimal Debian, kept under build/ for the next time."""
        kept = pathlib.Path(SOURCE_DIR) / "build" / f"debian-12-{platform.machine()}.tar"
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            root = self.folder / "base"
            done = subprocess.run(
                ["debootstrap", "--variant=minbase", "bookworm", str(root)],
                capture_output=True, text=True, errors="replace", timeout=scaled(600))
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
            part = kept.with_suffix(f".{os.getpid()}")
            subprocess.run(["tar", "-C", str(root), "-cf", str(part), "."], check=True)
            part.rename(kept)
            shutil.rmtree(root, ignore_errors=True)
        self.docker("import", kept, BASE)

    def build(self, name, *words):
        """From the working tree; gives the seconds that it took."""
        begin = time.monotonic()
        self.docker("build", "-q", "-t", name, "--build-arg", f"BASE={BASE}", *words, SOURCE_DIR,
                    seconds=1800)
        return time.monotonic() - begin
