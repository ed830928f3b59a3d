"""Pictures: originals beside what the strongest attack made of them. Private, and never part of a redacted report."""

from __future__ import annotations

import base64
import dataclasses
import io
from collections.abc import Mapping, Sequence

import torch
from PIL import Image
from torch import Tensor

from leaktight.core.defence import is_undefended
from leaktight.core.display import capital
from leaktight.findings.display import class_name, name_of
from leaktight.findings.images import threshold_of
from leaktight.findings.kind import leak_kinds
from leaktight.findings.rows import Row
from leaktight.findings.verdict import Judgement
from leaktight.metrics.image import psnr
from leaktight.report.page import Page, Pictures, Section

SHOWN = 8


@dataclasses.dataclass(frozen=True)
class Picture:
    """One image of the page.

    Args:
        source: the image as a data address.
        text: what stands for it where it cannot be seen.
        caption: what stands below it: how like the original it is.
        label: its class, true or as the attacker read it.
        recognised: whether it counts as recognised.
    """

    source: str
    text: str
    caption: str = ""
    label: str = ""
    recognised: bool = False


@dataclasses.dataclass(frozen=True)
class Strip:
    """A row of pictures: originals, or what one attack made of them under one defence."""

    name: str
    detail: str
    pictures: tuple[Picture, ...]
    original: bool = False


def pictures_section(page: Page) -> Section | None:
    """Show for each defence what the strongest attack recovered; a redacted page has no such section."""
    if page.redact:
        return None
    threshold = threshold_of(page.records)
    charted = [judgement for judgement in page.summary.judgements if judgement.charted]
    blocks = [
        strips
        for scenario in dict.fromkeys(judgement.scenario for judgement in charted)
        for strips in blocks_of([j for j in charted if j.scenario == scenario], page.pictures, threshold)
    ]
    graded = bool(blocks)
    blocks += [[strip] for row in _ungraded_rows(page) if (strip := ungraded_strip(row, page.pictures))]
    if not blocks:
        return None
    values = {"blocks": blocks, "threshold": threshold, "graded": graded}
    return Section("pictures", "What the attacker sees", "pictures.html", values, private=True)


def blocks_of(judged: Sequence[Judgement], pictures: Pictures, threshold: float | None) -> list[list[Strip]]:
    """Return strips under their originals; defences tried on the same images share one row of originals."""
    blocks: dict[bytes, list[Strip]] = {}
    for judgement in judged:
        row = judgement.suite or judgement.worst
        shown = next((found for key in row.cells if (found := drawable(pictures(key)))), None)
        if shown is None:
            continue
        raw, used, guess = (shown[name][:SHOWN] for name in ("truth_raw", "truth_used", "guess"))
        strips = blocks.setdefault(raw.numpy().tobytes(), [_originals(raw, shown, row)])
        detail = f"{row.attack}; {row.moment}"
        name = capital(name_of(row.defence))
        if not torch.equal(raw, used):
            strips.append(
                Strip(name, "as the defence changed the images", _row(used, "changed by the defence"), original=True)
            )
        strips.append(Strip(name, detail, _guesses(guess, raw, shown, row, threshold)))
    return list(blocks.values())


def ungraded_strip(row: Row, pictures: Pictures) -> Strip | None:
    """Return what an attack made of messages behind which nobody knows the originals; None if that is no picture."""
    gallery = next((found for key in row.cells if (found := pictures(key))), None)
    if not gallery or not {"guess", "guess_labels"} <= gallery.keys() or not is_drawable(tuple(gallery["guess"].shape)):
        return None
    labels = gallery["guess_labels"].tolist()
    tiles = tuple(
        Picture(
            data_address(image),
            f"Image {number + 1}, a guess that nobody graded",
            "not graded",
            _class(labels[number], row.class_names),
        )
        for number, image in enumerate(gallery["guess"][:SHOWN])
    )
    return Strip(capital(name_of(row.defence)), f"{row.attack}; {row.moment}; without originals", tiles)


def _ungraded_rows(page: Page) -> list[Row]:
    """Return the rows that nobody could grade, those first in which the attack explains most."""
    kinds = [kind for kind in leak_kinds() if kind.unjudged]
    rows = [(kind, row) for row in page.summary.rows for kind in kinds if kind.reading(row) is not None]
    return [row for _, row in sorted(rows, key=lambda pair: pair[0].severity(pair[1]), reverse=True)]


def _class(label: int, names: Sequence[str]) -> str:
    """Name a class below a picture; a number alone would be taken for something else."""
    name = class_name(label, names)
    return "" if label < 0 else f"class {name}" if name.isdecimal() else name


def drawable(gallery: Mapping[str, Tensor] | None) -> Mapping[str, Tensor] | None:
    """Return a gallery if it holds grey or colour images that belong together, else None."""
    if not gallery or not {"truth_raw", "truth_used", "guess"} <= gallery.keys():
        return None
    shapes = {tuple(gallery[name].shape) for name in ("truth_raw", "truth_used", "guess")}
    if len(shapes) != 1:
        return None
    shape = shapes.pop()
    return gallery if is_drawable(shape) else None


def is_drawable(shape: tuple[int, ...]) -> bool:
    """Return whether tensors of this shape are some grey or colour images."""
    return len(shape) == 4 and shape[0] > 0 and shape[1] in (1, 3)


def data_address(image: Tensor) -> str:
    """Return an image of bytes (channels, height, width) as a PNG in a `data:` address."""
    array = image.permute(1, 2, 0).numpy()
    file = io.BytesIO()
    Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array).save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _originals(raw: Tensor, shown: Mapping[str, Tensor], row: Row) -> Strip:
    labels = shown["labels"].tolist() if "labels" in shown else []
    captions = [_class(label, row.class_names) for label in labels[: len(raw)]]
    return Strip("Original", "private", _row(raw, "original", captions), original=True)


def _row(images: Tensor, what: str, captions: Sequence[str] = ()) -> tuple[Picture, ...]:
    return tuple(
        Picture(data_address(image), f"Image {number + 1}, {what}", label=captions[number] if captions else "")
        for number, image in enumerate(images)
    )


def _guesses(
    guess: Tensor, raw: Tensor, shown: Mapping[str, Tensor], row: Row, threshold: float | None
) -> tuple[Picture, ...]:
    guessed = shown["guess_labels"].tolist() if "guess_labels" in shown else [-1] * len(guess)
    under = "without defence" if is_undefended(row.defence) else f"under {name_of(row.defence)}"
    tiles = []
    for number, image in enumerate(guess):
        quality = psnr(image[None].double() / 255, raw[number][None].double() / 255).item()
        likeness = "exact" if torch.equal(image, raw[number]) else f"{quality:.0f} dB"
        tiles.append(
            Picture(
                data_address(image),
                f"Image {number + 1}, recovered {under}: {likeness}",
                likeness,
                _class(guessed[number], row.class_names),
                threshold is not None and quality >= threshold,
            )
        )
    return tuple(tiles)
