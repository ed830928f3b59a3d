"""The headline: what an audit found, in a sentence or two for a reader who reads no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leaktight.captures import AsCaptured
from leaktight.core.defence import is_undefended
from leaktight.core.display import capital, count, join_words
from leaktight.findings.choice import choose, price_of
from leaktight.findings.display import family_of, name_of
from leaktight.findings.sentence import price_clause
from leaktight.findings.summary import NOTHING, AuditSummary
from leaktight.findings.verdict import Judgement

READ = ("refuted", "leaks", "reduced")
"""The verdicts under which something was read."""


def headline_of(summary: AuditSummary) -> str:
    """Say what leaks without a defence, and what the best defence that leaves a useful model makes of it.

    It names the defence that the advice names for any price, and claims no more than its verdict. Of captured messages
    it says what was found in them.

    Args:
        summary: what was measured.

    Example:
        >>> from leaktight.findings.summary import summarise
        >>> headline_of(summarise([]))
        'Nothing was measured, so nothing can be said.'
    """
    scenarios: dict[int, list[Judgement]] = {}
    for judgement in summary.judgements:
        scenarios.setdefault(judgement.scenario, []).append(judgement)
    if not scenarios:
        return NOTHING
    if len(scenarios) == 1:
        return _headline(summary.judgements)
    return _say_scenarios(scenarios)


def _say_scenarios(scenarios: Mapping[int, Sequence[Judgement]]) -> str:
    """Say in how many scenarios messages leak, captured ones as they were sent, and what was found in the first."""
    graded = [one for judged in scenarios.values() for one in judged if not one.kind.unjudged]
    captured = [one for one in graded if isinstance(one.defence, AsCaptured)]
    asked = captured or [one for one in graded if is_undefended(one.defence)]
    leaking = {one.scenario for one in asked if one.verdict in READ}
    lead = min(leaking or scenarios)
    said = _headline(scenarios[lead])
    if not asked:
        return f"Scenario {lead} of {len(scenarios)}: {said}"
    what = "captured" if captured else "undefended"
    if not leaking:
        many = f"In none of {len(scenarios)} scenarios did any attack tried read {what} messages"
    else:
        many = f"{capital(what)} messages leak in {len(leaking)} of {len(scenarios)} scenarios"
    return f"{many}. Scenario {lead}: {said}"


def _headline(judged: Sequence[Judgement]) -> str:
    """Say what was found in one scenario."""
    graded = [one for one in judged if not one.kind.unjudged]
    if not graded:
        return _say_ungraded(judged)
    sent = [one for one in graded if isinstance(one.defence, AsCaptured) and not one.beside]
    if sent:
        read = [one for one in graded if isinstance(one.defence, AsCaptured) and one.beside and one.verdict in READ]
        more = [] if sent[0].verdict in READ else [f"But {one.kind.headline(one.worst)}." for one in read]
        return " ".join([_say_captured(sent[0]), *more])
    main = [one for one in graded if not one.beside] or graded
    bare = [one for one in main if is_undefended(one.defence)]
    leaking = [one for one in bare if one.verdict in READ]
    if not leaking:
        beside = [one for one in graded if one.beside and is_undefended(one.defence) and one.verdict in READ]
        still = [f"But without a defence, {one.kind.headline(one.worst)}." for one in beside if bare]
        return " ".join([_say_nothing_read(bare, main, bool(still)), *_say_all_the_same(main), *still])
    lead, *others = leaking
    defended = [one for one in main if one.kind == lead.kind and not is_undefended(one.defence)]
    also = [f"Also, {one.kind.headline(one.worst)}." for one in others]
    return " ".join([f"Without a defence, {_say_read(lead)}.", *_say_defences(defended, graded), *also])


def _say_read(judgement: Judgement) -> str:
    """Say what was read, with what else lies beyond chance where that is all that does."""
    defended = judgement.base is not None and not isinstance(judgement.defence, AsCaptured)
    kind = judgement.kind
    said = kind.remainder(judgement.worst) if defended else kind.headline(judgement.worst)
    if judgement.signs and not judgement.kind.is_read(judgement.worst):
        return f"{said}, but {judgement.signs[0]}"
    return said


def _say_nothing_read(bare: Sequence[Judgement], main: Sequence[Judgement], but: bool = False) -> str:
    """Say what an audit is worth in which nothing was read without a defence; `but` what comes beside examples."""
    noun = join_words(list(dict.fromkeys(one.kind.noun for one in bare or main)))
    if not bare:
        return f"Nothing was measured without a defence, so nothing shows what a defence does for {noun}."
    what = "that attacks fail" if any(one.verdict in READ or one.is_good for one in main) else "this audit"
    of = f"what a defence does for {noun}" if but else "any defence"
    return f"No attack tried read {noun} even without a defence, so {what} says nothing of {of}."


def _say_all_the_same(main: Sequence[Judgement]) -> list[str]:
    """Say what shows something of a defence though nothing was read without one: what was read under it, or a bound."""
    read = [one for one in main if one.verdict in READ]
    bounded = [one for one in main if one.is_good]
    said = [f"But under {name_of(one.defence)}, {_say_read(one)}." for one in read[:1]]
    if len(bounded) == 1:
        said.append(f"{capital(name_of(bounded[0].defence))} is bounded by its epsilon.")
    elif bounded:
        said.append(f"{count(len(bounded), 'defence')} are bounded by their epsilon.")
    return said


def _say_defences(judged: Sequence[Judgement], graded: Sequence[Judgement]) -> list[str]:
    """Say what became of the defences against the leak that leads."""
    if not judged:
        return ["No defence was tried."]
    if judged[0].worst.unpriced:
        return [_helpful(judged), f"What that costs cannot be said: {judged[0].worst.unpriced}."]
    choice = choose(judged)
    if choice is None and any(one.may_be_advised for one in judged):
        return [_helpful(judged), "What that costs was not measured."]
    if choice is None:
        return [f"{_none(judged)} to lower it{_useless(judged)}."]
    if choice.best.verdict == "reduced":
        best = choice.best
        said = f"under the best of them, {name_of(best.defence)}, {_say_read(best)}, {price_clause(best.worst.loss)}"
        return [f"{_none(judged)} to stop it{_useless(judged)}; {said}.", *_beside(best, graded)]
    shown = [one for one in judged if one.may_be_advised and one.verdict != "reduced" and one.worst.loss is not None]
    best = min(shown, key=lambda one: (price_of(one), one is not choice.best))
    word = "bounded by its epsilon" if best.is_good else "not broken by the attacks tried"
    name, price = capital(name_of(best.defence)), price_clause(best.worst.loss)
    if len(shown) == 1:
        return [f"{name} was {word}, {price}{_useless(judged)}.", *_promise(best), *_beside(best, graded)]
    words = "bounded or not broken" if len({one.is_good for one in shown}) > 1 else word
    many = f"{len(shown)} of {_settings(judged)} were {words}{_useless(judged)}"
    return [f"{many}; the cheapest is {name_of(best.defence)}, {price}.", *_promise(best), *_beside(best, graded)]


def _promise(best: Judgement) -> list[str]:
    """Say so where the word beside a defence is that of its epsilon, which promises too little."""
    if best.verdict != "bounded" or best.is_good or best.bound is None:
        return []
    return [f"Its epsilon promises {best.bound.promise}."]


def _helpful(judged: Sequence[Judgement]) -> str:
    helpful = sum(one.may_be_advised for one in judged)
    return f"{helpful} of {_settings(judged)} {'was' if helpful == 1 else 'were'} shown to lower the leak."


def _settings(judged: Sequence[Judgement]) -> str:
    """Count defences, and their settings where some have several."""
    families = count(len({family_of(one.defence) for one in judged}), "defence")
    many = count(len(judged), "setting")
    return families if many.split()[0] == families.split()[0] else f"{many} of {families}"


def _none(judged: Sequence[Judgement]) -> str:
    if len(judged) == 1:
        return f"{capital(name_of(judged[0].defence))} was not shown"
    return f"None of {_settings(judged)} was shown"


def _useless(judged: Sequence[Judgement]) -> str:
    number = sum(one.worst.useless for one in judged)
    if not number:
        return ""
    where = "it" if len(judged) == 1 else "each" if number == len(judged) else str(number)
    return f" (under {where} the model learned nothing)"


def _beside(best: Judgement, graded: Sequence[Judgement]) -> list[str]:
    """Say what else is read under the defence that was named: it stops nothing that is not stopped."""
    others = [one for one in graded if one.defence == best.defence and one.kind != best.kind and one.verdict in READ]
    return [f"But under it, {one.kind.headline(one.worst)}." for one in others]


def _say_captured(judgement: Judgement) -> str:
    """Say what captured messages give away, beside what they would without whatever their senders did."""
    kind, base = judgement.kind, judgement.base
    said = _say_read(judgement)
    before = "" if base is None else f", against {kind.short(base)} where nothing is done to them"
    if judgement.verdict == "leaks" and base is not None and kind.short(base) == kind.short(judgement.worst):
        return f"These messages are as open as undefended ones: {said}."
    if judgement.verdict in READ:
        less = "leak less than undefended ones" if judgement.verdict == "reduced" else "leak"
        return f"These messages {less}: {said}{before}."
    if judgement.verdict == "not broken":
        return f"The attacks tried did not break these messages: {said}{before}. A stronger attack may."
    return f"Whether these messages leak is not known: {said}{before}. {judgement.missing}".strip()


def _say_ungraded(judged: Sequence[Judgement]) -> str:
    """Say what was found in messages behind which nobody knows the examples."""
    return " ".join(f"{capital(one.kind.headline(one.worst))}." for one in judged)
