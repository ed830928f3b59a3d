"""Advice: the cheapest defence that no attack tried broke, and the best within a budget of accuracy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from leaktight.audit.pool import high
from leaktight.audit.property_leak import tells_property, whence
from leaktight.audit.rows import STATEMENT
from leaktight.audit.summary import Summary
from leaktight.audit.utility import utility_name
from leaktight.audit.verdict import Judgement, cost_of
from leaktight.audit.words import capital, counted, listed, name_of, percent, title_of, undefended
from leaktight.core.defence import Defence

BUDGETS = (0.01, 0.02, 0.05)
AIMS = {False: "Against all other attacks: ", True: "Against property inference: "}
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


def advise(summary: Summary, budgets: Sequence[float] = BUDGETS) -> tuple[Advice, ...]:
    """Return the best protection within each budget of accuracy, and the cheapest that the attacks tried did not break.

    A defence under which the model learned nothing is never recommended, and if it learned nothing without defence, or was never trained, nothing is. A
    defence qualifies by its measured loss; if its interval reaches beyond the budget, the sentence says so. The best is the
    one under which the strongest attack gets least; of equals, the cheapest. Whatever is recommended rests on the attacks tried, and the
    last answer says so.

    Args:
        summary: what was measured.
        budgets: shares of accuracy, in [0, 1], that one may be ready to give up.

    Example:
        >>> from leaktight.audit.summary import summarise
        >>> advise(summarise([]))
        ()
    """
    scenarios = dict.fromkeys(judgement.scenario for judgement in summary.judgements)
    several = len(scenarios) > 1
    found: list[Advice] = []
    for scenario in scenarios:
        here = [j for j in summary.judgements if j.scenario == scenario]
        defended = [j for j in here if not undefended(j.defence)]
        useful = [j for j in defended if not j.worst.useless]
        prefix = f"Scenario {scenario}: " if several else ""
        bare = here[0].worst
        if defended and bare.unpriced:
            said = UNPRICED.format(why=bare.unpriced, name=utility_name(bare.utility))
            found.append(Advice(f"{prefix}Which defence?", said))
        elif defended and not useful:
            found.append(
                Advice(f"{prefix}Which defence?", "None of those measured: under each of them the model learned nothing.")
            )
        elif useful:
            for aim, judged in _by_aim(useful).items():
                found += [_unbroken(judged, prefix + aim), *(_within(judged, budget, prefix + aim) for budget in budgets)]
    return (*found, *_limits(summary, found))


def _limits(summary: Summary, found: Sequence[Advice]) -> list[Advice]:
    """Return what every recommendation rests on; nothing where there is none."""
    named = {advice.defence.key for advice in found if advice.defence is not None}
    tried = dict.fromkeys(attack for j in summary.judgements if j.defence.key in named for attack in j.attacks)
    if not tried:
        return []
    said = f"As far as the attacks that were tried, {listed(list(tried))}. Stronger attacks exist, and may get through."
    return [Advice(LIMITS, said)]


def _by_aim(judged: Sequence[Judgement]) -> dict[str, list[Judgement]]:
    """Return what was found about a private property apart from the rest, which it cannot be weighed against, if there are both."""
    groups: dict[str, list[Judgement]] = {}
    for judgement in judged:
        groups.setdefault(AIMS[tells_property(judgement.worst.leak)], []).append(judgement)
    return groups if len(groups) > 1 else {"": list(judged)}


def _order(judgement: Judgement) -> tuple[tuple[float, ...], float]:
    loss = judgement.worst.loss
    return judgement.worst.severity[:1], float("inf") if loss is None else loss.value


def _unbroken(judged: Sequence[Judgement], prefix: str) -> Advice:
    question = f"{prefix}What was not broken by the attacks tried, at the lowest price?"
    unbroken = [j for j in judged if j.tone == "unbroken" and j.worst.loss is not None]
    if not unbroken:
        return Advice(
            question,
            "None of the defences measured: each let something through, left a model that learned nothing, could not be compared with no defence, or met only searches that failed.",
        )
    best = min(unbroken, key=lambda j: j.worst.loss.value if j.worst.loss else 0.0)
    return Advice(
        question,
        f"{capital(name_of(best.defence))}: {_protection(best)}, at a price of {cost_of(best.worst.loss)}.",
        best.defence,
    )


def _within(judged: Sequence[Judgement], budget: float, prefix: str) -> Advice:
    amount = 100 * budget
    utility = next((j.worst.loss or j.worst.utility for j in judged if j.worst.loss or j.worst.utility), None)
    question = f"{prefix}At most {amount:g} {'point' if amount == 1 else 'points'} of {utility_name(utility)}?"
    priced = [j for j in judged if j.worst.loss is not None]
    fits = [j for j in priced if j.worst.loss is not None and j.worst.loss.value <= budget]
    if not priced:
        return Advice(question, "This cannot be said: the cost in accuracy was not measured.")
    if not fits:
        cheapest = min(priced, key=lambda j: j.worst.loss.value if j.worst.loss else 0.0)
        return Advice(
            question,
            f"None of the defences measured is that cheap; the cheapest is {name_of(cheapest.defence)}, at {cost_of(cheapest.worst.loss)}.",
        )
    # Of a defence that only failed searches met nothing is known, however little they found.
    helpful = [j for j in fits if j.tone in ("unbroken", "reduces")]
    if not helpful:
        return Advice(question, "No defence measured was shown to lower the leak at that price.")
    best = min(helpful, key=_order)
    loss = best.worst.loss
    unsure = ""
    if loss is not None and loss.low is None:
        unsure = " The cost has no interval, so treat it as a rough figure."
    elif loss is not None and high(loss) > budget:
        unsure = " The interval reaches beyond this budget: more seeds or test examples would settle it."
    return Advice(
        question,
        f"The best protection measured is {name_of(best.defence)}: {_protection(best)}, at a price of {cost_of(loss)}.{unsure}",
        best.defence,
    )


def _protection(judgement: Judgement) -> str:
    leak = judgement.worst.leak
    if leak is None:
        return "nothing measured"
    if tells_property(leak):
        return f"{title_of(leak.name)} {leak.value:.2f} by the strongest attack tried, on {whence(leak)}"
    if leak.name != STATEMENT:
        return f"{title_of(leak.name)} {leak.value:.3g} under the strongest attack tried"
    interval = "" if leak.high is None else f" (95 % interval up to {percent(high(leak))})"
    return f"{counted(leak)} images recognised by the strongest attack tried{interval}"
