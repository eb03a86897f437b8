"""Bars as an SVG: two groups, one bar for each queue, readable on light and dark pages."""

from collections.abc import Mapping
from xml.sax.saxutils import escape

WIDTH, LEFT, BAR, GAP, HEAD = 760, 110, 22, 8, 40
ROOM = WIDTH - LEFT - 220  # for the longest bar; what is right of it is for its figure
OURS = "Geartrain"

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #333 }
  .title { font-weight: 600; font-size: 15px }
  .bar { fill: #9aa5b1 } .ours { fill: #2f7d5b }
  @media (prefers-color-scheme: dark) { text { fill: #ddd } .bar { fill: #66707c } .ours { fill: #4fae83 } }
"""


def draw(groups: Mapping[str, Mapping[str, float]], caption: str) -> str:
    """The picture; `groups` has a title and the rates by queue for each group of bars."""
    parts: list[str] = []
    top = 0
    for title, rates in groups.items():
        parts += _group(title, rates, top)
        top += HEAD + len(rates) * (BAR + GAP) + GAP
    parts.append(f'  <text x="0" y="{top + 16}">{escape(caption)}</text>')
    body = "\n".join(parts)
    size = f'width="{WIDTH}" height="{top + 28}" viewBox="0 0 {WIDTH} {top + 28}"'
    label = escape("; ".join(groups), {'"': "&quot;"})
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">'
    return f"{head}\n<style>{STYLE}</style>\n{body}\n</svg>\n"


def _group(title: str, rates: Mapping[str, float], top: int) -> list[str]:
    parts = [f'  <text class="title" x="0" y="{top + 24}">{escape(title)}</text>']
    longest = max(rates.values())
    best_other = max((rate for name, rate in rates.items() if name != OURS), default=0.0)
    for row, (name, rate) in enumerate(sorted(rates.items(), key=lambda each: -each[1])):
        y = top + HEAD + row * (BAR + GAP)
        kind = "ours" if name == OURS else "bar"
        figure = f"{rate:,.0f}"
        if name == OURS and best_other:
            figure += f" ({rate / best_other:.1f} times the next)"
        width = max(rate / longest * ROOM, 1)
        parts.append(f'  <text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'  <rect class="{kind}" x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="3"/>')
        parts.append(f'  <text x="{LEFT + width + 8:.1f}" y="{y + 16}">{figure}</text>')
    return parts
