"""Advice: the cheapest defence that was shown to protect, and the best within a budget of accuracy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from leaktight.captures import AsCaptured
from leaktight.core.defence import Defence, is_undefended
from leaktight.core.display import capital, join_words
from leaktight.findings.choice import Choice, better_by_number, choose, price_of, rank_of
from leaktight.findings.display import name_of
from leaktight.findings.sentence import cost_of
from leaktight.findings.summary import AuditSummary
from leaktight.findings.utility import utility_name
from leaktight.findings.verdict import Judgement
from leaktight.statistics.pooling import high

BUDGETS = (0.01, 0.02, 0.05)
MOST_ALIKE = 2
LIMITS = "How far does this advice go?"
UNPRICED = "This cannot be said: {why}, so a price in {name} means nothing. Train longer."


@dataclasses.dataclass(frozen=True)
class Advice:
    """One recommendation.

    Args:
        question: what was asked, such as `At most 2 points of accuracy?`.
        sentence: the answer in words, with intervals.
        defence: the defence it names; None if none qualifies.
    """

    question: str
    sentence: str
    defence: Defence | None = None


def advise(summary: AuditSummary, budgets: Sequence[float] = BUDGETS) -> tuple[Advice, ...]:
    """Return for each kind of leak the cheapest defence shown to protect, and the best within each budget of accuracy.

    Only what was shown to help is recommended: `bounded` by an epsilon that implies something, `not broken` or what
    that word rests on, or `reduced`; never what is `unknown`, and never a defence under which the model learned
    nothing. If it learned nothing without a defence, or was never trained, nothing is. A defence qualifies by its
    measured loss; if its interval reaches beyond the budget, the sentence says so. The best is that of `choose`:
    nothing else that was shown to help is as good on every printed number, and those that cannot be told apart from it
    by the intervals are named. What looks as good and was not shown to help is said to be that. Whatever is recommended
    rests on the attacks tried, and the last answer says so.

    Args:
        summary: what was measured.
        budgets: shares of accuracy, in [0, 1], that one may be ready to give up.

    Example:
        >>> from leaktight.findings.summary import summarise
        >>> advise(summarise([]))
        ()
    """
    graded = [judgement for judgement in summary.judgements if not judgement.kind.unjudged]
    scenarios = dict.fromkeys(judgement.scenario for judgement in graded)
    found: list[Advice] = []
    for scenario in scenarios:
        here = [judgement for judgement in graded if judgement.scenario == scenario]
        # What the senders of captured messages did is not ours to choose.
        defended = [j for j in here if not (is_undefended(j.defence) or isinstance(j.defence, AsCaptured))]
        prefix = f"Scenario {scenario}: " if len(scenarios) > 1 else ""
        bare = here[0].worst
        if defended and bare.unpriced:
            said = UNPRICED.format(why=bare.unpriced, name=utility_name(bare.utility))
            found.append(Advice(f"{prefix}Which defence?", said))
        elif defended and all(judgement.worst.useless for judgement in defended):
            said = "None of those measured: under each of them the model learned nothing."
            found.append(Advice(f"{prefix}Which defence?", said))
        elif defended:
            for aim, judged in _by_kind(defended).items():
                found += [_protects(judged, prefix + aim), *_within_budgets(judged, budgets, prefix + aim)]
    return (*found, *_limits(summary, found))


def _limits(summary: AuditSummary, found: Sequence[Advice]) -> list[Advice]:
    """Return what every recommendation rests on; nothing where there is none."""
    named = {advice.defence.key for advice in found if advice.defence is not None}
    tried = dict.fromkeys(attack for j in summary.judgements if j.defence.key in named for attack in j.attacks)
    if not tried:
        return []
    said = (
        f"As far as the attacks that were tried, {join_words(list(tried))}. "
        "Stronger attacks exist, and may get through."
    )
    return [Advice(LIMITS, said)]


def _by_kind(judged: Sequence[Judgement]) -> dict[str, list[Judgement]]:
    """Return what was found about each kind of leak apart: they cannot be weighed against each other."""
    groups: dict[str, list[Judgement]] = {}
    for judgement in judged:
        groups.setdefault(f"{judgement.kind.heading}: ", []).append(judgement)
    return groups if len(groups) > 1 else {"": list(judged)}


def _protects(judged: Sequence[Judgement], prefix: str) -> Advice:
    question = f"{prefix}What was tightly bounded or not broken, at the lowest price?"
    known = [j for j in judged if j.may_be_advised and j.verdict != "reduced" and j.worst.loss is not None]
    if not known:
        return Advice(question, f"None of the defences measured: {_why(judged)}.")
    best = min(known, key=lambda one: (price_of(one), rank_of(one), one.kind.severity(one.worst)))
    said = f"{capital(name_of(best.defence))}: {_word(best)}; {_say_outcome(best)}; price: {cost_of(best.worst.loss)}."
    return Advice(question, said, best.defence)


def _why(judged: Sequence[Judgement]) -> str:
    """Say what became of the defences, none of which can be recommended."""
    useless = sum(j.status == "useless" for j in judged)
    leaky = sum(j.status in ("refuted", "leaks", "reduced") for j in judged)
    unknown = sum(j.status == "unknown" for j in judged)
    weak = sum(j.status == "bounded" and not j.may_be_advised for j in judged)
    rest = len(judged) - useless - leaky - unknown - weak
    said = {
        f"{leaky} let something through": leaky,
        f"under {useless} the model learned nothing": useless,
        f"of {unknown} too little is known": unknown,
        f"{weak} promised too little by its epsilon": weak,
        f"{rest} {'has' if rest == 1 else 'have'} no price": rest,
    }
    return "; ".join(words for words, count in said.items() if count)


def _within_budgets(judged: Sequence[Judgement], budgets: Sequence[float], prefix: str) -> list[Advice]:
    """Return the best within each budget; budgets with the same answer are asked about together."""
    answers: dict[tuple[str, Defence | None], list[float]] = {}
    for budget in budgets:
        answers.setdefault(_within(judged, budget), []).append(budget)
    utility = next((j.worst.loss or j.worst.utility for j in judged if j.worst.loss or j.worst.utility), None)
    found = []
    for (said, defence), alike in answers.items():
        amounts = [f"{100 * budget:g}" for budget in alike]
        unit = "point" if amounts == ["1"] else "points"
        many = " or ".join([", ".join(amounts[:-1]), amounts[-1]] if len(amounts) > 1 else amounts)
        found.append(Advice(f"{prefix}At most {many} {unit} of {utility_name(utility)}?", said, defence))
    return found


def _within(judged: Sequence[Judgement], budget: float) -> tuple[str, Defence | None]:
    helpful = [j for j in judged if j.may_be_advised]
    priced = [j for j in helpful if j.worst.loss is not None]
    if all(j.worst.loss is None for j in judged):
        return "This cannot be said: the cost in accuracy was not measured.", None
    if not helpful:
        return "No defence measured was shown to lower the leak.", None
    if not priced:
        return "This cannot be said: what those cost that were shown to help was not measured.", None
    choice = choose(priced, budget)
    if choice is None:
        cheapest = min(priced, key=price_of)
        said = f"the cheapest is {name_of(cheapest.defence)}, at {cost_of(cheapest.worst.loss)}"
        return f"None of the defences that were shown to help is that cheap; {said}.", None
    best = choice.best
    loss = best.worst.loss
    unsure = ""
    if loss is not None and loss.low is None:
        unsure = " The cost has no interval, so treat it as a rough figure."
    elif loss is not None and high(loss) > budget:
        unsure = " The interval reaches beyond the budget: more seeds or test examples would settle it."
    said = f"{name_of(best.defence)}: {_word(best)}; {_say_outcome(best)}; price: {cost_of(loss)}"
    return f"The best protection measured is {said}.{unsure}{_alike(choice)}{_by_number(judged, best)}", best.defence


def _word(judgement: Judgement) -> str:
    """Return the word of a recommendation; where an epsilon promises too little, what it rests on."""
    if judgement.verdict != "bounded" or judgement.is_good or judgement.bound is None:
        return judgement.verdict
    return f"not broken by the attacks tried, though its epsilon promises {judgement.bound.promise}"


def _by_number(judged: Sequence[Judgement], best: Judgement) -> str:
    """Name what looks as good in the tables, and was not shown to help."""
    names = [name_of(one.defence) for one in better_by_number(judged, best)]
    if not names:
        return ""
    verbs = ("leaks", "costs", "it helps") if len(names) == 1 else ("leak", "cost", "they help")
    return (
        f" By the numbers alone {join_words(names)} {verbs[0]} no more and {verbs[1]} no more; that {verbs[2]} was not "
        "shown."
    )


def _alike(choice: Choice) -> str:
    """Name those that cannot be told apart from the best, and the cheapest of them all."""
    if not choice.alike:
        return ""
    names = join_words([name_of(one.defence) for one in (choice.best, *choice.alike[:MOST_ALIKE])])
    more = len(choice.alike) - MOST_ALIKE
    names += f" and {more} more" if more > 0 else ""
    cheapest = min((choice.best, *choice.alike), key=price_of)
    word = "cheaper" if len(choice.alike) == 1 else "cheapest"
    price = "" if cheapest is choice.best else f", at {cost_of(cheapest.worst.loss)}"
    return f" By their intervals, {names} cannot be told apart; the {word} is {name_of(cheapest.defence)}{price}."


def _say_outcome(judgement: Judgement) -> str:
    """Say what the strongest attack gets, or what the bound implies."""
    if judgement.is_good and judgement.bound is not None:
        return (
            f"{judgement.bound.budget}, true positives at most {100 * judgement.bound.rate:.3g} % at 1 % false alarms"
        )
    return judgement.kind.clause(judgement.worst)
