# SPDX-License-Identifier: Apache-2.0
"""monitored.py - clusters with monitors for tests, and hands to wish them ill.

    with Data() as data, Monitored(data) as cluster:    `up`, until it is ready and has a leader
        cluster.kill("w1", "m2")                      kill -9
        cluster.wait_back(before, "w1", "m2")         until the monitors see them up again
        cluster.view()                                how the monitors see the nodes

The monitors are asked over UDP, by datagrams (docs/reference/wire.md), with the
cluster's key: that takes milliseconds. The same language, with a wrong key or at a wrong time, is
what the liar speaks. Every wait is bounded. Nothing outlives close().
"""
import calendar
import collections
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

from cluster import MILLRACE, WAIT_S, environment, free_ports, is_alive, poll, run, tail, without_history
from timing import scaled, setting
from world import CHUNK, SCALES, difference

GATEWAYS = ["g1", "g2"]
WORKERS = ["w1", "w2", "w3"]
MONITORS = ["m1", "m2", "m3"]
BACK_S = 40
READY_S = 120
HEARTBEAT_PERIOD_MAX_S = 2  # Of the cluster file.
FAILURE_TIMEOUT_S = 1
KILL_PERIOD_S = 1  # Of a storm.
DRIVER_TIMEOUT_S = 4

ROLES = {"g": "gateway", "w": "worker", "m": "monitor", "b": "broker"}

# --- The language of monitors. ---

VERSION = 1
HEARTBEAT, CHALLENGE, ELECTION, ORDER, VIEW, EVENTS, ASK = range(1, 8)
ASK_VIEW, ASK_STOP = 0, 1
STATES = ["unknown", "starting", "up", "suspected", "restarting", "broken", "stopped"]
SEAL_BYTES = 16

Seen = collections.namedtuple("Seen", "role state incarnation uptime_ms silent_ms restarts "
                                      "resident_bytes job_count problem")


def short(text):
    return bytes([len(text)]) + text.encode()


def seal(body, key):
    return body + hashlib.blake2b(body, digest_size=SEAL_BYTES, key=key,
                                  person=b"millrace-udp-v1.").digest()


def datagram(kind, names, numbers, fields, key):
    """`names`: from, to; `numbers`: incarnation, sequence, nonce."""
    head = bytes([VERSION, kind]) + short(names[0]) + short(names[1])
    return seal(head + struct.pack("<QQQ", *numbers) + fields, key)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, layout):
        size = struct.calcsize(layout)
        self.at += size
        values = struct.unpack(layout, self.data[self.at - size:self.at])
        return values if len(values) > 1 else values[0]

    def short(self):
        size = self.take("<B")
        self.at += size
        return self.data[self.at - size:self.at].decode()


class Operator:
    """Asks all monitors how the nodes are."""

    def __init__(self, key, ports):
        """`ports` of monitors, by their names."""
        self.key, self.ports = key, ports
        self.name = f"operator-{os.getpid()}-{random.getrandbits(64):016x}"
        self.incarnation = int(time.time() * 1000)
        self.sequences = dict.fromkeys(ports, 0)
        self.nonces = dict.fromkeys(ports, 0)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)

    def close(self):
        self.socket.close()

    def ask(self, monitor, kind=ASK_VIEW, node=""):
        self.sequences[monitor] += 1
        numbers = (self.incarnation, self.sequences[monitor], self.nonces[monitor])
        with contextlib.suppress(OSError):
            self.socket.sendto(datagram(ASK, (self.name, monitor), numbers,
                                        bytes([kind]) + short(node), self.key),
                               ("127.0.0.1", self.ports[monitor]))

    def hear(self, seconds):
        """The next datagram to us: (kind, from, reader); None: there was none."""
        if not select.select([self.socket], [], [], max(seconds, 0))[0]:
            return None
        try:
            data = self.socket.recv(2048)
        except OSError:  # A monitor that is dead.
            return None
        if seal(data[:-SEAL_BYTES], self.key) != data:
            return None
        reader = Reader(data)
        _, kind = reader.take("<BB")
        sender, receiver = reader.short(), reader.short()
        reader.take("<QQQ")
        return (kind, sender, reader) if receiver == self.name else None

    def views(self, seconds=0.5):
        """What each monitor says: {monitor: (term, leader, {node: Seen})}."""
        parts = {}
        for monitor in self.ports:
            self.ask(monitor)
        again = time.monotonic() + 0.15
        deadline = time.monotonic() + scaled(seconds)
        while time.monotonic() < deadline and len(self.complete(parts)) < len(self.ports):
            if time.monotonic() >= again:
                again += 0.15
                for monitor in set(self.ports) - set(self.complete(parts)):
                    self.ask(monitor)
            heard = self.hear(min(again, deadline) - time.monotonic())
            if heard is None:
                continue
            kind, sender, reader = heard
            if kind == CHALLENGE and sender in self.ports:
                self.nonces[sender] = reader.take("<QQQ")[2]
                self.ask(sender)
            elif kind == VIEW:
                self.take_view(parts, sender, reader)
        return {name: (term, leader, nodes)
                for name, (term, leader, _, nodes) in self.complete(parts).items()}

    @staticmethod
    def complete(parts):
        return {name: part for name, part in parts.items() if len(part[3]) == part[2]}

    @staticmethod
    def take_view(parts, sender, reader):
        term, _ = reader.take("<QI")
        leader = reader.short()
        total, count = reader.take("<IB")
        nodes = parts[sender][3] if sender in parts and parts[sender][:2] == (term, leader) else {}
        for _ in range(count):
            name = reader.short()
            role, state = reader.take("<BB")
            rest = reader.take("<QQQIQI")
            nodes[name] = Seen(role, STATES[state], *rest, reader.short())
        parts[sender] = (term, leader, total, nodes)


# --- Data. ---

class Data:
    """Files of all analyses, and what one process answers."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-data-"))
        self.expected = {}
        for analysis, scale in SCALES.items():
            folder = self.folder / analysis
            run("gen", analysis, folder, "--scale", scale)
            self.expected[analysis] = without_history(
                run("run", analysis, folder, "--format", "json", *CHUNK))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def check(self, analysis, text):
        answer = without_history(text)
        assert answer == self.expected[analysis], \
            f"{analysis}: {difference(answer, self.expected[analysis])}"


# --- A cluster. ---

LOG_LINE = re.compile(r"(\S+)\.(\d+)Z level=\w+ node=(\S+) event=(\S+) ?(.*)")
LOG_FIELD = re.compile(r'(\w+)=("[^"]*"|\S+)')

Line = collections.namedtuple("Line", "seconds writer event fields")


class Monitored:
    def __init__(self, data, broker="start", cluster=(), monitors=()):
        """`broker`: of whom, unless it is started here; `cluster`, `monitors`: more lines of those
        sections of the file, in which FOLDER stands for this cluster's folder."""
        self.data = data
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-healing-"))
        self.home = self.folder / "data"
        self.file = self.folder / "cluster.ini"
        self.has_broker = broker == "start"
        self.nodes = [*(["broker"] if self.has_broker else []), *GATEWAYS, *WORKERS, *MONITORS]
        ports = free_ports(len(GATEWAYS) + len(MONITORS))
        self.ports = dict(zip(GATEWAYS + MONITORS, ports))
        timing = {"heartbeat_period": setting(0.1, HEARTBEAT_PERIOD_MAX_S), "failure_timeout": setting(FAILURE_TIMEOUT_S),
                  "stall_timeout": setting(5), "lease": setting(1),
                  "start_timeout": setting(10)}
        timing.update(monitors)
        lines = ["[cluster]", f"name = {self.folder.name}", f"broker = {broker}", "data_dir = data",
                 "sync_period = 100ms", "window = 16", f"ready_timeout = {setting(READY_S)}"]
        lines += [f"{key} = {value}" for key, value in dict(cluster).items()]
        lines += ["[gateways]"] + [f"{name} = 127.0.0.1:{self.ports[name]}" for name in GATEWAYS]
        lines += ["[workers]", f"count = {len(WORKERS)}", "[monitors]"]
        lines += [f"{name} = 127.0.0.1:{self.ports[name]}" for name in MONITORS]
        lines += [f"{key} = {value}" for key, value in timing.items()]
        text = "\n".join(lines) + "\n"
        self.file.write_text(text.replace("FOLDER", str(self.folder)))
        self.up = None
        self.hands = []  # Processes that the test itself has started.
        self.operator = None

    def __enter__(self):
        try:
            self.start_up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for process in [self.up, *self.hands]:
            if process is not None:
                process.kill()
                process.wait()
        self.up, self.hands = None, []
        if self.operator is not None:
            self.operator.close()
        poll("nothing is left", lambda: not self.leftovers(), 30)
        if "KEEP" in os.environ:  # For whoever looks for a cause.
            print(f"# {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start_up(self):
        with open(self.folder / "out", "wb") as out, open(self.folder / "err", "ab") as err:
            self.up = subprocess.Popen([MILLRACE, "up", "-c", str(self.file)], stdout=out,
                                       stderr=err, stdin=subprocess.DEVNULL, cwd=self.folder,
                                       env=environment())
        poll("the cluster is ready",
             lambda: self.said("out") == "ready\n" or self.up.poll() is not None,
             READY_S + WAIT_S)
        assert self.up.poll() is None, self.said("err")
        key = bytes.fromhex((self.home / "key").read_text())
        self.operator = Operator(key, {name: self.ports[name] for name in MONITORS})
        self.wait_calm()

    def said(self, name):
        return (self.folder / name).read_text(errors="replace")

    def broker_uri(self):
        return (self.home / "broker" / "uri").read_text().strip()

    # Processes.

    def folder_of(self, node):
        return self.home / ("broker/supervisor" if node == "broker" else node)

    def pid(self, node):
        """None: it does not run."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.folder_of(node) / "pid").read_text())
            return pid if is_alive(pid) else None
        return None

    def signal(self, number, *nodes):
        for node in nodes:
            pid = self.pid(node)
            assert pid is not None, f"{node} does not run"
            os.kill(pid, number)
        for process in self.hands:
            process.poll()

    def kill(self, *nodes):
        self.signal(signal.SIGKILL, *nodes)

    def start_by_hand(self, node, **env):
        with open(self.folder / "hands", "ab") as out:
            process = subprocess.Popen([MILLRACE, "node", "-c", str(self.file), "-n", node],
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       cwd=self.folder, env=environment(**env))
        self.hands.append(process)
        return process

    def processes(self):
        """All that are nodes of this cluster: {name: [pid]}."""
        found = collections.defaultdict(list)
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().decode(errors="replace").split("\0")
                if str(self.file) not in words or words[1] not in (*ROLES.values(), "node"):
                    continue
                name = "broker" if words[1] == "broker" else \
                    next(words[i + 1] for i, word in enumerate(words) if word in ("-n", "--name"))
                found[name].append(int(path.parent.name))
        return found

    def leftovers(self):
        """Any process that has to do with this folder."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (path / "cmdline").read_bytes().decode(errors="replace")
                if str(self.folder) in words or str(self.folder) in os.readlink(path / "cwd"):
                    found.append((int(path.name), words.replace("\0", " ")))
        return found

    # What monitors say.

    def view(self):
        """(term, leader, {node: Seen}), of the leader; None: nobody says that he leads."""
        leading = [view for name, view in self.operator.views().items() if view[1] == name]
        return max(leading, default=None, key=lambda view: view[0])

    def seen(self, node):
        """None: there is no leader."""
        view = self.view()
        return view[2][node] if view else None

    def leader(self):
        return poll("there is a leader", self.view, BACK_S)[1]

    def incarnations(self):
        view = poll("there is a leader", self.view, BACK_S)
        return {name: seen.incarnation for name, seen in view[2].items()}

    def is_calm(self):
        view = self.view()
        return view if view and all(seen.state in ("up", "stopped")
                                    for seen in view[2].values()) else None

    def wait_calm(self, seconds=BACK_S):
        """Everybody is up, or stopped on purpose."""
        return poll("all are up", self.is_calm, seconds)

    def wait_state(self, node, state, seconds=BACK_S):
        def look():
            seen = self.seen(node)
            return seen if seen and seen.state == state else None
        return poll(f"{node} is {state}", look, seconds)

    def wait_back(self, before, *nodes, seconds=BACK_S):
        """Up, as another incarnation than before."""
        def look():
            view = self.view()
            return view and all(view[2][node].state == "up" and
                                view[2][node].incarnation != before[node] for node in nodes)
        poll(f"{', '.join(nodes)} are back", look, seconds)

    # Logs.

    def lines(self, *writers):
        """Of the logs of nodes, of all monitors unless told otherwise, in the order of time."""
        found = []
        for name in writers or MONITORS:
            with contextlib.suppress(OSError):
                for text in (self.folder_of(name) / "log").read_text(errors="replace").splitlines():
                    match = LOG_LINE.match(text)
                    if match is None:
                        continue
                    stamp, fraction, writer, event, rest = match.groups()
                    seconds = calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S"))
                    fields = {key: value.strip('"') for key, value in LOG_FIELD.findall(rest)}
                    found.append(Line(seconds + int(fraction) / 1000, writer, event, fields))
        return sorted(found, key=lambda line: line.seconds)

    def drives(self, since=0):
        """What drivers were told: [(seconds, monitor, node, term)]."""
        return [(line.seconds, line.writer, line.fields["target"], int(line.fields["term"]))
                for line in self.lines() if line.event == "drive" and line.seconds >= since]

    def expect_lawful(self):
        """Nobody acted as leader after another was elected."""
        elected = {}  # By monitor: when, and in which term.
        for line in self.lines():
            if line.event == "election" and line.fields["state"] == "leader":
                elected[line.writer] = (line.seconds, line.fields["term"])
            if line.event not in ("drive", "order") or line.fields["term"] == "0":
                continue
            begun, term = elected[line.writer]
            assert line.fields["term"] == term, f"{line}, but it has term {term}"
            later = {name: entry for name, entry in elected.items()
                     if entry[0] > begun and entry[0] < line.seconds - 0.002}
            assert not later, f"{line}, after {later}"

    # Work.

    def url(self):
        return ",".join(f"http://127.0.0.1:{self.ports[name]}" for name in GATEWAYS)

    def client_env(self):
        return environment(MILLRACE_STATE_DIR=str(self.folder / "state"))

    def command(self, *words, code=0, seconds=120):
        """millrace, to its end: (stdout, stderr)."""
        done = subprocess.run([MILLRACE, *map(str, words)], capture_output=True, timeout=scaled(seconds),
                              env=self.client_env(), text=True, cwd=self.folder)
        assert done.returncode == code, \
            f"exit {done.returncode}, not {code}: {words}\n{done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr

    def submit(self, analysis, *words, gateway=None, code=0, seconds=200):
        """A job, to its end; its stderr. An answer must be right."""
        out, err = self.command("submit", analysis, self.data.folder / analysis, "-g",
                                gateway or self.url(), "--format", "json", *CHUNK, "--retry-for",
                                f"{scaled(120):.0f}", *words, code=code,
                                seconds=seconds)
        if code == 0:
            self.data.check(analysis, out)
        return err

    def status(self):
        out, _ = self.command("status", "-g", self.url(), "--json")
        return json.loads(out)

    def status_of(self, node):
        """The same as a gateway tells it."""
        return next(entry for entry in self.status()["cluster"]["nodes"] if entry["name"] == node)

    def expect_sound(self):
        """Nobody died of himself."""
        said = "".join(self.said(name) for name in ("err", "hands", "nodes")
                       if (self.folder / name).exists())
        said += "".join(f"{line}\n" for line in self.lines() if line.event == "child-ended")
        bad = re.findall(r"^.*(?:Sanitizer|(?:runtime|internal) error|signal (?!9\b)).*$", said,
                         re.M)
        assert not bad, bad

    def expect_clean(self):
        """Every node runs once, and nothing is left of any job."""
        self.wait_calm()
        self.expect_sound()
        found = self.processes()
        assert sorted(found) == sorted(self.nodes), f"{sorted(found)}, not {sorted(self.nodes)}"
        assert all(len(pids) == 1 for pids in found.values()), f"twice: {found}"

        def jobs():
            work = self.status()["work"]
            return work["jobs"] or work.get("silent")
        poll("no job is listed", lambda: not jobs())
        poll("files of jobs are gone", lambda: not [
            *self.home.glob("w*/jobs/*"), *(self.folder / "state").glob("jobs/*")])

    def state(self):
        """For people, after a failure."""
        parts = [tail(self.folder / "err", 15), f"processes: {dict(self.processes())}"]
        with contextlib.suppress(Exception):
            parts += [f"{name}: {view}" for name, view in self.operator.views().items()]
        for node in self.nodes:
            parts += [f"--- {node}: {self.pid(node)}", tail(self.folder_of(node) / "log", 12)]
        return "\n".join(parts)

    def repair(self):
        for process in [self.up, *self.hands]:
            if process is not None:
                process.kill()
                process.wait()
        self.hands = []
        poll("nothing is left", lambda: not self.leftovers(), 30)
        self.start_up()


# --- A storm. ---

SELDOM = 30  # Kills of others between those of one that takes long to start.


class Storm:
    """Kills a node every KILL_PERIOD_S, by a seed, and notes how long each took to be back."""

    def __init__(self, cluster, nodes, seed, seldom=()):
        self.cluster, self.nodes, self.seldom = cluster, nodes, seldom
        self.dice = random.Random(seed)
        self.away = {}  # Who is not back: node: (incarnation, when it was killed).
        self.times = []  # (seconds, node)
        self.kills = []

    def look(self):
        """Any monitor's word is good for who is back."""
        views = self.cluster.operator.views(0.3)
        for node, (incarnation, killed) in list(self.away.items()):
            if any(view[2][node].state == "up" and view[2][node].incarnation > incarnation
                   for view in views.values()):
                self.times.append((time.monotonic() - killed, node))
                del self.away[node]
        return views

    def strike(self, views):
        """Whoever the dice choose of those that are there, or in its turn one that dies seldom."""
        chosen = self.dice.sample(self.nodes, len(self.nodes))
        if self.seldom and len(self.kills) % SELDOM == SELDOM // 2:
            chosen = self.seldom
        for node in chosen:
            known = [view[2][node].incarnation for view in views.values()]
            if node in self.away or not known or self.cluster.pid(node) is None:
                continue
            self.away[node] = (max(known), time.monotonic())
            self.cluster.kill(node)
            self.kills.append(node)
            return

    def blow(self, seconds):
        begin = next_kill = time.monotonic()
        while time.monotonic() - begin < scaled(seconds):
            views = self.look()
            if time.monotonic() >= next_kill:
                next_kill += scaled(KILL_PERIOD_S)
                self.strike(views)
            time.sleep(0.05)

    def settle(self, seconds=BACK_S):
        poll(f"all are back: {self.away}", lambda: self.look() is not None and not self.away,
             seconds)

    def median(self):
        return sorted(self.times)[len(self.times) // 2][0]

    def told(self):
        ranked = sorted(self.times)
        late = ranked[len(ranked) * 99 // 100][0]
        return f"{len(self.kills)} kills; back after: median {self.median():.1f} s, " \
               f"99 % {late:.1f} s, longest {ranked[-1][0]:.1f} s ({ranked[-1][1]})"


class Clients:
    """Run analyses again and again until told to end; every answer must be right."""

    def __init__(self, cluster, analyses):
        self.cluster = cluster
        self.enough = threading.Event()
        self.answers = dict.fromkeys(analyses, 0)
        self.failures = []
        self.threads = [threading.Thread(target=self.work, args=(analysis,))
                        for analysis in analyses]

    def work(self, analysis):
        try:
            while not self.enough.is_set():
                self.cluster.submit(analysis)
                self.answers[analysis] += 1
        except BaseException as failure:  # The test looks at it at its end.
            self.failures.append(failure)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        """Their last jobs are to end too."""
        self.enough.set()
        for thread in self.threads:
            thread.join()
        for failure in self.failures:
            raise failure


# --- Liars. ---

class Relay:
    """Between a node and the monitors: hands on, and keeps, what they say to each other.

    `env()` is the environment of a node that is to go through it. `to_monitors` and `to_node` are
    lists of (monitor, datagram)."""

    def __init__(self, ports):
        self.ports = ports
        self.front = {}  # What the node takes for the monitors,
        self.back = {}  # and what the monitors take for the node.
        for name in ports:
            self.front[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.front[name].bind(("127.0.0.1", 0))
            self.back[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.back[name].connect(("127.0.0.1", ports[name]))
        self.node = None  # Its address.
        self.to_monitors, self.to_node = [], []
        self.closing = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def env(self):
        return {f"MILLRACE_MONITORS_{name.upper()}": f"127.0.0.1:{front.getsockname()[1]}"
                for name, front in self.front.items()}

    def run(self):
        names = {**{link: name for name, link in self.front.items()},
                 **{link: name for name, link in self.back.items()}}
        while not self.closing:
            for link in select.select(list(names), [], [], 0.05)[0]:
                with contextlib.suppress(OSError):  # One side is dead.
                    self.pass_on(names[link], link)

    def pass_on(self, name, link):
        if link is self.front[name]:
            data, self.node = link.recvfrom(2048)
            self.to_monitors.append((name, data))
            self.back[name].send(data)
        else:
            data = link.recv(2048)
            self.to_node.append((name, data))
            if self.node is not None:
                self.front[name].sendto(data, self.node)

    def replay(self):
        """All of it once more, to whom it was meant for."""
        for name, data in list(self.to_monitors):
            with contextlib.suppress(OSError):
                self.back[name].send(data)
        for name, data in list(self.to_node):
            with contextlib.suppress(OSError):
                self.front[name].sendto(data, self.node)

    def close(self):
        self.closing = True
        self.thread.join()
        for link in [*self.front.values(), *self.back.values()]:
            link.close()


def udp_ports(pid):
    """Those that a process hears; where only root may know, those of all processes of its user."""
    inodes, is_hidden = set(), False
    try:
        for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(path))
                if match:
                    inodes.add(match.group(1))
    except PermissionError:
        is_hidden = True
    found = set()
    for table in ("udp", "udp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[9] in inodes or is_hidden and int(words[7]) == os.geteuid():
                found.add(int(words[1].rsplit(":", 1)[1], 16))
    return found


def lies(dice, key, nodes, count):
    """Datagrams that nobody may believe: noise, right forms with a wrong key, and those that were
    right until a bit was turned or the end cut off."""
    late = 1 << 62
    term = struct.pack("<QI", late, 2)
    heartbeat = struct.pack("<BB", 1, 3) + term + struct.pack("<QQQQI", 1, 1, 0, 0, 0) + \
        struct.pack("<QI", 0, 0)
    fields = {
        HEARTBEAT: [heartbeat],  # It says that the node has stopped on purpose.
        CHALLENGE: [struct.pack("<QQQ", late, 1, 1)],
        ELECTION: [bytes([kind]) + term + struct.pack("<QBQ", 1, 1, 0) for kind in range(6)],
        ORDER: [term + bytes([kind]) + struct.pack("<Q", late) for kind in range(2)],
        VIEW: [term + short("m3") + struct.pack("<IB", 0, 0)],
        EVENTS: [b"\x00"],
        ASK: [bytes([ASK_STOP]) + short(node) for node in nodes],
    }
    wrong = dice.randbytes(32)
    made = []
    while len(made) < count:
        names = dice.choice(nodes), dice.choice(nodes)
        kind = dice.choice(list(fields))
        numbers = (late, dice.getrandbits(63), dice.getrandbits(63))
        body = dice.choice(fields[kind])
        right = bytearray(datagram(kind, names, numbers, body, key))
        flipped = bytearray(right)
        flipped[dice.randrange(len(right))] ^= 1 << dice.randrange(8)
        made += [dice.randbytes(dice.randrange(1, 1400)),
                 datagram(kind, names, numbers, body, wrong), bytes(flipped),
                 bytes(right[:dice.randrange(1, len(right))])]
    return made[:count]


def flood(cluster, count, lying, per_second=40000):
    """So many lies, to all monitors and all nodes in turn."""
    ports = sorted(set().union(*(udp_ports(cluster.pid(node)) for node in cluster.nodes)))
    assert len(ports) >= len(cluster.nodes), ports
    begin = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        for number in range(count):
            with contextlib.suppress(OSError):
                link.sendto(lying[number % len(lying)], ("127.0.0.1", ports[number % len(ports)]))
            if number % 500 == 0:  # Faster, and what is right would be lost with the rest.
                time.sleep(max(0, begin + scaled(number / per_second) - time.monotonic()))
    return time.monotonic() - begin


def expect_quiet(cluster, before, since):
    """The same leader, and everybody lives on."""
    after = cluster.wait_calm()
    assert after[:2] == before[:2], f"{after[:2]}, not {before[:2]}"
    changed = [node for node, seen in after[2].items()
               if seen.incarnation != before[2][node].incarnation]
    assert not changed, f"started anew: {changed}"
    assert not cluster.drives(since), cluster.drives(since)


def expect_not_fooled(cluster, count, seed):
    before, since = cluster.wait_calm(), time.time()
    dice = random.Random(seed)
    key = bytes.fromhex((cluster.home / "key").read_text())
    seconds = flood(cluster, count, lies(dice, key, cluster.nodes, 1999))
    print(f"# {count} datagrams in {seconds:.1f} s")
    expect_quiet(cluster, before, since)

    def refused():
        return {line.writer for line in cluster.lines(*cluster.nodes)
                if line.event == "datagrams-refused" and line.seconds > since}
    poll("each says that it refused some", lambda: refused() == set(cluster.nodes), 15)


# --- What suites share. ---

# What `start_command` and `kill_command` of the second cluster run: files hang-NODE and fail-NODE
# make the first one do so.
START = """#!/bin/sh
cd {folder} || exit 1
if [ -e hang-$1 ]; then exec sleep 600; fi
if [ -e fail-$1 ]; then echo "no host for $1" >&2; exit 3; fi
setsid {program} node -c {folder}/cluster.ini -n $1 --exit-with-supervisor {folder}/data >/dev/null 2>>nodes &
"""
KILL = """#!/bin/sh
pid=$(cat {folder}/data/$1/pid) || exit 0
grep -q {folder} /proc/$pid/cmdline && kill -9 $pid
exit 0
"""


class World:
    """A cluster, and on demand the second one, whose driver is a command."""

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.data = self.stack.enter_context(Data())
        self.cluster = self.stack.enter_context(Monitored(self.data))
        self.second = None
        return self

    def __exit__(self, *_):
        self.close_second()
        self.stack.close()

    def commanded(self):
        if self.second is None:
            second = Monitored(
                self.data, self.cluster.broker_uri(), {"node_timeout": setting(4)},
                {"driver": "command", "driver_timeout": setting(DRIVER_TIMEOUT_S),
                 "start_command": "sh FOLDER/start %n", "kill_command": "sh FOLDER/kill %n"})
            for name, text in (("start", START), ("kill", KILL)):
                (second.folder / name).write_text(
                    text.format(folder=second.folder, program=MILLRACE))
            self.second = second.__enter__()
        return self.second

    def close_second(self):
        if self.second is not None:
            self.second.close()
            self.second = None

    def state(self):
        return self.cluster.state() + (self.second.state() if self.second else "")

    def repair(self):
        self.close_second()
        self.cluster.repair()
