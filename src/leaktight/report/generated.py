"""Generated: what an attacker in the training made up of somebody else's class, round by round, and how it scores.

Pictures of a class show what its private examples look like, so a redacted report has the scores alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from statistics import fmean

import torch
from torch import Tensor

from leaktight.core.display import capital, percent
from leaktight.core.metric import Reading
from leaktight.findings.column import format_reading
from leaktight.findings.display import name_of
from leaktight.findings.rows import Row
from leaktight.findings.samples import ANY_CLASS, RECOGNISED, any_class
from leaktight.report.page import Page, Pictures, Section
from leaktight.report.pictures import data_address

MOST_ROUNDS = 7
MOST_RECOGNISED = 0.5
"""From which share of samples on a round counts as one in which the class was recognised."""
GAP = 2
BEST_ROUND = "recognised_best"
SCORES = {
    RECOGNISED: percent,
    ANY_CLASS: percent,
    "recognised_confidence": percent,
    "recognised_median": percent,
    BEST_ROUND: percent,
}
PLAIN = ("nearest_private", "nearest_any", "mean_picture", "sample_diversity")
KEY_COSINE = "key_cosine"


@dataclasses.dataclass(frozen=True)
class GeneratedStrip:
    """Some pictures side by side, as one image.

    Args:
        name: when they were made, or whose they are.
        source: the image as a data address.
        text: what stands for it where it cannot be seen.
        owned: whether they are private examples.
    """

    name: str
    source: str
    text: str
    owned: bool = False


@dataclasses.dataclass(frozen=True)
class GeneratedGrid:
    """What one attack made up under one defence."""

    name: str
    detail: str
    strips: tuple[GeneratedStrip, ...]


def generated_section(page: Page) -> Section | None:
    """Show scores of made-up samples for each defence and attack, and unless redacted the samples over the rounds."""
    rows = [row for row in page.summary.rows if row.reading(RECOGNISED) is not None]
    if not rows:
        return None
    grids = [] if page.redact else grids_of(rows, page.pictures)
    keys = [sentence for row in rows if (sentence := key_sentence(row))]
    values = {"lines": [_line(row) for row in rows], "keys": keys, "grids": grids, "redact": page.redact}
    return Section("made", "Pictures that the attacker made up", "generated.html", values, private=True)


def grids_of(rows: Sequence[Row], pictures: Pictures) -> list[GeneratedGrid]:
    """Return the pictures of each row, of its first seed that has any."""
    found = []
    for row in rows:
        gallery = next((each for key in row.cells if (each := pictures(key)) and drawable(each)), None)
        recognised = row.reading(RECOGNISED)
        if gallery is not None and recognised is not None:
            whichever = row.reading(ANY_CLASS)
            others = "" if whichever is None else f", {percent(whichever.value)} any of the attacked"
            detail = f"{row.attack}; {percent(recognised.value)} show {row.aim or 'the class'}{others}"
            found.append(
                GeneratedGrid(capital(name_of(row.defence)), detail, _strips(gallery, row.reading(BEST_ROUND)))
            )
    return found


def drawable(gallery: Mapping[str, Tensor]) -> bool:
    """Return whether a gallery holds made-up grey or colour images."""
    if not {"owned", "made", "history", "rounds"} <= gallery.keys():
        return False
    history, made = gallery["history"], gallery["made"]
    return history.dim() == 5 and history.shape[2] in (1, 3) and history.shape[2:] == made.shape[1:] and len(made) > 0


def pick_rounds(count: int, most: int = MOST_ROUNDS) -> list[int]:
    """Return which of so many rounds are shown: the first, the last, and others evenly between them.

    Example:
        >>> pick_rounds(12, most=4), pick_rounds(2, most=4)
        ([0, 4, 7, 11], [0, 1])
    """
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]


def first_recognised(reading: Reading | None, rounds: int) -> int | None:
    """Return the first kept round in which at least half of the samples were recognised; None if there is none.

    It is not known either where training runs were pooled, whose rounds are not one after the other.

    Example:
        >>> shares = Reading(name="recognised_best", value=0.9, each=(0.1, 0.6, 0.2, 0.9))
        >>> first_recognised(shares, 4), first_recognised(shares, 2), first_recognised(None, 4)
        (1, None, None)
    """
    if reading is None or len(reading.each) != rounds:
        return None
    return next((place for place, share in enumerate(reading.each) if share >= MOST_RECOGNISED), None)


def _strips(gallery: Mapping[str, Tensor], best: Reading | None) -> tuple[GeneratedStrip, ...]:
    rounds, history = gallery["rounds"].tolist(), gallery["history"]
    first = first_recognised(best, len(rounds))
    found = []
    if len(gallery["owned"]):
        found.append(
            GeneratedStrip("private examples", _strip(gallery["owned"]), "Private examples of the class", owned=True)
        )
        mean = gallery["owned"].double().mean(0, keepdim=True).round().to(gallery["owned"].dtype)
        found.append(GeneratedStrip("their mean", _strip(mean), "Mean of these private examples", owned=True))
    for place in sorted({*pick_rounds(len(rounds)), *([] if first is None else [first])}):
        name = f"round {rounds[place] + 1}{', first recognised' if place == first else ''}"
        found.append(GeneratedStrip(name, _strip(history[place]), f"Made up in {name}"))
    return (*found, GeneratedStrip("in the end", _strip(gallery["made"]), "Made up in the end, from other noise"))


def _strip(images: Tensor) -> str:
    """Return images side by side, with a light gap between them."""
    gap = images.new_full((*images.shape[1:3], GAP), 255)
    pieces = [piece for image in images for piece in (image, gap)][:-1]
    return data_address(torch.cat(pieces, 2))


def _line(row: Row) -> dict[str, object]:
    # What is judged: the class asked for, and whichever class of the attacked.
    judged: list[Reading | None] = [row.reading(RECOGNISED), any_class(row)]
    cells = [format_reading(row.reading(name), show) for name, show in SCORES.items()]
    cells += [format_reading(row.reading(name), _hundredth) for name in PLAIN]
    judged += [None] * (len(cells) - len(judged))
    return {
        "defence": name_of(row.defence),
        "attack": row.attack,
        "cells": cells,
        "chances": ["" if one is None or one.chance is None else percent(one.chance) for one in judged],
        "tones": ["" if one is None else "leaks" if one.beats_chance() else "" for one in judged],
    }


def key_sentence(row: Row) -> str:
    """Return how near the attacker's estimate of a class key came to a true one; empty if it made none.

    The sentence tells it for now and over the attacker's turns.
    """
    reading = row.reading(KEY_COSINE)
    if reading is None:
        return ""
    chance = "" if reading.chance is None else f", chance {_hundredth(reading.chance)}"
    seeds = max(1, len(row.cells))
    turns = len(reading.each) // seeds
    # Training runs of one length were looked at on the same turns.
    path = [fmean(reading.each[turn::turns]) for turn in range(turns)] if turns * seeds == len(reading.each) else []
    told = f"; over the turns {', '.join(map(_hundredth, path))}" if len(path) > 1 else ""
    return (
        f"{capital(name_of(row.defence))}, {row.attack}: the estimated key has a cosine of "
        f"{format_reading(reading, _hundredth)} with the nearest true one{chance}{told}."
    )


def _hundredth(value: float) -> str:
    return f"{value:.2f}"
