"""The figures of the page: summary bars (Fig. 1, 25), characteristics at both stages (Fig. 5), pictures by region."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leaktight.metrics.tradeoff import RED_ABOVE, abscissa
from leaktight.papers.polarization_network import audits
from leaktight.papers.polarization_network.mechanisms import MECHANISMS, against_strongest
from leaktight.papers.row import Row, Tables, groups, number, rows_where
from leaktight.report.chart import Chart, Figure, Panel, Point, Scale, Series, named, scale
from leaktight.report.curve import bands_to
from leaktight.report.page import Section
from leaktight.report.regions import REGIONS, pairs_of
from leaktight.report.render import page_of
from leaktight.running.store import STORE_FILE, Store

NAMES = tuple(mechanism.name for mechanism in MECHANISMS)
BARS = {
    "paper's attacker": ("colour0", -0.2, False),
    "strongest attacker": ("colour1", 0.2, True),
}
"""The bars of a mechanism: colour, place beside its middle, and whether they are of the strongest attacker."""
_HALF = 0.17
LINES = {
    ("reconstruction", audits.INITIAL): ("paper's attack, initial network", "colour0", "solid"),
    ("reconstruction", audits.TRAINED): ("paper's attack, trained network", "colour0", "dashes"),
    ("strongest_reconstruction", audits.INITIAL): ("strongest attacker, initial network", "colour1", "solid"),
    ("strongest_reconstruction", audits.TRAINED): ("strongest attacker, trained network", "colour1", "dashes"),
}


def sections(ours: Tables, published: Tables, folder: Path) -> list[Section]:
    """Return the sections that stand before the tables.

    Args:
        ours: our tables.
        published: the published ones.
        folder: that of the reproduction, with an audit in each of its folders.
    """
    bars = summary_bars(ours.get("cap", []), published.get("cap", []))
    curves = characteristics(ours.get("ppc", []))
    pictures = regions(folder)
    values = {"bars": bars, "curves": curves, "titles": REGIONS, "regions": pictures}
    return [Section("figures", "Figures", "paper_figures.html", values, private=bool(pictures))]


def summary_bars(ours: Sequence[Row], published: Sequence[Row]) -> list[Figure]:
    """Return a chart of bars for each data set, stage and batch size: the CAP of each mechanism under each attack."""
    found = []
    for (data_set, stage, size), rows in groups(ours, "data_set", "stage", "batch_size"):
        known = [
            row
            for row in published
            if (row["data_set"], row["stage"], str(row["batch_size"])) == (data_set, stage, size)
        ]
        panels = [panel for aim in audits.DISTANCES if (panel := _bars(rows, known, aim)) is not None]
        if panels:
            about = f"CAP of each mechanism on {data_set}, {stage} network, batch {size}; the numbers are in the table."
            chart = Chart(named("", NAMES), tuple(panels), about)
            title = f"CAP on {data_set}, {stage} network, batch {size} (Fig. 1, 25)"
            found.append(Figure(f"plot-bars-{data_set}-{stage}-{size}", title, chart))
    return found


def _bars(rows: Sequence[Row], known: Sequence[Row], aim: str) -> Panel | None:
    own = rows_where(rows, attack=aim)
    series: list[Series] = []
    ends = [0.0]
    for name, (colour, beside, strongest) in BARS.items():
        drawn = False
        for place, mechanism in enumerate(NAMES):
            wanted = against_strongest(mechanism) if strongest else mechanism
            row: Row = next(iter(rows_where(own, mechanism=wanted)), {})
            value, low, high = (number(row, column) for column in ("cap", "cap_low", "cap_high"))
            if value is None:
                continue
            ends += [end for end in (value, high) if end is not None]
            series += _bar(place + beside, value, (low, high), "" if drawn else name, colour)
            drawn = True
    if not series:
        return None
    crosses = [
        Point(float(NAMES.index(str(row["mechanism"]))), value, tip=f"{row['mechanism']}, published: {value:g}")
        for row in rows_where(known, attack=aim)
        if row["mechanism"] in NAMES and (value := number(row, "cap")) is not None
    ]
    ends += [point.y for point in crosses]
    series += [Series("published", "colour2", tuple(crosses), "cross", "")] if crosses else []
    return Panel(scale(f"CAP, {aim}", ends, most=5), tuple(series), 120)


def _bar(at: float, value: float, ends: tuple[float | None, float | None], name: str, colour: str) -> list[Series]:
    """Return a bar from 0 with its interval."""
    corners = ((at - _HALF, 0.0), (at - _HALF, value), (at + _HALF, value), (at + _HALF, 0.0))
    outline = Series(name, colour, tuple(Point(*corner) for corner in corners), "", "solid", filled=True)
    whisker = Series("", colour, (Point(at, value, *ends, tip=f"{name} {value:.3g}".strip()),), "", "")
    return [outline, whisker]


def characteristics(rows: Sequence[Row]) -> list[Figure]:
    """Return a chart for each data set and mechanism: accuracy, and errors at both stages, over the paper's ratio."""
    found = []
    for (data_set, mechanism), own in groups(rows_where(rows, batch_size=1), "data_set", "mechanism"):
        chart = _characteristic(own, mechanism)
        if mechanism in NAMES and chart is not None:
            title = f"{mechanism} on {data_set}, batch 1 (Fig. 5)"
            found.append(Figure(f"plot-ppc-{data_set}-{mechanism}".replace(".", "-"), title, chart))
    return found


def _characteristic(own: Sequence[Row], mechanism: str) -> Chart | None:
    trained = rows_where(own, stage=audits.TRAINED)
    accuracies = _points(trained, "accuracy", 100)
    lines = []
    for (column, stage), (name, colour, stroke) in LINES.items():
        points = _points(rows_where(own, stage=stage), column, 1)
        if points:
            lines.append(Series(name, colour, points, "circle", "solid" if stroke == "solid" else "dashes"))
    places = [point.x for line in lines for point in line.points]
    if not accuracies or not places:
        return None
    reach = max([1.06 * max(places), abscissa(RED_ABOVE) + 0.2])
    errors = [end for line in lines for point in line.points for end in (point.y, point.high) if end is not None]
    panels = (
        Panel(scale("accuracy of the trained network", (), " %", (-4, 104)), (_accuracy(accuracies),), 110),
        Panel(scale("relative error", [0.0, *errors], most=5), tuple(lines), 150),
    )
    subscript = "log\N{SUBSCRIPT ONE}\N{SUBSCRIPT ZERO}(ratio + 1), biases"
    x = Scale(subscript, -0.04, reach, scale("", (), ends=(0, reach)).ticks)
    about = f"Accuracy and the attacks' relative error over the ratio of {mechanism}, before and after training."
    return Chart(x, panels, about, bands_to(reach))


def _accuracy(points: tuple[Point, ...]) -> Series:
    return Series("accuracy", "colour3", points)


def _points(rows: Sequence[Row], column: str, times: float) -> tuple[Point, ...]:
    """Return a column over the ratio, from strong to weak."""
    points = []
    for row in rows:
        ratio, value = number(row, "ratio"), number(row, column)
        if ratio is None or value is None:
            continue
        low, high = (
            None if end is None else times * end for end in (number(row, f"{column}_{e}") for e in ("low", "high"))
        )
        tip = f"{row['mechanism']} {row['strength']}, {row['stage']} network\nratio {ratio:.3g}\n{times * value:.3g}"
        points.append(Point(abscissa(ratio), times * value, low, high, tip=tip))
    return tuple(sorted(points, key=lambda point: point.x))


def regions(folder: Path) -> list[dict[str, Any]]:
    """Return for each attack on single images the pictures that came back closest in each region (Fig. 6, 12 to 24)."""
    found = []
    for place in sorted(path.parent for path in folder.glob(f"*/{STORE_FILE}")):
        if not place.name.endswith(("-attack-1", "-trained")):
            continue
        with Store.read(place) as store:
            page = page_of(store.records(), store.plan(), store.versions(), store.gallery)
        for attack in (audits.ATTACK, audits.STRONGEST):
            curves = [curve for curve in page.summary.curves if curve.attack == attack and curve.batch_size == 1]
            pairs = pairs_of(curves, page)
            if pairs:
                found.append({"audit": place.name, "attack": attack, "pairs": pairs})
    return found
