# SPDX-License-Identifier: Apache-2.0
"""data.py - the files of a benchmark: made from a seed, without what readers see differently.

`millrace gen` breaks a record now and then in ways on which CSV readers disagree: quotes inside a
bare field, text after a closing quote, a carriage return in the middle of a line, NUL, bytes that
are no UTF-8, two kinds of line ends in one file, hexadecimal numbers. millrace has a rule for each
of them; the others have other rules, or stop. Such records (about one in 10,000) are taken out, so
that one answer is right for all. What stays is dirt that every reader can be told to drop: fields
that are missing, too many or empty, numbers and dates that are none, blank lines, lists that do not
parse; and line ends in quotes, byte order marks, and files with their columns in another order.
"""
import multiprocessing
import os
import re
import shutil
import signal
import subprocess

PIECE = 8 << 20

# Possessive, so that a long record needs no stack: a record that every reader sees alike.
FIELD = rb'(?:"[^"\x00]*+(?:""[^"\x00]*+)*+"(?=[,\r\n])|(?!0x[0-9A-F]++[,\r\n])[^",\r\n\x00]*+)'
CLEAN = re.compile(rb"(?:" + FIELD + rb"(?:," + FIELD + rb")*+\r?\n)*+")


def record_end(data, at):
    """Where the record at `at` ends by docs/reference/csv.md, or -1 if not in `data`."""
    while True:
        if data[at:at + 1] == b'"':
            at += 1
            while True:
                at = data.find(b'"', at)
                if at < 0 or at + 1 >= len(data):
                    return -1
                if data[at + 1:at + 2] != b'"':
                    break
                at += 2
        line, comma = data.find(b"\n", at), data.find(b",", at)
        if line < 0:
            return -1
        if comma < 0 or line < comma:
            return line + 1
        at = comma + 1


def put_utf8(run, out):
    """Writes the records of a clean run but those that are no UTF-8; gives how many these were."""
    dropped = 0
    run = run.replace(b"\r\n", b"\n")
    while True:
        try:
            run.decode()
        except UnicodeDecodeError as error:
            begin, end = 0, record_end(run, 0)
            while end <= error.start:
                begin, end = end, record_end(run, end)
            out.write(run[:begin])
            run = run[end:]
            dropped += 1
            continue
        out.write(run)
        return dropped


def wash_file(source, target):
    """Copies a CSV file without disputed records; gives how many were left out."""
    dropped = 0
    with open(source, "rb") as file, open(target, "wb") as out:
        data, is_last = b"", False
        while not is_last:
            piece = file.read(PIECE)
            is_last = not piece
            data += piece
            at = 0
            while at < len(data):
                end = CLEAN.match(data, at).end()
                dropped += put_utf8(data[at:end], out)
                at = end
                end = record_end(data, at)
                if end < 0:
                    break
                dropped += 1
                at = end
            data = data[at:]
        if data:  # The last record may go without a line end.
            out.write(data)
    return dropped


def _ignore_interrupt():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent ends its children.


def wash(source, target):
    """Washes a folder of CSV files into another one; gives how many records were left out."""
    files = []
    for inside, _, names in os.walk(source):
        there = os.path.join(target, os.path.relpath(inside, source))
        os.makedirs(there, exist_ok=True)
        files += [(os.path.join(inside, name), os.path.join(there, name)) for name in names]
    files.sort(key=lambda pair: -os.path.getsize(pair[0]))
    with multiprocessing.Pool(initializer=_ignore_interrupt) as pool:
        return sum(pool.starmap(wash_file, files, chunksize=1))


def folder(base, scale, seed, analysis):
    name = f"data-{scale:g}" + ("" if seed == 1 else f"-seed{seed}")
    return base / name / analysis


def make(millrace, base, scale, seed, analysis, say):
    """The folder of an analysis, made if it is not there; a run that is interrupted leaves none."""
    target = folder(base, scale, seed, analysis)
    if target.is_dir():
        return target
    raw, part = target.with_name(f"{analysis}.raw"), target.with_name(f"{analysis}.part")
    for path in (raw, part):
        shutil.rmtree(path, ignore_errors=True)
    say(f"making data: {analysis}, scale {scale:g}, seed {seed}")
    raw.parent.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run([millrace, "gen", analysis, raw, "--scale", f"{scale:g}",
                        "--seed", str(seed), "--quiet"], check=True)
        dropped = wash(raw, part)
        say(f"  {dropped} records taken out that CSV readers see differently")
        part.rename(target)
    finally:
        for path in (raw, part):
            shutil.rmtree(path, ignore_errors=True)
    return target
