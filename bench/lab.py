# SPDX-License-Identifier: Apache-2.0
"""lab.py - where the cluster and growth are measured: a folder with data, and the program alone.

The data is what `millrace gen` writes, dirt and all: nobody else has to read it. It lies under
--folder, which is on a disk where /tmp may be memory, and is removed at the end. It is written out
before anything is timed, so that the disk is quiet; the page cache has it still.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import answers
import option
import peer


def environment(**more):
    """Ours, without what would change the program."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith("MILLRACE_") and not key.lower().endswith("_proxy")}
    return dict(env, NO_COLOR="1", **more)


def best(runs):
    """The quickest of several."""
    return min(runs, key=lambda run: run.wall)


class Lab:
    def __init__(self, millrace, folder, seed):
        self.millrace = os.path.abspath(millrace)
        self.seed = seed
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lab-", dir=folder.resolve()))

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def data(self, analysis, scale):
        """Its folder, made if it is not there."""
        target = self.folder / f"data-{scale:g}" / analysis
        if not target.is_dir():
            option.say(f"making data: {analysis}, scale {scale:g}, seed {self.seed}")
            target.parent.mkdir(exist_ok=True)
            subprocess.run([self.millrace, "gen", analysis, target, "--scale", f"{scale:g}",
                            "--seed", str(self.seed), "--quiet"], check=True)
            os.sync()
        return target

    @staticmethod
    def drop(path):
        shutil.rmtree(path, ignore_errors=True)

    def command(self, verb, analysis, files, *more):
        return [self.millrace, verb, analysis, files, "--format", "csv", "--quiet", *more]

    def run(self, analysis, files, threads):
        """One process, from start to end; `rows` of the run is what it printed."""
        command = self.command("run", analysis, files, "--threads", str(threads))
        out, _, usage, wall, peak = peer.run_command(command, cwd=option.ROOT, env=environment())
        return peer.Run(wall, usage.ru_utime + usage.ru_stime, peak, out)

    def count(self, analysis, files):
        """(records, bytes) of all files that the analysis reads, by its own audit."""
        out = self.folder / "counted"
        peer.run_command(self.command("run", analysis, files, "--output", out), cwd=option.ROOT,
                         env=environment())
        tables = json.loads((out / "audit.json").read_text())["tables"].values()
        self.drop(out)
        return sum(t["records"] for t in tables), sum(t["bytes"] for t in tables)

    def version(self):
        out, *_ = peer.run_command([self.millrace, "--version"])
        return out.decode().strip()


def conduct(bench, options, as_text):
    """Measures, prints, writes; leaves nothing behind. Gives the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        result = bench.measure()
        print(as_text(result), end="")
        if options.json:
            options.json.write_text(json.dumps(result, indent=1) + "\n")
    except (peer.RunFailed, answers.AnswersDiffer, subprocess.CalledProcessError,
            OSError) as failure:
        option.say(str(failure))
        return 1
    except KeyboardInterrupt:
        option.say("interrupted")
        return 130
    finally:
        bench.lab.close()
    return 1 if bench.wrong else 0
