# SPDX-License-Identifier: Apache-2.0
"""private_cluster.py - a cluster of one's own to be measured: a broker, a gateway, some workers.

    with PrivateCluster(lab, queues="transient", workers=2) as cluster:
        run = cluster.submit("movies", files)         # one client, or several at once

Processor time of a node is read from its own clock before and after a job; that of a client comes
with its end. What passed through the broker is what it has counted itself: messages from its
global counters, bytes from its connections. Both are always on, and cost nothing.

Memory is the most a process had during the job: the kernel's high-water mark is lowered before.

Nothing is left behind: `up` ends all its processes when it ends, and it ends with us.
"""
import contextlib
import dataclasses
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

import lab as lab_module
import option
import peer

READY_SECONDS = 120
STOP_SECONDS = 40
QUIET_SECONDS = 20
LOOK_SECONDS = 0.05
RABBITMQCTL = "/usr/lib/rabbitmq/bin/rabbitmqctl"  # The one in PATH changes its user.
LOWER_HIGH_WATER = "5"  # For /proc/PID/clear_refs; see proc(5).

COUNTS = """
All = maps:values(rabbit_global_counters:overview()),
Add = fun(Name) -> lists:sum([maps:get(Name, One, 0) || One <- All]) end,
Links = [rabbit_networking:connection_info(Link, [recv_oct, send_oct])
         || Link <- rabbit_networking:connections()],
Bytes = fun(Name) -> lists:sum([proplists:get_value(Name, Link, 0) || Link <- Links]) end,
{Add(messages_received_total), Add(messages_delivered_total), Bytes(recv_oct), Bytes(send_oct)}."""


def cpu_of(pid):
    """Seconds of processor time of a living process, of all threads it ever had."""
    return time.clock_gettime(~pid << 3 | 2)  # As clock_getcpuclockid(3) makes it.


def free_port():
    """Below those that the system gives to connections."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@dataclasses.dataclass
class ClusterRun:
    wall: float  # From the start of the first client to the end of the last one.
    cpu: dict  # Seconds by client, gateway, workers, broker; each the sum of its processes.
    peak: dict  # Bytes by client, gateway, workers, broker; each the sum of its processes.
    peak_worker: int  # Bytes of the largest.
    chunks: int
    messages: int  # Published.
    delivered: int
    bytes_in: int  # Into the broker.
    bytes_out: int
    answers: list  # What each client printed.

    @property
    def cpu_ours(self):
        return self.cpu["client"] + self.cpu["gateway"] + self.cpu["workers"]


class PrivateCluster:
    def __init__(self, lab, queues, workers, settings=None):
        """`settings`: more keys of the cluster file; "workers.KEY" is one of its workers."""
        self.lab = lab
        self.settings = settings or {}
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cluster-", dir=lab.folder))
        self.data = self.folder / "data"
        self.gateway = f"127.0.0.1:{free_port()}"
        self.workers = [f"w{number}" for number in range(1, workers + 1)]
        self.process = None
        self.pids = {}
        own = [f"{key.removeprefix('workers.')} = {value}" for key, value in self.settings.items()
               if key.startswith("workers.")]
        shared = [f"{key} = {value}" for key, value in self.settings.items()
                  if not key.startswith("workers.")]
        (self.folder / "cluster.ini").write_text("\n".join([
            "[cluster]", "name = bench", "broker = start", "data_dir = data", f"queues = {queues}",
            *shared, "[gateways]", f"g1 = {self.gateway}", "[workers]", f"count = {workers}", *own,
            ""]))

    # --- Life. ---

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        # Ctrl-C is for us, who stop it once; so it has its own session. If we are killed, it ends.
        command = ["setpriv", "--pdeathsig", "TERM", self.lab.millrace, "up", "-c", "cluster.ini"]
        with open(self.folder / "out", "wb") as out, open(self.folder / "err", "wb") as err:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=err,
                                            stdin=subprocess.DEVNULL, start_new_session=True,
                                            env=lab_module.environment())
        deadline = time.monotonic() + READY_SECONDS
        while b"ready" not in (self.folder / "out").read_bytes():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise peer.RunFailed(f"the cluster is not ready: {self.last_words()}")
            time.sleep(LOOK_SECONDS)
        self.pids = self.read_pids()

    def last_words(self):
        lines = (self.folder / "err").read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it said nothing")

    def close(self):
        if self.process is not None and self.process.poll() is None:
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
                self.process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(STOP_SECONDS)
                    break
        self.lab.drop(self.folder)

    def read_pids(self):
        return {name: int((self.data / name / "pid").read_text())
                for name in ("g1", "broker", *self.workers)}

    # --- Figures. ---

    def kind_of(self, name):
        return {"g1": "gateway", "broker": "broker"}.get(name, "workers")

    def sums(self, figure):
        """{kind: sum over its processes}."""
        found = dict.fromkeys(("client", "gateway", "workers", "broker"), 0)
        for name, pid in self.pids.items():
            found[self.kind_of(name)] += figure(pid)
        return found

    def lower_high_water(self):
        for pid in self.pids.values():
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/{pid}/clear_refs").write_text(LOWER_HIGH_WATER)

    def metrics(self):
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                f"http://{self.gateway}/metrics", timeout=30) as reply:
            text = reply.read().decode()
        return {name: int(value) for name, value in
                re.findall(r"^millrace_gateway_(\w+) (\d+)$", text, re.MULTILINE)}

    def broker_counts(self):
        """[published, delivered, bytes in, bytes out] since the broker began."""
        _, _, epmd_port = (self.data / "broker" / "ports").read_text().split()
        env = {"PATH": os.environ["PATH"], "HOME": str(self.data / "broker" / "home"),
               "LANG": "C.UTF-8", "ERL_EPMD_PORT": epmd_port, "RABBITMQ_CONF_ENV_FILE": "/dev/null"}
        out, *_ = peer.run_command([RABBITMQCTL, "-q", "-n", "millrace@localhost", "eval", COUNTS],
                                   env=env)
        return [int(number) for number in re.findall(rb"\d+", out)]

    def settle(self):
        """Waits until no job is left: nodes still tidy up when the client has its answer."""
        deadline = time.monotonic() + QUIET_SECONDS
        while self.metrics()["jobs"] > 0 and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        time.sleep(2 * LOOK_SECONDS)

    # --- Work. ---

    def submit(self, analysis, files, clients=1):
        """Clients that begin together; gives what all of it took."""
        more = ["-g", self.gateway]
        if "chunk_size" in self.settings:
            more += ["--chunk-size", self.settings["chunk_size"]]
        command = self.lab.command("submit", analysis, files, *more)
        counted, chunks = self.broker_counts(), self.metrics()["chunks_total"]
        self.settle()
        self.lower_high_water()
        before = self.sums(cpu_of)
        begin = time.perf_counter()
        results, wall = self.run_clients([command] * clients, begin)
        self.settle()
        if self.read_pids() != self.pids:
            raise peer.RunFailed("a node of the cluster has died meanwhile")
        after, peak = self.sums(cpu_of), self.sums(peer.high_water)
        cpu = {kind: after[kind] - before[kind] for kind in after}
        cpu["client"] = sum(usage.ru_utime + usage.ru_stime for _, usage, _ in results)
        peak["client"] = sum(most for *_, most in results)
        passed = [now - then for now, then in zip(self.broker_counts(), counted)]
        return ClusterRun(wall, cpu, peak, max(peer.high_water(self.pids[w]) for w in self.workers),
                          self.metrics()["chunks_total"] - chunks, *passed,
                          [answer for answer, *_ in results])

    def run_clients(self, commands, begin):
        """([(stdout, usage, peak)], seconds): all run at once, and die with us."""
        env = lab_module.environment(MILLRACE_STATE_DIR=str(self.folder / "state"))
        with contextlib.ExitStack() as stack:
            started = []
            for command in commands:
                out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
                process = subprocess.Popen(command, stdout=out, stderr=err, cwd=option.ROOT,
                                           stdin=subprocess.DEVNULL, env=env)
                stack.callback(self.end_client, process)
                watch = peer.PeakWatch(process.pid)
                watch.start()
                started.append((process, out, err, watch))
            results = []
            for process, out, err, watch in started:
                _, status, usage = os.wait4(process.pid, 0)
                wall = time.perf_counter() - begin
                process.returncode = os.waitstatus_to_exitcode(status)
                peak = watch.peak(usage)
                out.seek(0)
                err.seek(0)
                if process.returncode != 0:
                    said = err.read().decode("utf-8", "replace").strip().split("\n")
                    raise peer.RunFailed(f"submit: {said[-1] or process.returncode}")
                results.append((out.read(), usage, peak))
            return results, wall

    @staticmethod
    def end_client(process):
        if process.returncode is None:
            process.kill()
            process.wait()
