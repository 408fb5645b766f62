#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""build.py - configures and builds one flavour of millrace in build/FLAVOUR.

The front door is ./dev; this is the one place that knows which flavours there are and when a build
folder must be configured anew: when its options change, or when a room or a test appears or goes
(meson cannot see new files by itself).
"""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# -O1 keeps sanitized tests quick without hiding the lines in their reports, for which -g1 is enough.
# Crash points and planted mistakes are in every flavour but the one that is installed.
FAULTS = "-Dfault_injection=true"
CHECKED = ["-Doptimization=1", "-Ddebug=false", "-Dtests=enabled", FAULTS]
NO_RECOVERY = "-Dc_args=-g1 -fno-sanitize-recover=all"

# flavour: (compiler, options of meson, what it is for)
FLAVOURS = {
    "release": ("gcc", ["--buildtype=release", "-Dtests=disabled", FAULTS],
                "what users run: -O3, and crash points"),
    "install": ("gcc", ["--buildtype=release", "-Dtests=disabled"], "release, for a prefix"),
    "debug": ("gcc", ["--buildtype=debug", "-Dtests=enabled", FAULTS], "for a debugger: -O0 -g"),
    "asan": (
        "gcc",
        CHECKED + ["-Db_sanitize=address,undefined", NO_RECOVERY],
        "gcc with AddressSanitizer and UndefinedBehaviorSanitizer",
    ),
    "coverage": (
        "gcc",
        ["--buildtype=debug", "-Dtests=enabled", "-Db_coverage=true", FAULTS],
        "counts which lines run",
    ),
    "tsan": ("gcc", CHECKED + ["-Db_sanitize=thread", "-Dc_args=-g1"], "gcc with ThreadSanitizer"),
    "clang": (
        "clang",
        CHECKED
        + ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dfuzzers=true", NO_RECOVERY],
        "clang with the same sanitizers, and the fuzzers",
    ),
}


class BuildFailed(Exception):
    """Carries the output of the step that failed."""


def discovered(root=ROOT):
    """Everything whose coming or going changes what is built."""
    patterns = [
        "src/**/meson.build",
        "tests/unit/**/test_*.c",
        "tests/fuzz/fuzz_*.c",
        "docs/man/*",
        "analyses",
    ]
    return sorted(str(path.relative_to(root)) for p in patterns for path in root.glob(p))


def folder(flavour):
    return ROOT / "build" / flavour


def _run(command, quiet, env=None):
    output = subprocess.PIPE if quiet else None
    done = subprocess.run(
        command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT if quiet else None,
        text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise BuildFailed(done.stdout or f"{command[0]} failed")


def configure(flavour, extra=(), quiet=False, options=None):
    """Makes build/FLAVOUR ready for ninja; returns the folder. `options` is for a build that is
    not in the table: the (compiler or None, options) of a cross build."""
    compiler, arguments = (options or FLAVOURS[flavour])[:2]
    arguments = [*arguments, *extra]
    path = folder(flavour)
    stamp = path / "configured"
    wanted = "\n".join([str(compiler), *arguments, "", *discovered()]) + "\n"
    ready = (path / "build.ninja").exists() and stamp.exists()
    found = stamp.read_text() if ready else ""
    if found == wanted:
        return path
    command = ["meson", "setup", str(path), str(ROOT), *arguments]
    if ready and found.split("\n\n")[0] == wanted.split("\n\n")[0]:
        command.append("--reconfigure")
    elif (path / "meson-private" / "coredata.dat").exists():
        command.append("--wipe")
    env = dict(os.environ)
    if compiler:
        env["CC"] = compiler
    _run(command, True, env)
    stamp.write_text(wanted)
    if not quiet:
        print(f"configured build/{flavour}", flush=True)
    return path


def build(flavour, targets=(), extra=(), quiet=False, options=None):
    """Configures if need be and builds; returns the folder or raises BuildFailed."""
    path = configure(flavour, extra, quiet, options)
    command = ["ninja", "-C", str(path), *targets]
    _run(command if not quiet else command + ["-k", "0"], quiet)
    return path


def main():
    parser = argparse.ArgumentParser(description="build one flavour of millrace")
    parser.add_argument("flavour", choices=FLAVOURS)
    parser.add_argument("--prefix", help="where `./dev install` will put it")
    options = parser.parse_args()
    extra = ["--prefix=" + options.prefix] if options.prefix else []
    try:
        path = build(options.flavour, extra=extra)
    except BuildFailed as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)
    program = path / "millrace"
    if program.exists():
        print(f"{program.relative_to(ROOT)} is ready ({FLAVOURS[options.flavour][2]})")


if __name__ == "__main__":
    main()
