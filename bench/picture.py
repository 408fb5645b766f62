# SPDX-License-Identifier: Apache-2.0
"""picture.py - seconds per analysis as bars, growth as lines: SVG, legible on light and on dark."""
import dataclasses
import math
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 760, 150, 120
BAR, GAP, GROUP = 18, 4, 26
COLOURS = {"millrace": "#d9822b", "duckdb": "#5b8fb9", "polars": "#8a9a5b"}
NAMES = {"millrace": "millrace", "duckdb": "DuckDB", "polars": "Polars"}
STYLE = """\
text { font: 13px sans-serif; fill: #24292f }
.dim { fill: #57606a; font-size: 12px }
.title { font-size: 15px; font-weight: bold }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .dim { fill: #9da7b1 } }"""


def _bars(entry, longest, top):
    """The lines of one analysis, and where they end."""
    lines = []
    runs = {"millrace": entry["millrace"], **entry["peers"]}
    size = f"{entry['bytes'] / 1e9:.2g} GB"
    lines.append(f'<text x="{LEFT - 12}" y="{top + BAR - 4}" text-anchor="end">'
                 f"{escape(entry['analysis'])}</text>")
    lines.append(f'<text x="{LEFT - 12}" y="{top + 2 * BAR}" text-anchor="end" class="dim">'
                 f"{size}</text>")
    for name, run in runs.items():
        width = max(2.0, run["wall"] / longest * (WIDTH - LEFT - RIGHT))
        lines.append(f'<rect x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR}" rx="2" '
                     f'fill="{COLOURS[name]}"/>')
        lines.append(f'<text x="{LEFT + width + 8:.1f}" y="{top + BAR - 5}" class="dim">'
                     f"{NAMES[name]} {run['wall']:.2f} s</text>")
        top += BAR + GAP
    return lines, top + GROUP - GAP


def draw(result):
    """The text of the picture."""
    entries = result["analyses"]
    walls = [run["wall"] for e in entries for run in (e["millrace"], *e["peers"].values())]
    longest = max(walls, default=1.0) or 1.0
    body, top = [], 64
    for entry in entries:
        lines, top = _bars(entry, longest, top)
        body += lines
    subtitle = (f"seconds from CSV files to all answers; {result['threads']} threads, "
                f"best of {result['repeat']}, scale {result['scale']:g}; shorter is better")
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" '
        f'viewBox="0 0 {WIDTH} {top}" role="img" aria-label="{escape(subtitle)}">',
        f"<style>{STYLE}</style>",
        f'<text x="{LEFT}" y="24" class="title">The analyses</text>',
        f'<text x="{LEFT}" y="44" class="dim">{escape(subtitle)}</text>', *body, "</svg>", ""])


# --- Lines: small pictures side by side. ---

COLUMNS = 2
PANEL_WIDTH, PANEL_HEIGHT = 380, 230
PLOT_LEFT, PLOT_TOP, PLOT_WIDTH, PLOT_HEIGHT = 56, 34, 226, 150
LINE_COLOURS = ("#d9822b", "#5b8fb9", "#8a9a5b", "#a05fa8")
LINE_STYLE = STYLE + """
.axis { stroke: #8c959f; stroke-width: 1 }
.law { stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 4 4; fill: none }
.line { stroke-width: 2; fill: none }"""


@dataclasses.dataclass
class Line:
    name: str
    points: list  # (x, y)
    is_dashed: bool = False  # What should be, not what is.


@dataclasses.dataclass
class Panel:
    title: str
    axis: str
    unit: str
    lines: list
    is_log: bool = False  # Of x; y always begins at 0.


def round_up(value):
    """The next of 1, 2, 5, 10, 20, ... that is no less."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * step for step in (1, 2, 5, 10) if unit * step >= value * (1 - 1e-9))


def short(value):
    """A number on an axis."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


class _Plot:
    """Where values are in one panel."""

    def __init__(self, panel, left, top):
        self.left, self.top, self.is_log = left + PLOT_LEFT, top + PLOT_TOP, panel.is_log
        self.xs = sorted({x for line in panel.lines for x, _ in line.points})
        self.most = round_up(max((y for line in panel.lines for _, y in line.points), default=1.0))
        self.low, self.high = (self.on_axis(self.xs[0]) if self.is_log else 0.0,
                               self.on_axis(self.xs[-1]))

    def on_axis(self, x):
        return math.log10(x) if self.is_log else x

    def x(self, value):
        part = (self.on_axis(value) - self.low) / ((self.high - self.low) or 1)
        return self.left + part * PLOT_WIDTH

    def y(self, value):
        return self.top + PLOT_HEIGHT * (1 - value / self.most)

    def path(self, line):
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in line.points)


def _axes(panel, plot):
    bottom, right = plot.top + PLOT_HEIGHT, plot.left + PLOT_WIDTH
    lines = [f'<text x="{plot.left}" y="{plot.top - 14}">{escape(panel.title)}</text>',
             f'<path class="axis" fill="none" d="M{plot.left},{plot.top} V{bottom} H{right}"/>',
             f'<text x="{right}" y="{bottom + 32}" text-anchor="end" class="dim">'
             f"{escape(panel.axis)}</text>"]
    for share in (0, 0.5, 1):
        value = plot.most * share
        unit = f" {panel.unit}" if share == 1 else ""
        lines.append(f'<text x="{plot.left - 6}" y="{plot.y(value) + 4:.1f}" text-anchor="end" '
                     f'class="dim">{short(value)}{unit}</text>')
    last = None
    for x in plot.xs:  # One that has no room is left out.
        if last is None or plot.x(x) - last > 22:
            last = plot.x(x)
            lines.append(f'<text x="{last:.1f}" y="{bottom + 16}" text-anchor="middle" '
                         f'class="dim">{short(x)}</text>')
    return lines


def _draw_panel(panel, left, top):
    plot = _Plot(panel, left, top)
    lines = _axes(panel, plot)
    lines += [f'<polyline class="law" points="{plot.path(line)}"/>'
              for line in panel.lines if line.is_dashed]
    solid = [line for line in panel.lines if not line.is_dashed]
    taken = []  # Heights of names, which must not lie on each other.
    for line, colour in sorted(zip(solid, LINE_COLOURS), key=lambda pair: -pair[0].points[-1][1]):
        lines.append(f'<polyline class="line" stroke="{colour}" points="{plot.path(line)}"/>')
        lines += [f'<circle cx="{plot.x(x):.1f}" cy="{plot.y(y):.1f}" r="3" fill="{colour}"/>'
                  for x, y in line.points]
        height = max([plot.y(line.points[-1][1]) + 4, *(other + 14 for other in taken[-1:])])
        taken.append(height)
        lines.append(f'<text x="{plot.left + PLOT_WIDTH + 8}" y="{height:.1f}" '
                     f'style="fill: {colour}" class="dim">{escape(line.name)}</text>')
    return lines


def draw_lines(title, subtitle, panels):
    """The text of a picture with a panel for each, from left to right, then downwards."""
    body = []
    for number, panel in enumerate(panels):
        body += _draw_panel(panel, number % COLUMNS * PANEL_WIDTH,
                            64 + number // COLUMNS * PANEL_HEIGHT)
    width = COLUMNS * PANEL_WIDTH
    height = 64 + math.ceil(len(panels) / COLUMNS) * PANEL_HEIGHT
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}: '
        f'{escape(subtitle)}">',
        f"<style>{LINE_STYLE}</style>",
        f'<text x="{PLOT_LEFT}" y="24" class="title">{escape(title)}</text>',
        f'<text x="{PLOT_LEFT}" y="44" class="dim">{escape(subtitle)}</text>', *body, "</svg>", ""])
