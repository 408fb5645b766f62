# SPDX-License-Identifier: Apache-2.0
"""report.py - what a benchmark found, as a table for people and as JSON for programs."""

NOTES = """\
millrace: the whole process, start to end. Peers: from opening a database to the last row fetched,
with node started and the engine loaded; peak memory on top of that. So what is left out favours the
peers. All read the CSV files themselves, each time; an imported database would be another question.
Equal numbers of threads, files in the page cache, answers compared before any time was taken. A
peer's best form counts (DuckDB: natural or tuned SQL; Polars: in memory or streaming). Best of
{repeat}, taken in turns. An analysis is one run of millrace for all its questions, against the sum
of the best peer's time for each. `cpu×` is the same ratio in processor seconds, which says more on a
busy machine."""

# The least the project asks of itself; the other queries have to reach half of it.
TARGETS = {"movies": 6, "coffee": 8, "memes": 6, "all": 8}


def ratio(theirs, ours):
    return theirs / ours if theirs is not None and ours else None


def best_peer(runs):
    """(name, run) of the quickest peer, or (None, None)."""
    timed = [(run["wall"], name) for name, run in runs.items()
             if name != "millrace" and "wall" in run]
    if not timed:
        return None, None
    name = min(timed)[1]
    return name, runs[name]


def add_up(runs):
    """Several runs one after the other."""
    return {"wall": sum(run["wall"] for run in runs), "cpu": sum(run["cpu"] for run in runs),
            "peak": max(run["peak"] for run in runs)}


def finish_question(entry):
    name, best = best_peer(entry["runs"])
    ours = entry["runs"].get("millrace", {})
    entry["best_peer"] = name
    entry["ratio"] = ratio(best and best["wall"], ours.get("wall"))
    entry["ratio_cpu"] = ratio(best and best["cpu"], ours.get("cpu"))


def finish_analysis(analysis, size, whole, entries, peers):
    """The entry of one analysis: one run of ours against sums of theirs."""
    result = {"analysis": analysis, "bytes": size, "queries": [e["name"] for e in entries],
              "millrace": whole, "peers": {}, "best": None}
    for peer in peers:
        runs = [entry["runs"].get(peer, {}) for entry in entries]
        if runs and all("wall" in run for run in runs):
            result["peers"][peer] = add_up(runs)
    best = [best_peer(entry["runs"])[1] for entry in entries]
    if best and all(best):
        result["best"] = add_up(best)
    result["ratio"] = ratio(result["best"] and result["best"]["wall"], whole["wall"])
    result["ratio_cpu"] = ratio(result["best"] and result["best"]["cpu"], whole["cpu"])
    result["target"] = TARGETS.get(analysis)
    return result


def finish_group(entries):
    """Ratio of the sums, and the lowest, over questions that were asked one by one."""
    timed = [entry for entry in entries if entry["ratio"] is not None]
    if not timed:
        return None
    ours = add_up([entry["runs"]["millrace"] for entry in timed])
    best = add_up([best_peer(entry["runs"])[1] for entry in timed])
    lowest = min(timed, key=lambda entry: entry["ratio"])
    return {"count": len(timed), "ratio": ratio(best["wall"], ours["wall"]),
            "ratio_cpu": ratio(best["cpu"], ours["cpu"]),
            "lowest": {"name": f"{lowest['analysis']}/{lowest['name']}", "ratio": lowest["ratio"]}}


def finish(result):
    """Adds what follows from the single runs."""
    whole = [entry for entry in result["analyses"] if entry["best"]]
    result["total"] = None
    if whole:
        ours = add_up([entry["millrace"] for entry in whole])
        best = add_up([entry["best"] for entry in whole])
        result["total"] = {"analyses": [entry["analysis"] for entry in whole], "millrace": ours,
                           "best": best, "ratio": ratio(best["wall"], ours["wall"]),
                           "ratio_cpu": ratio(best["cpu"], ours["cpu"]), "target": TARGETS["all"]}
    by_kind = {kind: [e for e in result["questions"] if e["kind"] in kinds]
               for kind, kinds in (("single", ("question",)), ("others", ("other", "seeded")))}
    for kind, entries in by_kind.items():
        result[kind] = finish_group(entries)


def _seconds(run):
    return f"{run['wall']:.3f}" if run and "wall" in run else "n/a" if run else "-"


def _times(value):
    return "-" if value is None else f"{value:.1f}×"


def _run_cells(run, size):
    if not run or "wall" not in run:
        return ["n/a" if run else "-", "", ""] + ([""] if size is not None else [])
    cells = [_seconds(run), f"{run['cpu']:.2f}"]
    if size is not None:
        cells.append(f"{size / run['wall'] / 1e9:.2f}" if run["wall"] else "-")
    return cells + [f"{run['peak'] / 1e6:.0f}"]


def lay_out(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return lines


def _table(result, entries, whole):
    peers = result["peers"]
    header = ["query", "millrace s", "cpu s", "GB/s", "MB"]
    for peer in peers:
        header += [f"{peer} s", "cpu s", "MB"]
    rows = [header + ["ratio", "cpu×"]]
    for entry in entries:
        row = [entry["name"]] + _run_cells(entry["runs"].get("millrace"), entry["bytes"])
        for peer in peers:
            row += _run_cells(entry["runs"].get(peer), None)
        rows.append(row + [_times(entry["ratio"]), _times(entry["ratio_cpu"])])
    if whole:
        row = ["together"] + _run_cells(whole["millrace"], whole["bytes"])
        for peer in peers:
            row += _run_cells(whole["peers"].get(peer), None)
        rows.append(row + [_times(whole["ratio"]), _times(whole["ratio_cpu"])])
    return lay_out(rows)


def _why_not(entries):
    """Which peer was not timed, and why."""
    lines = []
    for entry in entries:
        if entry["skipped"]:
            lines.append(f"  {entry['name']}: not in the comparison: {entry['skipped']}")
        for name, run in entry["runs"].items():
            if "skipped" in run:
                lines.append(f"  {entry['name']}: {name} n/a: {run['skipped']}")
    return lines


def _group_line(name, group):
    return (f"{name}: {group['count']} queries one by one, {_times(group['ratio'])} the best peer "
            f"(cpu {_times(group['ratio_cpu'])}), lowest {_times(group['lowest']['ratio'])}: "
            f"{group['lowest']['name']}")


def _summary(result):
    lines = []
    for entry in result["analyses"] + ([result["total"]] if result["total"] else []):
        name = entry.get("analysis", "all of them")
        if entry["ratio"] is not None:
            lines.append(f"{name}: {_times(entry['ratio'])} the best peer "
                         f"(cpu {_times(entry['ratio_cpu'])}); target {entry['target']}×")
    if result["single"]:
        lines.append(_group_line("questions", result["single"]))
    if result["others"]:
        lines.append(_group_line("others", result["others"]) +
                     f"; target {TARGETS['all'] / 2:g}×, half of the analyses'")
    return lines


def as_text(result):
    lines = []
    for analysis in dict.fromkeys(entry["analysis"] for entry in result["questions"]):
        entries = [e for e in result["questions"] if e["analysis"] == analysis]
        whole = next((e for e in result["analyses"] if e["analysis"] == analysis), None)
        groups = ((analysis, ("question",)), (f"{analysis}, others", ("other", "seeded")))
        for title, kinds in groups:
            chosen = [entry for entry in entries if entry["kind"] in kinds]
            if not chosen:
                continue
            shown = [entry for entry in chosen if entry["runs"]]
            lines += [f"{title}, {result['threads']} threads, scale {result['scale']:g}"]
            lines += _table(result, shown, whole if kinds == ("question",) else None)
            lines += _why_not(chosen) + [""]
    lines += _summary(result)
    if result["peers"]:
        lines += ["", NOTES.format(repeat=result["repeat"])]
    return "\n".join(lines) + "\n"
