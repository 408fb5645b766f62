#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py - how fast millrace is, beside others that read the same files.

The front door is ./dev bench, which installs what this needs. README.md says what is measured, and
what the JSON holds.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import answers
import cluster
import data
import growth
import option
import peer
import picture
import questions
import report
import start

QUICK = {"scale": 0.05, "repeat": 1}
FULL = {"scale": 1.0, "repeat": 3}
COUNTED_SCALE = 0.01
# A form that took this much longer than its engine's best is not asked again.
HOPELESS = 1.5
JSON_VERSION = 1
COMMANDS = {"cluster": cluster.main, "growth": growth.main, "start": start.main}


class Bench:
    def __init__(self, options):
        self.options = options
        self.base = options.folder.resolve()
        self.millrace = os.path.abspath(options.millrace)
        self.peers = peer.Peers(self.base, options.peers, options.threads)
        self.wrong = []  # What AnswersDiffer said.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-bench-"))

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def chosen(self):
        """The questions that the options leave."""
        wanted = self.options.query
        found = [q for q in questions.all_questions(self.options.seed)
                 if (not self.options.analysis or q.analysis in self.options.analysis)
                 and (self.options.only != "questions" or q.kind == "question")
                 and (self.options.only != "others" or q.kind != "question")
                 and (not wanted or q.name in wanted or q.label in wanted)]
        if not found:
            raise SystemExit("bench: no question is left; see --analysis, --query and --only")
        return found

    def analysis_of(self, question):
        """Its analysis by name, or a folder made for those that are no part of one."""
        if question.kind == "question":
            return question.analysis
        folder = self.folder / question.analysis
        if not folder.is_dir():
            folder.mkdir()
            tables = questions.tables_sql(question.analysis, question.kind)
            (folder / "tables.sql").write_text(tables)
        (folder / f"{question.name}.sql").write_text(question.sql)
        return folder

    def ask_millrace(self, question, files):
        return peer.run_millrace(self.millrace, self.analysis_of(question), files, [question.name],
                                 self.options.threads)

    def check(self, question, files):
        """Asks everybody once. Gives (our rows, entry, {peer: its forms that are worth timing})."""
        option.say(f"{question.label}: answers")
        entry = {"analysis": question.analysis, "name": question.name, "kind": question.kind,
                 "bytes": questions.bytes_of([question], files), "rows": None,
                 "skipped": question.skipped, "runs": {}}
        ours = peer.rows_of(self.ask_millrace(question, files))
        entry["rows"] = len(ours)
        forms = {}
        for variant in self.peers.variants(question):
            name = variant.split(".")[0]
            try:
                run = self.peers.run(question, variant, files)
                answers.compare(question.label, variant, ours, run.rows, question.is_ordered)
            except peer.RunFailed as failure:
                entry["runs"].setdefault(name, {"skipped": str(failure)})
            except answers.AnswersDiffer as difference:
                self.wrong.append(str(difference))
                option.say(str(difference))
                entry["runs"].setdefault(name, {"skipped": "another answer"})
            else:
                forms.setdefault(name, {})[variant] = run.wall
        if not question.skipped:
            for name in self.peers.names:
                if name not in forms:
                    entry["runs"].setdefault(name, {"skipped": "there is no form of it"})
        kept = {name: [v for v, wall in times.items() if wall <= HOPELESS * min(times.values())]
                for name, times in forms.items()}
        return ours, entry, kept

    def time_once(self, question, entry, forms, files):
        """One round: millrace, then every form of every peer. The best of all rounds stays."""
        self.keep_best(entry["runs"], "millrace", self.ask_millrace(question, files), {})
        for name, variants in forms.items():
            for variant in variants:
                self.keep_best(entry["runs"], name, self.peers.run(question, variant, files),
                               {"form": peer.VARIANTS[name][variant]})

    @staticmethod
    def keep_best(runs, name, run, more):
        before = runs.get(name, {}).get("wall")
        if before is None or run.wall < before:
            runs[name] = {"wall": run.wall, "cpu": run.cpu, "peak": run.peak, **more}

    def measure_analysis(self, analysis, asked):
        """Gives (entries of questions, entry of the analysis or None)."""
        files = data.make(self.millrace, self.base, self.options.scale, self.options.seed, analysis,
                          option.say)
        checked = [(question, *self.check(question, files)) for question in asked]
        together = [c for c in checked if c[0].kind == "question" and not c[0].skipped]
        names = [question.name for question, *_ in together]
        whole = {}
        for number in range(1, self.options.repeat + 1):
            option.say(f"{analysis}: round {number} of {self.options.repeat}")
            if names:
                run = peer.run_millrace(self.millrace, analysis, files, names, self.options.threads)
                self.keep_best(whole, "millrace", run, {})
                self.check_together(analysis, run, together)
            for question, _, entry, forms in checked:
                if not question.skipped:
                    self.time_once(question, entry, forms, files)
        entries = [entry for _, _, entry, _ in checked]
        for entry in entries:
            report.finish_question(entry)
        if not names:
            return entries, None
        size = questions.bytes_of([c[0] for c in together], files)
        return entries, report.finish_analysis(
            analysis, size, whole["millrace"], [c[2] for c in together], self.options.peers)

    @staticmethod
    def check_together(analysis, run, together):
        """Asked together, the answers must be those to single questions."""
        found = answers.from_csv_of_many(run.rows, [question.name for question, *_ in together])
        for question, ours, *_ in together:
            answers.compare(question.label, f"{analysis}, all together", ours,
                            found.get(question.name, []), True)

    def measure(self):
        options = self.options
        asked = self.chosen()
        self.peers.install(option.say)
        result = {"version": JSON_VERSION, "millrace": self.version(), "scale": options.scale,
                  "seed": options.seed, "threads": options.threads, "repeat": options.repeat,
                  "peers": options.peers, "questions": [], "analyses": []}
        for analysis in questions.ANALYSES:
            mine = [question for question in asked if question.analysis == analysis]
            if mine:
                entries, whole = self.measure_analysis(analysis, mine)
                result["questions"] += entries
                result["analyses"] += [whole] if whole else []
        report.finish(result)
        result["wrong"] = self.wrong
        return result

    def version(self):
        out, *_ = peer.run_command([self.millrace, "--version"])
        return out.decode().strip()

    def count_instructions(self):
        """Instructions of one thread, by question and by analysis: the same on every day."""
        if shutil.which("valgrind") is None:
            raise SystemExit("bench: --instructions needs valgrind, which ./dev bench installs")
        counts = []
        asked = self.chosen()
        for analysis in dict.fromkeys(question.analysis for question in asked):
            files = data.make(self.millrace, self.base, self.options.scale, self.options.seed,
                              analysis, option.say)
            mine = [question for question in asked if question.analysis == analysis]
            for question in mine:
                counts.append(self.count(question.name, [question], files))
            together = [question for question in mine if question.kind == "question"]
            if len(together) > 1:
                counts.append(self.count("together", together, files))
        return {"version": JSON_VERSION, "scale": self.options.scale, "seed": self.options.seed,
                "instructions": counts}

    def count(self, name, asked, files):
        """Counts one run for all of these questions."""
        analysis = asked[0].analysis
        option.say(f"{analysis}/{name}: counting")
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", self.millrace,
                   "run", self.analysis_of(asked[0]), files, "--query",
                   ",".join(question.name for question in asked), "--quiet", "--threads", "1",
                   "--format", "csv"]
        _, said, *_ = peer.run_command(command, cwd=option.ROOT)
        return {"analysis": analysis, "name": name, "bytes": questions.bytes_of(asked, files),
                "instructions": int(re.search(r"Collected : (\d+)", said).group(1))}


def instructions_as_text(result):
    lines = [f"scale {result['scale']:g}, one thread, counted by callgrind",
             f"{'query':<28} {'instructions':>16} {'per byte':>9}"]
    for entry in result["instructions"]:
        label = f"{entry['analysis']}/{entry['name']}"
        lines.append(f"{label:<28} {entry['instructions']:>16,} "
                     f"{entry['instructions'] / max(1, entry['bytes']):>9.1f}")
    return "\n".join(lines + [""])


def parse_options(words):
    parser = argparse.ArgumentParser(
        prog="./dev bench", usage="%(prog)s [cluster | growth | start] [OPTION ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Times millrace beside DuckDB and Polars on the same files; answers first.\n"
                    "cluster, growth and start measure millrace alone, with options of their own: --help.",
        epilog="example:\n  ./dev bench --quick\n"
               "  ./dev bench --analysis coffee --query q4 --repeat 5 --json coffee.json\n"
               "  ./dev bench --svg docs/bench.svg")
    add = parser.add_argument
    add("--quick", action="store_true",
        help=f"under two minutes: the questions alone, scale {QUICK['scale']}, one round")
    add("--scale", type=option.number_above_zero(float),
        help="size of the data; default: 1, 5 GB in all")
    add("--seed", type=int, default=1, help="of the data and of the drawn queries; default: 1")
    add("--repeat", type=option.number_above_zero(int), help="rounds; the best counts; default: 3")
    add("--threads", type=option.number_above_zero(int), default=os.cpu_count(),
        help="of each engine; default: one per core")
    add("--analysis", type=option.names_among(questions.ANALYSES),
        help="only these, such as movies,memes")
    add("--query", type=lambda text: text.split(","), help="only these, such as q1,coffee/q4")
    add("--only", choices=("questions", "others"), help="the analyses', or the twenty others")
    add("--peers", type=option.names_among(peer.VARIANTS), default=list(peer.VARIANTS),
        help="duckdb,polars (default), one of them, or none")
    add("--instructions", action="store_true",
        help=f"count instructions of millrace by callgrind instead, at scale {COUNTED_SCALE}")
    add("--json", type=pathlib.Path, metavar="FILE", help="also write all numbers there")
    add("--svg", type=pathlib.Path, metavar="FILE", help="also draw the analyses there")
    add("--folder", type=pathlib.Path, default=option.ROOT / "build" / "bench",
        help="where data and peers are kept; default: build/bench")
    add("--millrace", default=str(option.ROOT / "build" / "release" / "millrace"),
        help="the program")
    options = option.parse(parser, words)
    defaults = QUICK if options.quick else FULL
    if options.quick and not options.query:
        options.only = options.only or "questions"
    options.repeat = options.repeat or defaults["repeat"]
    options.scale = options.scale or (
        COUNTED_SCALE if options.instructions else defaults["scale"])
    return options


def main(words):
    if words and words[0] in COMMANDS:
        return COMMANDS[words[0]](words[1:])
    options = parse_options(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench = Bench(options)
    try:
        if options.instructions:
            result = bench.count_instructions()
            print(instructions_as_text(result), end="")
        else:
            result = bench.measure()
            print(report.as_text(result), end="")
            if options.svg:
                options.svg.write_text(picture.draw(result))
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
        bench.close()
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
