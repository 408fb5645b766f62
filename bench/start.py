# SPDX-License-Identifier: Apache-2.0
"""start.py - what starting millrace costs: ./dev bench start.

Beside a C program that does nothing, since most of a start is the kernel's. Both are started in turns
and the medians compared: the machine's own noise meets both alike.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import option

GOAL_MS = 1.5


def start_ms(program):
    begin = time.perf_counter_ns()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    pid = os.posix_spawn(program, [program, "--version"], os.environ, file_actions=quiet)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise SystemExit(f"bench: {program} --version failed")
    return (time.perf_counter_ns() - begin) / 1e6


def empty_program(folder):
    source, program = folder / "empty.c", folder / "empty"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, source], check=True)
    return str(program)


def main(words):
    parser = argparse.ArgumentParser(prog="./dev bench start", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=500, help="starts of each program; default: 500")
    parser.add_argument("--millrace", default=str(option.ROOT / "build" / "release" / "millrace"),
                        help="the program")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
        programs = {"an empty C program": empty_program(pathlib.Path(folder)),
                    "millrace --version": options.millrace,
                    "millrace-cluster --version": options.millrace + "-cluster"}
        times = {name: [] for name in programs}
        for _ in range(options.runs):
            for name, program in programs.items():
                times[name].append(start_ms(program))
    empty = statistics.median(times["an empty C program"])
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"{name:28} {middle:6.2f} ms   {middle - empty:+6.2f} ms   lowest {min(values):.2f} ms")
    print(f"wanted: millrace at most {GOAL_MS} ms more than an empty program")
    return 0
