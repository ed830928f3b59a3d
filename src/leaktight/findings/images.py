"""Images: examples that come back from a message, by how many can be recognised."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaktight.core.display import counted, percent
from leaktight.core.metric import Reading
from leaktight.core.probe import LUCKIEST
from leaktight.findings.display import title_of
from leaktight.findings.kind import LUCK, LeakKind, Severity, is_beyond
from leaktight.findings.label_leak import tells_labels
from leaktight.findings.property_leak import tells_property
from leaktight.findings.rows import LABELS, PSNR, RECOGNISED, STATEMENT, Row
from leaktight.statistics.pooling import leakage

TRACING = "tracing_distance"
MARGIN = 1.0
"""By how many dB a PSNR must lie above chance to count: blind answers that nobody thought of may lie a little above the best of ours."""


class Images(LeakKind):
    """Examples behind messages: the share of images that can be recognised; else PSNR, else any reading about leakage."""

    name = "images"
    heading = "Images"
    noun = "images"

    def reading(self, row: Row) -> Reading | None:
        """Return the share of raw images recognised, else the raw PSNR, else whatever else the attack was after."""
        leak = row.leak
        about_others = leak is None or tells_labels(leak) or tells_property(leak) or leak.name in (LABELS, RECOGNISED)
        return None if about_others else leak

    def units(self) -> tuple[str, ...]:
        """Let recognised images decide, then PSNR."""
        return STATEMENT, PSNR

    def severity(self, row: Row) -> Severity:
        """Rank by the share, then by how far the PSNR lies above chance; below chance it is as good as none."""
        reading, psnr = self.reading(row), row.reading(PSNR, "raw")
        beyond = 0.0 if psnr is None else max(0.0, psnr.value - (psnr.chance or 0.0))
        return () if reading is None else (leakage(reading), beyond)

    def is_read(self, row: Row, width: float = 1.0) -> bool:
        """Return whether images are recognised beyond chance, or whatever the row is judged by beats its chance level."""
        reading = self.reading(row)
        if reading is None:
            return False
        if reading.name == STATEMENT:
            return _recognised(reading)
        return _clearer(reading, width) if reading.name == PSNR else is_beyond(reading, width)

    def contradictions(self, row: Row, width: float = 1.0) -> tuple[str, ...]:
        """Say which other readings of the same guesses beat chance: copies that are too clear, owners traced, the changed image found."""
        judged, psnr, traced = self.reading(row), row.reading(PSNR, "raw"), row.reading(TRACING, "raw")
        said = []
        if (
            judged is not None
            and judged.name == STATEMENT
            and not _recognised(judged)
            and psnr is not None
            and _clearer(psnr, width)
        ):
            said.append(f"the copies have a PSNR of {psnr.value:.1f} dB, where blind guessing gets {psnr.chance:.1f} dB")
        if traced is not None and is_beyond(traced, LUCK):
            hits = f"{percent(1 - traced.value)} of the images are traced to their owner"
            said.append(f"{hits}, where guessing gets {percent(1 - (traced.chance or 0.0))}")
        return (*said, *_changed(row, width))

    def kept(self, row: Row, base: Row) -> float:
        """Return how many of the images that are recognised without a defence still are, victim by victim where their values were kept."""
        read, before = self.reading(row), self.reading(base)
        if read is None or before is None or read.name != STATEMENT or before.name != STATEMENT:
            return super().kept(row, base)
        if row.seeds == base.seeds and len(read.each) == len(before.each) > 0:
            both = sum(one and other for one, other in zip(read.each, before.each, strict=True))
            return both / sum(before.each) if sum(before.each) else 0.0
        return read.value / before.value if before.value else 0.0

    def luckiest(self, rows: Sequence[Row]) -> Reading | None:
        """Return the share of images that some attack recognised, victim by victim; without their values, the best attack's share."""
        shares = [share for row in rows for part in (row, *row.alone) if (share := part.recognised) is not None]
        shares += [
            one for row in rows for one in row.members if (one.by, one.name, one.against) == (LUCKIEST, STATEMENT, "raw")
        ]
        if not shares:
            return None
        # An attack of several may have met some of the victims only.
        victims = max(share.n for share in shares)
        best = max(share.value * share.n for share in shares)
        whole = [share.each for share in shares if len(share.each) == victims]
        union = sum(any(hits) for hits in zip(*whole, strict=True))
        hits = max(best, union)
        return shares[0].model_copy(update={"value": hits / victims, "low": None, "high": None, "n": victims, "each": ()})

    def found(self, row: Row) -> str:
        """Say how many images can be recognised, or how far the attack got."""
        reading = self.reading(row)
        if reading is None:
            return "nothing was measured"
        if reading.name == STATEMENT:
            many = f"{counted(reading)} {'image' if reading.n == 1 else 'images'}"
            if not reading.value:
                return f"{many} is recognised"
            message = "one shared message" if row.behind == 1 else f"shared messages of {row.behind} images each"
            return f"{many} can be recognised from {message}"
        chance = "" if reading.chance is None else f", where blind guessing gets {reading.chance:.3g}"
        return f"the strongest attack reached {title_of(reading.name)} {reading.value:.3g}{chance}"

    def short(self, row: Row) -> str:
        """Return the count, or the number."""
        reading = self.reading(row)
        if reading is None:
            return "nothing"
        return counted(reading) if reading.name == STATEMENT else f"{reading.value:.3g}"

    def measure(self, row: Row) -> str:
        """Say what is counted, or the name of what was reached."""
        reading = self.reading(row)
        if reading is None:
            return ""
        return "images recognised" if reading.name == STATEMENT else title_of(reading.name)

    def detail(self, row: Row) -> str:
        """Name the PSNR, the attack and the setting."""
        psnr = row.reading(PSNR, "raw")
        if row.median is None or row.recognised is None:
            return super().detail(row)
        return f"{'median' if psnr and psnr.each else 'mean'} PSNR {row.median:.0f} dB; {super().detail(row)}"


def _recognised(share: Reading) -> bool:
    """Return whether more images are recognised than blind answers explain; if these recognise none, one is enough."""
    return is_beyond(share, LUCK) if share.chance and share.low is not None else share.value > (share.chance or 0.0)


def _clearer(psnr: Reading, width: float) -> bool:
    """Return whether a PSNR lies above chance, by its interval and by more than a trifle."""
    return is_beyond(psnr, width) and psnr.value >= (psnr.chance or -math.inf) + MARGIN


def _changed(row: Row, width: float) -> tuple[str, ...]:
    """Say so where the image that the defence made of the private one is found more often, or better, than the private one."""
    used, raw = row.reading(STATEMENT, "used"), row.recognised
    if used is not None and raw is not None and used.value > raw.value and _recognised(used):
        return (f"{counted(used)} can be recognised as the defence changed them",)
    copies, private = row.reading(PSNR, "used"), row.reading(PSNR, "raw")
    if used is not None or copies is None or private is None or not _clearer(copies, width) or copies.value <= private.value:
        return ()
    return (f"the images as the defence changed them are found at {copies.value:.3g} dB, chance {copies.chance:.3g} dB",)
