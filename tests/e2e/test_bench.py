#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmark measures what it says, and says when answers differ; without peers and network.

Method: bench/bench.py runs on tiny data with the real program, alone, as a cluster, or beside a
stand-in for node that answers as it is told. Its judgement of answers, records and straight lines
is tried on small cases. Prints TAP.
"""
import collections
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import xml.etree.ElementTree

from timing import scaled

sys.dont_write_bytecode = True

MILLRACE = os.path.abspath(os.environ.get("MILLRACE", "build/release/millrace"))
SOURCE_DIR = pathlib.Path(os.environ.get("SOURCE_DIR", os.getcwd())).resolve()
TIMEOUT_S = 60
CLUSTER_TIMEOUT_S = 240
sys.path.insert(0, str(SOURCE_DIR / "bench"))

import answers
import cluster
import data
import growth
import keys
import picture
import questions

FULL = os.environ.get("TEST_FULL", "0") == "1"
TESTS = []


def test(sentence, full=False):
    """Registers a test, perhaps for the full suite only; it gets a fresh folder."""
    def register(function):
        if FULL or not full:
            TESTS.append((sentence, function))
        return function
    return register


def has(text, *parts):
    for part in parts:
        assert part in text, f"no {part!r} in:\n{text}"


def equal(got, expected):
    assert got == expected, f"got {got!r}\nexpected {expected!r}"


def environment(path=None):
    env = dict(os.environ, **({"PATH": f"{path}:{os.environ['PATH']}"} if path else {}))
    if platform.machine() == "aarch64":  # There, looking for leaks takes seconds per process.
        env["ASAN_OPTIONS"] = "detect_leaks=0"
    return env


def command_of(folder, words, of=()):
    """The benchmark with its own folder, on tiny data; `of` is its own command, if any."""
    return [sys.executable, SOURCE_DIR / "bench" / "bench.py", *of, "--millrace", MILLRACE,
            "--folder", folder / "kept", "--scale", "0.001", "--repeat", "1", *words]


def bench(folder, *words, check=0, path=None, of=()):
    """Runs it to the end; gives (stdout, stderr)."""
    done = subprocess.run(command_of(folder, words, of), capture_output=True, text=True,
                          timeout=scaled(CLUSTER_TIMEOUT_S if of else TIMEOUT_S),
                          env=environment(path))
    assert done.returncode == check, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


@test("without peers it prints a table, and writes its JSON and a picture")
def _(folder):
    out, _ = bench(folder, "--peers", "none", "--analysis", "movies,memes",
                   "--query", "movies/q1,movies/q5,memes/q3,03_unrated",
                   "--json", folder / "b.json", "--svg", folder / "b.svg", "--threads", "1")
    has(out, "movies, 1 threads, scale 0.001", "millrace s", "together", "03_unrated",
        "q5: not in the comparison: only millrace has sentiment()")
    found = json.loads((folder / "b.json").read_text())
    for field in ("version", "millrace", "scale", "seed", "threads", "repeat", "peers", "questions",
                  "analyses", "total", "single", "others", "wrong"):
        assert field in found, field
    equal([(q["analysis"], q["name"], q["kind"]) for q in found["questions"]],
          [("movies", "q1", "question"), ("movies", "q5", "question"),
           ("movies", "03_unrated", "other"), ("memes", "q3", "question")])
    rated = found["questions"][2]
    assert rated["bytes"] > 0 and rated["rows"] > 0 and rated["ratio"] is None, rated
    assert min(rated["runs"]["millrace"][key] for key in ("wall", "cpu", "peak")) > 0, rated
    equal([a["queries"] for a in found["analyses"]], [["q1"], ["q3"]])
    root = xml.etree.ElementTree.parse(folder / "b.svg").getroot()
    assert root.tag.endswith("svg") and len(root.findall(".//{*}rect")) == 2
    kept = folder / "kept" / "data-0.001"
    equal(sorted(path.name for path in kept.iterdir()), ["memes", "movies"])


def stand_in(folder, rows):
    """A node that answers every question with these rows, and an npm that has nothing to do."""
    (folder / "bin").mkdir()
    for name, text in (
            ("npm", "import os\nos.mkdir('node_modules')\n"),
            ("node", "import json, pathlib, sys\n"
                     f"pathlib.Path(sys.argv[3]).write_text({json.dumps(json.dumps(rows))})\n"
                     "print(json.dumps({'wall': 1000.0, 'cpu': 2000.0, 'peak': 3000}))\n")):
        path = folder / "bin" / name
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)
    return folder / "bin"


@test("a peer's other answer is named, not timed, and an error")
def _(folder):
    out, err = bench(folder, "--peers", "duckdb", "--query", "memes/q1", check=1,
                     path=stand_in(folder, [["12.5"]]))
    has(err, "memes/q1: duckdb answers otherwise in row 1", "12.5",
        "memes/q1: duckdb.tuned answers")
    has(out, "q1: duckdb n/a: another answer")


@test("a peer's equal answer is timed, and the ratio follows")
def _(folder):
    bench(folder, "--peers", "none", "--query", "memes/q1")
    files = folder / "kept" / "data-0.001" / "memes"
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
    command = [MILLRACE, "run", "memes", files, "--query", "q1", "--format", "csv", "--quiet"]
    said = subprocess.run(command, cwd=SOURCE_DIR, env=env, capture_output=True, check=True).stdout
    out, _ = bench(folder, "--peers", "duckdb", "--query", "memes/q1", "--json", folder / "b.json",
                   path=stand_in(folder, answers.from_csv(said)))
    found = json.loads((folder / "b.json").read_text())
    run = found["questions"][0]["runs"]
    equal(run["duckdb"]["wall"], 1000.0)
    equal(found["questions"][0]["ratio"], 1000.0 / run["millrace"]["wall"])
    equal(found["analyses"][0]["ratio"], 1000.0 / found["analyses"][0]["millrace"]["wall"])
    has(out, "memes: ", "the best peer", "target 6×")


@test("wrong usage is refused with exit code 2, and an empty choice with a reason")
def _(folder):
    for words in (("--repeat", "0"), ("--scale", "-1"), ("--peers", "abacus"),
                  ("--analysis", "tea"), ("--millrace", str(folder / "nothing"))):
        has(bench(folder, *words, check=2)[1], "usage: ./dev bench")
    has(bench(folder, "--query", "q99", check=1)[1], "no question is left")


@test("data that cannot be made leaves nothing behind that looks whole")
def _(folder):
    broken = folder / "broken"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] || { mkdir -p "$3"; exit 1; }\n')
    broken.chmod(0o755)
    bench(folder, "--peers", "none", "--analysis", "memes", "--millrace", str(broken), check=1)
    equal(list((folder / "kept" / "data-0.001").iterdir()), [])


@test("equal answers are equal in any spelling of numbers, and a planted difference is seen")
def _(folder):
    ours = [["a", "1", "2.500", ""], ["b", "2", "0.1", "x"]]
    spelled = [["a", "1", "2.5", None], ["b", "2", "0.1000000000001", "x"]]
    answers.compare("q", "peer", ours, spelled, True)
    answers.compare("q", "peer", ours, list(reversed(ours)), False)
    planted = [
        ([["a", "1", "2.5", ""], ["b", "3", "0.1", "x"]], "row 2"),
        ([["a", "1", "2.5", ""], ["b", "2", "0.10001", "x"]], "row 2"),
        ([["A", "1", "2.5", ""], ["b", "2", "0.1", "x"]], "row 1"),
        (list(reversed(ours)), "row 1"),
        (ours[:1], "millrace has 2 rows, peer 1; the first that only millrace has: ['b'"),
        (ours + [["c", "", "", ""]], "only peer has: ['c'"),
    ]
    for theirs, words in planted:
        try:
            answers.compare("q", "peer", ours, theirs, True)
        except answers.AnswersDiffer as difference:
            has(str(difference), "q: ", words)
        else:
            raise AssertionError(f"not seen: {theirs}")
    assert not answers.same_value("9007199254740993", "9007199254740992")


KEPT = [b"a,b\n", b'1,"x,\ny"\n', b'2,""\n', b"3\n", b"\n", b"4,n/a,extra\n", b'5,"say ""so"""\n',
        "6,é\n".encode()]
DISPUTED = [b'7,x"y\n', b'"8"z,q\n', b"9,a\rb\n", b"10,\x00\n", b"11,\xff\xfe\n", b"12,0x1F\n",
            b'"13,\n""",a "so" b\n']


@test("washing takes out disputed records alone, wherever the file is cut into pieces")
def _(folder):
    dirty = b""
    for index in range(max(len(KEPT), len(DISPUTED))):
        dirty += b"".join(records[index] for records in (KEPT, DISPUTED) if index < len(records))
    source, target = folder / "source.csv", folder / "target.csv"
    source.write_bytes(dirty.replace(b"3\n", b"3\r\n"))
    piece = data.PIECE
    try:
        for data.PIECE in range(1, len(dirty) + 2):
            equal(data.wash_file(source, target), len(DISPUTED))
            equal(target.read_bytes(), b"".join(KEPT))
    finally:
        data.PIECE = piece


@test("drawn queries are the same for the same seed, and the other forms find their tables")
def _(folder):
    def drawn(seed):
        return [(q.analysis, q.sql.partition("\n")[2]) for q in questions.seeded(seed)]
    equal(drawn(3), drawn(3))
    assert drawn(3) != drawn(4)
    asked = questions.all_questions(1)
    equal(len([q for q in asked if q.kind == "question" and not q.skipped]), 12)
    equal(len([q for q in asked if q.kind != "question"]), 20)
    for question in asked:
        assert questions.tables_of(question), question.label
        if not question.skipped:
            assert {"duckdb", "duckdb.tuned"} <= set(question.forms), question.label
            assert "$" not in questions.as_duckdb(question).replace("+$'", ""), question.label


@test("a cluster's figures stand beside those of one process, and are whole", full=True)
def _(folder):
    out, err = bench(folder, "--analysis", "movies", "--queues", "transient", "--workers", "1",
                     "--json", folder / "c.json", of=["cluster"])
    has(out, "movies, scale 0.001: ", "1 workers", "run, ", "transient", "both for scale 1")
    has(err, "movies, transient: round 1 of 1")
    found = json.loads((folder / "c.json").read_text())
    equal(found["wrong"], [])
    (entry,) = found["cluster"]
    equal((entry["analysis"], entry["queues"], entry["settings"]), ("movies", "transient", {}))
    kinds = ("client", "gateway", "workers", "broker")
    assert min(entry["cpu"][kind] for kind in kinds) > 0, entry
    assert min(entry["peak"][kind] for kind in kinds) > 1e6, entry
    assert entry["chunks"] >= 3 and entry["messages"] >= entry["chunks"], entry
    assert min(entry["bytes_in"], entry["bytes_out"]) > entry["messages"], entry
    equal(entry["rows_per_second"], entry["rows"] / entry["wall"])
    ours = sum(entry["cpu"][kind] for kind in kinds if kind != "broker")
    equal(entry["cpu_ratio"], ours / found["alone"]["movies"]["cpu"])
    equal(list((folder / "kept").iterdir()), [])


@test("what is compared is varied one at a time, after what is there by default", full=True)
def _(folder):
    options = cluster.parse_options(["--millrace", MILLRACE, "--chunk-size", "64K,1M",
                                     "--set", "window=8", "--set", "workers.threads=2"])
    equal(cluster.setups(options),
          [("transient", {}), ("quorum", {}), ("transient", {"chunk_size": "64K"}),
           ("transient", {"chunk_size": "1M"}), ("transient", {"window": "8"}),
           ("transient", {"workers.threads": "2"})])
    for words in (("--set", "window"), ("--workers", "0"), ("--queues", "none at all")):
        has(bench(folder, *words, check=2, of=["cluster"])[1], "usage: ./dev bench cluster")


def processes_in(folder):
    """Those that work in that folder, or name it."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            told = [os.readlink(process / "cwd"), (process / "cmdline").read_text(errors="replace")]
        except OSError:
            continue
        found += [told] if any(str(folder) in text for text in told) else []
    return found


@test("one that is interrupted takes its cluster and its data along", full=True)
def _(folder):
    process = subprocess.Popen(
        command_of(folder, ["--analysis", "memes", "--repeat", "1000"], ["cluster"]),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        for line in process.stderr:
            if "round 2 of" in line:
                break
        assert len(processes_in(folder)) >= 4, processes_in(folder)
        process.send_signal(signal.SIGINT)
        has(process.stderr.read(), "interrupted")
        equal(process.wait(scaled(CLUSTER_TIMEOUT_S)), 130)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    deadline = time.monotonic() + scaled(TIMEOUT_S)
    while processes_in(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    equal(processes_in(folder), [])
    equal(list((folder / "kept").iterdir()), [])


@test("growth is a table, JSON and a picture, with the answers checked", full=True)
def _(folder):
    out, _ = bench(folder, "--series", "size,threads,groups,clients", "--analysis", "memes",
                   "--json", folder / "g.json", "--svg", folder / "g.svg", of=["growth"])
    has(out, "by size of the data; line: proportional, through scale 1", "by threads",
        "by groups", "by a text", "clients at once", "broker cpu s")
    found = json.loads((folder / "g.json").read_text())
    equal([(s["kind"], s["of"], [point["x"] for point in s["points"]]) for s in found["series"]],
          [("size", "memes", [0.1, 1, 4]), ("threads", "memes", [1, 2]),
           ("groups", "by a number", [10, 1000]), ("groups", "by a text", [10, 1000]),
           ("clients", "movies", [1, 2, 4, 8, 16])])
    for series in found["series"]:
        for point in series["points"]:
            assert min(point[key] for key in ("wall", "cpu", "peak", "line", "off")) > 0, point
    root = xml.etree.ElementTree.parse(folder / "g.svg").getroot()
    lines = [line.get("class") for line in root.findall(".//{*}polyline")]
    equal((lines.count("law"), lines.count("line")), (5, 14))
    equal(list((folder / "kept").iterdir()), [])


@test("points are measured against the line that their law draws through one of them")
def _(folder):
    def off(kind, points):
        growth.put_on_line(growth.KINDS[kind], points)
        return [round(point["off"], 6) for point in points]
    equal(off("size", [{"x": 0.1, "bytes": 10, "wall": 2.0}, {"x": 1, "bytes": 110, "wall": 11.0},
                       {"x": 4, "bytes": 400, "wall": 60.0}]), [2.0, 1.0, 1.5])
    equal(off("threads", [{"x": 1, "wall": 8.0}, {"x": 2, "wall": 4.0}]), [1.0, 1.0])
    equal(off("groups", [{"x": 10, "wall": 2.0}, {"x": 1000, "wall": 3.0}]), [1.0, 1.5])
    equal(off("workers", [{"x": 1, "cpu": 2.0}, {"x": 8, "cpu": 5.0}]), [1.0, 2.5])
    equal(off("clients", [{"x": 1, "wall": 2.0}, {"x": 16, "wall": 16.0}]), [2.0, 1.0])
    equal([picture.round_up(value) for value in (0, 0.03, 1, 1.1, 4.9, 5.1, 99, 100)],
          [1.0, 0.05, 1, 2, 5, 10, 100, 100])


@test("rows with so many keys have each of them equally often, in the same bytes for the same seed")
def _(folder):
    path = folder / "rows.csv"
    for groups in (1, 10, 1000, 5000, 20000):
        rows = keys.write(path, 20000, groups, 1)
        lines = path.read_text().splitlines()
        equal((lines[0], len(lines)), ("key,value", rows + 1))
        times = collections.Counter(line.split(",")[0] for line in lines[1:])
        equal((rows, len(times), set(times.values())), (20000, groups, {rows // groups}))
        before = path.read_bytes()
        keys.write(path, 20000, groups, 1)
        equal(path.read_bytes(), before)
        keys.write(path, 20000, groups, 2)
        assert path.read_bytes() != before
    for groups in (0, 3, 1500, 2 * keys.KEYS_MAX):
        try:
            keys.write(path, 1000, groups, 1)
        except ValueError as error:
            has(str(error), str(groups), "spread evenly")
        else:
            raise AssertionError(f"taken: {groups}")


def main():
    only = sys.argv[1:]
    chosen = [(s, f) for s, f in TESTS if not only or any(word in s for word in only)]
    print(f"1..{len(chosen)}")
    failed = 0
    for number, (sentence, function) in enumerate(chosen, 1):
        with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
            try:
                function(pathlib.Path(folder).resolve())
                print(f"ok {number} - {sentence}", flush=True)
            except Exception:  # A test that breaks is a test that fails; the next one still runs.
                failed += 1
                print(f"not ok {number} - {sentence}")
                for line in traceback.format_exc().splitlines()[-25:]:
                    print(f"# {line}")
                sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
