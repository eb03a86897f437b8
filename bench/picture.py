"""Bars as an SVG, by hand: readable on light and dark pages, by a screen reader, and in a diff."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, LEFT, BAR, GAP, HEAD, MARGIN = 760, 190, 20, 6, 32, 14
ROOM = WIDTH - LEFT - 80  # for the longest bar; what is right of it is for its label

# Drawn for a light page; a viewer that prefers dark gets the other colours. The page below shows through.
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 16px }
  .panel { font-weight: 600 }
  .caption { font-size: 12px; fill: #57606a }
  .theirs { fill: #9aa5b1 } .ours { fill: #2f7d5b }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .caption { fill: #9aa5b1 } .theirs { fill: #66707c } .ours { fill: #4fae83 }
  }
"""


class Bar(NamedTuple):
    """One of those who took part."""

    name: str
    value: float
    label: str
    hint: str  # shown when the pointer rests on it
    ours: bool


class Panel(NamedTuple):
    """Bars that share a scale."""

    title: str
    bars: tuple[Bar, ...]


def draw(title: str, panels: Sequence[Panel], caption: str) -> str:
    """The picture, as a file's text."""
    parts = [f'<text class="title" x="0" y="18">{escape(title)}</text>']
    top = HEAD
    for panel in panels:
        parts += _panel(panel, top)
        top += HEAD + len(panel.bars) * (BAR + GAP) + MARGIN
    parts.append(f'<text class="caption" x="0" y="{top + 8}">{escape(caption)}</text>')
    height = top + HEAD
    label = escape(f"{title}: " + "; ".join(_told(panel) for panel in panels), {'"': "&quot;"})
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _panel(panel: Panel, top: int) -> Iterator[str]:
    yield f'<text class="panel" x="0" y="{top + 20}">{escape(panel.title)}</text>'
    longest = max((bar.value for bar in panel.bars), default=0.0)
    for number, bar in enumerate(panel.bars):
        y = top + HEAD + number * (BAR + GAP)
        width = max(bar.value / longest * ROOM, 1) if longest > 0 else 1
        kind = "ours" if bar.ours else "theirs"
        yield f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(bar.name)}</text>'
        shape = f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="3">'
        yield f"{shape}<title>{escape(bar.hint)}</title></rect>"
        yield f'<text x="{LEFT + width + 8:.1f}" y="{y + 15}">{escape(bar.label)}</text>'


def _told(panel: Panel) -> str:
    """A panel for who cannot see it."""
    return f"{panel.title}: " + ", ".join(f"{bar.name} {bar.label}".strip() for bar in panel.bars)
