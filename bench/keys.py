# SPDX-License-Identifier: Apache-2.0
"""keys.py - rows with so many different keys, written quickly: to see what groups cost.

A file has the columns key and value. A key has eight digits: a one, three that come from a block of
a thousand rows, and four that the whole block has in common. A block is a text made once, in random
order; what is in common is then replaced in it, which is as fast as copying. So neighbouring rows
have keys far from each other, every key comes equally often, and files of equal rows are of equal
size, however many keys there are.
"""
import itertools
import random

BLOCK_ROWS = 1000
BLOCKS = 16
KEYS_MAX = 10_000_000
MARK = b"####"


def _block(draw, firsts):
    """Text of a thousand rows; `firsts` is how many different beginnings their keys have."""
    beginnings = [row % firsts for row in range(BLOCK_ROWS)]
    draw.shuffle(beginnings)
    return b"".join(b"1%03d%s,%d\n" % (beginning, MARK, draw.randrange(10))
                    for beginning in beginnings)


def split(groups):
    """(beginnings, endings) whose product is `groups`: 1 to 1000 and 1 to 10,000, or ValueError."""
    firsts = max(1, min(groups, BLOCK_ROWS))
    lasts = groups // firsts
    if groups < 1 or groups > KEYS_MAX or firsts * lasts != groups or BLOCK_ROWS % firsts:
        raise ValueError(f"{groups} keys cannot be spread evenly: a power of ten can")
    return firsts, lasts


def write(path, rows, groups, seed):
    """Gives how many rows the file has: `rows`, but enough for all keys to come equally often."""
    firsts, lasts = split(groups)
    draw = random.Random(seed)
    blocks = [_block(draw, firsts) for _ in range(BLOCKS)]
    endings = [b"%04d" % ending for ending in range(lasts)]
    rounds = max(1, round(rows / BLOCK_ROWS / lasts))
    with open(path, "wb") as file:
        file.write(b"key,value\n")
        block = itertools.cycle(blocks)
        for _ in range(rounds):
            draw.shuffle(endings)
            file.writelines(next(block).replace(MARK, ending) for ending in endings)
    return rounds * lasts * BLOCK_ROWS
