"""Regions: what attacks rebuilt where the perturbation was large, middling and small, after the paper's figure 6."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from torch import Tensor

from leaktight.core.defence import links
from leaktight.core.record import Record
from leaktight.findings.characteristic import Curve, Spot, ratio_of
from leaktight.findings.display import name_of
from leaktight.findings.kind import distances
from leaktight.metrics.tradeoff import Region, region
from leaktight.report.page import Page
from leaktight.report.pictures import Picture, data_address, drawable

MOST = 3
REGIONS: dict[Region, str] = {
    "green": "Strong: ratio below 1",
    "white": "Medium: ratio from 1 to 10",
    "red": "Weak: ratio above 10",
}


@dataclasses.dataclass(frozen=True)
class Pair:
    """A private image and what an attack made of it."""

    name: str
    original: Picture
    copy: Picture


@dataclasses.dataclass(frozen=True, eq=False)
class _Shot:
    """One image that could be shown: its message's ratio, how far the copy is, and where both are."""

    spot: Spot
    ratio: float
    error: float
    raw: Tensor
    guess: Tensor


def pairs_of(curves: Sequence[Curve], page: Page) -> dict[Region, tuple[Pair, ...]]:
    """Return for each region the images that came back closest, at most three; nothing on a redacted page.

    The closest ones are shown because a region is no safer than they look. Of each defence the closest one comes first,
    so that one defence does not fill a region alone.

    Args:
        curves: those of one attack in one setting.
        page: where records and images come from.
    """
    if page.redact:
        return {}
    records = {record.cell.key: record for record in page.records}
    found: dict[Region, list[_Shot]] = {name: [] for name in REGIONS}
    for spot in {id(spot.row): spot for curve in curves for spot in curve.spots}.values():
        for shot in _shots(spot, (records[key] for key in spot.row.cells if key in records), page):
            found[region(shot.ratio)].append(shot)
    return {name: tuple(map(_pair, _closest(shots))) for name, shots in found.items() if shots}


def _shots(spot: Spot, records: Iterable[Record], page: Page) -> Iterator[_Shot]:
    """Yield the images of the first cell that has any, each with the ratio of the message it is behind."""
    for record in records:
        gallery = drawable(page.pictures(record.cell.key))
        ratio = ratio_of(reading for reading in record.readings if not reading.by)
        error = record.reading(distances()["reconstruction"], "raw")
        if gallery is None or ratio is None or error is None:
            continue
        behind = max(1, error.n // max(1, record.cell.victims))
        for number, (raw, guess) in enumerate(zip(gallery["truth_raw"], gallery["guess"], strict=True)):
            message = number // behind
            if number < len(error.each):
                own = ratio.each[message] if message < len(ratio.each) else ratio.value
                yield _Shot(spot, own, error.each[number], raw, guess)
        return


def _closest(shots: Sequence[_Shot]) -> list[_Shot]:
    ordered = sorted(shots, key=lambda shot: shot.error)
    first: dict[tuple[str, ...], _Shot] = {}
    for shot in ordered:
        first.setdefault(tuple(link.kind for link in links(shot.spot.row.defence)), shot)
    chosen = list(first.values())[:MOST]
    more = [shot for shot in ordered if shot not in chosen]
    return chosen + more[: MOST - len(chosen)]


def figure(value: float) -> str:
    """Show a number of any size in two digits or more, without an exponent where a person would not write one.

    Example:
        >>> figure(0.0123), figure(1234.5), figure(7.3e9)
        ('0.012', '1234', '7.3e+09')
    """
    return f"{value:.0f}" if 100 <= value < 1e6 else f"{value:.2g}"


def _pair(shot: _Shot) -> Pair:
    name = name_of(shot.spot.row.defence)
    caption = f"ratio {figure(shot.ratio)}, error {figure(shot.error)}"
    copy = Picture(data_address(shot.guess), f"Rebuilt under {name}: {caption}", caption)
    return Pair(name, Picture(data_address(shot.raw), "The original"), copy)
