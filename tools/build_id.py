#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""build_id.py - a name for the sources: the same for the same bytes, with or without git.

Nodes and clients of one job must be built from the same sources, and a seed of the simulator replays
only with those that it failed with. A commit's name would be the same for every uncommitted change,
and is not there in an image or an archive; what the program is made of always is.
"""
import hashlib
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
MADE_OF = ("src/**/*.c", "src/**/*.h", "src/**/*.build")


def build_id(root=ROOT):
    digest = hashlib.sha256()
    for path in sorted(path for pattern in MADE_OF for path in root.glob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    print(build_id())
