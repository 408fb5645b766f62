#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Questions that want ten times the memory they may have: the same answers, within the limit.

Method: the same queries with memory to spare and with a tenth of what they took then; what the
process held at most is read from the system, not from what the program says. Kills and full disks
come in the middle of spilling. Prints TAP; words on the command line choose tests by parts of their names. MILLRACE is the binary.
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from cluster import MILLRACE, Suite, environment, poll, run, temporary_files
from timing import scaled

MIB = 1 << 20
SCALE = "0.19"
LIMIT = 32 * MIB
LITTLE = 24 * MIB  # Less could not be measured: a process that Python starts had as much as Python.
SLACK = 1.2  # What the program itself takes comes on top of what it counts.

TABLES = """CREATE TABLE transactions (transaction_id TEXT NOT NULL, store_id INT NOT NULL,
    final_amount DECIMAL(18,3) NOT NULL, created_at TIMESTAMP NOT NULL, user_id INT)
    FROM 'transactions/*.csv';
"""
QUERIES = {
    "aggregate": "SELECT count(*) AS groups, sum(n) AS n, sum(total) AS total, max(last) AS last\n"
                 "FROM (SELECT transaction_id, user_id, count(*) AS n, sum(final_amount) AS total,\n"
                 "      max(created_at) AS last FROM transactions GROUP BY transaction_id, user_id) g",
    "distinct": "SELECT count(*) AS n, min(transaction_id) AS first FROM\n"
                "(SELECT DISTINCT transaction_id, store_id, created_at, user_id FROM transactions) d",
    "sort": "SELECT transaction_id, store_id, final_amount, created_at, user_id FROM transactions\n"
            "ORDER BY final_amount DESC, transaction_id LIMIT 30 OFFSET 700000",
    "join": "SELECT count(*) AS n, sum(a.final_amount) AS total, max(b.transaction_id) AS last\n"
            "FROM transactions a JOIN transactions b ON a.transaction_id = b.transaction_id\n"
            "AND a.created_at = b.created_at",
}

suite = Suite()
test = suite.test


class Folder:
    """The data and the questions."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="millrace-spill-"))
        self.temp = self.path / "temp"
        self.temp.mkdir()
        self.analysis = self.path / "analysis"
        self.analysis.mkdir()
        (self.analysis / "tables.sql").write_text(TABLES)
        for name, sql in QUERIES.items():
            (self.analysis / f"{name}.sql").write_text(sql + ";\n")
        run("gen", "coffee", self.path / "data", "--scale", SCALE)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def state(self):
        return ""

    def repair(self):
        pass

    def words(self, query, *more):
        return [MILLRACE, "run", str(self.analysis), str(self.path / "data"), "--query", query,
                "--temp-dir", str(self.temp), "--threads", "2", *map(str, more)]

    def run(self, query, *more, limit=None, **options):
        """(answer, audit' history, peak of memory in bytes, exit code, stderr)"""
        words = self.words(query, "--format", "json", "--audit", "full", *more)
        if limit is not None:
            words += ["--memory-limit", str(limit)]
        with open(self.path / "out", "wb") as out, open(self.path / "err", "wb") as err:
            process = subprocess.Popen(words, stdout=out, stderr=err, env=environment(), **options)
            _, status, usage = os.wait4(process.pid, 0)
        answer = (self.path / "out").read_text()
        history = {}
        if os.waitstatus_to_exitcode(status) == 0:
            whole = json.loads(answer)
            history = whole["audit"]["history"]
            answer = json.dumps(whole["queries"])
        return (answer, history, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status),
                (self.path / "err").read_text())


def register(query):
    @test(f"{query} at a tenth of the memory it wants")
    def _(folder):
        wanted, free, peak, code, err = folder.run(query, limit=8 << 30)
        assert code == 0, err
        assert free["spilled"] == 0, free
        answer, history, peak_limited, code, err = folder.run(query, limit=LIMIT)
        assert code == 0, err
        assert answer == wanted, f"{answer[:500]}\n{wanted[:500]}"
        print(f"# {query}: {peak / MIB:.0f} MiB in {free['seconds']:.2f} s; with {LIMIT / MIB:.0f} "
              f"MiB: {peak_limited / MIB:.0f} MiB in {history['seconds']:.2f} s, "
              f"{history['spilled'] / MIB:.0f} MiB written")
        assert history["spilled"] > 0, history
        assert peak_limited <= SLACK * LIMIT, f"{peak_limited} bytes of {LIMIT}"
        assert not list(folder.temp.iterdir())


    @test(f"{query} in a little memory")
    def _(folder):
        _, history, peak, code, err = folder.run(query, limit=LITTLE)
        assert code == 0, err
        print(f"# {query}: {peak / MIB:.0f} of {LITTLE / MIB:.0f} MiB in {history['seconds']:.2f} s")
        assert peak <= SLACK * LITTLE, f"{peak} bytes of {LITTLE}"


for each in QUERIES:
    register(each)


@test("whoever is killed while he spills leaves nothing behind")
def _(folder):
    process = subprocess.Popen(folder.words("aggregate", "--memory-limit", LIMIT),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=environment())
    poll("a temporary file", lambda: temporary_files(process.pid) or process.poll() is not None)
    assert process.poll() is None, "it was done before it spilled"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list(folder.temp.iterdir())


@test("a disk that is full is told, with what helps")
def _(folder):
    few = 2 * MIB

    def confine():
        resource.setrlimit(resource.RLIMIT_FSIZE, (few, few))

    for query in QUERIES:
        words = folder.words(query, "--memory-limit", LIMIT)
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              timeout=scaled(120), env=environment(), preexec_fn=confine)
        assert done.returncode == 1, done
        for part in (f"query {query}", "temporary file", str(folder.temp), "--temp-dir"):
            assert part in done.stderr, f"{part!r} is not in {done.stderr}"
        assert not list(folder.temp.iterdir())


@test("a folder for temporary files that is not there is refused at once")
def _(folder):
    words = folder.words("sort")
    words[words.index("--temp-dir") + 1] = str(folder.path / "nowhere")
    done = subprocess.run(words, capture_output=True, text=True, timeout=scaled(60), env=environment())
    assert done.returncode == 2 and "nowhere" in done.stderr, done


if __name__ == "__main__":
    sys.exit(suite.run(sys.argv[1:], Folder))
