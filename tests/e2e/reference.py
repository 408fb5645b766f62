# SPDX-License-Identifier: Apache-2.0
"""reference.py - reference pages against the program and the tables in its sources.

Each check takes a page and gives the mistakes that it finds. CHECKS has them all; PLANTED has for
each of them a mistake that it must find.
"""
import json
import pathlib
import re
import tempfile

from pages import MILLRACE, ROOT, millrace_commands, millrace_help, read_page, said

OPTIONS = "docs/reference/options.md"
CLUSTER_FILE = "docs/reference/cluster-file.md"
SQL = "docs/reference/sql.md"
OUTPUT = "docs/reference/output.md"
METRICS = "docs/reference/metrics.md"
HTTP = "docs/reference/http.md"
WIRE = "docs/reference/wire.md"
OWN_DATA = "docs/howto/own-data.md"
PERFORMANCE = "docs/explanation/performance.md"


def rows(text):
    """Cells of the tables in a page, without their headings."""
    found = []
    for line in text.splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not set("".join(cells)) <= set("-: "):
                found.append(cells)
            elif found:
                found.pop()
    return found


def code(cell):
    """What is in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def source(name):
    return (ROOT / "src" / name).read_text()


def section(text, heading):
    """What is below a heading, up to the next one of its level."""
    level = len(heading.split()[0])
    parts = re.split(rf"(?m)^{re.escape(heading)}$", text)
    assert len(parts) == 2, f"there is no heading {heading}"
    return re.split(rf"(?m)^#{{1,{level}}} ", parts[1])[0]


def differences(what, documented, real):
    documented, real = set(documented), set(real)
    for name in sorted(documented - real):
        yield f"{what} {name} is documented and does not exist"
    for name in sorted(real - documented):
        yield f"{what} {name} exists and is not documented"


def option_mistakes(page):
    yield from differences("command", re.findall(r"(?m)^## millrace (\S+)$", page.text),
                           millrace_commands())
    for command in millrace_commands():
        block = page.block_after(f"## millrace {command}")
        if block and block.text != millrace_help(command):
            yield f"{page.name}: millrace {command} is not what `millrace help {command}` prints"


def variable_mistakes(page):
    real = set(re.findall(r'getenv\("(MILLRACE_\w+)"\)', "".join(
        path.read_text() for path in (ROOT / "src").rglob("*.c"))))
    table = section(page.text, "## Environment")
    yield from differences("variable", [name for name in re.findall(r"`(MILLRACE_[A-Z_]+)`", table)
                                        if name not in ("MILLRACE_SECTION_KEY",)], real)


def config_mistakes(page):
    """Keys with their defaults and ranges, as `millrace config` has them."""
    real = {}
    for line in said(MILLRACE, "config").splitlines():
        name, default, values = (re.split(r" {2,}", line.strip()) + ["", ""])[:3]
        real[name] = (default, values)
    documented = {}
    for part in re.split(r"(?m)^## ", page.text)[1:]:
        name = re.match(r"`?\[?(\w+)\]?`?", part)[1]
        for key, default, values, *_ in rows(part):
            for one in code(key):
                if re.fullmatch(r"[a-z_.]+", one):
                    documented[f"{name}.{one}"] = (default.strip("`"), values.replace("`", ""))
    yield from differences("key", documented, real)
    for key in sorted(set(documented) & set(real)):
        if documented[key] != real[key]:
            yield f"{key}: documented are {documented[key]}, the program has {real[key]}"


def function_table():
    """name -> (least, most, result letters), from the table in the source; most None: any."""
    entry = re.compile(r'\{"(\w+)", FUNCTION_\w+, "([^"]+)", (\d+), (true|false), \'(.)\'')
    table = {}
    text = source("engine/plan/function.c").split("operators[] = {")[0]
    for name, arguments, least, variadic, result in entry.findall(text):
        most = None if variadic == "true" else len(arguments)
        old = table.get(name, (int(least), most, ""))
        table[name] = (min(old[0], int(least)),
                       None if None in (most, old[1]) else max(most, old[1]), old[2] + result)
    return table


def aggregate_names():
    text = source("engine/plan/function.c")
    plain = re.findall(r'\[AGGREGATE_\w+\] = "(\w+)"', text)
    return [*plain, *re.findall(r'\{"(\w+)",\s+AGGREGATE_\w+\}', text)]


RESULTS = {"BOOL": "b", "INT": "i", "TEXT": "t", "DOUBLE": "d", "TEXT[]": "L"}


def function_mistakes(page):
    table = function_table()
    seen = set()
    for cells in rows(section(page.text, "## Functions")):
        for item in code(cells[0]):
            name, _, arguments = item.partition("(")
            seen.add(name)
            if name not in table or name == "l[i]":
                continue
            least, most, letters = table[name]
            if arguments:
                needed = arguments.rstrip(")").split("[")[0]
                count = len([part for part in needed.split(",") if part.strip(" …")])
                whole = len(arguments.split(","))
                if count < least or (most is not None and whole > most):
                    yield f"{item}: takes {least} to {most}"
            if cells[1] in RESULTS and not RESULTS[cells[1]] in letters:
                yield f"{item}: gives {letters}, not {cells[1]}"
    yield from differences("function", seen - {"l[i]"}, table)
    documented = {item.partition("(")[0] for cells in rows(section(page.text, "## Aggregates"))
                  for item in code(cells[0])}
    yield from differences("aggregate", documented, aggregate_names())


def metric_mistakes(page):
    text = source("cluster/role/gateway/gateway.c")
    real = set(re.findall(r"millrace_gateway_\w+(?=\{)", text))
    real |= {"millrace_gateway_" + name
             for name in re.findall(r'\{"(\w+)", "(?:counter|gauge)"', text)}
    documented = re.findall(r"(?m)^\| `(millrace_\w+)", page.text.split("\n## ")[0])
    yield from differences("metric", documented, real)
    kinds = re.findall(r'\[API_\w+\] = "(\w+)"', text)
    documented = code(section(page.text, "## Kinds of requests"))
    yield from differences("kind of request", documented, kinds)


def exit_code_mistakes(page):
    real = re.findall(r"COMMAND_[A-Z_]+ = (\d+)", source("cli/command.h"))
    real += re.findall(r"EXIT_\w+ = (\d+)", source("cli/interrupt.c"))
    yield from differences("exit code", [cells[0] for cells in
                                         rows(section(page.text, "## Exit codes"))], real)


def error_code_mistakes(page):
    real = re.findall(r'\[STATUS_\w+\] = "(\w+)"', source("engine/base/error.c"))
    table = rows(section(page.text, "## Errors"))
    documented = [item for cells in table for item in code(cells[0])]
    yield from differences("error", documented, set(real) - {"ok"})


def path_mistakes(page):
    names = {"job": "ID", "scan": "S", "number": "N", "query": "Q"}
    routes = re.findall(r'\{"([A-Z]+)", "(/[^"]*)", ', source("cluster/wire/api.c"))
    real = [method + " " + re.sub(r"\{(\w+)\}", lambda match: names[match[1]], path)
            for method, path in routes]
    documented = [item.partition("?")[0] for cells in rows(page.text) for item in code(cells[0])
                  if re.match(r"(GET|PUT|DELETE) ", item)]
    yield from differences("request", documented, real)


def body_mistakes(page):
    """Keys of the JSON bodies."""
    text = source("cluster/wire/api_json.c") + source("cluster/wire/api_lists.c")
    real = set(re.findall(r'\{"(\w+)", MEMBER_', text))
    documented = set(re.findall(r'"(\w+)":', page.text))
    documented |= {key.split(".")[-1] for cells in rows(section(page.text, "## Bodies"))
                   for key in code(cells[0])}
    yield from differences("key", documented, real)


def kinds_of(name, prefix):
    """`1 MANIFEST`, and so on, from an enum that begins with 1."""
    kinds = re.search(rf"{prefix}_\w+ = 1,.*(?:\s*{prefix}_\w+,?.*)*", source(name))[0]
    names = [kind for kind in re.findall(rf"{prefix}_(\w+)", kinds) if kind != "KINDS"]
    return [f"{number} {kind}" for number, kind in enumerate(names, 1)]


def kind_mistakes(page):
    for heading, name, prefix in (("## Messages", "cluster/wire/message.h", "MESSAGE"),
                                  ("## Datagrams", "cluster/wire/datagram.h", "DATAGRAM")):
        table = rows(section(page.text, heading))
        documented = [cells[0] for cells in table if re.match(r"\d+ [A-Z]", cells[0])]
        yield from differences("kind", documented, kinds_of(name, prefix))


def paths_of(value, path=""):
    """The places of all keys in JSON; items of a list have one place."""
    if isinstance(value, dict):
        return {found for key, part in value.items()
                for found in {f"{path}.{key}"} | paths_of(part, f"{path}.{key}")}
    if isinstance(value, list):
        return {found for part in value for found in paths_of(part, path + "[]")}
    return set()


def json_mistakes(page):
    """The object of --format json, for the analysis that another page makes."""
    documented = json.loads(page.block_after("## JSON of a run").text)
    with tempfile.TemporaryDirectory(prefix="millrace-docs-") as folder:
        for block in read_page(OWN_DATA).blocks:
            if "/" in block.word:
                path = pathlib.Path(folder, block.word)
                path.parent.mkdir(exist_ok=True)
                path.write_text(block.text)
        real = json.loads(said(MILLRACE, "run", f"{folder}/rain", f"{folder}/data", "--format",
                               "json", "--quiet"))
    yield from differences("place", paths_of(documented), paths_of(real))
    for part in (("queries",), ("audit", "tables")):
        got, expected = real, documented
        for key in part:
            got, expected = got[key], expected[key]
        if got != expected:
            yield f"{'.'.join(part)} is\n{json.dumps(got)}"


def figure_mistakes(page):
    """Figures are made in one place; those that the first page repeats must be the same."""
    performance = read_page(PERFORMANCE).text
    claims = re.findall(r"\*\*([\d.]+) times", page.text)
    claims += re.findall(r"[\d.]+ (?:s|MB|GB)\b", section(page.text, "## Speed"))
    assert claims, "there are no figures"
    for claim in claims:
        if claim not in performance:
            yield f"{claim} is not in {PERFORMANCE}"
    seeds = re.search(r"\*\*([\d,]+) simulated", page.text)[1].replace(",", "")
    if f"blocks({seeds}," not in (ROOT / "tests/e2e/test_sim_full.py").read_text():
        yield f"test_sim_full.py does not run {seeds} seeds"


CHECKS = [
    ("options.md has the help text of every command", OPTIONS, option_mistakes),
    ("options.md has every environment variable", OPTIONS, variable_mistakes),
    ("cluster-file.md has every key with its default and range", CLUSTER_FILE, config_mistakes),
    ("sql.md has every function and aggregate", SQL, function_mistakes),
    ("metrics.md has every metric", METRICS, metric_mistakes),
    ("output.md has every exit code", OUTPUT, exit_code_mistakes),
    ("output.md has every error code", OUTPUT, error_code_mistakes),
    ("http.md has every request", HTTP, path_mistakes),
    ("http.md has every key of the bodies", HTTP, body_mistakes),
    ("wire.md has every kind of message and datagram", WIRE, kind_mistakes),
    ("output.md has the JSON of a run", OUTPUT, json_mistakes),
    ("figures of README.md are those of where they are made", "README.md", figure_mistakes),
]


PLANTED = [
    (OPTIONS, option_mistakes, "only these queries", "only those queries"),
    (OPTIONS, variable_mistakes, "`MILLRACE_STATE_DIR`", "`MILLRACE_STATE_FOLDER`"),
    (CLUSTER_FILE, config_mistakes, "| 1 to 16 |", "| 1 to 64 |"),
    (SQL, function_mistakes, "`floor(x)`", "`flor(x)`"),
    (SQL, function_mistakes, "`trim(t)` | TEXT", "`trim(t)` | INT"),
    (SQL, function_mistakes, "`trim(t)`", "`trim(t, u)`"),
    (METRICS, metric_mistakes, "millrace_gateway_jobs", "millrace_gateway_job"),
    (OUTPUT, exit_code_mistakes, "| 3 |", "| 4 |"),
    (OUTPUT, error_code_mistakes, "| `overflow` |", "| `too-large` |"),
    (HTTP, path_mistakes, "/timeline`", "/history`"),
    (HTTP, body_mistakes, '"rerequests":', '"wanted":'),
    (WIRE, kind_mistakes, "| 5 CHUNK |", "| 5 PIECE |"),
    (OUTPUT, json_mistakes, '"rows_out":', '"rows_given":'),
    (OUTPUT, json_mistakes, '"Lima", "2024-07", 0.1', '"Lima", "2024-07", 0.2'),
    ("README.md", figure_mistakes, "0.26 s", "7.77 s"),
]


def write_options():
    """Puts what the program says into options.md."""
    text = read_page(OPTIONS).text
    for command in millrace_commands():
        place = rf"(?s)(\n## millrace {command}\n\n```text\n).*?```"
        printed = millrace_help(command)
        text = re.sub(place, lambda found, printed=printed: found[1] + printed + "```", text)
    (ROOT / OPTIONS).write_text(text)
