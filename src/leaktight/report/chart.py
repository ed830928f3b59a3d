"""Charts: points and lines in stacked panels, as SVG that needs no script.

Colours are classes of the page's style sheet, so that one chart serves light, dark and print. Every chart is drawn for
the width that it is shown at, so that its letters have one size on a desk and on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from markupsafe import Markup, escape

Symbol = Literal["", "circle", "square", "diamond", "up", "down", "cross", "star"]
Stroke = Literal["", "solid", "dashes", "dots"]

WIDE, NARROW = 700, 330
"""Between them a page has one column of charts or two."""
_LETTER, _LINE = 6.3, 15
"""How wide a letter is on average, and how high a line, in pixels."""
_LEFT, _RIGHT, _TOP, _TICKS, _TITLE = 46, 16, 26, 20, 18
_GAP = 12
_LEAST = 1e-300
_LEGEND_SWATCH = 22
_Height = Callable[[float], float]
"""From a value to its height on the screen."""


class Point(NamedTuple):
    """One point with its intervals.

    Args:
        x: where it stands.
        y: how high.
        low: the lower end of its upright interval; None if it has none.
        high: the upper end.
        left: the left end of its level interval; None if it has none.
        right: the right end.
        chance: the height that someone who saw nothing would reach; None draws no tick.
        tip: what is said when it is pointed at.
        label: what stands beside it.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    left: float | None = None
    right: float | None = None
    chance: float | None = None
    tip: str = ""
    label: str = ""


class Series(NamedTuple):
    """Points of one name and colour.

    Args:
        name: what the legend calls it.
        colour: a class of the style sheet (`palette`).
        points: from left to right, or in the order in which they are joined.
        symbol: how points are drawn; empty draws none.
        stroke: how they are joined; empty joins none.
        tag: what stands at its right end, in place of the legend; empty for nothing.
        filled: whether the area below it is tinted.
    """

    name: str
    colour: str
    points: tuple[Point, ...]
    symbol: Symbol = "circle"
    stroke: Stroke = "solid"
    tag: str = ""
    filled: bool = False


class Scale(NamedTuple):
    """An axis.

    Args:
        title: what it shows.
        low: where it begins.
        high: where it ends.
        ticks: the numbers on it, each with its text.
        log: whether it is logarithmic.
    """

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Return how far along the axis a value lies; beyond its ends, at the end."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log10(low), math.log10(high), math.log10(max(value, self.low))
        return min(1.0, max(0.0, (at - low) / (high - low))) if high > low else 0.5


class Band(NamedTuple):
    """A shaded part of the x axis, with words in it."""

    low: float
    high: float
    words: str
    shade: int = 1


class Panel(NamedTuple):
    """One plot: its own y axis above the common x axis.

    Args:
        y: the y axis.
        series: what is drawn.
        height: in pixels, without the x axis.
        level: the height of a dashed line; None draws none.
        words: what stands on that line.
    """

    y: Scale
    series: tuple[Series, ...]
    height: int = 180
    level: float | None = None
    words: str = "guessing"


class Chart(NamedTuple):
    """Panels above each other.

    Args:
        x: the common axis.
        panels: at least one.
        about: what the chart shows, for those who cannot see it.
        bands: shaded parts of the x axis.
        legend: whether names stand below; those of series with a tag do not, unless there is no room for tags.
    """

    x: Scale
    panels: tuple[Panel, ...]
    about: str
    bands: tuple[Band, ...] = ()
    legend: bool = True

    @property
    def has_chance(self) -> bool:
        """Whether it shows what someone who saw nothing would reach, as a line or as ticks."""
        points = [point for panel in self.panels for series in panel.series for point in series.points]
        return any(panel.level is not None for panel in self.panels) or any(one.chance is not None for one in points)

    def svg(self, width: int = WIDE) -> Markup:
        """Return the chart, drawn for a width in pixels."""
        return _Drawing(self, width).svg()


def scale(
    title: str,
    values: Iterable[float],
    suffix: str = "",
    ends: tuple[float, float] | None = None,
    log: bool = False,
    most: int = 6,
) -> Scale:
    """Return an axis over values, with round numbers on it.

    Args:
        title: what it shows.
        values: what must have room on it.
        suffix: what follows each number, such as ` %`.
        ends: where it begins and ends, whatever the values.
        log: whether it is logarithmic; all values must be above 0.
        most: how many numbers there may be.

    Example:
        >>> [text for _, text in scale("accuracy", [12, 88], " %").ticks]
        ['0 %', '20 %', '40 %', '60 %', '80 %', '100 %']
        >>> [text for _, text in scale("ratio", [0.02, 30], log=True).ticks]
        ['0.01', '0.1', '1', '10', '100']
    """
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    if log:
        powers = range(math.floor(math.log10(min(known))), math.ceil(math.log10(max(known))) + 1)
        powers = range(powers[0], powers[0] + max(2, len(powers)))
        ticks = tuple((10.0**power, f"{10.0**power:g}{suffix}") for power in powers)
        shown = ticks[:: math.ceil(len(ticks) / most)]
        return Scale(title, ticks[0][0], ticks[-1][0], shown, log=True)
    low, high = ends or (min(known), max(known))
    # Numbers so small that a step between them would be zero are drawn as one.
    if high - low < _LEAST:
        low, high = (
            value + sign * 0.5 * (abs(value) if abs(value) >= _LEAST else 1.0) for value, sign in ((low, -1), (high, 1))
        )
    step = _step((high - low) / most)
    if ends is None:
        low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = tuple((step * place, f"{step * place + 0.0:.{digits}f}{suffix}") for place in range(first, last + 1))
    return Scale(title, low, high, ticks)


def named(title: str, names: Sequence[str]) -> Scale:
    """Return an axis with a place from 0 on for each name.

    Example:
        >>> named("layer", ["conv1", "head"]).ticks
        ((0.0, 'conv1'), (1.0, 'head'))
    """
    ticks = tuple((float(place), name) for place, name in enumerate(names))
    return Scale(title, -0.4, len(names) - 0.6, ticks)


def _step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, ... that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * times for times in (1, 2, 5, 10) if power * times >= least * (1 - 1e-9))


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


class _Drawing:
    """One chart at one width."""

    def __init__(self, chart: Chart, width: int) -> None:
        self.chart, self.width = chart, width
        tags = [series.tag for panel in chart.panels for series in panel.series if series.tag]
        room = max((_length(tag) for tag in tags), default=0.0) + 14
        self.tagged = bool(tags) and room < 0.4 * width
        letters = max(_length(text) for panel in chart.panels for _, text in panel.y.ticks or ((0.0, ""),))
        self.left = max(_LEFT, letters + 12)
        self.right = width - (room if self.tagged else _RIGHT)
        self.parts: list[str] = []
        self.taken: list[_Box] = []

    def svg(self) -> Markup:
        top = 0.0
        tops: list[float] = []
        for panel in self.chart.panels:
            top += _TOP + (_GAP if tops else 0)
            tops.append(top)
            top += panel.height
        bottom = top
        for start, panel in zip(tops, self.chart.panels, strict=True):
            self._panel(panel, start, is_first=start == tops[0])
        top = self._x_axis(bottom)
        top = self._legend(top)
        about = escape(self.chart.about)
        head = (
            f'<svg viewBox="0 0 {self.width} {top:.0f}" width="{self.width}" height="{top:.0f}" role="img" '
            f'aria-label="{about}">'
        )
        return Markup(head + "".join(self.parts) + "</svg>")  # noqa: S704

    def _x(self, value: float) -> float:
        return self.left + self.chart.x.share(value) * (self.right - self.left)

    def _panel(self, panel: Panel, top: float, is_first: bool) -> None:
        bottom = top + panel.height

        def y(value: float) -> float:
            return bottom - panel.y.share(value) * panel.height

        self._text(0, top - 12, panel.y.title, "title")
        for band in self.chart.bands:
            self._band(band, top, bottom)
        for value, text in panel.y.ticks:
            self.parts.append(_line(self.left, y(value), self.right, y(value), "grid"))
            self._text(self.left - 6, y(value) + 4, text, "tick end")
        for band in self.chart.bands if is_first else ():
            left, right = self._x(band.low), self._x(band.high)
            if _length(band.words) < right - left:
                self._text((left + right) / 2, top + 12, band.words, "note middle")
        if panel.level is not None:
            self.parts.append(_line(self.left, y(panel.level), self.right, y(panel.level), "level"))
        for series in panel.series:
            self._draw_line(series, y, bottom)
        for series in panel.series:
            for point in series.points:
                self._point(series, point, y)
        self._level_words(panel, y, bottom)
        self._labels(panel, y, top, bottom)
        if self.tagged:
            self._tags(panel, y, top, bottom)

    def _band(self, band: Band, top: float, bottom: float) -> None:
        left, right = self._x(band.low), self._x(band.high)
        self.parts.append(
            f'<rect class="band shade{band.shade}" x="{left:.1f}" y="{top:.1f}" width="{max(0.0, right - left):.1f}" '
            f'height="{bottom - top:.1f}"/>'
        )

    def _draw_line(self, series: Series, y: _Height, bottom: float) -> None:
        if not series.stroke or len(series.points) < 2:
            return
        steps = " ".join(f"{self._x(point.x):.1f},{y(point.y):.1f}" for point in series.points)
        if series.filled:
            base = [f"{self._x(series.points[end].x):.1f},{bottom:.1f}" for end in (0, -1)]
            self.parts.append(f'<polygon class="area {series.colour}" points="{base[0]} {steps} {base[1]}"/>')
        title = f"<title>{escape(series.name)}</title>" if series.name and not series.symbol else ""
        self.parts.append(f'<polyline class="line {series.stroke} {series.colour}" points="{steps}">{title}</polyline>')

    def _point(self, series: Series, point: Point, y: _Height) -> None:
        at, high = self._x(point.x), y(point.y)
        drawn = []
        if point.low is not None and point.high is not None:
            drawn.append(_line(at, y(point.low), at, y(point.high), f"whisker {series.colour}"))
        if point.left is not None and point.right is not None:
            drawn.append(_line(self._x(point.left), high, self._x(point.right), high, f"whisker {series.colour}"))
        if point.chance is not None:
            drawn.append(_line(at - 7, y(point.chance), at + 7, y(point.chance), "chance"))
        if series.symbol:
            drawn.append(f'<path class="mark {series.colour}" d="{_outline(series.symbol, at, high)}"/>')
            self.taken.append(_Box(at - 5, high - 5, at + 5, high + 5))
        if drawn:
            title = f"<title>{escape(point.tip)}</title>" if point.tip else ""
            self.parts.append(f"<g>{title}{''.join(drawn)}</g>")

    def _level_words(self, panel: Panel, y: _Height, bottom: float) -> None:
        """Say what the dashed line is, at the end of it where no point stands; at its right if there is none."""
        if panel.level is None:
            return
        at, wide = y(panel.level), _length(panel.words)
        ends = [(left, base) for base in (at - 4, at + 13) for left in (self.right - wide - 2, self.left + 2)]
        boxes = [_Box(left, base - 11, left + wide, base + 3) for left, base in ends if base <= bottom]
        free = [box for box in boxes if not any(box.meets(other) for other in self.taken)]
        box = (free or boxes)[0]
        self.taken.append(box)
        self._text(box.left, box.bottom - 3, panel.words, "note")

    def _labels(self, panel: Panel, y: _Height, top: float, bottom: float) -> None:
        """Place what stands beside points where it covers nothing; what finds no place is left to the tips."""
        for series in panel.series:
            for point in series.points:
                if not point.label:
                    continue
                wide, at, high = _length(point.label), self._x(point.x), y(point.y)
                for left, base in (
                    (at + 9, high - 6),
                    (at - 9 - wide, high - 6),
                    (at + 9, high + 14),
                    (at - 9 - wide, high + 14),
                    (at - wide / 2, high - 11),
                    (at - wide / 2, high + 20),
                    (at + 9, high - 21),
                    (at - 9 - wide, high - 21),
                    (at + 9, high - 36),
                    (at - 9 - wide, high - 36),
                ):
                    box = _Box(left, base - 11, left + wide, base + 3)
                    inside = self.left <= box.left and box.right <= self.width and top - 8 <= box.top
                    if inside and box.bottom <= bottom and not any(box.meets(other) for other in self.taken):
                        self.taken.append(box)
                        self._text(left, base, point.label, "label")
                        break

    def _tags(self, panel: Panel, y: _Height, top: float, bottom: float) -> None:
        """Write names at the right ends of lines, pushed apart where lines end close together."""
        tagged = sorted(
            ((y(series.points[-1].y), series) for series in panel.series if series.tag and series.points),
            key=lambda pair: pair[0],
        )
        places = spread([at for at, _ in tagged], _LINE, top + 4, bottom)
        for place, (at, series) in zip(places, tagged, strict=True):
            end = self._x(series.points[-1].x)
            self.parts.append(_line(end + 3, at, self.right + 9, place, f"leader {series.colour}"))
            self._text(self.right + 12, place + 4, series.tag, "label")

    def _x_axis(self, bottom: float) -> float:
        """Draw the axis, leave out numbers that would touch, and turn names that are too long to stand side by side."""
        x = self.chart.x
        self.parts.append(_line(self.left, bottom, self.right, bottom, "axis"))
        gap = (self.right - self.left) / max(1, len(x.ticks))
        longest = max((_length(text) for _, text in x.ticks), default=0.0)
        is_named = bool(x.ticks) and not x.ticks[0][1].lstrip("-")[:1].isdigit()
        if is_named and longest > gap:
            for value, text in x.ticks:
                at = self._x(value)
                self.parts.append(
                    f'<text class="tick end" transform="translate({at + 4:.1f} {bottom + 10:.1f}) rotate(-60)">'
                    f"{escape(text)}</text>"
                )
            below = bottom + 14 + 0.87 * longest
        else:
            past = -math.inf
            for value, text in x.ticks:
                at, half = self._x(value), _length(text) / 2
                if at - half > past + 4:
                    self.parts.append(_line(at, bottom, at, bottom + 4, "axis"))
                    self._text(min(max(at, half), self.width - half), bottom + 16, text, "tick middle")
                    past = at + half
            below = bottom + _TICKS
        if x.title:
            self._text((self.left + self.right) / 2, below + 14, x.title, "tick middle")
            below += _TITLE
        return below + 4

    def _legend(self, top: float) -> float:
        drawn = [series for panel in self.chart.panels for series in panel.series]
        tags = {series.tag for series in drawn}
        names = {series.name: series for series in drawn if series.name and not (self.tagged and series.name in tags)}
        if not self.chart.legend or len(names) < 2:
            return top
        left, line = 4.0, top + 12
        for name, series in names.items():
            room = _LEGEND_SWATCH + _length(name) + 12
            if left + room > self.width and left > 4:
                left, line = 4.0, line + _LINE + 2
            if series.stroke:
                self.parts.append(
                    f'<polyline class="line {series.stroke} {series.colour}" '
                    f'points="{left:.1f},{line - 4:.1f} {left + 18:.1f},{line - 4:.1f}"/>'
                )
            if series.symbol:
                self.parts.append(
                    f'<path class="mark {series.colour}" d="{_outline(series.symbol, left + 9, line - 4)}"/>'
                )
            self._text(left + _LEGEND_SWATCH, line, name, "label")
            left += room
        return line + 8

    def _text(self, x: float, y: float, text: str, kind: str) -> None:
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>')


def spread(places: Sequence[float], gap: float, least: float, most: float) -> list[float]:
    """Return rising places moved apart to at least a gap, inside the ends as far as there is room.

    Example:
        >>> spread([10, 11, 50], 15, 0, 100)
        [10, 25, 50]
        >>> spread([90, 95], 15, 0, 100)
        [85, 100]
    """
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + gap) if moved else max(place, least))
    for number in reversed(range(len(moved))):
        ceiling = most if number == len(moved) - 1 else moved[number + 1] - gap
        moved[number] = min(moved[number], ceiling)
    return moved


def _length(text: str) -> float:
    return _LETTER * len(text)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _outline(symbol: Symbol, x: float, y: float) -> str:
    """Return the path of a symbol around a place."""
    if symbol == "circle":
        return f"M{x - 4.5:.1f} {y:.1f}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z"
    corners = " L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in _corners(symbol))
    return f"M{corners}z"


def _corners(symbol: Symbol) -> Iterator[tuple[float, float]]:
    shapes: dict[str, tuple[tuple[float, float], ...]] = {
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "diamond": ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
        "up": ((0, -5), (5, 4), (-5, 4)),
        "down": ((0, 5), (5, -4), (-5, -4)),
        "cross": (
            (-1.7, -5), (1.7, -5), (1.7, -1.7), (5, -1.7), (5, 1.7), (1.7, 1.7),
            (1.7, 5), (-1.7, 5), (-1.7, 1.7), (-5, 1.7), (-5, -1.7), (-1.7, -1.7),
        ),
    }  # fmt: skip
    if symbol != "star":
        yield from shapes[symbol]
        return
    for place in range(10):
        reach, angle = (7.5, 3.2)[place % 2], math.pi * (place / 5 - 0.5)
        yield reach * math.cos(angle), reach * math.sin(angle)


class Figure(NamedTuple):
    """A chart with its caption, as a page shows it.

    Args:
        name: its identifier on the page.
        caption: what stands above it.
        chart: what is drawn.
        wide: whether it fills the page; on a phone it is drawn as narrow as any other.
    """

    name: str
    caption: str
    chart: Chart
    wide: bool = False

    @property
    def drawings(self) -> tuple[tuple[str, Markup], ...]:
        """The chart for each width at which it may be shown, with the class by which the style sheet chooses."""
        slim = ("slim" if self.wide else "any", self.chart.svg(NARROW))
        return (("broad", self.chart.svg(WIDE)), slim) if self.wide else (slim,)
