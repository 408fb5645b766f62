# SPDX-License-Identifier: Apache-2.0
"""questions.py - what is asked: the analyses' questions, twenty others, and each in all its forms.

The questions are analyses/NAME/*.sql. The others are others/NAME/*.sql, of the same tables, and
five that are drawn from a seed. What DuckDB and Polars are asked stands beside them:

    NAME.sql                  millrace; also DuckDB's natural form, by macros of the same names
    NAME.duckdb.tuned.sql     DuckDB, as fast as we can write it; without it the natural text is
                              asked over the tuned tables
    NAME.polars.sql, .mjs     Polars: its SQL, or its own interface; without either it is not asked,
                              unless the query was drawn and is plain enough to be translated

For questions of an analysis these forms are in queries/NAME/, with what they share: tables.*.
"""
import dataclasses
import pathlib
import random
import re

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
ANALYSES = ("movies", "coffee", "memes")
SEEDED = 5

# A function that only millrace has: nobody to compare with.
OURS_ALONE = re.compile(r"\b(sentiment|polarity)\s*\(", re.IGNORECASE)
# Their order leaves ties open, which engines break as they like.
OPEN_ORDER = {("movies", "q1"), ("coffee", "q1")}


@dataclasses.dataclass
class Question:
    analysis: str
    name: str
    sql: str
    kind: str  # "question", "other" or "seeded"
    forms: dict = dataclasses.field(default_factory=dict)  # variant: text
    skipped: str = ""  # Why peers are not asked.
    is_ordered: bool = True

    @property
    def label(self):
        return f"{self.analysis}/{self.name}"


def tables_sql(analysis, kind="question"):
    """What the tables are; the others may need more columns of the same files."""
    own = HERE / "others" / analysis / "tables.sql"
    if kind != "question" and own.exists():
        return own.read_text()
    return (ROOT / "analyses" / analysis / "tables.sql").read_text()


def table_patterns(analysis):
    """table: the patterns of its files."""
    declaration = re.compile(r"CREATE TABLE (\w+) \(.*?\) FROM ('[^;]*);", re.DOTALL)
    found = declaration.findall(tables_sql(analysis))
    return {table: re.findall(r"'([^']*)'", text) for table, text in found}


def tables_of(question):
    """Which tables it reads, by the names in its text."""
    text = re.sub(r"--[^\n]*|'[^']*'", " ", question.sql)
    return [table for table in table_patterns(question.analysis)
            if re.search(rf"\b(?:FROM|JOIN)\s+{table}\b", text)]


def bytes_of(asked, data):
    """How much of the folder `data` questions of one analysis read; a file counts once."""
    patterns = table_patterns(asked[0].analysis)
    tables = {table for question in asked for table in tables_of(question)}
    return sum(path.stat().st_size for table in tables for path in data.glob(patterns[table][0]))


def _constants(analysis, sql):
    """The text with parameters replaced by their values, without their declarations."""
    declaration = re.compile(r"^PARAMETER (\w+) = (.*?);\n", re.MULTILINE)
    values = dict(declaration.findall(tables_sql(analysis)) + declaration.findall(sql))
    text = declaration.sub("", sql)
    return re.sub(r"\$(\w+)", lambda match: values[match.group(1)], text)


def as_duckdb(question):
    """Tables are macros there, so that nothing is read that is not asked for."""
    tables = "|".join(table_patterns(question.analysis))
    return re.sub(rf"\b(FROM|JOIN)(\s+)({tables})\b", r"\1\2\3()",
                  _constants(question.analysis, question.sql))


# Moments stay texts in Polars' tables; a part of one is cut out.
_POLARS = [(r"\b{}\((\w+)\)".format(part), rf"CAST(SUBSTR(\1, {at}, {size}) AS INT)")
           for part, at, size in (("year", 1, 4), ("month", 6, 2), ("day", 9, 2), ("hour", 12, 2))]
_POLARS += [(r"\bcontains\((\w+), '(\w+)'\)", r"\1 LIKE '%\2%'"), (r"\bsubstring\(", "SUBSTR(")]


def as_polars(question):
    """For the plain queries that are drawn; all others are written by hand."""
    text = question.sql
    for pattern, by in _POLARS:
        text = re.sub(pattern, by, text)
    return text


def _add_forms(question, folder):
    natural = as_duckdb(question)
    own = HERE / "queries" / question.analysis
    for variant in ("duckdb", "duckdb.tuned"):
        form = folder / f"{question.name}.{variant}.sql"
        text = form.read_text() if form.exists() else natural
        question.forms[variant] = (own / f"tables.{variant}.sql").read_text() + text
    for suffix in ("sql", "mjs"):
        form = folder / f"{question.name}.polars.{suffix}"
        if form.exists():
            question.forms[f"polars.{suffix}"] = form.read_text()


def _read(analysis, kind, folder, forms):
    questions = []
    for path in sorted(folder.glob("*.sql")):
        if path.name == "tables.sql" or path.name.count(".") > 1:
            continue
        question = Question(analysis, path.stem, path.read_text(), kind)
        question.is_ordered = (analysis, path.stem) not in OPEN_ORDER
        if OURS_ALONE.search(question.sql):
            question.skipped = "only millrace has sentiment()"
        else:
            _add_forms(question, forms)
        questions.append(question)
    return questions


# table: (columns to group by, columns to add up, conditions); all of them in every peer's tables.
_SHAPES = {
    ("movies", "ratings"): (
        ("movieId", "rating"), ("rating", "movieId"),
        ("rating >= {0}", "movieId < {1}", "movieId % {2} = 0"), (4, 90000, 7)),
    ("coffee", "transactions"): (
        ("store_id", "year(created_at)", "month(created_at)", "hour(created_at)"),
        ("final_amount", "store_id"),
        ("final_amount >= {0}", "month(created_at) <= {1}", "store_id <> {2}"), (60, 9, 5)),
    ("coffee", "transaction_items"): (
        ("item_id", "quantity", "month(created_at)", "day(created_at)"), ("subtotal", "quantity"),
        ("quantity >= {0}", "day(created_at) > {1}", "item_id <> {2}"), (2, 20, 6)),
    ("memes", "comments"): (
        ("length(body) % 10", "substring(body, 1, 1)"), ("length(body)", "length(permalink)"),
        ("length(body) > {0}", "contains(body, '{1}')", "body NOT LIKE '%{2}%'"),
        (200, "the", "potato")),
}


def seeded(seed, count=SEEDED):
    """Filter, group, aggregate, the first few: drawn, but the same for the same seed."""
    draw = random.Random(seed)
    shapes = draw.sample(sorted(_SHAPES), len(_SHAPES))  # All take their turn.
    questions = []
    for number in range(1, count + 1):
        analysis, table = shapes[number % len(shapes)]
        keys, values, conditions, constants = _SHAPES[analysis, table]
        chosen = draw.sample(keys, draw.randint(1, 2))
        value = draw.choice(values)
        aggregates = ["count(*) AS n"] + draw.sample(
            [f"sum({value}) AS total", f"avg({value}) AS average", f"min({value}) AS least",
             f"max({value}) AS most"], draw.randint(1, 3))
        condition = draw.choice(conditions).format(*constants)
        order = draw.choice(("n DESC", "n"))
        names = [f"key{i}" for i in range(1, len(chosen) + 1)]
        listed = [f"{key} AS {name}" for key, name in zip(chosen, names)] + aggregates
        sql = (f"-- Drawn from seed {seed}.\n\nSELECT {', '.join(listed)}\nFROM {table}\n"
               f"WHERE {condition}\nGROUP BY {', '.join(names)}\n"
               f"ORDER BY {order}, {', '.join(names)}\nLIMIT {draw.choice((10, 100, 1000))};\n")
        question = Question(analysis, f"seed{seed}_{number}", sql, "seeded")
        _add_forms(question, HERE / "others" / analysis)
        question.forms["polars.sql"] = as_polars(question)
        questions.append(question)
    return questions


def all_questions(seed):
    asked = []
    for analysis in ANALYSES:
        asked += _read(analysis, "question", ROOT / "analyses" / analysis,
                       HERE / "queries" / analysis)
        asked += _read(analysis, "other", HERE / "others" / analysis, HERE / "others" / analysis)
    return asked + seeded(seed)
