# SPDX-License-Identifier: Apache-2.0
"""hosts.py - several hosts on one: each a network and a mount namespace, linked by a switch.

    with Network(folder) as network:
        a = network.host("a")                   10.77.0.1, with a disk of its own
        a.spawn(["ip", "addr"])
        network.cut(a); network.heal(a)
        a.call("iptables", ...)

The switch is a bridge in a namespace of its own, so nothing of this is seen outside, nor do packet
filters of this machine see anything of it. A namespace lives as long as the process that holds it,
a child of the test: nothing is left, however the test ends.

What ssh and systemd are to real hosts, a Agent is here: it listens in the host's namespace, and
starts and kills nodes there on request. Whoever is cut off does not reach it.
"""
import contextlib
import ctypes
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import threading

from cluster import MILLRACE, environment, poll
from timing import scaled

NET = "10.77.0."
KEEPER_PORT = 9922
PROGRAMS = ("curl", "ip", "iptables", "nsenter", "unshare")
CLONE_NEWNET = 0x40000000


def missing():
    """Why there can be no such hosts here; None: there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    lacking = [program for program in PROGRAMS if not shutil.which(program)]
    if lacking:
        return "not installed: " + " ".join(lacking)
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c",
         "ip link add name one type bridge && ip link add name two type veth && "
         "iptables -A OUTPUT -p udp -j DROP"], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.strip()


class Host:
    def __init__(self, name, address, disk, data_dir):
        self.name, self.address, self.disk = name, address, disk
        self.is_up = True
        disk.mkdir(parents=True)
        script = 'mount --bind "$1" "$2" && ip link set lo up && echo && exec sleep infinity'
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "sh", "-c", script, "sh", str(disk), str(data_dir)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self.holder.stdout.read(1) == b"\n", f"there is no host {name}"
        self.enter = ["nsenter", "-t", str(self.holder.pid), "--net", "--mount", "--"]

    def call(self, *words):
        """A command there, to its end; gives stdout."""
        done = subprocess.run([*self.enter, *map(str, words)], capture_output=True, text=True,
                              timeout=scaled(60))
        assert done.returncode == 0, f"{self.name}: {words}: {done.stdout} {done.stderr}"
        return done.stdout

    def spawn(self, words, **more):
        """A process there, which is a child of ours: nsenter becomes it."""
        return subprocess.Popen([*self.enter, *map(str, words)], stdin=subprocess.DEVNULL, **more)

    def within(self, action):
        """Runs `action` on a thread that sees this host's network; what it opens stays there."""
        result = []

        def run():
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/proc/{self.holder.pid}/ns/net") as namespace:
                if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    result.append(OSError(ctypes.get_errno(), "setns"))
                    return
            try:
                result.append(action())
            except Exception as error:
                result.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if isinstance(result[0], Exception):
            raise result[0]
        return result[0]

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


class Network:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.data_dir = self.folder / "disk"  # Where each host has its own.
        self.hosts = []
        self.switch = None

    def __enter__(self):
        self.data_dir.mkdir(parents=True)
        self.switch = Host("switch", None, self.folder / "disks" / "switch", self.data_dir)
        self.switch.call("ip", "link", "add", "name", "bridge", "type", "bridge")
        self.switch.call("ip", "link", "set", "bridge", "up")
        return self

    def __exit__(self, *_):
        for host in [*self.hosts, self.switch]:
            host.close()

    def host(self, name):
        number = len(self.hosts) + 1
        host = Host(name, f"{NET}{number}", self.folder / "disks" / name, self.data_dir)
        self.hosts.append(host)
        self.switch.call("ip", "link", "add", "name", f"to-{name}", "type", "veth", "peer", "name",
                         "eth0", "netns", host.holder.pid)
        self.switch.call("ip", "link", "set", f"to-{name}", "master", "bridge", "up")
        host.call("ip", "addr", "add", f"{host.address}/24", "dev", "eth0")
        host.call("ip", "link", "set", "eth0", "up")
        return host

    def cut(self, host):
        self.switch.call("ip", "link", "set", f"to-{host.name}", "down")

    def mute(self, host):
        """Its datagrams are lost; it hears, and its connections go on."""
        host.call("iptables", "-A", "OUTPUT", "-o", "eth0", "-p", "udp", "-j", "DROP")

    def deafen(self, host):
        """No datagram reaches it; it is heard."""
        host.call("iptables", "-A", "INPUT", "-i", "eth0", "-p", "udp", "-j", "DROP")

    def heal(self, host):
        self.switch.call("ip", "link", "set", f"to-{host.name}", "up")
        host.call("iptables", "-F")


class Agent:
    """Starts and kills the nodes of one host: POST /start/NAME, /kill/NAME. A start of what runs is
    fine, as with systemd."""

    def __init__(self, host, file, log_folder):
        self.host, self.file, self.log_folder = host, file, pathlib.Path(log_folder)
        self.lock = threading.Lock()
        self.nodes = {}
        agent = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                _, action, node = self.path.split("/")
                done = getattr(agent, action)(node)
                self.send_response(204 if done else 503)
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # Whoever asked has gone.

        def listen():
            server = Server((host.address, KEEPER_PORT), Handler, bind_and_activate=False)
            server.socket.close()
            server.socket = socket.create_server((host.address, KEEPER_PORT))
            return server

        self.server = host.within(listen)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def start(self, node):
        with self.lock:
            if not self.host.is_up:
                return False
            if not self.runs(node):
                with open(self.log_folder / f"{node}.stderr", "ab") as err:
                    self.nodes[node] = self.host.spawn(
                        [MILLRACE, "node", "-c", self.file, "-n", node], stdout=err, stderr=err,
                        env=environment())
            return True

    def kill(self, node):
        with self.lock:
            if not self.host.is_up:
                return False
            self.end(node)
            return True

    def runs(self, node):
        return node in self.nodes and self.nodes[node].poll() is None

    def pid(self, node):
        """None: it does not run."""
        return self.nodes[node].pid if self.runs(node) else None

    def end(self, node):
        process = self.nodes.get(node)
        if process is not None:
            process.kill()
            process.wait()

    def lose(self):
        """The host loses its power: all its nodes at once, and nobody starts them."""
        with self.lock:
            self.host.is_up = False
            for node in self.nodes:
                self.end(node)

    def close(self):
        self.lose()
        self.server.shutdown()
        self.server.server_close()


def drivers():
    """Lines of [monitors] that use agents."""
    url = f"curl -sf --max-time {scaled(5):.0f} -X POST http://%h:{KEEPER_PORT}"
    return ["driver = command", f"start_command = {url}/start/%n",
            f"kill_command = {url}/kill/%n"]


def wait_until(what, condition, seconds):
    """As poll, but what is not there yet is no error."""
    def look():
        with contextlib.suppress(OSError, ValueError, KeyError):
            return condition()
        return None
    return poll(what, look, seconds)
