# SPDX-License-Identifier: Apache-2.0
"""cross.py - a build for the other architecture, and programs of it that run here.

Debian's cross compiler builds, qemu's user mode runs. The libraries of the other architecture are
unpacked into build/cross/ARCH instead of being installed: that needs no root, leaves the machine's
package database alone, and cannot collide with the versions that are installed.
"""
import os
import pathlib
import platform
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ["libc6-dev", "libcmocka-dev", "libcurl4-openssl-dev", "libinih-dev",
             "libjansson-dev", "libmicrohttpd-dev", "libpcre2-dev", "librabbitmq-dev",
             "libsodium-dev", "libxxhash-dev"]

# What runs here: (name of the other architecture in gcc and qemu, in Debian)
OTHER = {"x86_64": ("aarch64", "arm64"), "aarch64": ("x86_64", "amd64")}


def cpu():
    return OTHER.get(platform.machine(), OTHER["aarch64"])[0]


def _relink(tree):
    """Absolute links in a package mean the machine it is installed on: make them stay inside."""
    for folder, folders, files in os.walk(tree):
        for name in folders + files:
            path = pathlib.Path(folder, name)
            if path.is_symlink() and os.readlink(path).startswith("/"):
                target = str(tree) + os.readlink(path)
                path.unlink()
                path.symlink_to(os.path.relpath(target, folder))


def sysroot():
    """Downloads and unpacks the libraries once; returns their folder."""
    debian = OTHER.get(platform.machine(), OTHER["aarch64"])[1]
    home = ROOT / "build" / "cross" / debian
    done = home / "sysroot"
    listed = home / "libraries"
    if done.exists() and listed.exists() and listed.read_text() == " ".join(LIBRARIES):
        return done
    shutil.rmtree(home, ignore_errors=True)
    for name in ("state", "lists/partial", "cache", "archives/partial", "unpacked"):
        (home / name).mkdir(parents=True)
    (home / "status").touch()
    # A package database of our own, empty, for the other architecture.
    config = home / "apt.conf"
    config.write_text(f"""Dir::State "{home}/state";
Dir::State::status "{home}/status";
Dir::State::lists "{home}/lists";
Dir::Cache "{home}/cache";
Dir::Cache::archives "{home}/archives";
APT::Architecture "{debian}";
APT::Architectures "{debian}";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Debug::NoLocking "true";
""")
    env = dict(os.environ, APT_CONFIG=str(config), DEBIAN_FRONTEND="noninteractive")
    for command in (["update"], ["-y", "--download-only", "install", *LIBRARIES]):
        subprocess.run(["apt-get", "-qq", *command], env=env, check=True, capture_output=True)
    for package in sorted((home / "archives").glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, home / "unpacked"], check=True, capture_output=True)
    _relink(home / "unpacked")
    (home / "unpacked").rename(done)
    listed.write_text(" ".join(LIBRARIES))
    return done


def meson_options(root):
    """The options of meson that make a build with the libraries in `root`."""
    constants = root.parent / "constants.ini"
    text = f"[constants]\nsysroot = '{root}'\n"
    if not constants.exists() or constants.read_text() != text:
        constants.write_text(text)
    machine = ROOT / "tests" / "cross" / (cpu() + ".ini")
    return [f"--cross-file={constants}", f"--cross-file={machine}", "--buildtype=release",
            "-Dtests=enabled", "-Dfault_injection=true"]


def wrapper(root):
    """The command that runs a program of the other architecture."""
    return ["qemu-" + cpu(), "-cpu", "max", "-L", str(root)]


def write_launcher(root, program):
    """A script that stands for `program` where a test wants one path to call."""
    launcher = program.with_name(program.name + "-qemu")
    words = " ".join(f"'{word}'" for word in [*wrapper(root), str(program)])
    launcher.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    launcher.chmod(0o755)
    return launcher
