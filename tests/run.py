#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py - builds all flavours and runs every suite; `./dev test` calls it.

Suites are found, not listed (docs/TESTING.md says where). Each is a program that reports in TAP or
by its exit code; each has a time limit, after which it is killed and has failed. Limits are those of
an idle machine, times how much slower this one is: that is measured at the start and after every
build, and suites are told as TEST_TIME_SCALE. A build that fails counts as one failure, and what
would have run in it does not run.
"""
import argparse
import concurrent.futures
import dataclasses
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

import cross

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import build as builder  # noqa: E402 - lives in tools/

PROGRAMS = ["millrace", "millrace-cluster"]
JOBS = os.cpu_count() or 1
LIMIT_S = 120
ORACLE_LIMIT_S = 180
FULL_LIMIT_S = 900
# Of those that take half an hour of two idle cores.
LONG_LIMIT_S = 3 * 3600
FUZZ_S = 2
FUZZ_FULL_S = 60
SHOWN_LINES = 120

# Runs as suites do: as many at once, each in a session of its own, with processes of its own.
PROBE = """
import subprocess
for _ in range(5):
    subprocess.run(["true"], check=True)
    sum(number * number for number in range(500_000))
"""
PROBE_S = 0.25  # On an idle machine.

# Allocation failures are swept with ASan in every run, with ThreadSanitizer only in a full one.
SLOW_THREADED = {"test_allocation", "test_fold_spill"}
# Unit tests that speak of threads run under ThreadSanitizer too.
THREADED = re.compile(r"\b(pthread\w*|threads?|thread_count)\b", re.IGNORECASE)
# End-to-end scripts that take the program as users have it: they make many runs, or a cluster.
OPTIMISED = re.compile(r"test_(docs|sim\w*|spill|cluster\w*|monitors\w*|operator\w*|healing\w*|hosts\w*|docker\w*|network\w*)")
# Of those, the ones that take what is installed, which has no crash points and no planted mistakes:
# its answers are held against the oracle, and its clusters are killed.
INSTALLED = re.compile(r"test_(installed|spill|cluster_roles|cluster_spill)")
LONG = re.compile(r"test_sim\w*_full")
# They begin with the real queries.
SQL_FUZZERS = {"sql", "plan"}
# What another instruction set could get wrong.
CROSSED = re.compile(r"scan|split|narrow|number|calendar|exact_sum|pyliteral|regexp|sentiment|gen$|answers")

SANITIZERS = {
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}

ASAN_OPTIONS = "strict_string_checks=1:detect_leaks="
# On arm64, the sanitizers of Debian 12 take four seconds per process to look for leaks.
LEAKS_ARE_CHEAP = platform.machine() == "x86_64"

TAP_LINE = re.compile(r"\s*(not )?ok\b")
TAP_PLAN = re.compile(r"\s*1\.\.(\d+)\b")


@dataclasses.dataclass
class Suite:
    name: str
    command: list
    flavour: str = ""  # The build it needs; none when empty.
    targets: list = dataclasses.field(default_factory=list)
    tap: bool = True  # Otherwise its exit code is the one result.
    limit_s: int = LIMIT_S
    env: dict = dataclasses.field(default_factory=dict)
    scratch: pathlib.Path = None  # A folder it finds empty.
    seconds: dict = dataclasses.field(default_factory=dict)  # Options that scale as limits do.
    leaks: bool = LEAKS_ARE_CHEAP


@dataclasses.dataclass
class Result:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list = dataclasses.field(default_factory=list)
    output: str = ""


def read_tap(output, result):
    planned = None
    for line in output.splitlines():
        plan = TAP_PLAN.match(line)
        match = TAP_LINE.match(line)
        if plan:
            # cmocka prints one plan per group of tests.
            planned = (planned or 0) + int(plan.group(1))
        elif match and "# SKIP" in line:
            result.skipped += 1
            result.notes.append("skipped:" + line.split("# SKIP", 1)[1])
        elif match and match.group(1):
            result.failed += 1
        elif match:
            result.passed += 1
    seen = result.passed + result.failed + result.skipped
    if planned is not None and seen != planned:
        result.failed += 1
        result.notes.append(f"{planned} tests were announced, {seen} reported")
    elif seen == 0:
        result.failed += 1
        result.notes.append("no test reported")


def measure_time_scale():
    """How many times longer things take than on an idle machine; at least once."""
    begin = time.monotonic()
    probes = [subprocess.Popen([sys.executable, "-c", PROBE], start_new_session=True)
              for _ in range(JOBS)]
    for probe in probes:
        probe.wait()
    scale = max(1.0, (time.monotonic() - begin) / PROBE_S)
    if scale >= 2:
        print(f"     this machine is busy or slow: limits times {scale:.1f}", flush=True)
    return scale


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_suite(suite, full, scale):
    """Runs it in a process group of its own, so that nothing it starts outlives its limit."""
    env = dict(os.environ, SOURCE_DIR=str(ROOT), CMOCKA_MESSAGE_OUTPUT="TAP",
               PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8",
               TEST_FULL="1" if full else "0", TEST_TIME_SCALE=f"{scale:.2f}", **SANITIZERS)
    env["ASAN_OPTIONS"] = ASAN_OPTIONS + ("1" if suite.leaks else "0")
    if suite.flavour:
        path = builder.folder(suite.flavour)
        env.update(BUILD_DIR=str(path), MILLRACE=str(path / "millrace"))
    env.update(suite.env)
    if suite.scratch:
        shutil.rmtree(suite.scratch, ignore_errors=True)
        suite.scratch.mkdir(parents=True)
    limit_s = math.ceil(suite.limit_s * scale)
    command = [*suite.command, *(f"{option}={math.ceil(seconds * scale)}"
                                 for option, seconds in suite.seconds.items())]
    result = Result()
    try:
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as error:
        return Result(failed=1, notes=[str(error)])
    try:
        output, _ = process.communicate(timeout=limit_s)
        code = process.returncode
        kill_group(process)
    except subprocess.TimeoutExpired:
        kill_group(process)
        output, _ = process.communicate()
        code = None
    result.output = output.decode(errors="replace")

    if not suite.tap:
        result.passed, result.failed = (1, 0) if code == 0 else (0, 1)
        if code == 0:
            result.notes = [line for line in result.output.splitlines() if ": warning: " in line]
    else:
        read_tap(result.output, result)
    if code is None:
        result.failed = max(result.failed, 1)
        result.notes.append(f"killed after {limit_s} s")
    elif code != 0 and result.failed == 0:
        result.failed = 1
        result.notes.append(f"exit code {code}")
    return result


def unit_name(source):
    """tests/unit/gen/test_gen.c is gen/gen; the SQL files have a suite of their own name."""
    if source.stem == "test_sql_files":
        return "sql"
    room = source.parent.relative_to(ROOT / "tests" / "unit")
    return f"{room}/{source.stem.removeprefix('test_')}"


def fixed_layout():
    """Old sanitizers cannot live with all the address space randomisation of new kernels."""
    command = ["setarch", "--addr-no-randomize"]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True)
        return command
    except (OSError, subprocess.CalledProcessError):
        return []


def style_suites():
    sources = sorted(str(path.relative_to(ROOT)) for folder in ("src", "tests")
                     for path in (ROOT / folder).rglob("*.[ch]"))
    tidy = [sys.executable, str(ROOT / "tools" / "tidy.py")]
    return [
        Suite("format", ["clang-format", "--dry-run", "-Werror", "--ferror-limit=1", *sources],
              tap=False),
        Suite("tidy", tidy, tap=False),
        Suite("tidy/self-test", [*tidy, "--self-test"], tap=False),
    ]


def unit_suites(flavour, prefix, sources, full, before=()):
    suites = []
    for source in sources:
        name = unit_name(source)
        program = builder.folder(flavour) / "tests" / source.stem
        full_name = name if name == "sql" and prefix == "unit/" else prefix + name
        suites.append(Suite(full_name, [*before, str(program)], flavour,
                            ["tests/" + source.stem], limit_s=FULL_LIMIT_S if full else LIMIT_S,
                            leaks=full or LEAKS_ARE_CHEAP))
    return suites


def script_command(path):
    if path.parent.name == "oracle":
        return [sys.executable, str(ROOT / "tests" / "unittest_tap.py"), str(path)]
    return [sys.executable, str(path)] if path.suffix == ".py" else [str(path)]


def end_to_end_scripts():
    """Files that are not executable are helpers of those that are."""
    paths = [path for path in sorted((ROOT / "tests" / "e2e").glob("*"))
             if path.suffix in (".sh", ".py")]
    runnable = [path for path in paths if os.access(path, os.X_OK)]
    forgotten = [path.name for path in paths
                 if path.name.startswith("test_") and path not in runnable]
    if forgotten:
        sys.exit(f"run.py: these would not run, for they are not executable: {forgotten}")
    return runnable


def script_suites(flavour, prefix, paths, limit_s, env=None):
    return [Suite(prefix + path.stem.removeprefix("test_"), script_command(path), flavour,
                  PROGRAMS, limit_s=LONG_LIMIT_S if LONG.fullmatch(path.stem) else limit_s,
                  env=env or {}) for path in paths]


def fuzz_suites(full, before):
    suites = []
    seconds = FUZZ_FULL_S if full else FUZZ_S
    for source in sorted((ROOT / "tests" / "fuzz").glob("fuzz_*.c")):
        name = source.stem.removeprefix("fuzz_")
        home = builder.folder("clang") / "fuzz" / name
        seeds = ROOT / "tests" / "fuzz" / "corpus" / name
        more_seeds = [ROOT / "analyses"] if name in SQL_FUZZERS else []
        command = [
            *before, str(builder.folder("clang") / "tests" / source.stem),
            "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={home}-",
            # The short run is the same for everybody; the long one looks elsewhere each time.
            *([] if full else ["-seed=1"]),
            str(home), *(str(folder) for folder in [seeds, *more_seeds] if folder.is_dir())]
        suites.append(Suite("fuzz/" + name, command, "clang", ["tests/" + source.stem],
                            tap=False, limit_s=seconds + 90, scratch=home,
                            seconds={"-max_total_time": seconds, "-timeout": 10},
                            leaks=full or LEAKS_ARE_CHEAP))
    return suites


def all_suites(full):
    limit_s = FULL_LIMIT_S if full else LIMIT_S
    before = fixed_layout()
    units = sorted((ROOT / "tests" / "unit").rglob("test_*.c"))
    threaded = [path for path in units if THREADED.search(path.read_text(errors="replace"))
                and (full or path.stem not in SLOW_THREADED)]
    every = [path for path in end_to_end_scripts() if full or not path.stem.endswith("_full")]
    installed = [path for path in every if INSTALLED.fullmatch(path.stem)]
    optimised = [path for path in every
                 if OPTIMISED.fullmatch(path.stem) and path not in installed]
    scripts = [path for path in every if path not in [*installed, *optimised]]
    oracle = sorted((ROOT / "tests" / "oracle").glob("test_*.py"))
    return [
        *style_suites(),
        *unit_suites("asan", "unit/", units, full, before),
        *script_suites("asan", "e2e/", scripts, limit_s),
        *script_suites("release", "e2e/", optimised, FULL_LIMIT_S if full else ORACLE_LIMIT_S),
        *script_suites("install", "e2e/", installed, FULL_LIMIT_S if full else ORACLE_LIMIT_S),
        *script_suites("install", "oracle/", oracle, FULL_LIMIT_S if full else ORACLE_LIMIT_S),
        *fuzz_suites(full, before),
        *unit_suites("tsan", "tsan/", threaded, full, before),
    ]


def cross_suites():
    """May download; raises what apt-get raises."""
    flavour = "cross-" + cross.cpu()
    prefix = f"cross/{cross.cpu()}/"
    root = cross.sysroot()
    units = [path for path in sorted((ROOT / "tests" / "unit").rglob("test_*.c"))
             if CROSSED.search(path.stem)]
    scripts = [path for path in
               [*end_to_end_scripts(), *sorted((ROOT / "tests" / "oracle").glob("test_*.py"))]
               if CROSSED.search(path.stem)]
    launcher = builder.folder(flavour) / "millrace-qemu"
    return [
        *unit_suites(flavour, prefix, units, True, cross.wrapper(root)),
        *script_suites(flavour, prefix, scripts, FULL_LIMIT_S, {"MILLRACE": str(launcher)}),
    ]


class Report:
    """Prints one line per suite and keeps the totals."""

    def __init__(self, full):
        self.full = full
        self.total = Result()

    def add(self, name, result, seconds):
        self.total.passed += result.passed
        self.total.failed += result.failed
        self.total.skipped += result.skipped
        counts = [f"{result.passed} passed"]
        if result.failed:
            counts.append(f"{result.failed} failed")
        if result.skipped:
            counts.append(f"{result.skipped} skipped")
        word = "FAIL" if result.failed else "ok"
        print(f"{word:5}{name:36} {', '.join(counts)}  ({seconds:.1f} s)", flush=True)
        for note in result.notes:
            print("       " + note.strip(), flush=True)
        if result.failed:
            self.show(result.output)

    def show(self, output):
        lines = output.rstrip().splitlines()
        if len(lines) > SHOWN_LINES:
            head = SHOWN_LINES // 3
            left_out = f"... {len(lines) - SHOWN_LINES} lines left out ..."
            lines = [*lines[:head], left_out, *lines[head - SHOWN_LINES:]]
        for line in lines:
            print("     | " + line, flush=True)

    def built(self, flavour, seconds):
        print(f"     built {flavour}  ({seconds:.1f} s)", flush=True)

    def last_line(self):
        total = self.total
        text = f"{total.passed} passed, {total.failed} failed"
        return text + (f", {total.skipped} skipped" if total.skipped else "")


def timed(suite, full, scale):
    begin = time.monotonic()
    result = run_suite(suite, full, scale)
    return result, time.monotonic() - begin


def run_parallel(suites, report):
    if not suites:
        return
    scale = measure_time_scale()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        waiting = {pool.submit(timed, suite, report.full, scale): suite for suite in suites}
        for future in concurrent.futures.as_completed(waiting):
            result, seconds = future.result()
            report.add(waiting[future].name, result, seconds)


def run_flavour(flavour, suites, whole, report):
    """Builds what the suites need (everything, unless a pattern chose them) and runs them."""
    begin = time.monotonic()
    options = None
    if flavour.startswith("cross-"):
        options = (None, cross.meson_options(cross.sysroot()))
    # TSan is for some programs only; building the others with it would prove nothing. What clang
    # says of the tests themselves can wait for the full run.
    targets = sorted({target for suite in suites for target in suite.targets})
    if whole and flavour == "clang" and not report.full:
        targets += PROGRAMS
    elif whole and flavour != "tsan":
        targets = []
    try:
        path = builder.build(flavour, targets, quiet=True, options=options)
        if options and (path / "millrace").exists():
            cross.write_launcher(cross.sysroot(), path / "millrace")
    except builder.BuildFailed as failure:
        result = Result(failed=1, output=str(failure))
        if suites:
            result.notes.append(f"{len(suites)} suites of this build did not run")
        report.add("build/" + flavour, result, time.monotonic() - begin)
        return
    report.built(flavour, time.monotonic() - begin)
    run_parallel(suites, report)


def run_all(suites, whole, report):
    run_parallel([suite for suite in suites if not suite.flavour], report)
    flavours = list(dict.fromkeys(suite.flavour for suite in suites if suite.flavour))
    if whole:
        # Also without a suite: the warnings of each compiler are a check of their own.
        flavours += [name for name in ("asan", "release", "clang") if name not in flavours]
    for flavour in flavours:
        run_flavour(flavour, [suite for suite in suites if suite.flavour == flavour], whole, report)


def main():
    parser = argparse.ArgumentParser(prog="./dev test", description="run the tests")
    parser.add_argument("--full", action="store_true",
                        help="fuzz for a minute each; test the other architecture under qemu")
    parser.add_argument("pattern", nargs="?", help="regular expression on the names of suites")
    options = parser.parse_args()
    try:
        re.compile(options.pattern or "")
    except re.error as error:
        parser.error(f"'{options.pattern}' is not a regular expression: {error}")
    # In the background, shells ignore it, and children would too: but tests interrupt programs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    report = Report(options.full)
    suites = all_suites(options.full)
    if options.full:
        try:
            suites += cross_suites()
        except (OSError, subprocess.CalledProcessError) as error:
            output = getattr(error, "stderr", None) or b""
            report.add("cross", Result(failed=1, notes=[str(error)],
                                       output=output.decode(errors="replace")), 0)
    if options.pattern:
        matching = [suite for suite in suites if re.search(options.pattern, suite.name)]
        if not matching:
            print(f"no suite matches '{options.pattern}'; there are:")
            for suite in suites:
                print("  " + suite.name)
            report.total.failed += 1
        suites = matching
    run_all(suites, not options.pattern, report)
    print(report.last_line())
    sys.exit(1 if report.total.failed else 0)


if __name__ == "__main__":
    main()
