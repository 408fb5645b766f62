#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents are true: what they say to type works, links lead somewhere, tables match the code.

Method: every command of every page is run as it stands, or checked where that would need more than
this machine (pages.py has the rules); what a page says to be printed is compared. Reference pages
are compared with the program and with the tables in its sources (reference.py). Every check is also
given a page with a planted mistake. Prints TAP; words on the command line choose tests.
`test_docs.py --write` puts the help texts into options.md.
"""
import concurrent.futures
import functools
import os
import re
import sys
import time

sys.dont_write_bytecode = True

import reference
from pages import (FULL, FULL_WORDS, ROOT, Page, all_pages, millrace_commands, read_page, run_page,
                   why_not)

# --- Checks of pages; each gives the mistakes it finds. ---

# After two blanks in a command, only what belongs to it: an option, a redirection, a comment.
DESCRIPTION = re.compile(r"\S {2,}(?![-#\\|&<>$'\"/]|\d?>)\S")
PROGRAMS = r"(millrace|\./dev|docker|docker-compose|curl|openssl|systemctl|ninja|python3|build/\S+)"
HIDDEN = re.compile(
    r"(?:\$ )?(millrace|\./dev|docker|docker-compose|systemctl) ([a-z]+)(?=\s|$)(?! - )")
PROSE_LANGUAGES = ("", "text", "console", "sh")


def descriptions(page):
    """Commands that can't be pasted because a description stands behind them."""
    for block in page.blocks:
        if block.language not in PROSE_LANGUAGES:
            continue
        for number, line in enumerate(block.text.splitlines()):
            bare = re.sub(r"'[^']*'|\"[^\"]*\"", "''", line.split(" #")[0]).rstrip()
            is_command = block.language == "sh" or re.match(PROGRAMS + " ", bare)
            if is_command and DESCRIPTION.search(bare.lstrip()) and "<<" not in block.text:
                yield f"{page.name}:{block.line + number}: put `#` before the description: {line}"


def hidden_commands(page):
    """Commands that are not in a block of commands, and so would never be run."""
    for block in page.blocks:
        if block.language == "sh" or block.language not in PROSE_LANGUAGES:
            continue
        for number, line in enumerate(block.text.splitlines()):
            word = HIDDEN.match(line)
            if word and (word[1] != "millrace" or word[2] in millrace_commands()):
                yield f"{page.name}:{block.line + number}: a command in a block that is not `sh`"


def bad_info_strings(page):
    for block in page.blocks:
        if block.language == "sh" and block.word not in ("", "hosts", *FULL_WORDS):
            yield f"{page.name}:{block.line - 1}: nobody knows `sh {block.word}`"
        if block.language == "console":
            yield f"{page.name}:{block.line - 1}: output is `text`, commands are `sh`"


def bad_links(page):
    pages = {other.name: other for other in [*all_pages(), page]}
    for match in re.finditer(r"\]\(([^)\s]+)\)", page.prose):
        target, _, anchor = match[1].partition("#")
        line = page.prose.count("\n", 0, match.start()) + 1
        if re.match(r"[a-z]+:", target):
            continue
        name = os.path.normpath(os.path.join(os.path.dirname(page.name), target))
        name = name if target else page.name
        if not (ROOT / name).exists() and name not in pages:
            yield f"{page.name}:{line}: {match[1]} is not there"
        elif anchor and name in pages and anchor not in pages[name].anchors:
            yield f"{page.name}:{line}: {name} has no heading for #{anchor}"


def orphans():
    """Pages of docs/ that the index does not lead to."""
    index = read_page("docs/README.md")
    linked = {os.path.normpath(os.path.join("docs", target))
              for target in re.findall(r"\]\(([^)#\s]+)", index.prose)}
    for page in all_pages():
        if page.name.startswith("docs/") and page.name not in linked and page.name != index.name:
            if not page.name.startswith("docs/decisions/"):
                yield f"{page.name} is not in {index.name}"


# --- Planted mistakes: each check must find its own. ---

def planted(text, check):
    return list(check(Page("planted.md", text)))


def fails(text):
    return run_page(Page("planted.md", text)).failures


SH = "```sh\n{}\n```\n"

PLANTED = [
    ("a command that fails", lambda: fails(SH.format("false"))),
    ("a command that does not exist", lambda: fails(SH.format("no-such-program-anywhere"))),
    ("a command that is not whole", lambda: fails(SH.format("echo 'one"))),
    ("an unknown option of millrace", lambda: fails(SH.format("millrace run a b --no-such").replace(
        "sh", "sh hosts", 1))),
    ("an unknown command of ./dev", lambda: fails(SH.format("./dev no-such"))),
    ("an unknown option of ./dev bench", lambda: fails(SH.format("./dev bench --no-such"))),
    ("a suite that is not there", lambda: fails(SH.format("./dev test no/such/suite"))),
    ("output that is not printed", lambda: fails(
        SH.format("echo one") + "<!-- prints -->\n```text\ntwo\n```\n")),
    ("a shell that ends too early", lambda: fails(SH.format("exit 0\necho more"))),
    ("a description without #", lambda: planted(
        SH.format("millrace help run          all options"), descriptions)),
    ("the same outside of sh", lambda: planted(
        "```\nmillrace help run          all options\n```\n", descriptions)),
    ("a command that hides in a block of text", lambda: planted(
        "```text\nmillrace run movies DIR\n```\n", hidden_commands)),
    ("an info string that nobody knows", lambda: planted(
        SH.format("true").replace("sh", "sh later"), bad_info_strings)),
    ("a link to nowhere", lambda: planted("[here](no-such.md)\n", bad_links)),
    ("a link to no heading", lambda: planted("# Title\n[here](#subtitle)\n", bad_links)),
]

def good_page():
    """All that pages may do, without a mistake."""
    return Page("planted.md", "# Title\n[here](#title)\n"
                "```text data/a.csv\na,b\n1,2\n```\n"
                "```sh\n# Two lines, a file and a folder.\nmkdir x && cd x     # then\n"
                "printf '%s  %s\\n' one \\\n    two\ncat ../data/a.csv\n```\n"
                "<!-- prints -->\n```text\na,b\n…\n```\n"
                "```sh\ncat <<'END'\nfree  text\nEND\n"
                "sleep 100 &\necho $((1 + 1)) of 1234 ms\n```\n"
                "<!-- prints -->\n```text\n2 of … ms\n```\n")


# --- The tests. ---

class Report:
    def __init__(self):
        self.number = 0
        self.failed = 0
        self.only = [word for word in sys.argv[1:] if not word.startswith("-")]

    def wanted(self, sentence):
        return not self.only or any(word in sentence for word in self.only)

    def add(self, sentence, mistakes):
        self.number += 1
        self.failed += bool(mistakes)
        print(f"{'not ok' if mistakes else 'ok'} {self.number} - {sentence}", flush=True)
        for mistake in mistakes:
            print("# " + str(mistake).rstrip().replace("\n", "\n#   "), flush=True)

    def skip(self, sentence, why):
        self.number += 1
        print(f"ok {self.number} - {sentence} # SKIP {why}", flush=True)


def caught(function):
    try:
        return list(function())
    except Exception as error:  # A check that breaks is a check that fails.
        return [f"{type(error).__name__}: {error}"]


def check_reference_planted(name, check, good, bad):
    text = read_page(name).text
    if good not in text:
        return [f"{name} has no {good!r}"]
    before = caught(lambda: check(Page(name, text)))
    after = caught(lambda: check(Page(name, text.replace(good, bad, 1))))
    return [] if len(after) > len(before) else [f"{bad!r} in {name} was not found"]


def simple_tests(report):
    everywhere = [
        ("no command has a description behind it without #", descriptions),
        ("every command stands in a block of commands", hidden_commands),
        ("every info string is known", bad_info_strings),
        ("every link leads somewhere", bad_links),
    ]
    for sentence, check in everywhere:
        yield sentence, lambda check=check: [mistake for page in all_pages() for mistake in
                                             check(page)]
    yield "the index leads to every page", lambda: list(orphans())
    for sentence, name, check in reference.CHECKS:
        yield sentence, lambda name=name, check=check: list(check(read_page(name)))
    for what, plant in PLANTED:
        yield f"planted and found: {what}", \
            lambda plant=plant, what=what: [] if plant() else [f"{what} was not found"]
    for name, check, good, bad in reference.PLANTED:
        yield f"planted and found: {bad} in {name}", \
            functools.partial(check_reference_planted, name, check, good, bad)
    yield "a page without mistakes has none", lambda: [
        *run_page(good_page()).failures, *planted(good_page().text, descriptions),
        *planted(good_page().text, hidden_commands), *planted(good_page().text, bad_links)]


def page_tests(report):
    """Two at a time: they mostly wait."""
    pages = [page for page in all_pages() if page.commands and report.wanted(page.name)]
    ran = checked = 0
    # The longest first.
    pages.sort(key=lambda page: -len(re.findall(r"(?m)^millrace (up|chaos) ", page.text)))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        def one(page):
            begin = time.monotonic()
            return page, run_page(page), time.monotonic() - begin
        for future in concurrent.futures.as_completed([pool.submit(one, page) for page in pages]):
            page, run, seconds = future.result()
            ran += len(run.commands)
            checked += len(page.commands) - len(run.commands)
            report.add(f"{page.name}: {len(page.commands)} commands, {len(run.commands)} run "
                       f"({seconds:.1f} s)", run.failures)
            for word in sorted({block.word for block in page.blocks} & set(FULL_WORDS)):
                if FULL and why_not(word):
                    report.skip(f"{page.name}: what needs {word}", why_not(word))
    print(f"# {ran} commands were run, {checked} checked only")


def main():
    if "--write" in sys.argv[1:]:
        reference.write_options()
        return 0
    report = Report()
    for sentence, function in simple_tests(report):
        if report.wanted(sentence):
            report.add(sentence, caught(function))
    page_tests(report)
    print(f"1..{report.number}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
