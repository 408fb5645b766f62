#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tidy.py - the house rules that a compiler does not check.

Errors: an include against the rules in docs/LAYOUT.md, a banned call, two files of one
name, a source without its licence and opening comment, an unfinished mark, words that belong to somebody's
machine and not into the project, retired words, two structs of one name. Warnings: files and functions that have grown long.

usage: tidy.py [--self-test]
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

HEADER_LINES = 200
SOURCE_LINES = 800
FUNCTION_LINES = 70

RULE = re.compile(r"^([\w/]+) <-((?: [\w/]+)*)$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')

LICENCE = "SPDX-License-Identifier: Apache-2.0"
STRUCT = re.compile(r"^(?:struct|union|enum) (\w+)\s*\{", re.MULTILINE)

ONE_NAME = re.compile(r"csv_kernel_(?!body)\w+\.c$")

# A call, not a member or part of a longer name: curl_free() and list->free() are other functions.
CALL = r"(?<![\w.>])(?:{})\s*\("
ALLOCATORS = re.compile(CALL.format(
    "malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign"
    "|strn?dup|v?asprintf"))
UNSAFE = re.compile(CALL.format(
    "strcpy|stpcpy|strcat|v?sprintf|gets|strtok|atoi|atol|atoll|atof|alloca"))
STDOUT = re.compile(CALL.format("v?printf|puts|putchar") + r"|\bstdout\b")
ASSERT = re.compile(CALL.format("assert"))
# Rooms and files that speak to the user.
MAY_PRINT = re.compile(r"src/cli/|src/engine/data/\w*(?:print|write)\w*\.c$")

UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
MARKED_SUFFIXES = {".c", ".h", ".py", ".sh", ".sql", ".build", ".ini", ".test", ""}
FOREIGN = [
    (re.compile(r"\.\./shared\b"), "a path outside the project"),
    (re.compile(r"(?<![\w.)~-])/(?:work|home|root)/\w"), "a path of one machine"),
    (re.compile(r"\bissue\s+\x23\d*", re.IGNORECASE), "an issue number: say what it was about"),
    (re.compile(r"\b(?:registry\.\w+\.\w+|ghcr\.io|quay\.io|docker\.io|pypi\.org|crates\.io)\b"),
     "a package registry: everything comes from Debian"),
]
# Words that the project used once, and the field's words for them. They do not come back: not in
# code, nor in help texts and messages, nor on pages.
RETIRED = [(re.compile(pattern, re.IGNORECASE), word) for pattern, word in [
    (r"\b(?:the|its|whole|no|these) books\b|\bbooks (?:do not )?balance|\bbook_(?:end|edge|line)\b",
     "audit, counters, exchange count"),
    (r"\btall(?:y|ies)\b", "counters"),
    (r"\bsieves?\b", "Bloom filter"),
    (r"\bside[ _-]tables?\b", "build side"),
    (r"\btwins?\b", "duplicate keys"),
    (r"\bsift(?!_down\b)\w*|\bearly_sift\w*", "filter"),
    (r"\bshared_filter\w*|\bshared filters?\b", "common filter"),
    (r"\bexpr_reach\b|\bcolumn_loads?\b", "late materialization"),
    (r"\bkept[ _]rows\b", "row store"),
    (r"\blanes?\b|\blane_end\b", "producer"),
    (r"\bbeats?\b|\bbeaters?\b|\bbeat_period\b", "heartbeat"),
    (r"\bpatience\b", "failure_timeout"),
    (r"\bhang_timeout\b", "stall_timeout"),
    (r"\bleash\w*", "exits with its supervisor"),
    (r"\bkeepers?\b", "supervisor"),
    (r"\b(?:earlier|next|first|last|this|another) li(?:fe|ves)\b", "incarnation"),
    (r"\bin[ _]hand\b", "in flight"),
    (r"\bscan_want\b|\bwant_manifest\b|\bis wanted again\b", "re-request"),
    (r"\bmarkers?\b|\bcertified\b", "barrier, acknowledged barrier"),
    (r"\bshel(?:f|ves)\b", "output buffer"),
    (r"\bburied\b|(?<!tomb)\bstones?\b", "tombstone"),
    (r"\bstrangers?\b", "unknown sender"),
    (r"\bis of now\b|\bsomebody\b", "current; a noun"),
    (r"\bnote_file\b|\blog_files\b", "intent record, input log"),
    (r"\bwatched\b|\b(?:monitor|gateway)_watch\w*", "monitored, supervised, subscribed"),
    (r"\bjson_shape\w*|\bshape_(?:create|release|keep|owner)\b", "JSON schema, job layout"),
    (r"\b(?:goes|gone|going|go) on with\b", "resumes, continues"),
    (r"\bmoods?\b", "sentiment"),
    (r"\bwants to hear\b|\bbe one (?:gateway|worker|monitor)\b", "bearer token, run a node"),
]]
RETIRED_HERE = re.compile(r"src/|docs/|deploy/|README\.md|CONTRIBUTING\.md|SECURITY\.md|dev$")
# Words of data, and the lanes of vector registers.
RETIRED_NOT_HERE = re.compile(r"src/gen/|src/engine/data/csv_kernel|src/engine/exec/expr/literals\.c")
TEXT_SUFFIXES = {".c", ".h", ".py", ".sh", ".sql", ".md", ".build", ".txt", ".ini", ".test", ".1",
                 ".yml", ".toml", ".json", ""}


def blank_out(text):
    """The code alone: comments and the insides of literals become spaces, lines stay lines."""
    pattern = re.compile(
        r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
        re.DOTALL | re.VERBOSE)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


class Tidy:
    def __init__(self, root):
        self.root = root
        self.errors = []
        self.warnings = []
        self.rules = {}

    def error(self, path, line, text):
        self.errors.append(f"{path}:{line}: {text}")

    def warn(self, path, line, text):
        self.warnings.append(f"{path}:{line}: warning: {text}")

    def files(self):
        """Tracked files and those about to be; a folder without git is taken as it is."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            done = subprocess.run(command, cwd=self.root, capture_output=True, check=True)
            names = [name for name in done.stdout.decode().split("\0") if name]
        except (OSError, subprocess.CalledProcessError):
            names = [str(path.relative_to(self.root)) for path in self.root.rglob("*")]
            names = [name for name in names
                     if not re.match(r"(build|demo-data|\.git)/|.*__pycache__", name)]
        return sorted(name for name in set(names) if (self.root / name).is_file())

    def read_rules(self):
        layout = "docs/LAYOUT.md"
        path = self.root / layout
        lines = path.read_text().splitlines() if path.exists() else []
        for number, line in enumerate(lines, 1):
            match = RULE.match(line)
            if not match:
                continue
            room, below = match.group(1), match.group(2).split()
            for other in below:
                if other not in self.rules:
                    self.error(layout, number, f"'{room}' may not know '{other}', which stands"
                                               " below it or nowhere in the list")
            self.rules[room] = set(below)
        if not self.rules:
            self.error(layout, 1, "no rules of the form 'room <- room room' found")

    def check_include(self, path, number, room, line):
        match = INCLUDE.match(line)
        if not match:
            return
        target = match.group(1)
        other = target.rpartition("/")[0]
        if not other or ".." in target:
            self.error(path, number, f'include "{target}" by its path from src/')
        elif other not in self.rules:
            self.error(path, number, f'"{target}" is in no room that docs/LAYOUT.md knows')
        elif other != room and other not in self.rules[room]:
            self.error(path, number, f"{room}/ may not include {other}/ (docs/LAYOUT.md)")

    def check_calls(self, path, number, room, line):
        match = UNSAFE.search(line)
        if match:
            self.error(path, number, f"banned call: {match.group().rstrip(' (')}")
        match = ALLOCATORS.search(line)
        if match and room != "engine/base":
            self.error(path, number, f"{match.group().rstrip(' (')} outside engine/base/: use an arena,"
                                     " a buf or memory.h")
        match = STDOUT.search(line)
        if match and not MAY_PRINT.match(path):
            self.error(path, number, f"{match.group().rstrip(' (')}: only cli/ and the printers"
                                     " in data/ write to standard output")
        if ASSERT.search(line):
            self.error(path, number, "assert: use ASSERT, which stays on")

    def check_lengths(self, path, code):
        lines = code.splitlines()
        limit = HEADER_LINES if path.endswith(".h") else SOURCE_LINES
        if len(lines) > limit:
            self.warn(path, 1, f"{len(lines)} lines, more than {limit}: look for the seam")
        begin = 0
        for number, line in enumerate(lines, 1):
            if line.rstrip() == "{":
                begin = number
            elif line.startswith("}") and begin:
                if number - begin - 1 > FUNCTION_LINES:
                    self.warn(path, begin, f"a function of {number - begin - 1} lines,"
                                           f" more than {FUNCTION_LINES}")
                begin = 0

    def check_source(self, path, text):
        name = pathlib.PurePath(path).name
        if not text.partition("\n")[2].startswith(f"/* {name} - "):
            self.error(path, 2, f"must open with '/* {name} - what it is for'")
        code = blank_out(text)
        self.check_lengths(path, code)
        parts = path.split("/")
        if parts[0] != "src":
            return
        room = "/".join(parts[1:-1])
        if room not in self.rules:
            self.error(path, 1, "is in no room that docs/LAYOUT.md knows")
            return
        raw = text.splitlines()
        for number, line in enumerate(code.splitlines(), 1):
            # The name of an included file is a literal, so it is read from the text itself.
            if "include" in line:
                self.check_include(path, number, room, raw[number - 1])
            self.check_calls(path, number, room, line)

    def check_licence(self, path, text):
        """The first line, or the second behind #!, says under which licence the file is."""
        lines = text.splitlines()[:2]
        if not any(LICENCE in line for line in lines[:2 if text.startswith("#!") else 1]):
            self.error(path, 1, f"must begin with '{LICENCE}'")

    def check_words(self, path, text):
        suffix = pathlib.PurePath(path).suffix
        for number, line in enumerate(text.splitlines(), 1):
            if suffix in MARKED_SUFFIXES and UNFINISHED.search(line):
                self.error(path, number, "an unfinished mark does not merge")
            for pattern, what in FOREIGN:
                if pattern.search(line):
                    self.error(path, number, f"{what}: '{pattern.search(line).group()}'")
            self.check_retired(path, number, line)

    def check_retired(self, path, number, line):
        if not RETIRED_HERE.match(path) or RETIRED_NOT_HERE.match(path):
            return
        for pattern, word in RETIRED:
            match = pattern.search(line)
            if match:
                self.error(path, number, f"'{match.group()}' is a retired word; say: {word}")

    def check_structs(self, sources):
        """A struct, union or enum has one definition in the tree, so that its name says which."""
        seen = {}
        for path, text in sources:
            for match in STRUCT.finditer(text):
                name, number = match.group(1), text.count("\n", 0, match.start()) + 1
                # A kernel has the same parts on each architecture: that is one idea, and one name.
                if ONE_NAME.search(path):
                    continue
                if name in seen and seen[name] != path:
                    self.error(path, number, f"the name {name} is taken by {seen[name]}")
                seen.setdefault(name, path)

    def check_names(self, files):
        seen = collections.defaultdict(list)
        for path in files:
            if path.endswith((".c", ".h")):
                seen[pathlib.PurePath(path).name].append(path)
        for name, paths in seen.items():
            for path in paths[1:]:
                self.error(path, 1, f"the name {name} is taken by {paths[0]}")

    def run(self):
        self.read_rules()
        files = self.files()
        self.check_names(files)
        sources = []
        for path in files:
            if path.startswith("tests/fuzz/corpus/") or path == "LICENSE":
                continue
            if pathlib.PurePath(path).suffix not in TEXT_SUFFIXES:
                continue
            try:
                text = (self.root / path).read_bytes().decode()
            except UnicodeDecodeError:
                continue
            self.check_words(path, text)
            if path.endswith((".c", ".h", ".py", ".sh", ".build", ".mjs")) or path == "dev":
                self.check_licence(path, text)
            if path.endswith((".c", ".h")):
                self.check_source(path, text)
                sources.append((path, text))
        self.check_structs(sources)
        return not self.errors


# Each case: files to write, and what the one error must say; None for a tree without errors.
LAYOUT = {"docs/LAYOUT.md": "```\nengine/base <-\nengine/data <- engine/base\ncli <- engine/base engine/data\n```\n"}
UNLICENSED = {"src/engine/data/bare.c"}
CASES = [
    ({"src/engine/data/a.c": '/* a.c - x */\n#include "engine/base/b.h"\n#include "engine/data/c.h"\n'}, None),
    ({"src/engine/base/a.c": '/* a.c - x */\n#include "engine/data/c.h"\n'}, "a.c:3: engine/base/ may not include engine/data"),
    ({"src/engine/data/a.c": '/* a.c - x */\n#include "c.h"\n'}, "by its path from src/"),
    ({"src/engine/data/a.c": '/* a.c - x */\n#include "io/c.h"\n'}, "in no room"),
    ({"src/io/a.c": "/* a.c - x */\n"}, "in no room"),
    ({"src/engine/data/a.c": "/* a.c - x */\nvoid *p = malloc (3);\n"}, "a.c:3: malloc outside engine/base/"),
    ({"src/engine/base/a.c": "/* a.c - x */\nvoid *p = malloc(3);\n"}, None),
    ({"src/engine/data/a.c": '/* a.c - free(x) */\nx = "free(x)"; curl_free(x); l->free(x);\n'}, None),
    ({"src/engine/base/a.c": "/* a.c - x */\n\nstrcpy(a, b);\n"}, "a.c:4: banned call: strcpy"),
    ({"src/engine/data/a.c": '/* a.c - x */\nprintf("x");\n'}, "printf: only cli/"),
    ({"src/engine/data/a.c": '/* a.c - x */\nfputs("x", stdout);\n'}, "stdout: only cli/"),
    ({"src/engine/data/a.c": '/* a.c - x */\nfprintf(stderr, "x"); snprintf(a, 1, "x");\n'}, None),
    ({"src/engine/data/table_print.c": '/* table_print.c - x */\nprintf("x");\n'}, None),
    ({"src/cli/a.c": '/* a.c - x */\nprintf("x");\n'}, None),
    ({"src/engine/data/a.c": "/* a.c - x */\nassert(x);\n"}, "use ASSERT"),
    ({"src/engine/data/a.c": '/* a.c - x */\nstatic_assert(1, "x"); ASSERT(x);\n'}, None),
    ({"src/engine/data/a.c": "int x;\n"}, "must open with '/* a.c - "),
    ({"tests/unit/data/test_a.c": "int x;\n"}, "must open with '/* test_a.c - "),
    ({"src/engine/data/a.h": "/* a.h - x */\n", "src/cli/a.h": "/* a.h - x */\n"}, "the name a.h is taken"),
    ({"src/engine/data/a.c": "/* a.c - x */\nstruct a {\n};\n",
      "tests/b.c": "/* b.c - x */\nstruct a {\n};\n"}, "b.c:3: the name a is taken"),
    ({"src/engine/data/a.c": "/* a.c - x */\n/* TO" "DO */\n"}, "a.c:3: an unfinished mark"),
    ({"docs/A.md": "see .." "/shared\n"}, "A.md:1: a path outside"),
    ({"docs/A.md": "see /wo" "rk/x\n"}, "a path of one machine"),
    ({"docs/A.md": "see docs/work/x and https://host/work/x\n"}, None),
    ({"docs/A.md": "fixes issue \x2312\n"}, "an issue number"),
    ({"docs/A.md": "the books balance\n"}, "A.md:1: 'the books' is a retired word"),
    ({"src/engine/data/a.c": "/* a.c - x */\nint side_table;\n"}, "say: build side"),
    ({"src/engine/data/a.c": '/* a.c - x */\nchar x[] = "a beat is late";\n'}, "say: heartbeat"),
    ({"src/engine/data/a.c": "/* a.c - x */\nsift_down(heap); tombstone(x);\n"}, None),
    ({"docs/LAYOUT.md": "base <- data\ndata <-\n"}, "may not know 'data'"),
    ({"src/engine/data/bare.c": "/* x */\n/* bare.c - x */\n"}, "must begin with 'SPDX"),
    ({"docs/LAYOUT.md": "nothing\n"}, "no rules"),
]


def self_test():
    failed = 0
    for files, wanted in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**LAYOUT, **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                licence = f"/* {LICENCE} */\n" if name.endswith((".c", ".h")) else ""
                (root / name).write_text(text if name in UNLICENSED else licence + text)
            tidy = Tidy(root)
            tidy.run()
        good = len(tidy.errors) == 1 and wanted in tidy.errors[0] if wanted else not tidy.errors
        if not good:
            failed += 1
            print(f"self-test: {files}\n  wanted {wanted!r}\n  got {tidy.errors}")
    long_function = "/* a.c - x */\nvoid f(void)\n{\n" + "    f();\n" * 71 + "}\n"
    tidy = Tidy(ROOT)
    tidy.check_lengths("a.c", long_function)
    if len(tidy.warnings) != 1 or tidy.errors:
        failed += 1
        print(f"self-test: a long function gives {tidy.warnings} {tidy.errors}")
    print(f"tidy: {len(CASES) + 1 - failed} of {len(CASES) + 1} cases as expected")
    return failed == 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(0 if self_test() else 1)
    if sys.argv[1:]:
        sys.exit(__doc__)
    tidy = Tidy(ROOT)
    good = tidy.run()
    for line in tidy.errors + tidy.warnings:
        print(line)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
