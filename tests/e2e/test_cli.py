#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a user of the command line sees: answers, refusals, failures and exit codes.

Method: every test makes its own small analysis and data in a temporary folder and runs the real
program. MILLRACE is the binary, SOURCE_DIR the source tree. Prints TAP.
"""
import csv
import fcntl
import http.server
import io
import json
import os
import pathlib
import platform
import pty
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback

from timing import scaled

MILLRACE = os.path.abspath(os.environ.get("MILLRACE", "build/release/millrace"))
SOURCE_DIR = os.environ.get("SOURCE_DIR", os.getcwd())
TIMEOUT_S = 60

TESTS = []


def test(sentence):
    """Registers a test; it gets a fresh folder."""
    def register(function):
        TESTS.append((sentence, function))
        return function
    return register


def environment(**more):
    env = {k: v for k, v in os.environ.items()
           if k not in ("NO_COLOR", "MILLRACE_ANALYSES") and not k.lower().endswith("_proxy")}
    env.update(TERM="xterm", **more)
    if platform.machine() == "aarch64":  # There, looking for leaks takes seconds per process.
        env["ASAN_OPTIONS"] = "detect_leaks=0:" + env.get("ASAN_OPTIONS", "").replace(
            "detect_leaks=1", "")
    return env


def run(*words, check=None, env=None, seconds=TIMEOUT_S, **more):
    """Runs millrace and gives (exit code, stdout, stderr); bytes that are no UTF-8 show as \\x.."""
    done = subprocess.run([MILLRACE, *map(str, words)], capture_output=True, timeout=scaled(seconds),
                          env=env or environment(), **more)
    out = done.stdout.decode("utf-8", "backslashreplace")
    err = done.stderr.decode("utf-8", "backslashreplace")
    if check is not None and done.returncode != check:
        raise AssertionError(f"exit {done.returncode}, expected {check}: {words}\n{out}\n{err}")
    return done.returncode, out, err


def has(text, *parts):
    for part in parts:
        assert part in text, f"no {part!r} in:\n{text}"


def equal(got, expected):
    assert got == expected, f"got {got!r}\nexpected {expected!r}"


TABLE = "CREATE TABLE t (a INT NOT NULL, b TEXT) FROM 't.csv';\nPARAMETER limit_value = 5;\n"
ROWS = "a,b\n1,one\n2,two\n3,\n4,four\n9,nine\n"
QUERIES = {
    "q1": "SELECT a, b FROM t WHERE a <= $limit_value ORDER BY a",
    "q2": "SELECT count(*) AS n, sum(a) AS total FROM t",
}


def make(folder, tables=TABLE, queries=None, files=None):
    """An analysis and its data; gives both paths."""
    analysis, data = folder / "analysis", folder / "data"
    for name, text in {"tables": tables, **(queries or QUERIES)}.items():
        analysis.mkdir(exist_ok=True)
        (analysis / f"{name}.sql").write_text(text)
    data.mkdir(exist_ok=True)
    for name, text in ({"t.csv": ROWS} if files is None else files).items():
        content = text if isinstance(text, bytes) else text.encode()
        (data / name).write_bytes(content)
    return analysis, data


def ask(folder, query, *words, tables=TABLE, rows=ROWS, check=0, **more):
    """The rows of one query, as JSON gives them; or (when it must fail) its stderr."""
    analysis, data = make(folder, tables, {"q1": query}, {"t.csv": rows})
    _, out, err = run("run", analysis, data, "--format", "json", *words, check=check, **more)
    if check != 0:
        return err
    return json.loads(out)["queries"]["q1"]["rows"]


# --- Help and usage. ---

@test("every command has a help text with an example, on stdout, with exit code 0")
def _(folder):
    _, overview, err = run("--help", check=0)
    has(overview, "run", "explain", "gen", "example")
    equal(err, "")
    equal(run("help", check=0)[1], overview)
    for words in (("-h",), ("help", "help"), ("help", "--help")):
        equal(run(*words, check=0)[1], overview)
    for command in ("run", "explain", "gen"):
        _, text, _ = run(command, "--help", check=0)
        has(text, "example:", f"  millrace {command} ", "usage:", "--help")
        equal(run("help", command, check=0)[1], text)
        equal(run(command, "x", "--nonsense", "--help", check=0)[1], text)


@test("the overview lists exactly the commands that exist")
def _(folder):
    _, overview, _ = run("help", check=0)
    block = overview.split("commands:\n")[1].split("\n\n")[0]
    for line in block.splitlines():
        run("help", line.split()[0], check=0)


@test("the version is one line")
def _(folder):
    _, out, _ = run("--version", check=0)
    assert out.startswith("millrace ") and out.count("\n") == 1, out


@test("without a command the overview goes to stderr and the exit code is 2")
def _(folder):
    _, out, err = run(check=2)
    equal(out, "")
    has(err, "usage:")


@test("wrong usage is exit code 2 with the name that was probably meant")
def _(folder):
    analysis, data = make(folder)
    for words, part in [
        (("rnu",), "did you mean `run`?"),
        (("help", "explian"), "did you mean `explain`?"),
        (("--nonsense",), "no option `--nonsense`"),
        (("run", analysis, data, "--format", "xml"), "none of table, csv, json, ndjson"),
        (("run", analysis, data, "--query", "q9"), "no query `q9`"),
        (("run", analysis, data, "--set", "nonsense=1"), "nonsense"),
        (("run", analysis, data, "--set", "limit_value=many"), "this parameter is INT"),
        (("run", analysis, data, "--thread", "2"), "did you mean `--threads`?"),
        (("run", analysis, data, "--format", "jsn"), "did you mean `json`?"),
        (("explain", analysis, "--dto"), "did you mean `--dot`?"),
        (("gen", "movies", folder / "g", "--sed", "2"), "did you mean `--seed`?"),
        (("run",), "run needs ANALYSIS"),
        (("run", analysis), "run needs DATA_DIR"),
        (("run", analysis, data, "x"), "unexpected argument `x`"),
        (("run", analysis, data, "--threads"), "needs a value"),
        (("run", analysis, data, "--threads", "0"), "whole number"),
        (("run", analysis, data, "--memory-limit", "many"), "is not a size"),
        (("run", analysis, data, "--memory-limit", "0"), "--memory-limit"),
        (("run", analysis, data, "--rows", "some"), "neither a number nor `all`"),
        (("run", analysis, data, "--rows", "3", "--format", "csv"), "--rows"),
        (("run", analysis, data, "--audit", "ful"), "did you mean `full`?"),
        (("run", analysis, data, "--set", "x"), "name=value"),
        (("run", analysis, data, "--query", "q1,"), "a name is missing"),
        (("run", analysis, data, "--query", "q1,q1"), "twice"),
        (("gen", "movies", folder / "g", "--scale", "0"), "above 0"),
        (("gen", "movies", folder / "g", "--scale", "-1"), "above 0"),
        (("gen", "movies", folder / "g", "--scale", "nan"), "above 0"),
        (("gen", "movis", folder / "g"), "movies"),
    ]:
        _, out, err = run(*words, check=2)
        equal(out, "")
        has(err, "millrace: ", part)


@test("an unknown analysis lists what there is, with a suggestion")
def _(folder):
    (folder / "own" / "budget").mkdir(parents=True)
    (folder / "own" / "budget" / "tables.sql").write_text(TABLE)
    env = environment(MILLRACE_ANALYSES=str(folder / "own"))
    _, _, err = run("run", "budgte", folder, check=2, env=env)
    has(err, "no analysis `budgte`", "did you mean `budget`?", "there are:")
    (folder / "empty").mkdir()
    _, _, err = run("run", folder / "empty", folder, check=2)
    has(err, "no tables.sql")


@test("an analysis is found by name, also when a folder of that name is in the way")
def _(folder):
    analysis, data = make(folder)
    (folder / "all").mkdir()
    shutil.copytree(analysis, folder / "all" / "mine")
    (folder / "mine").mkdir()
    env = environment(MILLRACE_ANALYSES=str(folder / "all"))
    run("run", "mine", data, check=0, env=env, cwd=folder)
    run("run", "./analysis", "data", check=0, cwd=folder)
    run("run", "analysis", "data", check=0, cwd=folder)


@test("unknown queries and parameters are exit code 2 and name the nearest")
def _(folder):
    analysis, data = make(folder)
    _, _, err = run("run", analysis, data, "--query", "q3", check=2)
    has(err, "q3", "q1")
    _, _, err = run("run", analysis, data, "--set", "limit_valu=3", check=2)
    has(err, "limit_valu", "limit_value")


# --- What is wrong with the data. ---

@test("a missing data folder is named")
def _(folder):
    analysis, _ = make(folder)
    code, _, err = run("run", analysis, folder / "nowhere")
    equal(code, 1)
    has(err, "data folder", str(folder / "nowhere"), "No such file or directory")


@test("a folder without the needed files says what is missing and what was found")
def _(folder):
    analysis, data = make(folder, files={"other.csv": "x\n1\n"})
    _, _, err = run("run", analysis, data, check=1)
    has(err, "table t needs t.csv in", str(data), "found: other.csv")
    (data / "other.csv").unlink()
    has(run("run", analysis, data, check=1)[2], "needs t.csv in", "found: nothing")
    (data / "t.csv").mkdir()
    has(run("run", analysis, data, check=1)[2], "needs t.csv in", "found: t.csv/")


@test("a file that may not be read is named with the reason")
def _(folder):
    analysis, data = make(folder)
    (data / "t.csv").chmod(0)
    as_nobody = {}
    if os.geteuid() == 0:  # Nothing is closed to root.
        folder.chmod(0o755)
        as_nobody = {"user": 65534, "cwd": "/"}
    try:
        _, _, err = run("run", analysis, data, check=1, **as_nobody)
    except PermissionError:  # The program itself lies where only root may go.
        return
    has(err, "t.csv", "Permission denied")


@test("a missing column names file, column and the columns that are there")
def _(folder):
    analysis, data = make(folder, files={"t.csv": "alpha,b\n1,x\n"})
    _, _, err = run("run", analysis, data, check=1)
    has(err, "t.csv has no column a,", "its columns are: alpha, b")


@test("a quote that is never closed is told with file and line")
def _(folder):
    analysis, data = make(folder, files={"t.csv": 'a,b\n1,x\n2,"open\n3,y\n'})
    _, out, err = run("run", analysis, data, "--format", "csv", "--query", "q1", check=1)
    has(err, "t.csv:3: a quoted field begins here and is never closed")
    equal(out, "")


@test("a field beyond the limit is told with file, line, size and option")
def _(folder):
    rows = f"a,b\n1,x\n2,{'y' * 3000}\n"
    analysis, data = make(folder, queries={"q1": "SELECT a, b FROM t"}, files={"t.csv": rows})
    for chunk in ("100", "1MiB"):
        words = ("run", analysis, data, "--chunk-size", chunk, "--field-limit")
        has(run(*words, "1k", check=1)[2], "t.csv:3", "3000 bytes", "1024", "--field-limit")
        run(*words, "3000", check=0)


@test("dropped records and unreadable values are counted with their first place")
def _(folder):
    tables = "CREATE TABLE t (a INT NOT NULL, b TEXT, c INT) FROM 't.csv';"
    rows = "a,b,c\n1,x,7\n,y,8\nz,y,8\n4,x\n5,w,bad\n6,,\n"
    analysis, data = make(folder, tables, {"q1": "SELECT a, c FROM t ORDER BY a"}, {"t.csv": rows})
    _, out, _ = run("run", analysis, data, "--format", "json", check=0)
    answer = json.loads(out)
    equal(answer["queries"]["q1"]["rows"], [[1, 7], [5, None], [6, None]])
    table = answer["audit"]["tables"]["t"]
    equal((table["files"], table["bytes"], table["records"], table["kept"]),
          (1, len(rows), 6, 3))
    dropped = {(d["column"], d["first"]): d["count"] for d in table["dropped"]}
    equal(dropped, {("a", "t.csv:3"): 1, ("a", "t.csv:4"): 1, ("", "t.csv:5"): 1})
    equal([(d["column"], d["count"], d["first"]) for d in table["nulled"]], [("c", 1, "t.csv:6")])
    _, _, err = run("run", analysis, data, "--audit", "full", check=0)
    has(err, "records dropped", "1 wrong number of fields, first at t.csv:5\n", "stages", "exchanges",
        "values taken as NULL", "1 c not an INT, first at t.csv:6\n")
    _, _, err = run("run", analysis, data, check=0)
    has(err, "t: 1 file", "6 records", "3 dropped", "balanced: yes")


# --- What is wrong with the question. ---

@test("SQL errors are exit code 1 and mark the place")
def _(folder):
    err = ask(folder, "SELECT a,\n  bb FROM t", check=1)
    has(err, "q1.sql:2:3", "bb", "^", "did you mean `b`?")


@test("division by zero is NULL")
def _(folder):
    equal(ask(folder, "SELECT a / 0 AS x, a // 0 AS y, a % 0 AS z FROM t WHERE a = 1"),
          [[None, None, None]])


@test("an overflow is an error that names the expression")
def _(folder):
    err = ask(folder, "SELECT a * 9223372036854775807 AS x FROM t", check=1)
    has(err, "query q1: INT overflow in `a * 9223372036854775807`")
    err = ask(folder, "SELECT b, max(a - 1) * -9223372036854775807 AS x FROM t GROUP BY b", check=1)
    has(err, 'query q1: INT overflow in `"max(a - 1)" * -9223372036854775807`')
    err = ask(folder, "SELECT s.x + 9223372036854775807 AS y FROM (SELECT a * 2 AS x FROM t) s",
              check=1)
    has(err, "overflow in `x + 9223372036854775807`")
    rows = "a,b\n9223372036854775807,x\n9223372036854775807,x\n"
    err = ask(folder, "SELECT b, sum(a) AS s FROM t GROUP BY b", rows=rows, check=1)
    has(err, "query q1: sum(a): a sum does not fit INT")
    has(ask(folder, "SELECT CAST(b AS INT) AS x FROM t", check=1),
        "query q1: cannot read 'one' as INT in `CAST(b AS INT)`")


@test("a sub-query that gives too many rows for a value is an error")
def _(folder):
    has(ask(folder, "SELECT a FROM t WHERE a > (SELECT a FROM t)", check=1), "query q1", "5 rows")


@test("a query of one megabyte is answered")
def _(folder):
    many = " OR ".join(f"a = {i}" for i in range(100, 90000)) + " OR a = 9"
    query = f"SELECT a FROM t WHERE {many}"
    assert len(query) > 1_000_000
    equal(ask(folder, query, seconds=20), [[9]])


@test("ten thousand parentheses are refused, not a crash")
def _(folder):
    err = ask(folder, "SELECT " + "(" * 10000 + "a" + ")" * 10000 + " AS x FROM t", check=1)
    has(err, "nested too deeply")


@test("an exploding regular expression ends in an error")
def _(folder):
    rows = "a,b\n1," + "a" * 5000 + "!\n"
    err = ask(folder, "SELECT a FROM t WHERE regexp_matches(b, '^(a|a)*(a|aa)+(b|aa)*[^!]$')",
              rows=rows, check=1, seconds=30)
    has(err, "query q1", "regular expression", "too many steps")


@test("a memory limit that is too small names the query and the operator")
def _(folder):
    rows = "a,b\n" + "".join(f"{i},{'text' * 20}{i}\n" for i in range(200000))
    analysis, data = make(folder, files={"t.csv": rows})
    for sql, operator in (("SELECT b, count(*) AS n FROM t GROUP BY b", "aggregate by b|sort"),
                          ("SELECT a, b FROM t ORDER BY b", "sort")):
        (analysis / "q1.sql").write_text(sql)
        # They go on in files, but need some memory for it; how much depends on the threads' luck.
        named = False
        for limit in (8, 6, 5, 4, 3, 2):
            code, _, err = run("run", analysis, data, "--memory-limit", f"{limit}MiB",
                               "--format", "csv")
            if code == 0:
                continue
            equal(code, 1)
            has(err, f"the memory limit of {limit} MiB is reached", "--memory-limit")
            named = named or re.search(f"query q1, ({operator}):", err)
        assert named, err


# --- Answers. ---

HOSTILE = ('a,b\n1,"comma, quote "" and\nline"\n2,\n3,""\n4,caf\xe9 日本 \x1b[31m\n'
           .encode() + b"5,\xff\xc3(\xed\xa0\x80\n")


@test("csv, json, ndjson and table agree, also on hostile bytes")
def _(folder):
    tables = ("CREATE TABLE t (a INT NOT NULL, b TEXT) FROM 't.csv';")
    query = ("SELECT a, b, a::DECIMAL(9,2) AS d, a / 3 AS f, a > 2 AS p, "
             "DATE '2020-02-29' AS day, TIMESTAMP '2020-02-29 01:02:03' AS at FROM t ORDER BY a")
    analysis, data = make(folder, tables, {"q1": query}, {"t.csv": HOSTILE})
    env = environment()
    raw = subprocess.run([MILLRACE, "run", str(analysis), str(data), "--format", "csv"], env=env,
                         capture_output=True, timeout=scaled(TIMEOUT_S), check=True).stdout
    rows = list(csv.reader(io.StringIO(raw.decode("utf-8", "replace"), newline="")))
    equal(rows[0], ["a", "b", "d", "f", "p", "day", "at"])
    _, out, _ = run("run", analysis, data, "--format", "json", check=0)
    answer = json.loads(out, parse_float=str, parse_int=str)
    columns = answer["queries"]["q1"]["columns"]
    equal([c["name"] for c in columns], rows[0])
    equal([c["type"] for c in columns][:2], ["INT", "TEXT"])
    shown = [["" if v is None else str(v).lower() if isinstance(v, bool) else v for v in row]
             for row in answer["queries"]["q1"]["rows"]]
    equal(shown, rows[1:])
    _, out, _ = run("run", analysis, data, "--format", "ndjson", check=0)
    lines = [json.loads(line, parse_float=str, parse_int=str) for line in out.splitlines()]
    equal([list(line.values()) for line in lines],
          [["q1", *row] for row in answer["queries"]["q1"]["rows"]])
    _, out, _ = run("run", analysis, data, "--format", "table", check=0)
    has(out, "│", "5 rows", "NULL", r"\x1b[31m", r"and\nline")
    assert "\x1b" not in out


@test("several queries in csv are separated, one is plain")
def _(folder):
    analysis, data = make(folder)
    _, out, _ = run("run", analysis, data, "--format", "csv", check=0)
    equal(out, "# q1\na,b\n1,one\n2,two\n3,\n4,four\n\n# q2\nn,total\n5,19\n")
    _, out, _ = run("run", analysis, data, "--format", "csv", "--query", "q2", check=0)
    equal(out, "n,total\n5,19\n")


@test("--set changes a parameter, --query chooses")
def _(folder):
    analysis, data = make(folder)
    _, out, _ = run("run", analysis, data, "--format", "csv", "--query", "q1", "--set",
                    "limit_value=1", check=0)
    equal(out, "a,b\n1,one\n")
    _, out, _ = run("run", analysis, data, "--format", "json", "--query", "q2,q1", check=0)
    equal(sorted(json.loads(out)["queries"]), ["q1", "q2"])


@test("only the history of the audit differs between runs, whatever the threads")
def _(folder):
    rows = "a,b\n" + "".join(f"{i % 1000},{i % 7}\n" for i in range(50000))
    analysis, data = make(folder, files={"t.csv": rows})
    answers = set()
    for threads in (1, 2, 3):
        _, out, _ = run("run", analysis, data, "--format", "json", "--chunk-size", "32KiB",
                        "--threads", threads, check=0)
        answer = json.loads(out)
        equal(sorted(answer), ["audit", "queries"])
        equal(sorted(answer["audit"]), ["balanced", "exchanges", "history", "stages", "tables"])
        assert answer["audit"]["balanced"] is True
        equal(answer["audit"]["history"]["threads"], threads)
        del answer["audit"]["history"]
        answers.add(json.dumps(answer))
    equal(len(answers), 1)


@test("a query without rows has its header in every format")
def _(folder):
    analysis, data = make(folder, queries={"q1": "SELECT a FROM t WHERE a > 100"})
    equal(run("run", analysis, data, "--format", "csv", check=0)[1], "a\n")
    equal(run("run", analysis, data, "--format", "ndjson", check=0)[1], "")
    equal(json.loads(run("run", analysis, data, "--format", "json", check=0)[1])["queries"],
          {"q1": {"columns": [{"name": "a", "type": "INT"}], "rows": []}})
    has(run("run", analysis, data, check=0)[1], "0 rows")


@test("data goes to stdout and all else to stderr; --quiet leaves errors only")
def _(folder):
    analysis, data = make(folder)
    _, out, err = run("run", analysis, data, "--format", "csv", check=0)
    assert "balanced" not in out
    has(err, "balanced: yes")
    equal(run("run", analysis, data, "--format", "json", check=0)[2], "")
    equal(run("run", analysis, data, "--quiet", check=0)[2], "")
    _, _, err = run("run", analysis, folder / "nowhere", "--quiet")
    has(err, "millrace: ")


@test("with --format json errors come as JSON too")
def _(folder):
    analysis, data = make(folder, files={"t.csv": 'a,b\n2,"open\n'})
    _, out, err = run("run", analysis, data, "--format", "json", check=1)
    error = json.loads(out)["error"]
    equal(error["code"], "input")
    has(error["message"], "t.csv")
    has(err, "millrace: ")
    _, out, _ = run("run", "nonsense", data, "--format=json", "--bad", check=2)
    equal(json.loads(out)["error"]["code"], "usage")
    err = ask(folder, "SELECT", check=1)
    _, out, _ = run("explain", folder / "analysis", "--json", check=1)
    equal(json.loads(out)["error"]["code"], "sql")


# --- Terminals. ---

def on_terminal(*words, env=None, columns=100):
    """Runs millrace with stdout and stderr on a terminal; gives what it showed."""
    pid, descriptor = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.environ.clear()
        os.environ.update(env or environment())
        os.execv(MILLRACE, [MILLRACE, *map(str, words)])
    shown = b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], scaled(TIMEOUT_S))
        assert ready, "nothing more on the terminal"
        try:
            piece = os.read(descriptor, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    _, status = os.waitpid(pid, 0)
    os.close(descriptor)
    return os.waitstatus_to_exitcode(status), shown.decode("utf-8", "replace")


@test("colour is for terminals, and NO_COLOR and dumb terminals are respected")
def _(folder):
    analysis, data = make(folder)
    code, shown = on_terminal("run", analysis, data)
    equal(code, 0)
    has(shown, "\x1b[1mq1", "\x1b[2mNULL")
    for env in (environment(NO_COLOR="1"), {**environment(), "TERM": "dumb"}):
        _, shown = on_terminal("run", analysis, data, env=env)
        has(shown, "q1", "NULL")
        assert "\x1b[1m" not in shown and "\x1b[2m" not in shown, shown
    assert "\x1b" not in run("run", analysis, data, check=0)[1]
    assert "\x1b" not in run("run", analysis, folder / "nowhere")[2]
    _, shown = on_terminal("rnu", env=environment(NO_COLOR="1"))
    assert "\x1b" not in shown, shown


@test("a long table is cut on a terminal and says how to see all")
def _(folder):
    rows = "a,b\n" + "".join(f"{i},x\n" for i in range(1000))
    analysis, data = make(folder, queries={"q1": "SELECT a FROM t ORDER BY a"},
                          files={"t.csv": rows})
    _, shown = on_terminal("run", analysis, data)
    has(shown, "1,000 rows (40 shown; --rows all or --format csv shows all)", "…")
    _, shown = on_terminal("run", analysis, data, "--rows", "all")
    has(shown, " 500 ", "1,000 rows")
    assert "shown" not in shown
    _, out, _ = run("run", analysis, data, check=0)
    equal(sum(line.startswith("│") for line in out.splitlines()), 1002)
    _, out, _ = run("run", analysis, data, "--rows", "4", check=0)
    has(out, "1,000 rows (4 shown")


# --- Where answers go. ---

@test("--output writes a file per query and the audit, and nothing else")
def _(folder):
    analysis, data = make(folder)
    out_dir = folder / "out"
    _, out, err = run("run", analysis, data, "--output", out_dir, check=0)
    equal(out, "")
    has(err, str(out_dir))
    equal(sorted(p.name for p in out_dir.iterdir()), ["audit.json", "q1.csv", "q2.csv"])
    equal((out_dir / "q2.csv").read_text(), "n,total\n5,19\n")
    assert json.loads((out_dir / "audit.json").read_text())["balanced"] is True
    for form, suffix in (("json", "json"), ("ndjson", "ndjson"), ("table", "txt")):
        run("run", analysis, data, "--output", out_dir, "--format", form, check=0)
        assert (out_dir / f"q1.{suffix}").stat().st_size > 0
    equal(json.loads((out_dir / "q2.json").read_text())["rows"], [[5, 19]])
    equal(sorted(p.name for p in out_dir.iterdir() if p.name.startswith(".")), [])


@test("a failed job leaves old answers untouched and no temporary files")
def _(folder):
    analysis, data = make(folder)
    out_dir = folder / "out"
    run("run", analysis, data, "--output", out_dir, check=0)
    before = {p.name: p.read_bytes() for p in out_dir.iterdir()}
    (analysis / "q3.sql").write_text("SELECT a * 9223372036854775807 AS x FROM t")
    run("run", analysis, data, "--output", out_dir, check=1)
    equal({p.name: p.read_bytes() for p in out_dir.iterdir()}, before)
    run("run", analysis, data, "--output", folder / "new", check=1)
    assert not (folder / "new").exists()


@test("an output folder that cannot be made is named before the work")
def _(folder):
    analysis, data = make(folder)
    (folder / "file").write_text("")
    _, _, err = run("run", analysis, data, "--output", folder / "file", check=1)
    has(err, str(folder / "file"))
    _, _, err = run("run", analysis, data, "--output", folder / "no" / "where", check=1)
    has(err, "where")


BIG_ROWS = "a,b\n" + "".join(f"{i},{'some text ' * 8}{i}\n" for i in range(40000))


@test("a full disk names the file, and nothing of the answer is left")
def _(folder):
    analysis, data = make(folder, queries={"q1": "SELECT a, b FROM t"}, files={"t.csv": BIG_ROWS})
    out_dir = folder / "out"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    _, _, err = run("run", analysis, data, "--output", out_dir, check=1, preexec_fn=limit)
    has(err, "q1.csv", "File too large")
    assert not out_dir.exists() or list(out_dir.iterdir()) == []


@test("a full device behind stdout is an error")
def _(folder):
    analysis, data = make(folder)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([MILLRACE, "run", str(analysis), str(data), "--format", "csv"],
                              stdout=full, stderr=subprocess.PIPE, timeout=scaled(TIMEOUT_S),
                              env=environment())
    equal(done.returncode, 1)
    has(done.stderr.decode(), "cannot write to stdout", "No space left")


@test("a reader that goes away ends the job with exit code 1 and one message")
def _(folder):
    analysis, data = make(folder, queries={"q1": "SELECT a, b FROM t"}, files={"t.csv": BIG_ROWS})
    for form in ("csv", "json", "ndjson", "table"):
        process = subprocess.Popen([MILLRACE, "run", str(analysis), str(data), "--format", form],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment())
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read().decode()
        equal(process.wait(scaled(TIMEOUT_S)), 1)
        has(err, "output was closed by the reader")
        equal(err.count("millrace:"), 1)


@test("rows that were streamed before a failure are called void")
def _(folder):
    rows = "a,b\n" + "".join(f"{i},{'t' * 50}\n" for i in range(200000)) + '1,"open\n'
    analysis, data = make(folder, queries={"q1": "SELECT a, b FROM t"}, files={"t.csv": rows})
    _, out, err = run("run", analysis, data, "--format", "csv", "--chunk-size", "64KiB", check=1)
    equal("void" in err, out != "")
    has(err, "t.csv")


# --- Signals. ---

@test("SIGINT in the middle stops the job with exit code 1, SIGTERM too")
def _(folder):
    run("gen", "coffee", folder / "coffee", "--scale", "0.05", "--quiet", check=0)
    analysis = pathlib.Path(SOURCE_DIR) / "analyses" / "coffee"
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen([MILLRACE, "run", str(analysis), str(folder / "coffee"),
                                    "--output", str(folder / "out"), "--threads", "1",
                                    "--chunk-size", "1k"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment())
        deadline = time.monotonic() + scaled(TIMEOUT_S)
        while not list(folder.glob("out/.audit.json.*")):  # The work begins when this is there.
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.001)
        process.send_signal(number)
        _, err = process.communicate(timeout=scaled(TIMEOUT_S))
        equal(process.returncode, 1)
        has(err.decode(), "millrace: interrupted")
        assert not (folder / "out").exists()


@test("SIGINT is heard while a join makes many rows of few")
def _(folder):
    rows = "a,b\n" + "".join(f"{i},x\n" for i in range(5000))
    analysis, data = make(folder, queries={"q1": "SELECT count(*) FROM t x, t y, t z"},
                          files={"t.csv": rows})
    for threads in ("1", "2"):
        process = subprocess.Popen([MILLRACE, "run", str(analysis), str(data),
                                    "--output", str(folder / "out"), "--threads", threads],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment())
        time.sleep(scaled(0.5))  # Nobody has so long a breath: undisturbed it takes many minutes.
        equal(process.poll(), None)
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=scaled(20))
        finally:
            process.kill()
        equal(process.returncode, 1)
        has(err.decode(), "millrace: interrupted")


# --- explain and gen. ---

@test("explain draws text, valid JSON and DOT, with and without data")
def _(folder):
    tables = ("CREATE TABLE t (a INT NOT NULL, b TEXT) FROM 't.csv';\n"
              "CREATE TABLE u (a INT NOT NULL, c TEXT) FROM 'u.csv';\n")
    queries = {
        "q1": "SELECT t.a, u.c FROM t JOIN u ON t.a = u.a WHERE t.b <> 'x\"y' ORDER BY t.a LIMIT 3",
        "q2": "SELECT b, count(*) AS n FROM t GROUP BY b",
    }
    analysis, data = make(folder, tables, queries, {"t.csv": ROWS, "u.csv": "a,c\n1,x\n"})
    for words in ((analysis,), (analysis, data)):
        _, out, _ = run("explain", *words, check=0)
        has(out, "phase 1", "scan", "pipeline #", "fold #", "result of q1", "result of q2", "└─")
        plan = json.loads(run("explain", *words, "--json", check=0)[1])
        equal([q["name"] for q in plan["queries"]], ["q1", "q2"])
        equal({s["table"] for s in plan["scans"]}, {"t", "u"})
        _, dot, _ = run("explain", *words, "--dot", check=0)
        assert dot.startswith("digraph") and dot.rstrip().endswith("}")
        if shutil.which("dot"):
            subprocess.run(["dot", "-Tsvg"], input=dot.encode(), check=True,
                           stdout=subprocess.DEVNULL, timeout=scaled(TIMEOUT_S))
    _, out, _ = run("explain", analysis, "--query", "q2", check=0)
    assert "result of q1" not in out


def operators(plan):
    """The operators of an explained plan, a list per pipeline."""
    return [[op["text"] for op in pipeline["operators"]] for pipeline in plan["pipelines"]]


@test("explain names what is computed and shows no step that does nothing")
def _(folder):
    tables = ("CREATE TABLE t (a INT NOT NULL, b TEXT) FROM 't.csv';\n"
              "CREATE TABLE u (a INT NOT NULL, c TEXT) FROM 'u.csv';\n")
    query = ("WITH x AS (SELECT b, sum(a * 2) AS s FROM t GROUP BY b) "
             "SELECT x.b, x.s FROM x JOIN u ON u.c = lower(x.b) ORDER BY u.a, x.s LIMIT 3")
    analysis, _ = make(folder, tables, {"q1": query})
    plan = json.loads(run("explain", analysis, "--json", check=0)[1])
    flat = [text for pipeline in operators(plan) for text in pipeline]
    has("\n".join(flat), "project b, a * 2", "pre-aggregate sum(a * 2) by b", "c = lower(b)",
        "first 3 by a, s, b")
    _, out, _ = run("explain", analysis, check=0)
    has(out, "(b TEXT, state of sum(a * 2))", "aggregate sum(a * 2) by b [sharded]")
    for name in ("movies", "coffee", "memes"):
        folder_of = pathlib.Path(SOURCE_DIR) / "analyses" / name
        plan = json.loads(run("explain", folder_of, "--json", check=0)[1])
        for pipeline in operators(plan):
            for before, after in zip(pipeline, pipeline[1:]):
                assert not (before.startswith("project ") and after.startswith("project ")), \
                    (before, after)


@test("gen writes the same bytes for the same seed and says what it wrote")
def _(folder):
    for name in ("movies", "coffee", "memes"):
        trees = []
        for copy, seed in (("a", 7), ("b", 7), ("c", 8)):
            target = folder / name / copy
            target.parent.mkdir(exist_ok=True)
            _, out, err = run("gen", name, target, "--scale", "0.0005", "--seed", seed, check=0)
            equal(out, "")
            has(err, "file", "records", "MB/s")
            trees.append({str(p.relative_to(target)): p.read_bytes()
                          for p in sorted(target.rglob("*")) if p.is_file()})
        equal(trees[0], trees[1])
        assert trees[0] != trees[2]


# --- The picture. ---

class Pictures(http.server.BaseHTTPRequestHandler):
    """Serves a small picture, a huge one, and redirects to good and bad places."""

    def do_GET(self):
        if self.path == "/cat.png":
            self.send_response(200)
            self.send_header("Content-Type", "image/png")
            self.end_headers()
            self.wfile.write(b"\x89PNG cat")
        elif self.path == "/huge.png":  # No length: the limit must be noticed on the way.
            self.send_response(200)
            self.end_headers()
            try:
                for _ in range(40):
                    self.wfile.write(bytes(1 << 20))
            except OSError:
                pass
        elif self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path[4:])
            self.end_headers()
        elif self.path == "/loop":
            self.send_response(302)
            self.send_header("Location", "/loop")
            self.end_headers()
        else:
            self.send_error(404)

    def log_message(self, *words):
        pass


@test("--fetch-image downloads over http only, within limits, and the answer always stands")
def _(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    tables = "CREATE TABLE t (id INT NOT NULL, url TEXT) FROM 't.csv';"
    picture = folder / "picture.png"
    secret = folder / "secret"
    secret.write_text("secret")

    def fetch(url, query="SELECT id, url FROM t ORDER BY id"):
        analysis, data = make(folder, tables, {"q1": query}, {"t.csv": f"id,url\n1,{url}\n"})
        _, out, err = run("run", analysis, data, "--format", "csv", "--quiet", "--fetch-image",
                          picture, check=0)
        assert out.startswith("id"), out
        equal([p.name for p in folder.iterdir() if p.name.startswith(".")], [])
        return err

    try:
        has(fetch(f"{base}/cat.png"), "fetched", "image/png")
        equal(picture.read_bytes(), b"\x89PNG cat")
        picture.unlink()
        has(fetch(f"{base}/to//cat.png"), "fetched")
        picture.write_bytes(b"old")
        for url, reason in [
            (f"{base}/huge.png", "larger than 32 MiB"),
            (f"{base}/nothing.png", "404"),
            (f"{base}/loop", "redirect"),
            (f"{base}/to/file://{secret}", ""),
            (f"file://{secret}", "only http and https"),
            ("ftp://127.0.0.1/x", "only http and https"),
            ("http://127.0.0.1:1/x", "connect"),
            ("", "no url"),
        ]:
            has(fetch(url), "no image fetched", reason)
            equal(picture.read_bytes(), b"old")
        has(fetch(f"{base}/cat.png", "SELECT id FROM t"), "no query has a column `url`")
        has(fetch(f"{base}/cat.png", "SELECT id, url FROM t WHERE id > 9"), "no rows")
    finally:
        server.shutdown()


CLUSTER = """[cluster]
name = demo
broker = start
data_dir = data
[gateways]
g1 = 127.0.0.1:7101
[workers]
count = 2
"""
MONITORS = "[monitors]\nm1 = 127.0.0.1:7201\nm2 = 127.0.0.1:7202\nm3 = 127.0.0.1:7203\n"


def cluster_file(folder, monitors=MONITORS):
    path = folder / "cluster.ini"
    path.write_text(CLUSTER + monitors)
    return path


@test("key makes a key once, that only its owner can read")
def _(folder):
    path = cluster_file(folder)
    _, out, err = run("key", "-c", path, check=0)
    key = pathlib.Path(out.strip())
    equal(key, folder / "data" / "key")
    equal(key.stat().st_mode & 0o777, 0o600)
    has(err, "made a new key")
    before = key.read_bytes()
    _, again, err = run("key", "-c", path, check=0)
    equal((again, key.read_bytes()), (out, before))
    has(err, "there is a key already")


@test("config tells whether a cluster file is right, and lists the keys")
def _(folder):
    path = cluster_file(folder)
    equal(run("config", "-c", path, check=0)[1], f"{path}: gateways 1, workers 2, monitors 3\n")
    path.write_text(CLUSTER.replace("[cluster]\n", "[cluster]\nwork_queues = 64\n"))
    has(run("config", "-c", path, check=1)[2], f"{path}:2: work_queues", "1 to 16")
    keys = [line.split() for line in run("config", check=0)[1].splitlines()]
    assert ["cluster.max_jobs", "8", "1", "to", "1000"] in keys, keys


@test("compose prints what it writes, and a key and settings that stay")
def _(folder):
    path = cluster_file(folder)
    _, out, _ = run("compose", "-c", path, check=0)
    for name in ("system.yml", "clients.yml", "cluster.ini"):
        has(out, f"# -------- {name} --------")
    target = folder / "deploy"
    run("compose", "-c", path, "--output", target, check=0)
    kept = {name: (target / name).read_bytes() for name in ("key", ".env")}
    equal((target / "key").stat().st_mode & 0o777, 0o600)
    equal((target / "data").is_dir(), True)
    system = (target / "system.yml").read_text()
    has(out, system)
    for node in ("broker", "g1", "w1", "w2", "m1", "m2", "m3"):
        has(system, f'container_name: "demo-{node}"')
    run("compose", "-c", path, "--output", target, check=0)
    equal({name: (target / name).read_bytes() for name in kept}, kept)
    if shutil.which("docker-compose"):
        for name in ("system.yml", "clients.yml"):
            done = subprocess.run(["docker-compose", "-f", name, "config", "-q"], cwd=target,
                                  capture_output=True, timeout=scaled(TIMEOUT_S))
            equal((done.returncode, done.stderr), (0, b""))


@test("compose keeps from others what is secret, and any path is a path")
def _(folder):
    odd = folder / 'a "b":$c'
    odd.mkdir()
    path = cluster_file(odd)
    (odd / "model").write_text("m")
    text = path.read_text()
    path.write_text(text.replace("[cluster]\n", "[cluster]\nsentiment_model = model\ntoken = t\n", 1))
    target = folder / "deploy"
    run("compose", "-c", path, "--output", target, check=0)
    equal((target / "cluster.ini").stat().st_mode & 0o777, 0o600)
    has((target / "system.yml").read_text(), '/a \\"b\\":$$c/model"\n')
    if shutil.which("docker-compose"):
        done = subprocess.run(["docker-compose", "-f", "system.yml", "config"], cwd=target,
                              capture_output=True, timeout=scaled(TIMEOUT_S), text=True)
        equal((done.returncode, done.stderr), (0, ""))
        has(done.stdout, 'a "b":$')


@test("chaos refuses a cluster that nobody would mend, and stop one that does not run")
def _(folder):
    path = cluster_file(folder, monitors="")
    has(run("chaos", "-c", path, "--all", check=2)[2], "has no [monitors]")
    has(run("stop", "-c", path, "w1", check=1)[2], "w1 does not run on this host")
    has(run("stop", "-c", path, "w7", check=2)[2], "no node `w7`", "did you mean")
    path = cluster_file(folder)
    run("key", "-c", path, check=0)
    for words in (("stop", "-c", path, "w1"), ("chaos", "-c", path, "--kill", "w1")):
        run(*words, check=3)


def main():
    only = sys.argv[1:]
    chosen = [(s, f) for s, f in TESTS if not only or any(word in s for word in only)]
    print(f"1..{len(chosen)}")
    failed = 0
    for number, (sentence, function) in enumerate(chosen, 1):
        with tempfile.TemporaryDirectory(prefix="millrace-cli-") as folder:
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
