"""Images: examples that come back from a message, by how many can be recognised."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar, Literal

from leaktight.core.display import percent, show_count
from leaktight.core.metric import Reading
from leaktight.core.probe import LUCKIEST, Attempt
from leaktight.core.record import Record
from leaktight.findings.column import NOTHING, Column, chance, format_reading, result
from leaktight.findings.display import title_of
from leaktight.findings.kind import LUCK, Distance, LeakKind, Severity, is_beyond, leak_kinds
from leaktight.findings.layer_measure import LayerMeasure
from leaktight.findings.rows import Row
from leaktight.metrics.search_gap import SEARCH_FAILED
from leaktight.statistics.pooling import high, leakage, leaks_more

STATEMENT, PSNR, SSIM, ERROR = "reconstruction_statement", "psnr", "ssim", "rmse_relative"
TRACING = "tracing_distance"
MARGIN = 1.0
"""By how many dB a PSNR must lie above chance to count.

Blind answers that nobody thought of may lie a little above the best of ours.
"""
EXACT_PSNR = 60.0
"""The PSNR in dB from which a control cell counts as exact: an error of a thousandth of the pixel range."""
EXACT_ERROR = 1e-3
"""The relative error up to which a control cell counts as exact, for data that are not images."""


class Images(LeakKind):
    """Examples behind messages: the share of images that can be recognised; else PSNR, else any leakage reading."""

    kind: Literal["images"] = "images"
    rank: ClassVar[int] = 0
    heading: ClassVar[str] = "Images"
    noun: ClassVar[str] = "images"
    of_examples: ClassVar[bool] = True
    names: ClassVar[tuple[str, ...]] = (STATEMENT, PSNR)
    rebuilds: ClassVar[bool] = True
    by_example: ClassVar[tuple[str, ...]] = (STATEMENT, PSNR, "mse", ERROR)
    pictured: ClassVar[str] = PSNR
    control: ClassVar[str] = (
        f"must recover a batch of one exactly (PSNR of at least {EXACT_PSNR:g} dB, or a relative error of at most "
        f"{EXACT_ERROR:g}), or the instruments are broken."
    )
    layer: ClassVar[LayerMeasure | None] = LayerMeasure(
        reading=PSNR,
        order=20,
        risk="reconstruction",
        noun="the examples",
        head="PSNR of inversion (dB)",
        column="inverted by it alone, labels known: PSNR",
        digits=1,
        unit=" dB",
    )
    distances: ClassVar[tuple[Distance, ...]] = (
        Distance("reconstruction", ERROR, order=0),
        Distance("tracing", TRACING, order=20),
    )
    galleries: ClassVar[tuple[str, ...]] = ("leaktight.report.pictures:pictures_section",)

    def reading(self, row: Row) -> Reading | None:
        """Return the share of raw images recognised, else the raw PSNR, else what no other kind is about."""
        return recognised_share(row) or row.reading(PSNR, "raw") or self._other(row)

    def _other(self, row: Row) -> Reading | None:
        """Return what else an attack was after; what was measured without an attack is about nothing."""
        first = next((reading for reading in row.readings if reading.leaks is not None), None) if row.kind else None
        elsewhere = {name for kind in leak_kinds() if kind != self for name in kind.names}
        return None if first is None or first.name in elsewhere else first

    def units(self) -> tuple[str, ...]:
        """Let recognised images decide, then PSNR."""
        return STATEMENT, PSNR

    def severity(self, row: Row) -> Severity:
        """Rank by the share, then by how far the PSNR lies above chance; below chance it is as good as none."""
        reading, psnr = self.reading(row), row.reading(PSNR, "raw")
        beyond = 0.0 if psnr is None else max(0.0, psnr.value - (psnr.chance or 0.0))
        return () if reading is None else (leakage(reading), beyond)

    def is_read(self, row: Row, width: float = 1.0) -> bool:
        """Return whether images are recognised beyond chance, or whatever judges the row beats its chance level."""
        reading = self.reading(row)
        if reading is None:
            return False
        if reading.name == STATEMENT:
            return _is_recognised(reading)
        return _clearer(reading, width) if reading.name == PSNR else is_beyond(reading, width)

    def contradictions(self, row: Row, width: float = 1.0) -> tuple[str, ...]:
        """Say which other readings of the same guesses beat chance.

        Copies may be too clear, owners may be traced, or the changed image may be found.
        """
        judged, psnr, traced = self.reading(row), row.reading(PSNR, "raw"), row.reading(TRACING, "raw")
        said = []
        if (
            judged is not None
            and judged.name == STATEMENT
            and not _is_recognised(judged)
            and psnr is not None
            and _clearer(psnr, width)
        ):
            said.append(
                f"the copies have a PSNR of {psnr.value:.1f} dB, where blind guessing gets {psnr.chance:.1f} dB"
            )
        if traced is not None and is_beyond(traced, LUCK):
            hits = f"{percent(1 - traced.value)} of the images are traced to their owner"
            said.append(f"{hits}, where guessing gets {percent(1 - (traced.chance or 0.0))}")
        return (*said, *_say_changed(row, width))

    def share_left(self, row: Row, base: Row) -> float:
        """Return how many of the images that are recognised without a defence still are.

        Images are compared victim by victim where the victims' values were kept.
        """
        read, before = self.reading(row), self.reading(base)
        if read is None or before is None or read.name != STATEMENT or before.name != STATEMENT:
            return super().share_left(row, base)
        if row.seeds == base.seeds and len(read.each) == len(before.each) > 0:
            both = sum(one and other for one, other in zip(read.each, before.each, strict=True))
            return both / sum(before.each) if sum(before.each) else 0.0
        return read.value / before.value if before.value else 0.0

    def luckiest(self, rows: Sequence[Row]) -> Reading | None:
        """Return the share of images that some attack recognised, victim by victim.

        Without the victims' values, return the best attack's share.
        """
        shares = [share for row in rows for part in (row, *row.alone) if (share := recognised_share(part)) is not None]
        shares += [
            one
            for row in rows
            for one in row.members
            if (one.by, one.name, one.against) == (LUCKIEST, STATEMENT, "raw")
        ]
        if not shares:
            return None
        # An attack of several may have met some of the victims only.
        victims = max(share.n for share in shares)
        best = max(share.value * share.n for share in shares)
        whole = [share.each for share in shares if len(share.each) == victims]
        union = sum(any(hits) for hits in zip(*whole, strict=True))
        hits = max(best, union)
        return shares[0].model_copy(
            update={"value": hits / victims, "low": None, "high": None, "n": victims, "each": ()}
        )

    def clause(self, row: Row) -> str:
        """Say how many images can be recognised, or how far the attack got."""
        reading = self.reading(row)
        if reading is None:
            return "nothing was measured"
        if reading.name == STATEMENT:
            many = f"{show_count(reading)} {'image' if reading.n == 1 else 'images'}"
            if not reading.value:
                return f"{many} is recognised"
            message = "one shared message" if row.behind == 1 else f"shared messages of {row.behind} images each"
            return f"{many} can be recognised from {message}"
        chance = "" if reading.chance is None else f", where blind guessing gets {reading.chance:.3g}"
        return f"the strongest attack reached {title_of(reading.name)} {reading.value:.3g}{chance}"

    def remainder(self, row: Row) -> str:
        """Say how many images are recognised, and no more."""
        reading = self.reading(row)
        if reading is None or reading.name != STATEMENT:
            return self.headline(row)
        few = round(reading.value * reading.n) < 2
        return f"{show_count(reading)} {'image' if reading.n == 1 else 'images'} {'is' if few else 'are'} recognised"

    def short(self, row: Row) -> str:
        """Return the count, or the number."""
        reading = self.reading(row)
        if reading is None:
            return "nothing"
        return show_count(reading) if reading.name == STATEMENT else f"{reading.value:.3g}"

    def measure(self, row: Row) -> str:
        """Say what is counted, or the name of what was reached."""
        reading = self.reading(row)
        if reading is None:
            return ""
        return "images recognised" if reading.name == STATEMENT else title_of(reading.name)

    def detail(self, row: Row) -> str:
        """Name the PSNR, the attack and the setting."""
        psnr = row.reading(PSNR, "raw")
        if psnr is None or recognised_share(row) is None:
            return super().detail(row)
        return f"{'median' if psnr.each else 'mean'} PSNR {_middle(psnr):.0f} dB; {super().detail(row)}"

    def luck(self, best: Reading) -> str:
        """Say how many images some attack recognises."""
        return (
            f"A luckier attacker, who knew for each image which attack to believe, would recognise {show_count(best)}."
        )

    def reach(self, row: Row) -> str:
        """Say how many images a stronger attack may recognise."""
        reading = self.reading(row)
        if reading is None or reading.name != STATEMENT or not reading.high:
            return ""
        return f"up to {percent(high(reading))} may be recognised, by the 95 % interval"

    def gain(self, knowing: Row, ignoring: Row) -> tuple[str, str, bool] | None:
        """Compare how many images are recognised; where that is not more, how clear the copies are."""
        clear, blurred = knowing.reading(PSNR, "raw"), ignoring.reading(PSNR, "raw")
        more = super().gain(knowing, ignoring)
        if more is not None or self.unit(knowing) not in self.units() or clear is None or blurred is None:
            return more
        clearer = leaks_more(clear, blurred) and clear.beats_chance()
        return (f"copies of {clear.value:.0f} dB", f"copies of {blurred.value:.0f} dB", True) if clearer else None

    def finer(self, row: Row) -> Reading | None:
        """Return the PSNR, which tells more than a share does."""
        return row.reading(PSNR, "raw")

    def is_exact(self, record: Record) -> bool | None:
        """Return whether the examples came back by PSNR, or by the relative error of data that are not images."""
        psnr, error = record.reading(PSNR, "raw"), record.reading(ERROR, "raw")
        if psnr is not None:
            return min(psnr.each, default=psnr.value) >= EXACT_PSNR
        return None if error is None else max(error.each, default=error.value) <= EXACT_ERROR

    def succeeds(self, record: Record) -> bool:
        """Return whether an image was recognised; where that was not asked, whether copies are clearer than chance."""
        share, psnr = record.reading(STATEMENT, "raw"), record.reading(PSNR, "raw")
        if share is not None:
            return share.value > (share.chance or 0)
        return psnr is not None and psnr.beats_chance()

    def columns(self) -> tuple[Column, ...]:
        """Return the PSNR and its chance level."""
        return (
            Column("Mean PSNR in dB (95 %)", lambda row: result(row, row.reading(PSNR, "raw"))),
            Column("Chance", lambda row: chance(row.reading(PSNR, "raw"))),
        )

    def numbers(self, rows: Sequence[Row]) -> tuple[Column, ...]:
        """Return the share recognised, how like the copies are, and how many searches failed."""
        used = [Column("PSNR, used (dB)", lambda row: format_reading(row.reading(PSNR, "used"), _decimal), (PSNR,))]
        return (
            Column("images recognised", lambda row: format_reading(recognised_share(row), percent), (STATEMENT,)),
            Column("PSNR, raw (dB)", lambda row: format_reading(row.reading(PSNR, "raw"), _decimal), (PSNR,)),
            *(used if _are_changed(rows) else []),
            Column("SSIM", lambda row: format_reading(row.reading(SSIM, "raw"), _hundredth), (SSIM,)),
            Column("searches that failed", lambda row: row.searches or NOTHING, (SEARCH_FAILED,)),
        )

    def numbers_note(self, rows: Sequence[Row]) -> str:
        """Say what images are compared with."""
        if not any(row.reading(PSNR) for row in rows):
            return ""
        against = (
            "\u201cRaw\u201d compares with the image as its owner holds it, \u201cused\u201d with the image as the "
            "training saw it."
            if _are_changed(rows)
            else "Images are compared with the originals; no defence here changed them before training."
        )
        return f"Means over images and seeds with 95 % intervals. {against}"

    def verdict_note(self, rows: Sequence[Row], records: Sequence[Record]) -> str:
        """Say from which PSNR on an image counts as recognised."""
        threshold = threshold_of(records)
        if threshold is None or not any(reading.name == STATEMENT for row in rows for reading in row.readings):
            return ""
        return f"An image counts as recognised when the attacker's copy has a PSNR of at least {threshold:g} dB."

    def glossary(self, names: Collection[str], records: Sequence[Record]) -> dict[str, str]:
        """Explain how likeness is measured."""
        if PSNR not in names:
            return {}
        threshold = threshold_of(records)
        copies = f"The attacker's copy reaches {threshold or 0:g} dB. Counted against the image as its owner holds it."
        return {
            "PSNR": "Likeness of two images in decibels, pixel by pixel. About 10 dB is noise, from 20 dB a person "
            "recognises a small image, from 35 dB both look the same.",
            **({} if threshold is None else {"Recognised": copies}),
            "SSIM": "Likeness of structure, from about 0 (unrelated) to 1 (the same).",
        }

    def hover(self, row: Row) -> tuple[str, ...]:
        """Say how many images are recognised, and how clear the copies are."""
        share, psnr = recognised_share(row), row.reading(PSNR, "raw")
        return (
            *([] if share is None else [f"recognised: {percent(share.value)}"]),
            *([] if psnr is None else [f"PSNR: {_middle(psnr):.1f} dB"]),
        )


def recognised_share(row: Row) -> Reading | None:
    """Return the share of raw images that can be recognised.

    Such an image has a PSNR of at least the epsilon of the reconstruction statement.
    """
    return row.reading(STATEMENT, "raw")


def threshold_of(records: Iterable[Record]) -> float | None:
    """Return the PSNR from which images count as recognised: the first epsilon of a statement that was measured."""
    found = (
        float(metric.to_dict()["epsilon"])
        for record in records
        if isinstance(record.cell.probe, Attempt)
        for metric in record.cell.probe.metrics
        if metric.kind == STATEMENT
    )
    return next(found, None)


def _middle(psnr: Reading) -> float:
    """Return the median PSNR over images, or its mean where single values were not kept."""
    return statistics.median(psnr.each) if psnr.each else psnr.value


def _are_changed(rows: Sequence[Row]) -> bool:
    """Return whether any defence changed the images before training saw them."""
    pairs = [(row.reading(PSNR, "raw"), row.reading(PSNR, "used")) for row in rows]
    return any(raw is not None and used is not None and raw.value != used.value for raw, used in pairs)


def _decimal(value: float) -> str:
    return f"{value:.1f}"


def _hundredth(value: float) -> str:
    return f"{value:.2f}"


def _is_recognised(share: Reading) -> bool:
    """Return whether more images are recognised than blind answers explain; if these recognise none, one is enough."""
    return is_beyond(share, LUCK) if share.chance and share.low is not None else share.value > (share.chance or 0.0)


def _clearer(psnr: Reading, width: float) -> bool:
    """Return whether a PSNR lies above chance, by its interval and by more than a trifle."""
    return is_beyond(psnr, width) and psnr.value >= (psnr.chance or -math.inf) + MARGIN


def _say_changed(row: Row, width: float) -> tuple[str, ...]:
    """Say so where the image as the defence changed it is found more often, or better, than the private one."""
    used, raw = row.reading(STATEMENT, "used"), recognised_share(row)
    if used is not None and raw is not None and used.value > raw.value and _is_recognised(used):
        return (f"{show_count(used)} can be recognised as the defence changed them",)
    copies, private = row.reading(PSNR, "used"), row.reading(PSNR, "raw")
    if (
        used is not None
        or copies is None
        or private is None
        or not _clearer(copies, width)
        or copies.value <= private.value
    ):
        return ()
    return (
        f"the images as the defence changed them are found at {copies.value:.3g} dB, chance {copies.chance:.3g} dB",
    )
