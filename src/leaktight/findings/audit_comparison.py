"""Comparisons of audits: which verdicts changed, by which attack, at what price, on the same victims or on others."""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from leaktight.core.display import capital, join_words
from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.core.record import Record, Status
from leaktight.core.scenario import Scenario
from leaktight.findings.display import name_of
from leaktight.findings.kind import LeakKind
from leaktight.findings.plan_difference import differences_of
from leaktight.findings.rows import Row
from leaktight.findings.summary import AuditSummary, summarise
from leaktight.findings.summary_file import scenario_names
from leaktight.findings.utility import Price, is_utility, price_of, utility_of
from leaktight.findings.verdict import Judgement
from leaktight.plans.plan import Plan
from leaktight.running.fingerprint import DATA
from leaktight.running.store import Store
from leaktight.statistics.paired import paired_difference
from leaktight.statistics.pooling import minus

MOST = len(string.ascii_uppercase)
"""How many audits can be compared: each has a letter."""
INDIFFERENT = ("model", "device", "normalise")
"""Settings of a scenario that do not change which examples are attacked."""


@dataclasses.dataclass(frozen=True)
class Audit:
    """One audit of several that are compared.

    Args:
        letter: how it is called beside the others.
        place: where it lies, as the person named it.
        plan: what was to be measured.
        records: what was measured.
        versions: what it was measured with.
        contents: for each scenario, by its key, a digest of the data that was really read; empty if it is not known.
        summary: what it says.
    """

    letter: str
    place: str
    plan: Plan
    records: tuple[Record, ...]
    versions: Mapping[str, str]
    contents: Mapping[str, str]
    summary: AuditSummary

    @classmethod
    def read(cls, folder: Path, letter: str) -> Audit:
        """Read an audit's folder."""
        with Store.read(folder) as store:
            records, plan, versions = tuple(store.records()), store.plan(), store.versions()
            digests = store.settled_digests()
            contents: dict[str, str] = {}
            for record in records:
                if record.status is Status.DONE and record.cell.scenario.key not in contents:
                    parts = store.fingerprint(digests.get(record.cell.key, "")).parts
                    contents[record.cell.scenario.key] = parts.get(DATA, "")
        return cls(letter, str(folder), plan, records, versions, contents, summarise(records))

    @property
    def scenarios(self) -> dict[int, tuple[str, Scenario]]:
        """The name and the settings of each scenario, by the number that rows give it."""
        names = scenario_names(self.records, self.plan)
        settings = [record.cell.scenario for record in self.records if record.cell.purpose == "measure"]
        by_key = {scenario.key: scenario for scenario in settings}
        return {number: (names[number], scenario) for number, scenario in zip(names, by_key.values(), strict=True)}


@dataclasses.dataclass(frozen=True)
class Difference:
    """How a later audit differs from the first in one line.

    Args:
        read: how much more, in the unit of what decides, the strongest attack reads; None if that cannot be compared.
        victims: over how many messages that is paired; 0 if it is not.
        use: how much worse the model is; None if that was not measured in both, or is said of another kind of leak.
    """

    read: Reading | None = None
    victims: int = 0
    use: Price | None = None


@dataclasses.dataclass(frozen=True)
class ComparedDefence:
    """One defence and kind of leak in one scenario, in every audit that has it.

    Args:
        scenario: the scenario's name; empty if there is one alone.
        defence: how the defence is named.
        kind: the kind of leak.
        judgements: what each audit says, in their order; None where it says nothing.
        differences: for each audit, how it differs from the first that has the line; None for that one.
    """

    scenario: str
    defence: str
    kind: LeakKind
    judgements: tuple[Judgement | None, ...]
    differences: tuple[Difference | None, ...]

    @property
    def words(self) -> tuple[str | None, ...]:
        """The word of each audit."""
        return tuple(None if one is None else one.status for one in self.judgements)

    @property
    def shared(self) -> bool:
        """Whether at least two audits have it."""
        return sum(word is not None for word in self.words) > 1

    @property
    def changed(self) -> bool:
        """Whether audits that have it say different words."""
        return len({word for word in self.words if word is not None}) > 1

    @property
    def name(self) -> str:
        """The defence, the kind of leak and, among several, the scenario."""
        return ", ".join([self.defence, self.kind.noun or self.kind.kind, *([self.scenario] if self.scenario else [])])


@dataclasses.dataclass(frozen=True)
class AuditComparison:
    """Several audits beside each other.

    Args:
        audits: the audits, by letter.
        settings: what differs between them in what was measured, in words.
        lines: every defence and kind of leak of any of them.
    """

    audits: tuple[Audit, ...]
    settings: tuple[str, ...]
    lines: tuple[ComparedDefence, ...]

    @property
    def shared_lines(self) -> tuple[ComparedDefence, ...]:
        """The lines that at least two audits have, changed ones first."""
        return tuple(sorted((line for line in self.lines if line.shared), key=lambda line: not line.changed))

    @property
    def headline(self) -> str:
        """What came of it, in one sentence."""
        letters = join_words([audit.letter for audit in self.audits])
        if not self.shared_lines:
            return (
                f"{letters} have nothing in common: no defence and kind of leak was measured in more than one of them."
            )
        changed = sum(line.changed for line in self.shared_lines)
        total = len(self.shared_lines)
        what = f"{total} shared verdict{'s' if total > 1 else ''}"
        return f"{changed or 'None'} of {what} changed between {letters}."

    def alone(self) -> dict[str, list[str]]:
        """Return the lines that one audit alone has, by its letter."""
        found: dict[str, list[str]] = {}
        for line in self.lines:
            if not line.shared:
                at = next(at for at, word in enumerate(line.words) if word is not None)
                found.setdefault(self.audits[at].letter, []).append(f"{capital(line.name)} ({line.words[at]})")
        return found


def compare_audits(folders: Sequence[Path]) -> AuditComparison:
    """Compare audits with the first of them.

    Args:
        folders: where they lie, at least two.
    """
    if not 2 <= len(folders) <= MOST:
        raise InvalidValue(f"A comparison takes 2 to {MOST} audits. Got {len(folders)} instead.")
    return compare(
        [Audit.read(folder, letter) for folder, letter in zip(folders, string.ascii_uppercase, strict=False)]
    )


def compare(audits: Sequence[Audit]) -> AuditComparison:
    """Compare audits that are read already with the first of them."""
    places = [_identities(audits[0], audit) for audit in audits]
    several = len({name for place in places for name in place.values()}) > 1
    found: dict[tuple[str, str, str], list[Judgement | None]] = {}
    for at, (audit, place) in enumerate(zip(audits, places, strict=True)):
        for judgement in audit.summary.judgements:
            key = (place[judgement.scenario], judgement.defence.key, judgement.kind.kind)
            found.setdefault(key, [None] * len(audits))[at] = judgement
    lines = []
    for (scenario, _, _), judgements in found.items():
        first, base = next((at, one) for at, one in enumerate(judgements) if one is not None)
        lines.append(_line(scenario if several else "", audits, judgements, first, base))
    return AuditComparison(tuple(audits), tuple(differences_of(audits)), tuple(lines))


def _line(
    scenario: str, audits: Sequence[Audit], judgements: Sequence[Judgement | None], first: int, base: Judgement
) -> ComparedDefence:
    differences = [
        None if other is None or at == first else _difference(audits[first], base, audits[at], other)
        for at, other in enumerate(judgements)
    ]
    return ComparedDefence(scenario, name_of(base.defence), base.kind, tuple(judgements), tuple(differences))


def _identities(first: Audit, audit: Audit) -> dict[int, str]:
    """Return the name of each scenario of an audit among those of the first.

    It is the one with the same settings, else the one of the same name; if both have one alone, that one.
    """
    known = {scenario.key: name for name, scenario in first.scenarios.values()}
    names = set(known.values())
    taken = {known[scenario.key] for _, scenario in audit.scenarios.values() if scenario.key in known}
    found: dict[int, str] = {}
    for number, (name, scenario) in audit.scenarios.items():
        if scenario.key in known:
            found[number] = known[scenario.key]
        elif name in names - taken:
            found[number] = name
        elif len(names) == len(audit.scenarios) == 1:
            found[number] = next(iter(names))
        else:
            found[number] = f"{audit.letter}: {name}" if name in names else name
    return found


def _difference(audit: Audit, base: Judgement, later: Audit, other: Judgement) -> Difference:
    read, victims = _read_more(audit, base, later, other)
    if base.beside:
        return Difference(read, victims)
    same_data = _same_data(audit, base.worst, later, other.worst)
    pairs = [
        (one, two) if same_data else (one.without_outcomes(), two.without_outcomes())
        for one, two in zip(_utilities(base), _utilities(other), strict=False)
    ]
    alike = pairs and base.worst.seeds == other.worst.seeds and all(one.name == two.name for one, two in pairs)
    return Difference(read, victims, price_of(pairs) if alike else None)


def _read_more(audit: Audit, base: Judgement, later: Audit, other: Judgement) -> tuple[Reading | None, int]:
    """Return how much more the later audit's strongest attack reads, and over how many victims that is paired."""
    one, two = base.reading, other.reading
    if one is None or two is None or one.name != two.name:
        return None, 0
    sign = -1.0 if one.leaks == "low" else 1.0
    each = [_by_message(base, one), _by_message(other, two)]
    if all(each) and len(each[0]) == len(each[1]) and _same_victims(audit, base.worst, later, other.worst):
        value, (low, high) = paired_difference(sign * torch.tensor(each[1]), sign * torch.tensor(each[0]))
        return Reading(name=one.name, value=value, low=low, high=high, n=len(each[0])), len(each[0])
    more, less = (two, one) if sign > 0 else (one, two)
    return minus(more, less, one.name), 0


def _by_message(judgement: Judgement, reading: Reading) -> list[float]:
    """Return what was read of each message, on average over its examples; nothing where that is not known."""
    messages = judgement.worst.messages
    if not messages or not reading.each or len(reading.each) % messages:
        return []
    size = len(reading.each) // messages
    if size > 1 and reading.name not in judgement.kind.by_example:
        return []
    return [sum(reading.each[at : at + size]) / size for at in range(0, len(reading.each), size)]


def _utilities(judgement: Judgement) -> list[Reading]:
    """Return the use of the model for each seed, with what became of each test row."""
    row = judgement.suite or judgement.worst
    by_name: dict[str, list[Reading]] = {}
    for reading in row.by_seed:
        if is_utility(reading):
            by_name.setdefault(reading.name, []).append(reading)
    chosen = utility_of([readings[0] for readings in by_name.values()])
    return [] if chosen is None else by_name[chosen.name]


def _same_data(audit: Audit, row: Row, later: Audit, other: Row) -> bool:
    one, two = row.measured_in, other.measured_in
    if one is None or two is None:
        return False
    sources = [dict(scenario).get("data") for scenario in (one, two)]
    return sources[0] == sources[1] and audit.contents.get(one.key, "") == later.contents.get(two.key, "")


def _same_victims(audit: Audit, row: Row, later: Audit, other: Row) -> bool:
    """Return whether the same examples were attacked: drawn from the same data, in the same way, by the same seeds."""
    one, two = row.measured_in, other.measured_in
    if one is None or two is None or not _same_data(audit, row, later, other):
        return False
    settings = [
        {name: part for name, part in dict(scenario).items() if name not in INDIFFERENT} for scenario in (one, two)
    ]
    drawn = [(place.batch_size, place.stage, place.messages, place.seeds) for place in (row, other)]
    return (
        type(one) is type(two)
        and settings[0] == settings[1]
        and drawn[0] == drawn[1]
        and audit.plan.grid.seeds == later.plan.grid.seeds
    )
