#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sentiment_embed.py MODEL SOURCE - writes a sentiment model as C, to be part of the program."""
import struct
import sys

HEADER_BYTES = 32
BYTES_PER_LINE = 24


def source(model):
    magic, version, buckets, _, _, checksum = struct.unpack_from("<8sIIIIQ", model)
    if magic != b"millsent" or version != 1 or len(model) != HEADER_BYTES + 8 * buckets:
        sys.exit("sentiment_embed.py: this is not a sentiment model of version 1")
    yield "/* sentiment_builtin.c - made by tools/sentiment_embed.py from sentiment.model. */"
    yield '#include "engine/exec/expr/sentiment_model.h"'
    yield "static const _Alignas(64) unsigned char buckets[] = {"
    for start in range(HEADER_BYTES, len(model), BYTES_PER_LINE):
        yield "".join(f"{byte}," for byte in model[start : start + BYTES_PER_LINE])
    yield "};"
    yield f"const struct sentiment_model sentiment_builtin = {{buckets, {buckets},"
    yield f"                                                  UINT64_C({checksum:#x})}};"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: sentiment_embed.py MODEL SOURCE")
    with open(sys.argv[1], "rb") as file:
        model = file.read()
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write("\n".join(source(model)) + "\n")


if __name__ == "__main__":
    main()
