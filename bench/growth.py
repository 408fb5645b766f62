# SPDX-License-Identifier: Apache-2.0
"""growth.py - how time and memory grow: with size, threads, groups, workers and clients.

Each series changes one thing alone, and has a law that its figure should follow, a straight line:
twice the bytes take twice the time, twice the workers take no more processor time. How far a point
is off its line is printed, drawn, and written. The front door is ./dev bench growth; README.md says
what is measured, why lines bend, and what the JSON holds.
"""
import argparse
import dataclasses
import os
import pathlib

import answers
import keys
import lab as lab_module
import option
import peer
import picture
import private_cluster
import questions
import report

JSON_VERSION = 1
SIZES = (0.1, 1.0, 4.0)
THREADS = (1, 2)
WORKERS = (1, 2, 4, 8)
CLIENTS = (1, 2, 4, 8, 16)
GROUPS = (10, 1_000, 100_000, 1_000_000, 10_000_000)
GROUP_ROWS = 20_000_000
CLIENT_SCALE = 0.1  # Of each client's films: sixteen are more than one at full size.

# What a figure should be at x, when it is y at the point of reference, where x is r.
LAWS = {
    "proportional": lambda x, r, y: y * x / r,
    "inverse": lambda x, r, y: y * r / x,
    "constant": lambda x, r, y: y,
}

GROUP_TABLE = "CREATE TABLE rows (key {kind} NOT NULL, value INT NOT NULL) FROM 'rows.csv';\n"
GROUP_QUERY = """\
SELECT count(*) AS groups, sum(n) AS rows
FROM (SELECT key, count(*) AS n, sum(value) AS total FROM rows GROUP BY key) AS grouped;
"""


@dataclasses.dataclass
class Kind:
    title: str
    axis: str  # What x is.
    law: str
    figure: str  # What follows the law: "wall" or "cpu".
    reference: float = 1  # The point that the line goes through; the first, if it is not there.
    is_log: bool = False


KINDS = {
    "size": Kind("`run`, by size of the data", "scale", "proportional", "wall"),
    "threads": Kind("`run`, by threads", "threads", "inverse", "wall"),
    "groups": Kind("`run`, by groups", "groups", "constant", "wall", 10, True),
    "workers": Kind("a cluster, by workers", "workers", "constant", "cpu"),
    "clients": Kind("a cluster, by clients at once", "clients", "proportional", "wall",
                    max(CLIENTS)),
}

NOTES = """\
Seconds: wall time. Processor seconds: of all threads and, in a cluster, of clients, gateway and
workers; the broker's own apart. MB: the most memory of the process; in a cluster of all workers
together, and of the gateway. `off` is the figure marked *, as a multiple of what the straight line
says that goes through {reference}. Best of {repeat}."""


def parse_options(words):
    parser = argparse.ArgumentParser(
        prog="./dev bench growth", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Shows how time and memory grow with size, threads, groups, workers, clients.",
        epilog="example:\n  ./dev bench growth --scale 0.02 --repeat 1\n"
               "  ./dev bench growth --series size,groups --svg docs/growth.svg")
    add = parser.add_argument
    add("--scale", type=option.number_above_zero(float), default=1.0,
        help="makes everything smaller; default: 1, which needs 18 GB of disk")
    add("--series", type=option.names_among(KINDS), default=list(KINDS),
        help=f"only these of {','.join(KINDS)}")
    add("--analysis", type=option.names_among(questions.ANALYSES), default=list(questions.ANALYSES),
        help="of size and threads; clusters are asked about movies")
    add("--svg", type=pathlib.Path, metavar="FILE", help="also draw the lines there")
    option.add_common(add)
    return option.parse(parser, words)


class Bench:
    def __init__(self, options):
        self.options = options
        self.lab = lab_module.Lab(options.millrace, options.folder, options.seed)
        self.answers = {}  # (analysis, files): what was printed the first time
        self.wrong = []

    def check(self, analysis, files, answer):
        """Whatever else changes, the answer does not."""
        if self.answers.setdefault((str(analysis), files), answer) != answer:
            raise answers.AnswersDiffer(f"{analysis}: another answer than before")

    def run(self, analysis, files, threads):
        runs = [self.lab.run(analysis, files, threads) for _ in range(self.options.repeat)]
        for run in runs:
            self.check(analysis, files, run.rows)
        return lab_module.best(runs)

    @staticmethod
    def point(x, run, **more):
        return {"x": x, "wall": run.wall, "cpu": run.cpu, "peak": run.peak, **more}

    # --- One process. ---

    def size(self):
        for analysis in self.options.analysis:
            points = []
            for size in SIZES:
                files = self.lab.data(analysis, size * self.options.scale)
                records, volume = self.lab.count(analysis, files)
                option.say(f"size: {analysis}, {size:g}×")
                run = self.run(analysis, files, self.options.threads)
                points.append(self.point(size, run, rows=records, bytes=volume))
                if size != 1:  # The others are needed again, and not so large.
                    self.lab.drop(files)
            yield analysis, points

    def threads(self):
        for analysis in self.options.analysis:
            files = self.lab.data(analysis, self.options.scale)
            points = []
            for threads in THREADS:
                option.say(f"threads: {analysis}, {threads}")
                points.append(self.point(threads, self.run(analysis, files, threads)))
            yield analysis, points

    def groups(self):
        """By a number and by a text, over the same files."""
        rows = max(keys.BLOCK_ROWS, round(GROUP_ROWS * self.options.scale))
        points = {"INT": [], "TEXT": []}
        for groups in (groups for groups in GROUPS if groups <= rows):
            files = self.lab.folder / "groups"
            files.mkdir()
            written = keys.write(files / "rows.csv", rows, groups, self.options.seed)
            os.sync()
            for kind, found in points.items():
                option.say(f"groups: {groups} keys, {kind}, {written} rows")
                run = self.run(self.group_analysis(kind), files, self.options.threads)
                if run.rows.split() != [b"groups,rows", b"%d,%d" % (groups, written)]:
                    raise answers.AnswersDiffer(f"{groups} groups of {written} rows: {run.rows}")
                found.append(self.point(groups, run, rows=written))
            self.lab.drop(files)
            self.answers.clear()  # The next files are others, at the same place.
        yield "by a number", points["INT"]
        yield "by a text", points["TEXT"]

    def group_analysis(self, kind):
        folder = self.lab.folder / f"groups-{kind}"
        folder.mkdir(exist_ok=True)
        (folder / "tables.sql").write_text(GROUP_TABLE.format(kind=kind))
        (folder / "groups.sql").write_text(GROUP_QUERY)
        return folder

    # --- Clusters. ---

    def submit(self, cluster, files, clients):
        """The best of all rounds, as a point without its x."""
        runs = []
        for _ in range(self.options.repeat):
            runs.append(cluster.submit("movies", files, clients))
            for answer in runs[-1].answers:
                self.check("movies", files, answer)
        run = lab_module.best(runs)
        return {"wall": run.wall, "cpu": run.cpu_ours, "cpu_broker": run.cpu["broker"],
                "peak": run.peak["workers"], "peak_gateway": run.peak["gateway"],
                "peak_worker": run.peak_worker}

    def expected(self, files):
        """What clusters have to answer."""
        self.check("movies", files, self.lab.run("movies", files, self.options.threads).rows)

    def workers(self):
        files = self.lab.data("movies", self.options.scale)
        self.expected(files)
        points = []
        for workers in WORKERS:
            option.say(f"workers: {workers}")
            with private_cluster.PrivateCluster(self.lab, "transient", workers) as cluster:
                points.append({"x": workers, **self.submit(cluster, files, 1)})
        yield "movies", points

    def clients(self):
        files = self.lab.data("movies", CLIENT_SCALE * self.options.scale)
        self.expected(files)
        points = []
        with private_cluster.PrivateCluster(self.lab, "transient", 2,
                                            {"max_jobs": max(CLIENTS)}) as cluster:
            for clients in CLIENTS:
                option.say(f"clients: {clients}")
                points.append({"x": clients, **self.submit(cluster, files, clients)})
        yield "movies", points

    def measure(self):
        options = self.options
        series = []
        for name in options.series:
            try:
                for of, points in getattr(self, name)():
                    put_on_line(KINDS[name], points)
                    series.append({"kind": name, "of": of, "law": KINDS[name].law,
                                   "figure": KINDS[name].figure, "points": points})
            except (peer.RunFailed, answers.AnswersDiffer) as failure:
                self.wrong.append(f"{name}: {failure}")
                option.say(self.wrong[-1])
        result = {"version": JSON_VERSION, "millrace": self.lab.version(), "scale": options.scale,
                  "seed": options.seed, "repeat": options.repeat, "threads": options.threads,
                  "cores": os.cpu_count(), "series": series, "wrong": self.wrong}
        if options.svg:
            options.svg.write_text(draw(result))
        return result


def reference_of(kind, points):
    return next((point for point in points if point["x"] == kind.reference), points[0])


def amount(point):
    """What is proportional to x, more exactly: data has not quite the size it was asked for."""
    return point.get("bytes", point["x"])


def put_on_line(kind, points):
    """Adds to each point what the law says, and how far the figure is off."""
    reference = reference_of(kind, points)
    for point in points:
        point["line"] = LAWS[kind.law](amount(point), amount(reference), reference[kind.figure])
        point["off"] = point[kind.figure] / point["line"]


# --- For people. ---

def _table(name, found):
    """One table for all series of a kind."""
    kind = KINDS[name]
    is_cluster = "cpu_broker" in found[0]["points"][0]
    mark = {figure: "*" if figure == kind.figure else "" for figure in ("wall", "cpu")}
    header = ["", kind.axis, f"s{mark['wall']}", f"cpu s{mark['cpu']}", "MB", "off"]
    if is_cluster:
        header += ["broker cpu s", "MB of a worker", "MB of the gateway"]
    rows = [header]
    for series in found:
        for point in series["points"]:
            row = [series["of"], f"{point['x']:,g}" if point["x"] < 1e6 else f"{point['x']:,}",
                   f"{point['wall']:.3f}", f"{point['cpu']:.2f}", f"{point['peak'] / 1e6:.0f}",
                   f"{point['off']:.2f}×"]
            if is_cluster:
                row += [f"{point['cpu_broker']:.2f}", f"{point['peak_worker'] / 1e6:.0f}",
                        f"{point['peak_gateway'] / 1e6:.0f}"]
            rows.append(row)
    line = f"line: {kind.law}, through {kind.axis} {reference_of(kind, found[0]['points'])['x']:g}"
    return [f"{kind.title}; {line}"] + report.lay_out(rows) + [""]


def as_text(result):
    lines = [f"scale {result['scale']:g}, {result['cores']} cores, `run` with {result['threads']} "
             "threads unless it says otherwise", ""]
    for name in KINDS:
        found = [series for series in result["series"] if series["kind"] == name]
        lines += _table(name, found) if found else []
    lines += [NOTES.format(reference="the point named", repeat=result["repeat"])]
    return "\n".join(lines) + "\n"


def _line(name, points, figure, is_dashed=False):
    return picture.Line(name, [(point["x"], point[figure]) for point in points], is_dashed)


def panels(result):
    """Time on the left, memory on the right; a row for each kind."""
    for name, kind in KINDS.items():
        found = [series for series in result["series"] if series["kind"] == name]
        if not found:
            continue
        times, memory = [], []
        for series in found:
            points = series["points"]
            if "cpu_broker" in points[0]:
                times += [_line("seconds", points, "wall"), _line("cpu", points, "cpu"),
                          _line("broker's cpu", points, "cpu_broker")]
                memory += [_line("all workers", points, "peak"),
                           _line("one worker", points, "peak_worker"),
                           _line("gateway", points, "peak_gateway")]
            else:
                times.append(_line(series["of"], points, "wall"))
                memory.append(_line(series["of"], points, "peak"))
        times += [_line("", series["points"], "line", True) for series in found]
        for line in memory:
            line.points = [(x, y / 1e6) for x, y in line.points]
        yield picture.Panel(kind.title.replace("`", ""), kind.axis, "s", times, kind.is_log)
        yield picture.Panel("memory", kind.axis, "MB", memory, kind.is_log)


def draw(result):
    subtitle = (f"scale {result['scale']:g}, {result['cores']} cores, best of {result['repeat']}; "
                "dashed: the straight line")
    return picture.draw_lines("Growth", subtitle, list(panels(result)))


def main(words):
    options = parse_options(words)
    return lab_module.conduct(Bench(options), options, as_text)
