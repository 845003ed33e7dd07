"""Two small charts as SVG text: lines over named places, and bars with intervals. No library, no style sheet."""

from typing import NamedTuple, Optional, Sequence
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP = 720, 60, 170, 34
PLOT_HEIGHT, BAR_HEIGHT, LABEL_WIDTH = 260, 20, 230
COLOURS = ["#1f5aa6", "#c2571a", "#2f7d4f", "#8a3f8f", "#7a7a7a", "#b3902a", "#3aa0a8", "#a83a4c", "#000000"]


class Bar(NamedTuple):
    label: str
    value: float
    low: Optional[float] = None
    high: Optional[float] = None


def text(x: float, y: float, words: str, anchor: str = "start", fill: str = "#222") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = "#ddd", width: float = 1) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" stroke-width="{width}"/>'


def document(height: float, title: str, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif" font-size="12">'
    background = f'<rect width="{WIDTH}" height="{height:.0f}" fill="#fff"/>'
    return "\n".join([head, background, text(LEFT, 18, title), *parts, "</svg>"]) + "\n"


def line_chart(title: str, places: Sequence[str], series: dict[str, Sequence[Optional[float]]], top: float, step: float) -> str:
    """`series`: name -> a value for each place, None where there is none; the axis runs from 0 to `top`."""
    width = WIDTH - LEFT - RIGHT
    x_of = [LEFT + width * i / max(len(places) - 1, 1) for i in range(len(places))]
    bottom = TOP + PLOT_HEIGHT

    def y_of(value: float) -> float:
        return bottom - PLOT_HEIGHT * min(value, top) / top

    parts = []
    for tick in range(round(top / step) + 1):
        parts += [line(LEFT, y_of(tick * step), LEFT + width, y_of(tick * step))]
        parts += [text(LEFT - 6, y_of(tick * step) + 4, f"{tick * step:g}", "end")]
    parts += [text(x, bottom + 18, place, "middle") for x, place in zip(x_of, places)]
    for index, (name, values) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        points = " ".join(f"{x:.1f},{y_of(v):.1f}" for x, v in zip(x_of, values) if v is not None)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = TOP + 12 + 18 * index
        parts += [line(LEFT + width + 12, y - 4, LEFT + width + 30, y - 4, colour, 2), text(LEFT + width + 36, y, name)]
    return document(bottom + 30, title, parts)


def bar_chart(title: str, bars: Sequence[Bar], mark: float) -> str:
    """Horizontal bars from 0, each with its interval; a line at `mark`."""
    top = max([mark] + [bar.high or bar.value for bar in bars]) * 1.05
    width = WIDTH - LABEL_WIDTH - 110
    bottom = TOP + BAR_HEIGHT * len(bars)

    def x_of(value: float) -> float:
        return LABEL_WIDTH + width * value / top

    parts = []
    for index, bar in enumerate(bars):
        y = TOP + BAR_HEIGHT * index
        parts.append(text(LABEL_WIDTH - 8, y + 13, bar.label, "end"))
        parts.append(f'<rect x="{LABEL_WIDTH}" y="{y + 3}" width="{x_of(bar.value) - LABEL_WIDTH:.1f}" height="14" fill="{COLOURS[0]}"/>')
        if bar.low is not None and bar.high is not None:
            parts.append(line(x_of(bar.low), y + 10, x_of(bar.high), y + 10, "#222", 2))
        parts.append(text(x_of(bar.high or bar.value) + 6, y + 14, f"{bar.value:.2f}"))
    parts.append(line(x_of(mark), TOP, x_of(mark), bottom, "#c2571a", 1.5))
    return document(bottom + 12, title, parts)
