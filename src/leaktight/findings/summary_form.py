"""The form of a summary: what `summary.json` holds, as types from which its published schema is made."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from leaktight.core.metric import Direction
from leaktight.core.value import Value
from leaktight.findings.verdict import Verdict, Word

FORMAT = 1
"""The number of this form; another one means that fields were renamed or removed."""
Number = float | None


class AttackEntry(Value):
    """One attack that was tried against a defence.

    Args:
        name: how the report names it.
        principle: what it rests on; null for a measurement that needs no attack.
        adapts: whether it models the defence.
        reads_undefended: whether it works without the defence.
        search_failed: whether too many of its searches failed; null if it searches and nobody could tell.
        failed_searches: the share of its searches that failed; null if nothing was searched for.
    """

    name: str
    principle: str | None
    adapts: bool
    reads_undefended: bool
    search_failed: bool | None
    failed_searches: Number


class VerdictEntry(Value):
    """What was found about one defence and one kind of leak.

    Args:
        scenario: the scenario's name in the plan.
        defence: the settings of the defence.
        defence_name: how the report names it.
        undefended: whether it is the absence of any defence.
        kind: the kind of leak.
        verdict: the word that people are shown; `useless` where less leaks and the model learned nothing.
        evidence: the word for what the attacks show, whatever the model learned; the same unless it is useless.
        attack: the strongest attack.
        figure: what that attack got, as a figure.
        measure: what the figure counts.
        reading: the name of what decides.
        value: what was read.
        low: the lower end of its 95 % interval.
        high: the upper end.
        chance: what an attacker who saw nothing would get.
        n: how many independent things it was measured on.
        utility: what the model's use is measured by, and its price told in.
        price: how much of that the defence costs, as a share.
        price_low: the lower end of its 95 % interval.
        price_high: the upper end.
        attacks: the attacks that were tried.
        batch_size: examples behind one local step.
        stage: when in training.
        missing: what is missing for a stronger word; null unless the evidence is unknown.
        learned_nothing: whether the model may be no better than one that learned nothing.
        epsilon: what an account of differential privacy says; null if there is none.
        delta: the delta that goes with it.
        largest_true_positive_rate: what that epsilon implies.
        sentence: all of it in words.
    """

    scenario: str
    defence: dict[str, Any]
    defence_name: str
    undefended: bool
    kind: str
    verdict: Word
    evidence: Verdict
    attack: str
    figure: str
    measure: str
    reading: str | None
    value: Number
    low: Number
    high: Number
    chance: Number
    n: int | None
    utility: str
    price: Number
    price_low: Number
    price_high: Number
    attacks: tuple[AttackEntry, ...]
    batch_size: int
    stage: str
    missing: str | None
    learned_nothing: bool
    epsilon: Number
    delta: Number
    largest_true_positive_rate: Number
    sentence: str


class ReadingEntry(Value):
    """One reading of one defence against one attack in one setting, pooled over seeds.

    Args:
        scenario: the scenario's name in the plan.
        defence: the settings of the defence.
        defence_name: how the report names it.
        attack: how the report names the attack or measurement.
        by: of several attacks that were tried together, the one that reached it; empty for their answer.
        batch_size: examples behind one local step.
        stage: when in training.
        reading: the name of what was measured.
        against: the examples it was scored against, `raw` or `used`; null if that does not apply.
        layer: the layer it belongs to; null if to none.
        value: the number.
        low: the lower end of its 95 % interval; null if it has none.
        high: the upper end.
        chance: what an attacker who saw nothing would get; null if there is no such level.
        n: how many independent things it was measured on.
        unit: its unit, `%` for a share in [0, 1]; empty for a plain number.
        leaks: whether a high or a low value means more leakage; null for a number that is not about leakage.
    """

    scenario: str
    defence: dict[str, Any]
    defence_name: str
    attack: str
    by: str
    batch_size: int
    stage: str
    reading: str
    against: Literal["raw", "used"] | None
    layer: str | None
    value: float
    low: Number
    high: Number
    chance: Number
    n: int
    unit: str
    leaks: Direction | None


class FlagEntry(Value):
    """One reason to doubt the audit, as a name, how severe it is, and a sentence."""

    name: str
    severity: Literal["doubt", "info"]
    sentence: str


class AdviceEntry(Value):
    """One recommendation: what was asked, the answer, and the settings of the defence that it names, if any."""

    question: str
    sentence: str
    defence: dict[str, Any] | None


class CellCounts(Value):
    """How far an audit got: how many of its measuring cells were done, refused or failed, and how many are missing."""

    done: int = Field(ge=0)
    refused: int = Field(ge=0)
    failed: int = Field(ge=0)
    missing: int = Field(ge=0)


class SummaryFile(Value):
    """The verdicts, doubts, advice and readings of an audit, for other programs.

    There are no images, seeds, places on the disk or values of single victims in it.

    Args:
        format: the number of this form.
        title: what the plan is called.
        verdicts: one for each scenario, defence and kind of leak.
        unmeasured: the names of planned defences about which nothing was found.
        cells: how far the audit got.
        flags: reasons to doubt it.
        advice: what it recommends.
        versions: what it was measured with.
        readings: every number behind the verdicts.
    """

    format: Literal[1]
    title: str
    verdicts: tuple[VerdictEntry, ...]
    unmeasured: tuple[str, ...]
    cells: CellCounts
    flags: tuple[FlagEntry, ...]
    advice: tuple[AdviceEntry, ...]
    versions: dict[str, str]
    readings: tuple[ReadingEntry, ...]


def make_schema() -> dict[str, Any]:
    """Return the JSON schema of a summary (draft 2020-12)."""
    schema = SummaryFile.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Leaktight summary"}
