#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers the questions of an analysis, plainly and slowly, for comparison with millrace.

    python3 oracle.py movies|coffee|memes DATA_DIR [--query q1,q3] [--set name=value] > answers.json

README.md says what it computes, and what the JSON holds.
"""
import argparse
import json
import os
import sys
from fractions import Fraction

sys.dont_write_bytecode = True

import coffee
import memes
import movies
import sentiment
import tables

ANALYSES = {"movies": movies, "coffee": coffee, "memes": memes}


def parse_parameter(text, default):
    """Reads the value of a parameter as what its default is."""
    if isinstance(default, list):
        return [word.lower() for word in text.encode().split(b"|")]
    if isinstance(default, bytes):
        return text.encode()
    return type(default)(text) if isinstance(default, (int, Fraction)) else text


def choose_parameters(queries, settings):
    chosen = {name: dict(queries[name][3]) for name in queries}
    for name, text in settings:
        takers = [values for values in chosen.values() if name in values]
        if not takers:
            raise tables.InputError(f"no chosen query has a parameter {name}")
        for values in takers:
            values[name] = parse_parameter(text, values[name])
    return chosen


def answer(analysis, data_dir, query_names=None, settings=()):
    """Returns what is printed as JSON."""
    module = ANALYSES[analysis]
    unknown = [name for name in query_names or [] if name not in module.QUERIES]
    if unknown:
        raise tables.InputError(f"{analysis} has no query {', '.join(unknown)}")
    queries = {
        name: query
        for name, query in module.QUERIES.items()
        if query_names is None or name in query_names
    }
    parameters = choose_parameters(queries, settings)
    needed = {table for _, reads, _, _ in queries.values() for table in reads}
    rows = {}
    audit = {}
    for table in module.TABLES:
        if table.name in needed:
            rows[table.name], book = tables.read_table(table, data_dir)
            audit[table.name] = book.as_json()
    results = {
        name: {"columns": columns, "rows": function(rows, parameters[name])}
        for name, (function, _, columns, _) in queries.items()
    }
    return {"queries": results, "tables": audit}


def main():
    parser = argparse.ArgumentParser(description="Plain, slow answers to compare millrace with.")
    parser.add_argument("analysis", choices=sorted(ANALYSES))
    parser.add_argument("data_dir")
    parser.add_argument("--query", help="names separated by commas; all of them otherwise")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--sentiment-model", help="another model for sentiment()")
    arguments = parser.parse_args()
    if arguments.sentiment_model:
        sentiment.MODEL_FILE = os.path.abspath(arguments.sentiment_model)
    settings = [setting.partition("=")[::2] for setting in arguments.set]
    names = arguments.query.split(",") if arguments.query else None
    try:
        result = answer(arguments.analysis, arguments.data_dir, names, settings)
    except (tables.InputError, sentiment.ModelError, OSError, ValueError) as error:
        sys.exit(f"oracle: {error}")
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
