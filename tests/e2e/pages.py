# SPDX-License-Identifier: Apache-2.0
"""pages.py - the pages of the documents: their blocks, their commands, and running these.

The code blocks of a page are read by their info string.

    ```sh               commands: run in the order of the page, in a folder of its own; each must
                        exit with 0. A line `./dev ...` is checked against ./dev, not run.
    ```sh full          the same, but only with TEST_FULL=1: it takes minutes
    ```sh root          the same, in a mount namespace with copies of /etc, /var/lib and /usr/local,
                        and with a stand-in for systemctl
    ```sh docker        the same, with a private Docker engine
    ```sh hosts         needs several hosts: checked for syntax, commands and options, never run
    ```ini cluster.ini  any other language with a file name: the page's folder gets this file
    <!-- prints -->     before a block: it is what the command before it prints, where `…` stands
                        for anything within a line, and alone on a line for any lines

Ports of 127.0.0.1, and of the gateways in containers, are replaced by free ones.
"""
import contextlib
import dataclasses
import functools
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import engine
from timing import SCALE, scaled, setting

MILLRACE = pathlib.Path(os.environ.get("MILLRACE", "build/release/millrace")).resolve()
ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", os.getcwd())).resolve()
FULL = os.environ.get("TEST_FULL", "0") == "1"
PAGE_S = scaled(800 if FULL else 100)
WAIT_S = scaled(60)
ANY = "…"
FULL_WORDS = ("full", "root", "docker")


@functools.cache
def why_not(word):
    """Why blocks of this kind can't be run on this machine; None: they can."""
    if word == "docker":
        return engine.missing()
    if word == "root":
        return "this needs root" if os.geteuid() != 0 else None
    return None


# --- Reading pages. ---

@dataclasses.dataclass
class Block:
    line: int  # Of its first line of text, from 1.
    language: str
    word: str  # The rest of the info string.
    prints: bool
    text: str

    @property
    def is_run(self):
        return self.language == "sh" and (
            self.word == "" or (FULL and self.word in FULL_WORDS and why_not(self.word) is None))


@dataclasses.dataclass
class Command:
    line: int
    text: str
    block: Block


def blocks_of(text):
    found, lines = [], text.splitlines()
    number = 0
    prints = False
    while number < len(lines):
        opening = re.match(r"(\s*)```(\w*) *(.*)$", lines[number])
        if not opening:
            if lines[number].strip():
                prints = lines[number].strip() == "<!-- prints -->"
            number += 1
            continue
        indent = len(opening.group(1))
        end = number + 1
        while end < len(lines) and lines[end].strip() != "```":
            end += 1
        body = [line[indent:] for line in lines[number + 1:end]]
        found.append(Block(number + 2, opening.group(2), opening.group(3).strip(), prints,
                           "".join(line + "\n" for line in body)))
        prints = False
        number = end + 1
    return found


def is_whole(text):
    """Whether a shell would run it, and not wait for another line."""
    if text.endswith("\\\n"):
        return False
    for word in re.findall(r"<<-?\s*['\"]?(\w+)", text):
        if not re.search(rf"(?m)^\s*{word}$", text):
            return False
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    return done.returncode == 0


def commands_of(block):
    """Its commands, each with all of its lines; what never becomes whole is one too."""
    found, text, first = [], "", 0
    for number, line in enumerate(block.text.splitlines()):
        if not text and (not line.strip() or line.lstrip().startswith("#")):
            continue
        if not text:
            first = number
        text += line + "\n"
        if is_whole(text):
            found.append(Command(block.line + first, text, block))
            text = ""
    if text:
        found.append(Command(block.line + first, text, block))
    return found


@dataclasses.dataclass
class Page:
    name: str
    text: str

    @functools.cached_property
    def blocks(self):
        return blocks_of(self.text)

    @functools.cached_property
    def commands(self):
        return [command for block in self.blocks if block.language == "sh"
                for command in commands_of(block)]

    @functools.cached_property
    def prose(self):
        """Without code, line by line."""
        kept, inside = [], False
        for line in self.text.splitlines():
            if line.strip().startswith("```"):
                inside = not inside
                line = ""
            kept.append("" if inside else line)
        return "\n".join(kept)

    @functools.cached_property
    def anchors(self):
        titles = re.findall(r"(?m)^#+ (.*)$", self.prose)
        plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles]
        return {re.sub(r"[^\w\- ]", "", title.strip()).replace(" ", "-") for title in plain}

    def block_after(self, heading):
        """The first block below a heading, or None."""
        at = self.text.find(f"\n{heading}\n")
        if at < 0:
            return None
        line = self.text.count("\n", 0, at) + 2
        return next((block for block in self.blocks if block.line > line), None)


def read_page(name):
    return Page(name, (ROOT / name).read_text())


@functools.cache
def all_pages():
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench/README.md",
             ROOT / "tests/oracle/README.md"]
    return [read_page(str(path.relative_to(ROOT))) for path in sorted(paths)]


# --- What ./dev and the program know. ---

@functools.cache
def said(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=WAIT_S,
                          cwd=ROOT, env=environment(ROOT))
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def millrace_help(*words):
    return said(MILLRACE, "help", *words)


def first_words(text):
    """Of the lines that are indented by two blanks: names of commands."""
    return re.findall(r"(?m)^  ([a-z]+)\b", text)


def millrace_commands():
    """Those of both programs: the second list begins with a line of its own."""
    lists = re.findall(r"^commands.*:\n((?:  .*\n)+)", millrace_help(), re.MULTILINE)
    return first_words("".join(lists))


def options_in(text):
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))


@functools.cache
def suite_names():
    sys.path.insert(0, str(ROOT / "tests"))
    import run
    return [suite.name for suite in run.all_suites(True)]


def check_dev(words):
    """What ./dev would be told, by those who would be told it."""
    command, *rest = words or [""]
    known = said("./dev", "--help")
    assert command in [*first_words(known), "--help"], f"./dev has no command '{command}'"
    if command == "sim":
        known = millrace_help("sim")
    elif command == "bench":
        programs = {"cluster": ["cluster"], "growth": ["growth"]}.get((rest or [""])[0], [])
        known = said(sys.executable, "bench/bench.py", *programs, "--help")
    unknown = [word for word in rest if word.startswith("-") and
               word.split("=")[0] not in options_in(known)]
    assert not unknown, f"./dev {command} has no {unknown}"
    if command == "test":
        patterns = [word for word in rest if not word.startswith("-")]
        for pattern in patterns:
            assert any(re.search(pattern, name) for name in suite_names()), f"no suite is {pattern}"


def check_millrace(words):
    command, *rest = words or [""]
    if command in ("help", "--version", "--help"):
        return
    assert command in millrace_commands(), f"millrace has no command '{command}'"
    known = options_in(millrace_help(command))
    unknown = [word for word in rest if re.match(r"--?[a-z]", word) and
               word.split("=")[0] not in known]
    assert not unknown, f"millrace {command} has no {unknown}"


def words_of(text):
    """The words up to what a shell would understand, without assignments before the program."""
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if set(word) <= set("();<>|&"):
            break
        words.append(word)
    while words and re.match(r"\w+=", words[0]):
        del words[0]
    return words


def check_words(text):
    """Commands and options exist, whether or not the line is run."""
    words = words_of(text)
    if words[:1] == ["./dev"]:
        check_dev(words[1:])
    elif words[:1] == ["millrace"]:
        check_millrace(words[1:])


# --- Running a page. ---

def environment(folder):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("MILLRACE", "XDG_")) and not key.lower().endswith("_proxy")}
    env.update(PATH=f"{MILLRACE.parent}:{env['PATH']}", HOME=str(folder), NO_COLOR="1",
               LC_ALL="C.UTF-8", TMPDIR=str(folder))
    if SCALE > 1:
        env.update(MILLRACE_CLUSTER_READY_TIMEOUT=setting(120),
                   MILLRACE_CLUSTER_CLIENT_TIMEOUT=setting(60),
                   MILLRACE_MONITORS_FAILURE_TIMEOUT=setting(2), MILLRACE_MONITORS_LEASE=setting(2),
                   MILLRACE_MONITORS_START_TIMEOUT=setting(10))
    return env


def free_port():
    """With four digits, as in the documents, so that tables keep their width."""
    while True:
        port = random.randrange(6000, 10000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return str(port)


class Ports:
    def __init__(self):
        self.given = {}

    def replace(self, text):
        def one(match):
            return match[1] + self.given.setdefault(match[2], free_port())
        return re.sub(r"(127\.0\.0\.1:|\bg\d:)(7[12]\d\d)\b", one, text)


def matches(pattern, text):
    """Whether the text is the pattern, where `…` stands for anything."""
    parts = []
    for line in pattern.splitlines():
        if line.strip() == ANY:
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(r"[^\n]*".join(map(re.escape, line.rstrip().split(ANY))) + r" *\n")
    if text and not text.endswith("\n"):
        text += "\n"
    return re.fullmatch("".join(parts), text) is not None


# All that root may change is a copy, and ends with the script.
AS_ROOT = """set -e
mount -t tmpfs tmpfs {copies}
for folder in etc var/lib usr/local; do
    mkdir -p {copies}/$folder.upper {copies}/$folder.work
    mount -t overlay overlay -o \
        lowerdir=/$folder,upperdir={copies}/$folder.upper,workdir={copies}/$folder.work /$folder
done
for program in {programs}; do
    install -m 755 $program /usr/local/bin/
done
exec bash {script}
"""

STEP = """{{
{command}
}} >{out} 2>&1 </dev/null
code=$?
echo "{number} $code" >>{marks}
[ $code = 0 ] || exit 1
"""

# A reader waits for the word, too.
READY = """until grep -q '^ready$' {out}; do
    kill -0 $! || break
    sleep 0.2
done
"""


class Run:
    """The commands of one page, one after the other in one shell."""

    def __init__(self, page, folder):
        self.page, self.folder = page, folder
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.ports = Ports()
        self.failures = []
        self.commands = []
        self.kinds = {block.word for block in page.blocks if block.is_run}
        self.env = environment(folder)

    def fail(self, line, text):
        self.failures.append(f"{self.page.name}:{line}: {text}")

    def steps(self):
        """The script: files are written where they stand on the page."""
        steps = ["trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n"]
        for number, block in enumerate(self.page.blocks):
            is_file = "." in block.word and not block.prints
            if is_file and (not block.word.startswith("/") or "root" in self.kinds):
                source = self.folder / f"block{number}"
                source.write_text(self.ports.replace(block.text))
                steps.append(f"mkdir -p $(dirname {block.word}) && cp {source} {block.word}\n")
            if block.language == "sh":
                for command in commands_of(block):
                    self.add(command, steps)
        return "".join(steps)

    def add(self, command, steps):
        try:
            check_words(command.text)
        except (AssertionError, ValueError) as error:
            self.fail(command.line, error)
        if not is_whole(command.text):
            self.fail(command.line, f"no shell takes this: {command.text}")
        elif command.block.is_run and words_of(command.text)[:1] != ["./dev"]:
            out = self.folder / f"out{len(self.commands)}"
            steps.append(STEP.format(command=self.ports.replace(command.text).rstrip("\n"), out=out,
                                     number=len(self.commands), marks=self.folder / "marks"))
            if re.search(r"\bmillrace up .*&$", command.text.split(" #")[0].rstrip()):
                steps.append(READY.format(out=out))
            self.commands.append(command)

    def run(self):
        script = self.folder / "script"
        script.write_text(self.steps())
        words = ["bash", str(script)]
        with contextlib.ExitStack() as stack:
            self.copy_tree() if self.kinds & {"root", "docker"} else self.link_tree()
            if "root" in self.kinds:
                words = self.as_root(script)
            if "docker" in self.kinds:
                self.with_docker(stack)
            if self.commands:
                self.execute(words)
        return self

    def link_tree(self):
        """Commands stand in the folder of the repository: what they read of it is there."""
        for name in ("analyses", "bench", "deploy", "tests", "tools"):
            (self.work / name).symlink_to(ROOT / name)

    def copy_tree(self):
        """The same, for commands that write there."""
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True,
                               check=True).stdout.split("\0")
        for name in filter(None, names):
            target = self.work / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)

    def as_root(self, script):
        self.folder.chmod(0o755)
        for name in ("copies", "bin", "services"):
            (self.folder / name).mkdir()
        stand_in = self.folder / "bin" / "systemctl"
        stand_in.write_text(f'#!/bin/sh\nexec sh {ROOT}/tests/e2e/systemctl.sh "$@"\n')
        stand_in.chmod(0o755)
        self.env.update(STAND_IN=str(self.folder / "services"),
                        PATH=f"{self.folder / 'bin'}:{self.env['PATH']}:/usr/sbin:/sbin")
        programs = " ".join(str(path) for path in MILLRACE.parent.glob("millrace*")
                            if os.access(path, os.X_OK) and path.is_file())
        wrapper = self.folder / "as_root"
        wrapper.write_text(AS_ROOT.format(copies=self.folder / "copies", programs=programs,
                                          script=script))
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash",
                str(wrapper)]

    def with_docker(self, stack):
        self.folder.chmod(0o755)
        private = stack.enter_context(engine.Engine(self.folder / "engine"))
        private.make_base()
        private.docker("tag", engine.BASE, "debian:bookworm-slim")
        self.env.update({key: private.env[key] for key in ("DOCKER_HOST", "DOCKER_CONFIG")},
                        MILLRACE_DOCKER_SOCKET=str(private.socket))

    def execute(self, words):
        shell = subprocess.Popen(words, cwd=self.work, start_new_session=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=self.env)
        ended = True
        try:
            shell.wait(PAGE_S)
        except subprocess.TimeoutExpired:
            ended = False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        self.judge(ended)

    def printed(self, number):
        with contextlib.suppress(OSError):
            return (self.folder / f"out{number}").read_text(errors="replace")
        return ""

    def judge(self, ended):
        marks = (self.folder / "marks").read_text() if (self.folder / "marks").exists() else ""
        codes = [int(line.split()[1]) for line in marks.splitlines()]
        for number, code in enumerate(codes):
            if code != 0:
                self.fail(self.commands[number].line, f"exit {code}: {self.shown(number)}")
        if all(code == 0 for code in codes) and len(codes) < len(self.commands):
            why = "the shell ended" if ended else f"not within {PAGE_S} s"
            self.fail(self.commands[len(codes)].line, f"{why}: {self.shown(len(codes))}")
        self.judge_prints(len(codes))

    def shown(self, number):
        return self.commands[number].text + self.printed(number)[-3000:]

    def judge_prints(self, run_count):
        for block in self.page.blocks:
            before = [number for number, command in enumerate(self.commands[:run_count])
                      if command.line < block.line]
            if not block.prints or not before:
                continue
            got = self.printed(before[-1])
            if not matches(self.ports.replace(block.text), got):
                self.fail(block.line, f"`{self.commands[before[-1]].text.strip()}` prints\n{got}")


def run_page(page):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-docs-"))
    try:
        return Run(page, folder).run()
    finally:
        if "KEEP" in os.environ:
            print(f"# {page.name}: {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
