#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is installed: the libraries of both programs, the files, and no hook that tests use.

Method: the programs of the flavour that is installed are looked at with readelf and ldd, and
installed into a folder. The lists of libraries are those of meson.build; the words of hooks are read
from the sources that have them. Prints TAP. BUILD_DIR is the build, SOURCE_DIR the source tree.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from cluster import Suite

BUILD_DIR = pathlib.Path(os.environ.get("BUILD_DIR", "build/install")).resolve()
SOURCE_DIR = pathlib.Path(os.environ.get("SOURCE_DIR", os.getcwd()))
PROGRAMS = ("millrace", "millrace-cluster")

suite = Suite()
test = suite.test


class Nothing:
    """The tests here share no world: they only look."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def state(self):
        return ""

    def repair(self):
        pass


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def allowed():
    """{program: the libraries that meson.build allows}"""
    text = (SOURCE_DIR / "meson.build").read_text()
    lists = {}
    for name in ("engine", "cluster"):
        match = re.search(rf"^{name}_libraries = (.*?\])\n(?! )", text, re.MULTILINE | re.DOTALL)
        lists[name] = set(re.findall(r"'([^']+)'", match.group(1)))
    return {"millrace": lists["engine"], "millrace-cluster": lists["engine"] | lists["cluster"]}


def needed(program):
    """What it is linked with itself."""
    names = re.findall(r"\(NEEDED\).*\[(.*)\.so", output("readelf", "-d", BUILD_DIR / program))
    # The loader itself may be named, on some machines.
    return {name for name in names if not name.startswith("ld-linux")}


def loaded(program):
    """What starting it brings into memory: also what its libraries are linked with."""
    names = re.findall(r"^\s*(\S+)\.so\S* => ", output("ldd", BUILD_DIR / program), re.MULTILINE)
    return {name for name in names if not name.startswith("linux-vdso")}


@test("each program is linked with the libraries that the build allows it, and no other")
def _(_world):
    for program, names in allowed().items():
        assert needed(program) == names, f"{program}: {needed(program)}, allowed {names}"


@test("starting the engine loads nothing that its libraries would bring along")
def _(_world):
    assert loaded("millrace") == allowed()["millrace"], loaded("millrace")
    assert len(loaded("millrace-cluster")) > len(loaded("millrace"))  # The look is not in vain.


def hooks():
    """The words of crash points and planted mistakes, as their sources spell them."""
    words = set()
    for path in SOURCE_DIR.glob("src/cluster/**/*.c"):
        text = path.read_text()
        for table in re.findall(r"(?:_mutation_names|crash_points_known)\b[^;=]*= \{(.*?)\};", text,
                                re.DOTALL):
            words |= {word for word in re.findall(r'"([\w-]+)"', table) if "-" in word}
    return words


@test("no crash point and no planted mistake is in what is installed")
def _(_world):
    words = hooks()
    assert len(words) > 20, words
    for program in PROGRAMS:
        content = (BUILD_DIR / program).read_bytes()
        found = [word for word in words if re.search(rb"\b%s\b" % word.encode(), content)]
        assert not found, f"{program}: {sorted(found)}"


@test("both programs, the analyses and nothing of the tests are installed")
def _(_world):
    with tempfile.TemporaryDirectory(prefix="millrace-installed-") as folder:
        subprocess.run(["meson", "install", "-C", BUILD_DIR, "--no-rebuild", "--quiet",
                        "--destdir", folder], check=True, capture_output=True)
        files = {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*")
                 if path.is_file()}
        assert {pathlib.Path(name).name for name in files if "/bin/" in name} == set(PROGRAMS), files
        kinds = {pathlib.Path(name).suffix for name in files if "/analyses/" in name}
        assert kinds == {".sql"}, files
        strange = [name for name in files if not re.search(r"/bin/|/share/millrace/analyses/", name)]
        assert not strange, strange


@test("a command of the cluster says what to install when millrace-cluster is missing")
def _(_world):
    with tempfile.TemporaryDirectory(prefix="millrace-alone-") as folder:
        alone = pathlib.Path(folder) / "millrace"
        alone.write_bytes((BUILD_DIR / "millrace").read_bytes())
        alone.chmod(0o755)
        done = subprocess.run([alone, "up", "-c", "cluster.ini"], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 2 and "millrace-cluster" in done.stderr, done
        assert "install the package" in done.stderr, done
        done = subprocess.run([alone, "help"], capture_output=True, text=True, check=True)
        assert "submit" in done.stdout and "run" in done.stdout, done


if __name__ == "__main__":
    sys.exit(suite.run(sys.argv[1:], Nothing))
