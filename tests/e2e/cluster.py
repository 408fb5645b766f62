# SPDX-License-Identifier: Apache-2.0
"""cluster.py - a real cluster for tests: processes, a private RabbitMQ, and hands to break both.

    with Cluster(folder, ...) as cluster:       starts broker and nodes, waits until jobs are taken
        job = cluster.submit("movies", data)    a client, as a process
        cluster.kill("w1"); cluster.start("w1")
        job.answer()                            what it printed

Every node is a process of its own. What dies without having been killed by the test (at a crash
point) is started again by a watcher. Every wait is bounded, by what timing.py makes of its seconds;
what does not come in time is an AssertionError. Nothing outlives close(), nor the process group of
the test.
"""
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import platform
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import traceback

from timing import scaled

MILLRACE = os.path.abspath(os.environ.get("MILLRACE", "build/release/millrace"))
SOURCE_DIR = os.environ.get("SOURCE_DIR", os.getcwd())
FULL = os.environ.get("TEST_FULL", "0") == "1"
RABBIT = "/usr/lib/rabbitmq/bin/"
WAIT_S = 60  # For whatever must come.
POLL_S = 0.02
RETRY_FOR = ("--retry-for", f"{scaled(60):.0f}")  # As `submit` does by itself, but scaled.


def poll(what, condition, seconds=WAIT_S):
    """Waits until the condition gives something true, and gives it."""
    limit = scaled(seconds)
    deadline = time.monotonic() + limit
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {limit:.0f} s")
        time.sleep(POLL_S)


def free_ports(count):
    """Below those that the system gives to connections, so that they stay free while what listens
    there is dead."""
    ports = set()
    while len(ports) < count:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            ports.add(port)
    return list(ports)


def is_listening(port):
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


def environment(**more):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith("MILLRACE_") and not key.lower().endswith("_proxy")}
    if platform.machine() == "aarch64":  # There, looking for leaks takes seconds per process.
        env["ASAN_OPTIONS"] = "detect_leaks=0"
    env.update(NO_COLOR="1", MILLRACE_ANALYSES=str(pathlib.Path(SOURCE_DIR) / "analyses"), **more)
    return env


def is_alive(pid):
    """Not also of a zombie that nobody has waited for."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def temporary_files(pid):
    """What the process has open that has no name."""
    try:
        links = [os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []
    return [link for link in links if link.endswith(" (deleted)")]


def tail(path, lines=25):
    try:
        text = pathlib.Path(path).read_text(errors="replace")
    except OSError as error:
        return str(error)
    return "\n".join(text.splitlines()[-lines:])


# --- The broker. ---

class Amqp:
    """As much of AMQP 0-9-1 as it takes to count, purge and delete; rabbitmqctl takes seconds."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=scaled(10))
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")
        self.expect(10, 10)
        answer = b"\x00guest\x00guest"
        self.send(0, 10, 11, struct.pack(">I", 0) + b"\x05PLAIN" + struct.pack(">I", len(answer)) +
                  answer + b"\x05en_US")
        channels, frame, _ = struct.unpack(">HIH", self.expect(10, 30)[:8])
        self.send(0, 10, 31, struct.pack(">HIH", channels, frame, 0))
        self.send(0, 10, 40, b"\x01/\x00\x00")
        self.expect(10, 41)
        self.send(1, 20, 10, b"\x00")
        self.expect(20, 11)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, channel, kind, method, payload):
        body = struct.pack(">HH", kind, method) + payload
        self.socket.sendall(struct.pack(">BHI", 1, channel, len(body)) + body + b"\xce")

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise OSError("the broker has closed the connection")
            data += more
        return data

    def expect(self, kind, method):
        while True:
            frame, _, size = struct.unpack(">BHI", self.read(7))
            payload = self.read(size + 1)[:-1]
            if frame == 1:
                break
        found = struct.unpack(">HH", payload[:4])
        if found != (kind, method):
            raise OSError(f"the broker said {found}: {payload[4:]!r}")
        return payload[4:]

    def call(self, name, method, flags, table=b""):
        word = name.encode()
        self.send(1, 50, method, b"\x00\x00" + bytes([len(word)]) + word + flags + table)
        return self.expect(50, method + 1)

    def counts(self, name):
        """Messages that wait, and who waits for messages."""
        reply = self.call(name, 10, b"\x01", b"\x00\x00\x00\x00")
        return struct.unpack(">II", reply[1 + reply[0]:][:8])

    def ready(self, name):
        return self.counts(name)[0]

    def consumers(self, name):
        return self.counts(name)[1]

    def purge(self, name):
        return struct.unpack(">I", self.call(name, 30, b"\x00"))[0]

    def delete(self, name):
        return struct.unpack(">I", self.call(name, 40, b"\x00"))[0]


class Broker:
    """One RabbitMQ node on loopback, with an epmd of its own or, as a peer, that of another.

    The epmd is started here: one that the server starts makes itself a daemon."""

    def __init__(self, folder, name="n1", peers=(), epmd_port=None, home=None):
        self.folder = pathlib.Path(folder)
        self.node = f"{name}@localhost"
        self.home = pathlib.Path(home or self.folder / "home")
        self.port, self.dist_port, own_epmd = free_ports(3)
        self.epmd_port = epmd_port or own_epmd
        self.has_epmd = epmd_port is None
        self.epmd = None
        self.peers = peers
        self.process = None

    @property
    def uri(self):
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def write_files(self):
        self.home.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        cookie = self.home / ".erlang.cookie"
        if not cookie.exists():
            cookie.write_text("COOKIE")
            cookie.chmod(0o400)
        lines = ["loopback_users = none", "disk_free_limit.absolute = 50MB", "log.console = false"]
        if self.peers:
            lines += ["cluster_formation.peer_discovery_backend = classic_config",
                      "cluster_formation.randomized_startup_delay_range.min = 0",
                      "cluster_formation.randomized_startup_delay_range.max = 1"]
            lines += [f"cluster_formation.classic_config.nodes.{i + 1} = {peer}@localhost"
                      for i, peer in enumerate(self.peers)]
        (self.folder / "rabbitmq.conf").write_text("\n".join(lines) + "\n")
        (self.folder / "enabled_plugins").write_text("[].\n")

    def env(self):
        folder = self.folder
        return dict(
            {key: value for key, value in os.environ.items() if not key.startswith("RABBITMQ_")},
            HOME=str(self.home), ERL_CRASH_DUMP=str(folder / "erl_crash.dump"),
            ERL_EPMD_PORT=str(self.epmd_port), ERL_EPMD_ADDRESS="127.0.0.1",
            RABBITMQ_CONF_ENV_FILE="/dev/null", RABBITMQ_NODENAME=self.node,
            RABBITMQ_NODE_IP_ADDRESS="127.0.0.1", RABBITMQ_NODE_PORT=str(self.port),
            RABBITMQ_DIST_PORT=str(self.dist_port), RABBITMQ_MNESIA_BASE=str(folder / "mnesia"),
            RABBITMQ_LOG_BASE=str(folder / "log"), RABBITMQ_PID_FILE=str(folder / "pid"),
            RABBITMQ_CONFIG_FILE=str(folder / "rabbitmq.conf"),
            RABBITMQ_ENABLED_PLUGINS_FILE=str(folder / "enabled_plugins"),
            RABBITMQ_GENERATED_CONFIG_DIR=str(folder / "gen"), LC_ALL="C.UTF-8",
            RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}")

    def start(self):
        """Does not wait; `is_ready` tells."""
        self.write_files()
        (self.folder / "pid").unlink(missing_ok=True)
        with open(self.folder / "stdout", "ab") as out:
            if self.has_epmd and self.epmd is None:
                self.epmd = subprocess.Popen(["epmd", "-port", str(self.epmd_port)],
                                             env=self.env(), stdin=subprocess.DEVNULL, stdout=out,
                                             stderr=out)
                poll("epmd", lambda: is_listening(self.epmd_port))
            self.process = subprocess.Popen([RABBIT + "rabbitmq-server"], env=self.env(),
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def is_ready(self):
        try:
            with Amqp(self.port):
                return True
        except OSError:
            return False

    def wait(self):
        poll(f"the broker {self.node}", self.is_ready)

    def kill(self):
        """Both of its processes, the script and what it runs."""
        if self.process is None:
            return
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.process = None

    def ctl(self, *words):
        done = subprocess.run([RABBIT + "rabbitmqctl", "-q", "-n", self.node, *words],
                              env=self.env(), capture_output=True, timeout=scaled(WAIT_S),
                              text=True)
        if done.returncode != 0:
            raise AssertionError(f"rabbitmqctl {words}: {done.stdout} {done.stderr}")
        return done.stdout

    def queues(self):
        """All queues with their messages, also those that somebody has not acknowledged."""
        lines = self.ctl("list_queues", "--no-table-headers", "name", "messages").splitlines()
        return {name: int(count) for name, count in (line.split("\t") for line in lines if line)}

    def state(self):
        """For people."""
        return self.ctl("list_queues", "name", "messages_ready", "messages_unacknowledged") + \
            self.ctl("list_consumers", "queue_name", "channel_pid", "active")

    def close(self):
        self.kill()
        if self.epmd is not None:
            self.epmd.kill()
            self.epmd.wait()


class BrokerTrio:
    """Three brokers that are one; any of them may be killed and started again."""

    def __init__(self, folder):
        names = ["f1", "f2", "f3"]
        first = Broker(pathlib.Path(folder) / "f1", "f1", names)
        others = [Broker(pathlib.Path(folder) / name, name, names, first.epmd_port, first.home)
                  for name in names[1:]]
        self.members = [first, *others]

    @property
    def uri(self):
        return " ".join(member.uri for member in self.members)

    def start(self):
        for member in self.members:
            member.start()

    def wait(self):
        for member in self.members:
            member.wait()
        count = "length(rabbit_nodes:all_running())."
        poll("three brokers that know each other",
             lambda: self.members[0].ctl("eval", count).strip() == "3")

    def queues(self):
        return self.members[0].queues()

    def kill(self):
        for member in self.members:
            member.kill()

    def state(self):
        return next(member for member in self.members if member.is_ready()).state()

    def is_ready(self):
        return all(member.is_ready() for member in self.members)

    @property
    def port(self):
        """Of any that is up."""
        return next(member.port for member in self.members if member.is_ready())

    def close(self):
        for member in reversed(self.members):
            member.close()


# --- Nodes and clients. ---

class Node:
    def __init__(self, cluster, name, role):
        self.cluster, self.name, self.role = cluster, name, role
        self.folder = cluster.data_dir / name
        self.stderr_path = cluster.folder / f"{name}.stderr"
        self.process = None
        self.wanted = False  # It is to run: when it ends, it is started again.
        self.deaths = 0  # Which nobody ordered.

    def start(self, crash=None):
        assert not self.is_running(), f"{self.name} runs already"
        env = environment(**self.cluster.node_env)
        if crash:
            env["MILLRACE_CRASH"] = crash
        with open(self.stderr_path, "ab") as err:
            self.process = subprocess.Popen(
                [MILLRACE, self.role, "-c", str(self.cluster.file), "-n", self.name,
                 "--log-level", "debug"],
                env=env, stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        self.wanted = True

    def kill(self):
        self.wanted = False
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def terminate(self):
        """Asks it to end; gives the exit code."""
        self.wanted = False
        self.process.terminate()
        code = self.process.wait(scaled(WAIT_S))
        self.process = None
        return code

    def is_running(self):
        return self.process is not None and self.process.poll() is None


class Client:
    """`millrace submit` as a process. It writes to files, so that it never waits for us; or to a
    pipe, so that it does, until `read`."""

    def __init__(self, cluster, words, number, env, pipe=False):
        self.words = words
        self.out_path = cluster.folder / f"client{number}.out"
        self.err_path = cluster.folder / f"client{number}.err"
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen([MILLRACE, "submit", *map(str, words)], env=env,
                                            stdin=subprocess.DEVNULL, stderr=err,
                                            stdout=subprocess.PIPE if pipe else out)

    def read(self, size):
        """The next bytes of its pipe; fewer: there are no more."""
        data = bytearray()
        descriptor = self.process.stdout.fileno()
        while len(data) < size:
            ready = select.select([descriptor], [], [], scaled(WAIT_S))[0]
            assert ready, f"nothing comes out of the pipe: {self.words}\n{tail(self.err_path)}"
            more = os.read(descriptor, min(size - len(data), 1 << 16))
            if not more:
                break
            data += more
        return bytes(data)

    @property
    def errors(self):
        return self.err_path.read_text(errors="replace")

    @property
    def job(self):
        """Its id, which it says first."""
        match = poll("the id of a job", lambda: re.search(r"^job ([^\s,]+)", self.errors, re.M) or
                     self.process.poll() is not None)
        assert match is not True, f"the client ended without a word: {self.errors}"
        return match.group(1)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, code=0, seconds=WAIT_S):
        try:
            found = self.process.wait(scaled(seconds))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the client does not end: {self.words}\n{tail(self.err_path)}")
        assert found == code, f"exit {found}, not {code}: {self.words}\n{tail(self.err_path)}"
        return self.out_path.read_text()

    def answer(self, seconds=WAIT_S):
        return without_history(self.wait(0, seconds))


def without_history(text):
    """All that must be equal in every run."""
    answer = json.loads(text)
    answer["audit"].pop("history")
    return answer


# --- A proxy between clients and gateways. ---

class Proxy:
    """Takes another gateway for every request, and acts at chosen moments.

    `at(method, pattern, count, action)`: before the count-th such request is handed on, `action` is
    called (once, with the request held back). `cut(pattern, count, share, action)`: of the answer
    to the count-th such GET that was granted, only a share of the bytes is handed on, then `action`
    is called with the name of the gateway that had sent it, and the connection is closed: so a
    client sees that gateway die. `requests` keeps what was asked, with bodies, and `taken` the
    paths of what was then taken with 204.
    """

    def __init__(self, ports):
        """Of gateways, by their names."""
        self.names = list(ports)
        self.ports = ports
        self.lock = threading.Lock()
        self.turn = 0
        self.requests = []
        self.paths_taken = []
        self.actions = []
        self.cuts = []
        self.failure = None
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # Else every answer with a body takes 40 ms.

            def forward(self):
                proxy.forward(self)

            do_GET = do_PUT = do_DELETE = forward

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # A client that hung up.

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(POLL_S,), daemon=True).start()

    def at(self, method, pattern, count, action):
        self.actions.append([method, re.compile(pattern), count, action])

    def cut(self, pattern, count, share, action):
        self.cuts.append([re.compile(pattern), count, share, action])

    def taken(self, pattern):
        return [path for path in self.paths_taken if re.search(pattern, path)]

    def act(self, method, path):
        due = []
        with self.lock:
            for entry in self.actions:
                if entry[0] == method and entry[1].search(path):
                    entry[2] -= 1
                    if entry[2] == 0:
                        due.append(entry[3])
        for action in due:
            self.call(action)

    def call(self, action, *words):
        try:
            action(*words)
        except Exception:  # The test looks at it at its end.
            self.failure = traceback.format_exc()

    def due_cut(self, path):
        due = None
        with self.lock:
            for entry in self.cuts:
                if entry[0].search(path):
                    entry[1] -= 1
                    due = entry if entry[1] == 0 else due
        return due

    def forward(self, handler):
        size = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(size)
        headers = {key: value for key, value in handler.headers.items()
                   if key.lower() not in ("host", "connection", "expect")}
        with self.lock:
            self.turn += 1
            name = self.names[self.turn % len(self.names)]
            self.requests.append((handler.command, handler.path, headers, body))
        self.act(handler.command, handler.path)
        try:
            link = http.client.HTTPConnection("127.0.0.1", self.ports[name],
                                              timeout=scaled(WAIT_S))
            link.request(handler.command, handler.path, body, headers)
            reply = link.getresponse()
            code, data = reply.status, reply.read()
            kept = {key: value for key, value in reply.getheaders()
                    if key.lower() in ("content-type", "retry-after")}
            link.close()
        except (OSError, http.client.HTTPException):
            code, data, kept = 503, b"", {}
        if code == 204:
            self.paths_taken.append(handler.path)
        handler.send_response(code)
        for key, value in kept.items():
            handler.send_header(key, value)
        if code != 204:
            handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        cut = self.due_cut(handler.path) if code == 200 and handler.command == "GET" else None
        if cut is None:
            handler.wfile.write(data)
            return
        handler.wfile.write(data[:int(len(data) * cut[2])])
        self.call(cut[3], name)
        handler.close_connection = True

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        assert self.failure is None, self.failure


# --- The whole. ---

class Cluster:
    def __init__(self, folder, workers=3, gateways=2, brokers=None, node_env=None, roles=None,
                 **keys):
        """`roles`: how many workers map and how many fold; `keys` are of the file."""
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data_dir = self.folder / "data"
        self.file = self.folder / "cluster.ini"
        self.node_env = node_env or {}
        self.broker = brokers or Broker(self.folder / "broker")
        self.ports = dict(zip([f"g{i + 1}" for i in range(gateways)], free_ports(gateways)))
        lines = ["[cluster]", "name = test", f"broker = {self.broker.uri}",
                 f"data_dir = {self.data_dir}"]
        lines += [f"{key} = {value}" for key, value in keys.items()]
        lines += ["[gateways]"]
        lines += [f"{name} = 127.0.0.1:{port}" for name, port in self.ports.items()]
        lines += ["[workers]", f"count = {workers}"]
        if roles:
            lines += [f"roles.map = {roles[0]}", f"roles.fold = {roles[1]}"]
        self.file.write_text("\n".join(lines) + "\n")
        self.nodes = {f"w{i + 1}": Node(self, f"w{i + 1}", "worker") for i in range(workers)}
        self.nodes.update({name: Node(self, name, "gateway") for name in self.ports})
        self.client_count = 0
        self.clients = []
        self.names = None
        self.lock = threading.RLock()  # Nobody is started again while he is being killed.
        self.closing = threading.Event()

    def __enter__(self):
        try:
            self.broker.start()
            self.broker.wait()
            for name in self.nodes:
                self.start(name)
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()
        return self

    def __exit__(self, *_):
        self.close()

    def watch(self):
        while not self.closing.wait(POLL_S):
            with self.lock:
                for node in self.nodes.values():
                    if node.wanted and not node.is_running():
                        node.deaths += 1
                        node.start()

    def close(self):
        self.closing.set()
        with self.lock:
            for client in self.clients:
                if client.process.poll() is None:
                    client.kill()
            for node in self.nodes.values():
                node.kill()
        self.broker.close()

    def wait_ready(self):
        for name in self.ports:
            poll(f"{name} is ready", lambda name=name: self.call("GET", "/healthz", name)[0] == 200)

    # Nodes.

    def start(self, name, crash=None):
        with self.lock:
            self.nodes[name].start(crash)

    def kill(self, name):
        with self.lock:
            self.nodes[name].kill()

    def restart(self, name, crash=None):
        with self.lock:
            self.nodes[name].kill()
            self.nodes[name].start(crash)

    def lose_disk(self, name):
        with self.lock:
            self.nodes[name].kill()
            shutil.rmtree(self.nodes[name].folder)
            self.nodes[name].start()

    def terminate(self, name):
        with self.lock:
            return self.nodes[name].terminate()

    def freeze(self, name):
        self.nodes[name].process.send_signal(signal.SIGSTOP)

    def thaw(self, name):
        self.nodes[name].process.send_signal(signal.SIGCONT)

    def deaths(self):
        return sum(node.deaths for node in self.nodes.values())

    # Asking.

    def url(self, *names):
        return ",".join(f"http://127.0.0.1:{self.ports[name]}" for name in names or self.ports)

    def call(self, method, path, name="g1", body=None, headers=None, seconds=15):
        """One request: (status, body). (0, b""): nobody there."""
        link = http.client.HTTPConnection("127.0.0.1", self.ports[name], timeout=scaled(seconds))
        try:
            link.request(method, path, body, headers or {})
            reply = link.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            link.close()

    def view(self, job):
        """What somebody who is not its owner hears of a job; None: nothing."""
        for name in self.ports:
            status, body = self.call("GET", f"/v1/jobs/{job}", name)
            if status == 200:
                return json.loads(body)
        return None

    def jobs(self, name="g1"):
        """As all workers tell; None: not all do."""
        status, body = self.call("GET", "/v1/jobs", name)
        listed = json.loads(body) if status == 200 else {"silent": "all"}
        return None if listed.get("silent") else listed["jobs"]

    def submit(self, analysis, data, *words, gateway=None, env=None, pipe=False):
        self.client_count += 1
        words = [analysis, data, "-g", gateway or self.url(), *words]
        if "--format" not in words:
            words += ["--format", "json"]
        if "--retry-for" not in words:
            words += RETRY_FOR
        env = environment(MILLRACE_STATE_DIR=str(self.folder / "state"), **(env or {}))
        client = Client(self, words, self.client_count, env, pipe)
        self.clients.append(client)
        return client

    # What is left.

    def queue_names(self):
        if self.names is None:
            self.names = sorted(self.broker.queues())
        return self.names

    def leftovers(self):
        """Files of jobs and journals; nothing once all jobs have ended."""
        found = [str(path) for node in self.nodes.values()
                 for path in (node.folder / "jobs").glob("*")]
        return found + [str(path) for path in (self.folder / "state").glob("jobs/*")]

    def messages_ready(self):
        with Amqp(self.broker.port) as amqp:
            return sum(amqp.ready(name) for name in self.queue_names())

    def expect_clean(self):
        """Nothing is left of any job: neither entries in lists nor files nor messages."""
        for node in self.nodes.values():
            assert node.is_running(), f"{node.name} does not run"
            said = node.stderr_path.read_text(errors="replace").count(": killing process ")
            assert node.deaths == said, f"{node.name} died {node.deaths} times, not {said}"
        for name in self.ports:
            poll(f"no job is listed by {name}", lambda name=name: self.jobs(name) == [])
        poll("files of jobs are gone", lambda: not self.leftovers())
        poll("queues are empty", lambda: self.messages_ready() == 0)

    def state(self):
        """For people, after a failure."""
        parts = []
        for node in self.nodes.values():
            code = None if node.process is None else node.process.poll()
            parts += [f"--- {node.name}: wanted={node.wanted} exit={code} deaths={node.deaths}",
                      tail(node.folder / "log"), tail(node.stderr_path, 5)]
        for client in self.clients[-4:]:
            parts += [f"--- client {client.words}: exit={client.process.poll()}",
                      tail(client.err_path, 10)]
        with contextlib.suppress(Exception):
            parts += [f"--- jobs: {json.dumps(self.jobs())}", f"files: {self.leftovers()}"]
        with contextlib.suppress(Exception):
            parts += [self.broker.state()]
        return "\n".join(parts)


# --- Tests. ---

class Suite:
    """Runs tests one after another on what they share; prints TAP."""

    def __init__(self):
        self.tests = []

    def test(self, sentence, full=False):
        def register(function):
            if FULL or not full:
                self.tests.append((sentence, function))
            return function
        return register

    def run(self, words, make_world):
        """`words` choose tests by parts of their sentences; `make_world` gives what all get."""
        chosen = [(sentence, function) for sentence, function in self.tests
                  if not words or any(word in sentence for word in words)]
        print(f"1..{len(chosen)}", flush=True)
        failed = 0
        with make_world() as world:
            for number, (sentence, function) in enumerate(chosen, 1):
                begin = time.monotonic()
                try:
                    function(world)
                    word = "ok"
                except Exception:
                    failed += 1
                    word = "not ok"
                    for line in (traceback.format_exc() + world.state()).splitlines():
                        print("# " + line)
                print(f"{word} {number} - {sentence} ({time.monotonic() - begin:.1f} s)",
                      flush=True)
                if word == "not ok":
                    world.repair()
        return 1 if failed else 0


def run(*words, code=0):
    """millrace, to its end; gives stdout."""
    done = subprocess.run([MILLRACE, *map(str, words)], capture_output=True, timeout=scaled(WAIT_S),
                          env=environment(), text=True)
    assert done.returncode == code, f"exit {done.returncode}: {words}\n{done.stderr}"
    return done.stdout
