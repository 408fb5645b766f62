#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dirty data sets that are better made than kept: control bytes, broken UTF-8, and chance.

    python3 make_dirty.py OUTDIR [--random COUNT] [--seed SEED]

The sets are OUTDIR/ANALYSIS/NAME: `bytes` with every oddity of line ends and encodings,
and with --random, `random-SEED`, `random-SEED+1` and so on. The
same seed writes the same bytes.
"""
import argparse
import os
import random

BOM = b"\xef\xbb\xbf"

ARGENTINA_AND_SPAIN = b"\"[{'name': 'Argentina'}, {'name': 'Spain'}]\""


def film(number, title, line_end=b"\r\n", genres=b"[]", overview=b"o"):
    fields = [b"%d" % number, title, genres, b"2001-01-01", overview, ARGENTINA_AND_SPAIN]
    return b",".join([*fields, b"[]", b"10", b"25", b"en"]) + line_end


FILM_HEADER = (
    b'"id","title",genres,release_date,overview,production_countries,'
    b"spoken_languages,budget,revenue,original_language\r\n"
)

MOVIES_BYTES = {
    "movies_metadata.csv": BOM
    + FILM_HEADER
    + film(1, b"plain")
    + film(2, b"line feed alone", b"\n")
    + film(3, b"return\rinside")
    + film(4, b'"return and line feed\r\ninside quotes"')
    + film(5, b'"ends with a return\r"')
    + film(6, b"two returns at the end", b"\r\r\n")  # The language is then `en` and a return.
    + film(7, b"a\x00zero byte and \x01\x1b\x7f others")
    + film(8, b"latin \xe9 one")
    + film(9, b"cut short \xe2\x82")
    + film(10, b"\xe2\x82 cut short, then more".replace(b",", b";"))
    + film(11, b"surrogate \xed\xa0\x80")
    + film(12, b"overlong \xc0\xaf \xe0\x80\xaf")
    + film(13, b"beyond \xf4\x90\x80\x80 \xff\xfe")
    + film(14, BOM + b"mark inside")
    + film(15, "é 日本 😀".encode())
    + film(16, b"\xff")
    + b"\r\n"
    + b"\n"
    + b"\r\r\n"
    + film(17, b"after blank lines", overview=b'"bad\nor\r\ngood"')
    + film(18, b"\x00")
    + film(19, b"tab\tand vertical\vtab", genres=b"\"[{'name': 'Drama'},\r\n\t{'name': 'Crime'}]\"")
    + film(20, b"ends with a return alone", b"\r"),
    "credits.csv": b"cast,id\r\n"
    + b"\"[{'name': 'Ana'},\n {'name': 'Eva'}]\",1\r\n"
    + b"\"[{'name': 'Ana'}, {'name': 'Zo\xc3\xab'}]\",2\n"
    + b"\"[{'name': 'Ana'}]\",3\r\r\n"
    + b"\"[{'name': 'Ana'}]\",4",
    "ratings.csv": BOM + b"movieId,rating\n1,4.5\r\n2,\"3\"\r\n3,5\x00\n4,1\r\r\n5,2.5\r",
}

COFFEE_BYTES = {
    "transactions/a.csv": BOM
    + b"transaction_id,store_id,final_amount,created_at,user_id\r\n"
    + b"t1,1,100,2024-01-01 10:00:00,5\r\n"
    + b"t2,1,100,2024-01-01 10:00:00,5\r\r\n"
    + b't3,1,100,2024-01-01 10:00:00,"5"\r\n'
    + b't4,1,100,2024-01-01 10:00:00,"5\r"\r\n'
    + b't5,"1"0,100,2024-01-01 10:00:00,\r\n'
    + b"t\xff,1,100,2024-01-01 10:00:00,\n"
    + b"t\x00,1,100,2024-01-01 10:00:00,\n"
    + b"t6,1,100\x00,2024-01-01 10:00:00,\n"
    + b"t7,1,100,2024-01-01\t10:00:00,\n"
    + b"t8,1,100,2024-01-01 10:00:00,5",
    "transactions/B.csv": b"user_id,transaction_id,store_id,final_amount,created_at\r"
    + b"\nt9,x,2,75,2025-01-01 23:00:00\r\n,u,2,75,2025-01-01 23:00:00\r",
    "transactions/c.csv": b"",
    "transactions/d.csv": BOM + b"transaction_id,store_id,final_amount,created_at,user_id",
    "transaction_items/items.csv": b"created_at,item_id,quantity,subtotal\n"
    + b"2024-01-01 00:00:00,1,1,2\r\n2024-01-01 00:00:00,2,1,2.0005\r\n\r\n"
    + b"2024-02-01 00:00:00,3,1,2\r",
    "users/u.csv": b"birthdate,user_id\r\n1999-01-01,5\r\n1998-01-01\r,5\r\n1997-01-01,2",
    "stores/s.csv": b"store_id,store_name\n1,Caf\xe9 \xc3\xa9\r\n2,\x00\n10,\"x\r\ny\"\n",
    "menu_items/m.csv": b"item_id,item_name\r\n1,\xfe\r\n2,\xc3\xbe\r\n3,\r\r\n",
}

MEMES_BYTES = {
    "posts.csv": BOM
    + b"id,url,score\r\n"
    + b"a,https://x.example/\xe9,10\r\n"
    + b"b,https://x.example/\xc3\xa9,10.0\n"
    + b"c\x00,https://x.example/zero\x00,10\r\n"
    + b"c,https://x.example/no-zero,10\r\n"
    + b"d,\r,10\r\n"
    + b'e,"\r\n",10\r\n'
    + b"f,https://x.example/f,-30\r\r\n"
    + b"g,https://x.example/g,-30\r",
    "comments.csv": b"permalink,sentiment,body\r\n"
    + b"/comments/a/,0.1,a stud\xffent and a STUDENT\xff\r\n"
    + b"/comments/b/,1e300,stu\x00dent\r\n"
    + b"/comments/b/,0.25,\x00\r\n"
    + b"/comments/b/,-1e300,\r\r\n"
    + b"/comments/c\x00/,0.1,professor\r\n"
    + b"/comments/d/,0.1,college\r\n"
    + b'/comments/e/,0.1,"uni\r\nversity\r\nUniversity"\r\n'
    + b"/comments/g/,0.5,[deleted]\r\n"
    + b"/comments/g/,0.5,[deleted]\r\r\n"
    + b"\r\n"
    + b'"/comments/g\r\n/",0.5,x\n'
    + b"/comments/g,\r0.5,x\n"
    + b"/comments/g,0.5\r,x\n"
    + b"/comments/g/,,[removed]\r",
}

def write_set(folder, files):
    for name, data in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


INTEGERS = [b"0", b"-1", b"7.0", b"12.", b"+3", b"00010"]
INTEGER_DIRT = [b"", b" ", b"x", b"1.5", b"1e2", b" 5", b"9223372036854775808", b"5\x00", b"5\r"]
AMOUNTS = [b"75", b"74.9995", b"74.9994", b"80.125", b"-3.5", b".5", b"100.", b"0.0005", b"-0.0004"]
AMOUNT_DIRT = [b"", b"1e2", b".", b"-", b"1,5", b"nan", b"1000000000000000", b"12 "]
DATES = [b"2000-01-01", b"1999-12-31", b"2009-12-31", b"2010-01-01", b"2004-02-29"]
DATE_DIRT = [b"", b"2001-02-29", b"2001-1-1", b"0000-01-01", b"2001-01-01 ", b"20010101"]
TIMES = [
    b"2024-01-01 06:00:00",
    b"2024-01-31 23:00:00",
    b"2024-06-30 23:00:00.1",
    b"2024-07-01T05:59:59",
    b"2025-12-31 12:00:00",
    b"2023-12-31 12:00:00",
]
TIME_DIRT = [b"", b"2024-01-01", b"2024-01-01 24:00:00", b"2024-01-01 10:00:", b"2024-01-01 10:00"]
DOUBLES = [b"0.1", b"0.2", b"-0.7", b"1e300", b"-1e300", b".5", b"3.", b"-0.0", b"1e-320", b"0.3"]
DOUBLE_DIRT = [b"", b" ", b"nan", b"inf", b"1e999", b"0x1", b"1.2.3"]
TEXTS = [b"a", b"B", b"\xc3\xa9", b" ", b'say "hi"', b"x,y", b"two\nlines", b"r\r\nn", b"\xff\x00z"]
TEXT_DIRT = [b""]
LISTS = [
    b"[]",
    b"[{'name': 'Argentina'}]",
    b"[{'name': 'Spain'}, {'id': 1, 'name': 'Argentina'}]",
    b"[{'name': 'Argentina'}, {'name': None}, {'name': \"Cote d'Ivoire\"}, {'name': 'Spain'}]",
    b"[{'name': 'United States of America'}]",
    b"[{'name': 'Argentina', 'name': 'Spain'}, {'name': 'Espa\\xf1a'}]",
    b" [ {'name' : 'Spain',} , 3, 'Argentina', ] ",
]
LIST_DIRT = [b"", b"[", b"{'name': 'Argentina'}", b"[{'name': 'Argentina'}] []", b"[{'name': x}]"]
OVERVIEWS = [b"a good film", b"a bad film", b"not good, never bad", b"love\nand hate", b"\xff"]
OVERVIEWS += [b"Don't die", b"No 'good' thing isn't bad"]
LINKS = [b"/comments/%d/" % post for post in range(4)] + [b"x/comments/1", b"/comments//1", b"none"]
BODIES = [b"a student", b"COLLEGE", b"[deleted]", b"[removed]", b"nothing", b"pro\nfessor", b"a,b"]

# file: columns, each a name, clean values, dirty values
SCHEMAS = {
    "movies": {
        "movies_metadata.csv": [
            ("id", INTEGERS, INTEGER_DIRT),
            ("title", TEXTS, TEXT_DIRT),
            ("genres", LISTS, LIST_DIRT),
            ("release_date", DATES, DATE_DIRT),
            ("overview", OVERVIEWS, TEXT_DIRT),
            ("production_countries", LISTS, LIST_DIRT),
            ("spoken_languages", LISTS, LIST_DIRT),
            ("budget", INTEGERS, INTEGER_DIRT),
            ("revenue", INTEGERS, INTEGER_DIRT),
            ("original_language", [b"en", b"es"], [b"", b"EN", b"en "]),
        ],
        "credits.csv": [("id", INTEGERS, INTEGER_DIRT), ("cast", LISTS, LIST_DIRT)],
        "ratings.csv": [("movieId", INTEGERS, INTEGER_DIRT), ("rating", AMOUNTS, AMOUNT_DIRT)],
    },
    "coffee": {
        "transactions/{}.csv": [
            ("transaction_id", TEXTS, TEXT_DIRT),
            ("store_id", INTEGERS, INTEGER_DIRT),
            ("final_amount", AMOUNTS, AMOUNT_DIRT),
            ("created_at", TIMES, TIME_DIRT),
            ("user_id", INTEGERS, INTEGER_DIRT),
        ],
        "transaction_items/{}.csv": [
            ("item_id", INTEGERS, INTEGER_DIRT),
            ("quantity", INTEGERS, INTEGER_DIRT),
            ("subtotal", AMOUNTS, AMOUNT_DIRT),
            ("created_at", TIMES, TIME_DIRT),
        ],
        "users{}.csv": [("user_id", INTEGERS, INTEGER_DIRT), ("birthdate", DATES, DATE_DIRT)],
        "stores/{}.csv": [("store_id", INTEGERS, INTEGER_DIRT), ("store_name", TEXTS, TEXT_DIRT)],
        "menu_items{}.csv": [("item_id", INTEGERS, INTEGER_DIRT), ("item_name", TEXTS, TEXT_DIRT)],
    },
    "memes": {
        "posts.csv": [
            ("id", [b"0", b"1", b"2", b"3"], TEXT_DIRT),
            ("score", INTEGERS, INTEGER_DIRT),
            ("url", TEXTS, TEXT_DIRT),
        ],
        "comments.csv": [
            ("permalink", LINKS, TEXT_DIRT),
            ("body", BODIES, TEXT_DIRT),
            ("sentiment", DOUBLES, DOUBLE_DIRT),
        ],
    },
}


def quote(value, chance):
    """Writes a field; what need not be quoted is quoted now and then, wholly or in part."""
    if any(byte in value for byte in (b",", b'"', b"\n", b"\r")) or chance.random() < 0.1:
        return b'"' + value.replace(b'"', b'""') + b'"'
    if value and chance.random() < 0.1:
        cut = chance.randrange(len(value) + 1)
        return b'"' + value[:cut] + b'"' + value[cut:]
    return value


def make_file(columns, chance):
    if chance.random() < 0.05:
        return b""
    columns = columns + [("extra", TEXTS, TEXT_DIRT)] * (chance.random() < 0.5)
    chance.shuffle(columns)
    dirt = chance.choice([0.0, 0.01, 0.05, 0.2])
    line_end = chance.choice([b"\n", b"\r\n"])
    lines = [b",".join(quote(name.encode(), chance) for name, _, _ in columns)]
    for _ in range(chance.randrange(120)):
        fields = [
            quote(chance.choice(dirty if chance.random() < dirt else clean), chance)
            for _, clean, dirty in columns
        ]
        if chance.random() < dirt:
            fields = chance.choice([[], fields[1:], fields + [b"more"], [b"\r"], [b'a"b']])
        lines.append(b",".join(fields))
    mark = BOM if chance.random() < 0.2 else b""
    return mark + line_end.join(lines) + chance.choice([b"", line_end, line_end, b"\r"])


def make_random(analysis, seed):
    chance = random.Random(f"{analysis} {seed}")
    files = {}
    for name, columns in SCHEMAS[analysis].items():
        parts = chance.choice(["a", "ab", "aB_"]) if "{}" in name else [""]
        for part in parts:
            files[name.format(part)] = make_file(list(columns), chance)
    return files


def main():
    parser = argparse.ArgumentParser(description="Writes dirty data sets.")
    parser.add_argument("outdir")
    parser.add_argument("--random", type=int, default=0, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write_set(os.path.join(arguments.outdir, "movies", "bytes"), MOVIES_BYTES)
    write_set(os.path.join(arguments.outdir, "coffee", "bytes"), COFFEE_BYTES)
    write_set(os.path.join(arguments.outdir, "memes", "bytes"), MEMES_BYTES)
    for seed in range(arguments.seed, arguments.seed + arguments.random):
        for analysis in SCHEMAS:
            folder = os.path.join(arguments.outdir, analysis, f"random-{seed}")
            write_set(folder, make_random(analysis, seed))


if __name__ == "__main__":
    main()
