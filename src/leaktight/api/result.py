"""The result of an audit in a program: verdicts, a table, a report, and what a notebook shows."""

from __future__ import annotations

import dataclasses
import html
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from leaktight.core.defence import Defence, is_undefended
from leaktight.core.display import capital, count
from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.findings.display import name_of
from leaktight.findings.flags import Flag, raise_flags
from leaktight.findings.headline import headline_of
from leaktight.findings.sentence import sentence_of
from leaktight.findings.summary import AuditSummary, summarise
from leaktight.findings.summary_file import summary_of, write_summary
from leaktight.findings.verdict import Judgement, Word
from leaktight.report.render import write_report
from leaktight.running.store import Store

if TYPE_CHECKING:
    import pandas as pd

_BORDER = "border: 1px solid currentColor; padding: 0.2em 0.6em; text-align: left"


@dataclasses.dataclass(frozen=True)
class LeakVerdict:
    """What an audit shows about one defence and one kind of leak.

    Args:
        defence: the defence at its strength.
        name: what it is called, such as `Gaussian noise (std 0.01)`.
        leak: the kind of leak, such as `images` or `labels`.
        verdict: `leaks`, `reduced`, `not broken`, `unknown`, `bounded` or `refuted`; `useless` where less leaks and the
            model learned nothing.
        attack: the strongest attack that was tried.
        reading: what it reached, with its interval and what guessing reaches.
        price: what the defence costs in accuracy, as a share; None without a defence, or if that was not measured.
        sentence: all of it in words, with what the verdict rests on.
    """

    defence: Defence
    name: str
    leak: str
    verdict: Word
    attack: str
    reading: Reading | None
    price: Reading | None
    sentence: str


class TableRow(NamedTuple):
    """One row of a result's table: the numbers of a `LeakVerdict`; None where there is none.

    `leaks_when` says whether a high or a low value of the metric means a leak.
    """

    defence: str
    leak: str
    verdict: str
    attack: str
    metric: str | None
    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    leaks_when: str | None
    price: float | None
    price_low: float | None
    price_high: float | None


class ResultTable(list[TableRow]):
    """The rows of a result's table, where pandas is not installed; shown as aligned text.

    Example:
        >>> ResultTable([TableRow("no defence", "images", "leaks", "dlg2019", "psnr", 38.0, *[None] * 7)])
        defence     leak    verdict  attack   metric  value  low  high  chance  leaks_when  price  price_low  price_high
        no defence  images  leaks    dlg2019  psnr    38     -    -     -       -           -      -          -
    """

    def __repr__(self) -> str:
        lines = [TableRow._fields, *([_cell(value) for value in row] for row in self)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )


class ModelAudit:
    """What `audit_model` found.

    Args:
        name: what the network is called.
        folder: the audit's folder; a temporary one is removed with this object.
        records: what was measured.
    """

    def __init__(self, name: str, folder: Path, records: Sequence[Record]) -> None:
        self.name, self.folder, self.records = name, folder, tuple(records)
        self._findings: AuditSummary = summarise(self.records)
        with Store.read(folder) as store:
            self._caveats, self._missing = store.plan().caveats, store.missing()
        write_summary(folder, summary=self._findings)

    @cached_property
    def verdicts(self) -> tuple[LeakVerdict, ...]:
        """A verdict for each defence and kind of leak; those without a defence come first in each kind."""
        return tuple(map(_verdict, self._findings.judgements))

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """Reasons to doubt the audit itself."""
        return raise_flags(self.records, self._caveats)

    @property
    def table(self) -> pd.DataFrame | ResultTable:
        """The verdicts with their numbers, one row each: a `pandas.DataFrame` if pandas is installed, else a list."""
        rows = ResultTable(map(_row, self.verdicts))
        try:
            import pandas as pd
        except ImportError:
            return rows
        return pd.DataFrame(rows, columns=list(TableRow._fields))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Verdicts, flags and advice as plain JSON types, as in `summary.json` of the folder."""
        with Store.read(self.folder) as store:
            plan, versions = store.plan(), store.versions()
        return summary_of(self.records, plan, versions, False, self._findings, self._missing).to_dict()

    def report(self, path: str | Path = "report.html", redact: bool = False) -> Path:
        """Write the report as one HTML file, for its owner alone, and return where it is.

        Args:
            path: the file to write.
            redact: whether to leave out private images, values of single examples and the seed, so that the report can
                be passed on.
        """
        return write_report(self.folder, out=Path(path).expanduser(), redact=redact, summary=self._findings)

    def __str__(self) -> str:
        """Return a sentence for each verdict."""
        return "\n".join(self._findings.verdict)

    def __repr__(self) -> str:
        """Count the verdicts."""
        words = ", ".join(f"{verdict} {number}" for verdict, number in _count(self.verdicts).items())
        return f"<{type(self).__name__} of {self.name}: {words or 'nothing measured'}; {self.folder}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the headline, and a verdict for each defence."""
        heads = ("Defence", "Leak", "Verdict", "What the strongest attack got", "Strongest attack", "Price")
        judgements = self._findings.judgements
        lines = [_line([f"<b>{head}</b>" for head in heads])] if judgements else []
        lines += [_line(map(html.escape, _cells(judgement))) for judgement in judgements]
        doubts = f"<p>{capital(count(len(self.flags), 'reason'))} to doubt this audit; see the report.</p>"
        return (
            f"<p>{html.escape(headline_of(self._findings))}</p>"
            f'<table style="border-collapse: collapse">{"".join(lines)}</table>{doubts if self.flags else ""}'
        )


def _verdict(judgement: Judgement) -> LeakVerdict:
    return LeakVerdict(
        judgement.defence,
        name_of(judgement.defence),
        judgement.kind.kind,
        judgement.status,
        judgement.worst.attack,
        judgement.reading,
        judgement.worst.loss,
        sentence_of(judgement),
    )


def _row(verdict: LeakVerdict) -> TableRow:
    reading, price = verdict.reading, verdict.price
    return TableRow(
        verdict.name,
        verdict.leak,
        verdict.verdict,
        verdict.attack,
        *((None,) * 6 if reading is None else _numbers(reading)),
        *((None,) * 3 if price is None else (price.value, price.low, price.high)),
    )


def _numbers(reading: Reading) -> tuple[str, float, float | None, float | None, float | None, str | None]:
    return reading.name, reading.value, reading.low, reading.high, reading.chance, reading.leaks


def _count(verdicts: Sequence[LeakVerdict]) -> Counter[Word]:
    return Counter(found.verdict for found in verdicts)


def _cells(judgement: Judgement) -> list[str]:
    worst, loss = judgement.worst, judgement.worst.loss
    price = (
        "" if is_undefended(judgement.defence) else "not measured" if loss is None else f"{100 * loss.value:.1f} points"
    )
    return [
        capital(name_of(judgement.defence)),
        judgement.kind.heading,
        judgement.status,
        judgement.kind.short(worst),
        worst.attack,
        price,
    ]


def _line(cells: Iterable[str]) -> str:
    inner = "".join(f'<td style="{_BORDER}">{cell}</td>' for cell in cells)
    return f"<tr>{inner}</tr>"


def _cell(value: object) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
