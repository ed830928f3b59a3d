"""The gate: whether an audit passes what a team demands of it, criterion by criterion."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from leaktight.core.display import capital, count, join_words, points
from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.findings.summary_form import SummaryFile, VerdictEntry

ANY, NONE = "any", "none"
SHOWN = 3
"""How many cases a sentence names."""


@dataclasses.dataclass(frozen=True)
class Demands:
    """What an audit must pass: how many verdicts of each sort are allowed, None for any number.

    Args:
        leaks: defences under which at least half of what is read without them is read.
        refuted: claims of an epsilon that the audit refutes.
        unknown: verdicts for which evidence is missing.
        reduced: defences under which less is read, but more than guessing explains.
        useless: defences under which the model learned nothing.
        unfinished: cells that failed, or were not measured yet.
        accuracy_loss: how many points of accuracy, or what else a model's use is measured by, a defence may cost.
    """

    leaks: int | None = 0
    refuted: int | None = 0
    unknown: int | None = 0
    reduced: int | None = None
    useless: int | None = 0
    unfinished: int | None = 0
    accuracy_loss: float | None = None

    def __post_init__(self) -> None:
        loss = self.accuracy_loss
        # Every price would pass a limit that is no number.
        if loss is not None and not (math.isfinite(loss) and loss >= 0):
            raise InvalidValue(
                f"`--accuracy-loss` must be a number of points, at least 0. Got {loss:g} instead; leave it out if any "
                "price is allowed."
            )


@dataclasses.dataclass(frozen=True)
class Case:
    """One thing that a criterion looks at.

    Args:
        subject: what it is, such as a defence and a kind of leak.
        breaks: whether it counts against the criterion.
        message: what was found.
        key: a name that stays the same from audit to audit.
    """

    subject: str
    breaks: bool
    message: str
    key: str


@dataclasses.dataclass(frozen=True)
class Criterion:
    """One demand, and what came of it.

    Args:
        name: what it is called, as the option that sets it.
        about: what it demands, in a sentence.
        passed: whether the audit meets it.
        sentence: what was found.
        cases: everything it looked at.
    """

    name: str
    about: str
    passed: bool
    sentence: str
    cases: tuple[Case, ...] = ()

    @property
    def faults(self) -> tuple[Case, ...]:
        """What counts against it, if it is not met."""
        return () if self.passed else tuple(case for case in self.cases if case.breaks)

    def __str__(self) -> str:
        return f"{self.name}: {'passed' if self.passed else 'failed'}. {self.sentence}"


@dataclasses.dataclass(frozen=True)
class Gate:
    """What came of all demands.

    Args:
        summary: the audit.
        judged: the verdicts that were looked at.
        criteria: one for each demand.
    """

    summary: SummaryFile
    judged: tuple[VerdictEntry, ...]
    criteria: tuple[Criterion, ...]

    @property
    def passed(self) -> bool:
        """Whether every criterion is met."""
        return all(criterion.passed for criterion in self.criteria)

    def __str__(self) -> str:
        broken = [criterion.name for criterion in self.criteria if not criterion.passed]
        return f"Gate failed: {join_words(broken)}." if broken else "Gate passed."


def read_allowed(text: str, option: str) -> int | None:
    """Return how many are allowed: `none`, `any`, or a whole number; None for any.

    Example:
        >>> read_allowed("none", "leaks"), read_allowed("any", "leaks"), read_allowed("2", "leaks")
        (0, None, 2)
    """
    word = text.strip().lower()
    if word == ANY:
        return None
    if word != NONE and not (word.isascii() and word.isdecimal()):
        raise InvalidValue(f"`--{option}` must be `none`, `any`, or how many are allowed. Got {text!r} instead.")
    return 0 if word == NONE else int(word)


def hold_to(summary: SummaryFile, demands: Demands, defences: Sequence[str] = (), kinds: Sequence[str] = ()) -> Gate:
    """Hold an audit to demands.

    Messages without a defence are looked at only if nothing else was measured, or if they are asked for as `none`: that
    they leak is why there are defences. An audit in which nothing was measured fails whatever the demands are, and so
    does one with a defence about which nothing was found, or nothing about a kind of leak that is asked for.

    Args:
        summary: the audit.
        demands: what is allowed.
        defences: the only ones to look at, each by its kind or as the report names it; empty for all.
        kinds: the only kinds of leak to look at; empty for all.

    Raises:
        InvalidValue: a defence or a kind of leak is not in the audit.
    """
    judged = _select(summary, defences, kinds)
    measured = _coverage(summary, judged, _find_unmeasured(summary, judged, defences, kinds))
    if not judged:
        return Gate(summary, (), (measured,))
    words = [
        _count("leaks", "No defence may leak.", judged, demands.leaks, lambda one: one.evidence == "leaks"),
        _count(
            "refuted",
            "No claimed epsilon may be refuted.",
            judged,
            demands.refuted,
            lambda one: one.evidence == "refuted",
        ),
        _count(
            "unknown", "No evidence may be missing.", judged, demands.unknown, lambda one: one.evidence == "unknown"
        ),
        _count(
            "reduced", "No defence may leak in part.", judged, demands.reduced, lambda one: one.evidence == "reduced"
        ),
        _count(
            "useless",
            "Every model must have learned something.",
            judged,
            demands.useless,
            lambda one: one.learned_nothing,
        ),
    ]
    loss = None if demands.accuracy_loss is None else _price(judged, demands.accuracy_loss)
    found = (measured, _completeness(summary, demands.unfinished), *words, loss)
    return Gate(summary, judged, tuple(criterion for criterion in found if criterion is not None))


def _select(summary: SummaryFile, defences: Sequence[str], kinds: Sequence[str]) -> tuple[VerdictEntry, ...]:
    names = {word.lower() for word in defences}
    known = [name for one in summary.verdicts for name in _names(one)]
    for word in defences:
        if word.lower() not in {name.lower() for name in known}:
            raise InvalidValue(f"The audit has no verdict on a defence `{word}`. {did_you_mean(word, set(known))}")
    leaks = {one.kind for one in summary.verdicts}
    for kind in kinds:
        if kind not in leaks:
            raise InvalidValue(f"The audit has no verdict on the kind of leak `{kind}`. {did_you_mean(kind, leaks)}")
    found = [one for one in summary.verdicts if not kinds or one.kind in kinds]
    if names:
        return tuple(one for one in found if names & {name.lower() for name in _names(one)})
    return tuple([one for one in found if not one.undefended] or found)


def _find_unmeasured(
    summary: SummaryFile, judged: Sequence[VerdictEntry], defences: Sequence[str], kinds: Sequence[str]
) -> list[str]:
    """Return about what nothing was found: planned defences, and kinds of leak that are asked for under the others."""
    found = {(one.defence_name, one.kind) for one in judged}
    names = dict.fromkeys(one.defence_name for one in _select(summary, defences, ()))
    missing = [f"{kind} under {name}" for name in names for kind in kinds if (name, kind) not in found]
    return [*([] if defences else summary.unmeasured), *missing]


def _names(entry: VerdictEntry) -> tuple[str, ...]:
    kind = str(entry.defence.get("kind", ""))
    return (entry.defence_name, NONE) if entry.undefended else (entry.defence_name, kind)


def _coverage(summary: SummaryFile, judged: Sequence[VerdictEntry], without: Sequence[str]) -> Criterion:
    cells = summary.cells
    number = len({(one.scenario, one.defence_name) for one in judged if not one.undefended})
    total = cells.done + cells.refused + cells.failed + cells.missing
    about = "Something must have been measured of every defence."
    cases = [Case(name, True, f"Nothing was found about {name}.", f"measured/{name}") for name in without]
    if not judged:
        cases = [Case("audit", True, "Nothing was measured.", "measured"), *cases]
        return Criterion("measured", about, False, "Nothing was measured, so nothing can be said.", tuple(cases))
    what = count(number, "defence") if number else "messages without a defence"
    refused = f", {cells.refused} refused" if cells.refused else ""
    said = f"{capital(what)}, {count(len(judged), 'verdict')}; {cells.done} of {count(total, 'cell')} done{refused}."
    if without:
        said = f"Nothing was found about {join_words(list(without))}. {said}"
    passing = [Case("audit", False, said, "measured")]
    return Criterion("measured", about, not without, said, (*passing, *cases))


def _completeness(summary: SummaryFile, allowed: int | None) -> Criterion | None:
    cells = summary.cells
    number = cells.failed + cells.missing
    if allowed is None:
        return None
    said = f"{count(cells.failed, 'cell')} failed and {cells.missing} {'is' if cells.missing == 1 else 'are'} missing"
    text = f"{said}, {allowed or 'none'} allowed." if number else "No cell failed, and none is missing."
    case = Case("cells", number > 0, text, "unfinished")
    return Criterion("unfinished", "Every cell must have been measured.", number <= allowed, text, (case,))


def _count(
    name: str, about: str, judged: Sequence[VerdictEntry], allowed: int | None, breaks: Callable[[VerdictEntry], bool]
) -> Criterion | None:
    if allowed is None:
        return None
    places = _places(judged)
    cases = tuple(
        Case(
            f"{one.defence_name}, {one.kind}{places[one.scenario]}",
            breaks(one),
            one.sentence,
            "/".join((name, one.scenario, one.defence_name, one.kind)),
        )
        for one in judged
    )
    broken = [one for one in judged if breaks(one)]
    said = f"None of {count(len(judged), 'verdict')}."
    if broken:
        named = [
            f"{case.subject} ({one.figure} {one.measure} by {one.attack})"
            for case, one in zip(cases, judged, strict=True)
            if case.breaks
        ]
        said = f"{len(broken)} of {count(len(judged), 'verdict')}, {allowed or 'none'} allowed: {_list(named)}."
    return Criterion(name, about, len(broken) <= allowed, said, cases)


def _list(named: Sequence[str]) -> str:
    more = [f"{len(named) - SHOWN} more"] if len(named) > SHOWN else []
    return "; ".join([*named[:SHOWN], *more])


def _places(judged: Sequence[VerdictEntry]) -> dict[str, str]:
    """Return what names each scenario at the end of a subject: a number says nothing where there is no other one."""
    names = list(dict.fromkeys(one.scenario for one in judged))
    return {
        name: "" if name.isdecimal() and len(names) == 1 else f", {'scenario ' * name.isdecimal()}{name}"
        for name in names
    }


def _price(judged: Sequence[VerdictEntry], limit: float) -> Criterion:
    """Hold the price of every defence to a limit, by what was measured; that it may be more is said."""
    about = f"No defence may cost more than {limit:g} points."
    priced = {(one.scenario, one.defence_name): one for one in reversed(judged) if not one.undefended}
    entries = list(reversed(priced.values()))
    places = _places(judged)
    cases = tuple(
        Case(
            f"{one.defence_name}{places[one.scenario]}",
            one.price is None or 100 * one.price > limit,
            f"{_cost(one)}{places[one.scenario]}",
            f"accuracy-loss/{one.scenario}/{one.defence_name}",
        )
        for one in entries
    )
    if not entries:
        return Criterion("accuracy-loss", about, True, "There is no defence that could cost anything.")
    broken = [case for case in cases if case.breaks]
    if broken:
        said = _list([case.message for case in broken])
        return Criterion("accuracy-loss", about, False, f"{capital(said)}; {limit:g} points allowed.", cases)
    dearest = max(entries, key=lambda one: one.price or 0.0)
    beyond = [one.defence_name for one in entries if 100 * (one.price_high or 0.0) > limit]
    wide = f", which the interval of {join_words(beyond)} reaches beyond" if beyond else ""
    return Criterion("accuracy-loss", about, True, f"At most, {_cost(dearest)}; {limit:g} points allowed{wide}.", cases)


def _cost(entry: VerdictEntry) -> str:
    if entry.price is None:
        return f"what {entry.defence_name} costs was not measured"
    known = entry.price_low is not None and entry.price_high is not None
    around = f" ({points(entry.price_low or 0.0)} to {points(entry.price_high or 0.0)})" if known else ""
    return f"{entry.defence_name} costs {points(entry.price)} points of {entry.utility}{around}"
