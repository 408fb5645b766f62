#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""terminal_picture.py - draws what a terminal showed as an SVG: docs/terminal.svg.

usage: terminal_picture.py <TRANSCRIPT >PICTURE.svg

Lines that begin with `$ ` are commands. All text stays text, so that it can be searched and read
aloud; colours are those of a dark terminal, on any page.
"""
import html
import sys

CHARACTER = 8.4  # Width of one, of a monospaced font of 14 pixels.
LINE = 19
MARGIN = 16
COMMAND, PLAIN, GOOD, BAD = "#ffffff", "#c9d1d9", "#7ee787", "#ff7b72"


def colour(line):
    if line.startswith("$ "):
        return COMMAND
    if " kill " in line:
        return BAD
    if " is back " in line or "equal: yes" in line or "balanced: yes" in line:
        return GOOD
    return PLAIN


def draw(lines):
    width = int(max(map(len, lines)) * CHARACTER) + 2 * MARGIN
    height = len(lines) * LINE + 2 * MARGIN
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" role="img">')
    yield f'<title>{html.escape(lines[0])}</title>'
    yield f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>'
    yield '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">'
    for number, line in enumerate(lines):
        if line.strip():
            y = MARGIN + number * LINE + 14
            yield (f'<text x="{MARGIN}" y="{y}" fill="{colour(line)}" xml:space="preserve">'
                   f'{html.escape(line)}</text>')
    yield "</g>\n</svg>"


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    print("\n".join(draw(lines)))


if __name__ == "__main__":
    main()
