# SPDX-License-Identifier: Apache-2.0
"""cluster.py - what a cluster costs: `millrace submit` beside `millrace run`, on the same machine.

One private broker, one gateway, some workers; a client sends the files through the gateway and gets
the answer, which must be that of `run`, byte for byte. The front door is ./dev bench cluster;
README.md says what is measured, and what the JSON holds.
"""
import argparse
import dataclasses
import os

import answers
import lab as lab_module
import option
import peer
import private_cluster
import questions
import report

JSON_VERSION = 1
QUEUES = ("transient", "quorum")

# What the project asks of itself, for films at full size and transient queues.
TARGET = {"analysis": "movies", "queues": "transient", "rows_per_second": 3e6, "cpu_ratio": 3.0}

NOTES = """\
A row is a record of any file the analysis reads. Seconds: the client's whole process, start to end.
Processor seconds: client + gateway + workers, also as a multiple of what `run` takes for the same
answer; the broker's own apart. Messages and bytes: as the broker counts them, in and out. MB:
the most memory of the gateway, of all workers, of the broker. Best of {repeat}."""


def parse_options(words):
    parser = argparse.ArgumentParser(
        prog="./dev bench cluster", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures a cluster on this machine beside `millrace run`; answers must agree.",
        epilog="example:\n  ./dev bench cluster --scale 0.1\n"
               "  ./dev bench cluster --analysis movies --chunk-size 256K,512K,1M,2M\n"
               "  ./dev bench cluster --analysis movies --set window=16,64,256 --json window.json")
    add = parser.add_argument
    add("--scale", type=option.number_above_zero(float), default=1.0,
        help="size of the data; default: 1, 5 GB in all")
    add("--analysis", type=option.names_among(questions.ANALYSES), default=list(questions.ANALYSES),
        help="only these, such as movies,memes")
    add("--queues", type=option.names_among(QUEUES), default=list(QUEUES),
        help="transient,quorum (default), or one of them")
    add("--workers", type=option.number_above_zero(int), default=2, help="default: 2")
    add("--chunk-size", type=lambda text: text.split(","), metavar="SIZE,SIZE", default=[],
        help="compare these sizes of chunks, with the first of --queues")
    add("--set", type=variation, action="append", default=[], metavar="KEY=VALUE,VALUE",
        help="compare these values of a key of the cluster file, such as window=16,64 or "
             "workers.threads=1,2; each is varied alone; may be repeated")
    option.add_common(add)
    options = option.parse(parser, words)
    if options.chunk_size:
        options.set.insert(0, ("chunk_size", options.chunk_size))
    return options


def variation(text):
    key, equals, values = text.partition("=")
    if not (key and equals and values):
        raise argparse.ArgumentTypeError(f"{text!r} is not like window=16,64")
    return key, values.split(",")


def setups(options):
    """[(queues, settings)]: as it is by default, then each variation by itself."""
    found = [(queues, {}) for queues in options.queues]
    return found + [(options.queues[0], {key: value})
                    for key, values in options.set for value in values]


class Bench:
    def __init__(self, options):
        self.options = options
        self.lab = lab_module.Lab(options.millrace, options.folder, options.seed)
        self.alone = {}  # analysis: the best run without a cluster
        self.sizes = {}  # analysis: (records, bytes)
        self.wrong = []

    def run_alone(self, analysis, files):
        run = self.lab.run(analysis, files, self.options.threads)
        known = self.alone.get(analysis)
        if known and run.rows != known.rows:
            raise answers.AnswersDiffer(f"{analysis}: `run` answers otherwise the second time")
        self.alone[analysis] = lab_module.best([run, known] if known else [run])

    def submit(self, cluster, analysis, files):
        run = cluster.submit(analysis, files)
        if run.answers[0] != self.alone[analysis].rows:
            raise answers.AnswersDiffer(f"{analysis}: `submit` and `run` differ")
        return run

    def measure_one(self, cluster, analysis, label):
        """The best of all rounds; `run` takes turns with the cluster."""
        files = self.lab.data(analysis, self.options.scale)
        if analysis not in self.sizes:
            self.sizes[analysis] = self.lab.count(analysis, files)
        runs = []
        for number in range(1, self.options.repeat + 1):
            option.say(f"{label}: round {number} of {self.options.repeat}")
            self.run_alone(analysis, files)
            runs.append(self.submit(cluster, analysis, files))
        return lab_module.best(runs)

    def measure_setup(self, queues, settings):
        """The entries of one cluster, an analysis each."""
        words = " ".join([queues, *(f"{key}={value}" for key, value in settings.items())])
        option.say(f"cluster: {words}, {self.options.workers} workers")
        entries = []
        with private_cluster.PrivateCluster(self.lab, queues, self.options.workers,
                                            settings) as cluster:
            for analysis in self.options.analysis:
                try:
                    run = self.measure_one(cluster, analysis, f"{analysis}, {words}")
                except (peer.RunFailed, answers.AnswersDiffer) as failure:
                    self.wrong.append(f"{analysis}, {words}: {failure}")
                    option.say(self.wrong[-1])
                else:
                    entries.append(self.entry(analysis, queues, settings, run))
        return entries

    def entry(self, analysis, queues, settings, run):
        records, size = self.sizes[analysis]
        fields = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)
                  if field.name != "answers"}
        return {"analysis": analysis, "queues": queues, "settings": settings, "rows": records,
                "bytes": size, **fields, "rows_per_second": records / run.wall,
                "messages_per_chunk": run.messages / max(1, run.chunks)}

    def measure(self):
        options = self.options
        entries = [entry for queues, settings in setups(options)
                   for entry in self.measure_setup(queues, settings)]
        for entry in entries:  # Only now is the best run without a cluster known.
            cpu = sum(entry["cpu"][kind] for kind in ("client", "gateway", "workers"))
            entry["cpu_ours"] = cpu
            entry["cpu_ratio"] = cpu / max(1e-9, self.alone[entry["analysis"]].cpu)
        return {"version": JSON_VERSION, "millrace": self.lab.version(), "scale": options.scale,
                "seed": options.seed, "repeat": options.repeat, "workers": options.workers,
                "threads": options.threads, "cores": os.cpu_count(),
                "alone": {analysis: {"wall": run.wall, "cpu": run.cpu, "peak": run.peak}
                          for analysis, run in self.alone.items()},
                "cluster": entries, "target": TARGET, "wrong": self.wrong}


def _setting(entry):
    return " ".join(f"{key}={value}" for key, value in entry["settings"].items())


def _row(entry):
    cpu, peak = entry["cpu"], entry["peak"]
    return [f"{entry['queues']} {_setting(entry)}".strip(), f"{entry['wall']:.3f}",
            f"{entry['rows_per_second'] / 1e6:.2f}", f"{entry['bytes'] / entry['wall'] / 1e9:.2f}",
            f"{cpu['client']:.2f}", f"{cpu['gateway']:.2f}", f"{cpu['workers']:.2f}",
            f"{entry['cpu_ours']:.2f}", f"{entry['cpu_ratio']:.2f}×", f"{cpu['broker']:.2f}",
            *(f"{peak[kind] / 1e6:.0f}" for kind in ("gateway", "workers", "broker")),
            str(entry["chunks"]), str(entry["messages"]), f"{entry['messages_per_chunk']:.2f}",
            f"{entry['bytes_in'] / 1e6:.1f}", f"{entry['bytes_out'] / 1e6:.1f}"]


HEADER = ["queues", "s", "Mrows/s", "GB/s", "cpu client", "gateway", "workers", "sum", "of run",
          "broker", "MB gateway", "workers", "broker", "chunks", "messages", "per chunk", "MB in",
          "MB out"]


def _against_target(result):
    for entry in result["cluster"]:
        if (entry["analysis"], entry["queues"], entry["settings"]) == (
                TARGET["analysis"], TARGET["queues"], {}):
            return [f"{entry['analysis']}: {entry['rows_per_second'] / 1e6:.2f} million rows/s, "
                    f"target {TARGET['rows_per_second'] / 1e6:g}; {entry['cpu_ratio']:.2f}× the "
                    f"processor time of run, target at most {TARGET['cpu_ratio']:g}×"
                    + ("" if result["scale"] == 1 else "; both for scale 1")]
    return []


def as_text(result):
    lines = []
    for analysis, alone in result["alone"].items():
        entries = [entry for entry in result["cluster"] if entry["analysis"] == analysis]
        if not entries:
            continue
        alone_row = [f"run, {result['threads']} threads", f"{alone['wall']:.3f}",
                     f"{entries[0]['rows'] / alone['wall'] / 1e6:.2f}",
                     f"{entries[0]['bytes'] / alone['wall'] / 1e9:.2f}", "", "", "",
                     f"{alone['cpu']:.2f}", "1.00×", "", "", f"{alone['peak'] / 1e6:.0f}"]
        rows = [HEADER, alone_row + [""] * (len(HEADER) - len(alone_row))]
        lines.append(f"{analysis}, scale {result['scale']:g}: {entries[0]['rows']:,} rows; "
                     f"1 gateway, {result['workers']} workers, {result['cores']} cores")
        lines += report.lay_out(rows + [_row(entry) for entry in entries]) + [""]
    lines += _against_target(result)
    lines += ["", NOTES.format(repeat=result["repeat"])]
    return "\n".join(lines) + "\n"


def main(words):
    options = parse_options(words)
    return lab_module.conduct(Bench(options), options, as_text)
