# SPDX-License-Identifier: Apache-2.0
"""peer.py - runs an engine once: millrace from outside, the others inside of node.

millrace's time is that of the whole process, as a shell would see it. A peer's time begins when
node has started and loaded the engine, and ends when all rows are fetched (peers/meter.mjs).
"""
import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
import threading
import time

import answers

HERE = pathlib.Path(__file__).resolve().parent
WATCH_SECONDS = 0.005

# variant: what it is; a peer's best variant counts.
VARIANTS = {
    "duckdb": {"duckdb": "natural", "duckdb.tuned": "tuned"},
    "polars": {"polars": "in memory", "polars.streaming": "streaming"},
}


class RunFailed(Exception):
    """Carries the first line of what the engine said."""


@dataclasses.dataclass
class Run:
    wall: float  # seconds
    cpu: float  # seconds
    peak: int  # bytes
    rows: object = None


def high_water(pid):
    """The most memory that the process has had so far, in bytes; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            found = re.search(r"VmHWM:\s+(\d+) kB", file.read())
    except OSError:
        return 0
    return int(found.group(1)) * 1024 if found else 0


class PeakWatch(threading.Thread):
    """Looks at a process now and then.

    The kernel's own figure for a child begins with the memory of the process that made it, which is
    this Python: a child that needs less has to be looked at while it runs.
    """

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.seen, self.over = pid, 0, threading.Event()

    def run(self):
        while not self.over.wait(WATCH_SECONDS):
            self.seen = high_water(self.pid) or self.seen

    def peak(self, usage):
        self.over.set()
        self.join()
        told = usage.ru_maxrss * 1024
        return told if told > high_water(os.getpid()) or not self.seen else self.seen


def run_command(command, **more):
    """Runs to the end, or dies with us; gives (stdout, stderr, rusage, wall, peak)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                   **more)
        watch = PeakWatch(process.pid)
        watch.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - begin
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            process.kill()
            process.wait()
            raise
        peak = watch.peak(usage)
        out.seek(0)
        err.seek(0)
        said = err.read().decode("utf-8", "replace")
        if process.returncode != 0:
            raise RunFailed(_first_words(said) or f"exit code {process.returncode}")
        return out.read(), said, usage, wall, peak


def _first_words(text):
    """The line of an error that says something; node prints its source line first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"\W*\w*Error\b", line)]
    return (telling or lines or [""])[0][:200]


def run_millrace(program, analysis, data, names, threads):
    """One process; `analysis` is a name or a folder."""
    command = [program, "run", analysis, data, "--query", ",".join(names), "--format", "csv",
               "--quiet", "--threads", str(threads)]
    out, _, usage, wall, peak = run_command(command, cwd=HERE.parent)
    return Run(wall, usage.ru_utime + usage.ru_stime, peak, out)


class Peers:
    """The engines beside millrace: installed under `base`, asked one question at a time."""

    def __init__(self, base, names, threads):
        self.folder = base / "peers"
        self.names = names
        self.threads = threads

    def install(self, say):
        if not self.names:
            return
        wanted = (HERE / "peers" / "package.json").read_text()
        installed = self.folder / "node_modules" / ".installed"
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in (HERE / "peers").glob("*.*"):
            shutil.copy(path, self.folder)
        if installed.exists() and installed.read_text() == wanted:
            return
        say("installing peers: DuckDB and Polars for node")
        # npm leaves out an optional package that asks for a newer node, so it is asked for by name.
        chip = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        version = json.loads(wanted)["dependencies"]["nodejs-polars"]
        command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock",
                   "--loglevel=error", f"nodejs-polars-linux-{chip}-gnu@{version}"]
        try:
            run_command(command, cwd=self.folder)
        except FileNotFoundError:
            raise RunFailed("npm is not there: ./dev bench installs it, --peers none goes without")
        installed.write_text(wanted)

    def variants(self, question):
        """Those that can be asked this question."""
        return [variant for name in self.names for variant in VARIANTS[name]
                if any(form.split(".")[0] == name for form in question.forms)]

    def run(self, question, variant, data):
        with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
            return self._run_in(pathlib.Path(folder), question, variant, data)

    def _run_in(self, folder, question, variant, data):
        answer = folder / "answer.json"
        env = dict(os.environ, POLARS_MAX_THREADS=str(self.threads))
        if variant.startswith("duckdb"):
            form = folder / "question.sql"
            form.write_text(question.forms[variant].replace("{data}", str(data)))
            command = ["node", "duckdb.mjs", form, answer, str(self.threads)]
        else:
            key = next(key for key in question.forms if key.startswith("polars."))
            form = folder / f"question.{key.removeprefix('polars.')}"
            form.write_text(question.forms[key])
            tables = HERE / "queries" / question.analysis / "tables.polars.json"
            engine = "streaming" if variant == "polars.streaming" else "in-memory"
            command = ["node", "polars.mjs", tables, data, form, answer, engine]
        out, *_ = run_command(command, cwd=self.folder, env=env)
        told = json.loads(out.splitlines()[-1])
        rows = json.loads(answer.read_text())
        return Run(told["wall"], told["cpu"], int(told["peak"]), rows)


def rows_of(run):
    return answers.from_csv(run.rows)
