"""Flags about attacks against each other.

Where the attack that should get more gets less, the attack is broken. It does not show that the defence is strong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from leaktight.core.defence import is_undefended
from leaktight.core.display import join_words
from leaktight.core.record import Record
from leaktight.core.threat import Knows
from leaktight.findings.contest import Entry, cells_of, entries_of
from leaktight.findings.display import name_of
from leaktight.findings.flag import Flag

BUDGET = ("iterations", "restarts", "epochs", "steps", "generator_steps", "gradients", "passes")
"""Settings of attacks of which more costs more, and must not get less."""
MOST_NAMED = 3
_WORDS = {"algebra": "exact", "statistic": "simple", "learned": "learned", "search": "searching"}

Beaten = tuple[Entry, Entry]
"""An attack that got more, and the one that should have."""


def cheap_beats_expensive(records: Sequence[Record]) -> list[Flag]:
    """An expensive attack that a cheap one beats is stuck; numbers that rest on it alone understate the leak.

    Cheap is what needs no search: a formula, a statistic, and less so a model learned once. A label that a formula
    reads and a search misses counts too.
    """

    def wins(cheap: Entry, dear: Entry) -> bool:
        # That a single layer tells little is a finding about the layer.
        return cheap.cost < dear.cost and not dear.row.layer and cheap.beats(dear)

    return [
        _flag(
            "cheap_beats_expensive",
            f"The {_word(cheap)} attack {cheap.name} beats {dear.name} {_where(pairs)}. The verdict uses the better "
            f"one; do not read protection from the numbers of {dear.name} before it has more iterations or restarts, "
            "or a better start.",
            pairs,
        )
        for (cheap, dear), pairs in _contests(records, wins)
    ]


def adaptive_below_plain(records: Sequence[Record]) -> list[Flag]:
    """An attack that models the defence and gets less than one of the same principle that ignores it is broken.

    It could always ignore the defence, too. Only an attack that knows no more is compared with it.
    """

    def wins(plain: Entry, adaptive: Entry) -> bool:
        alike = plain.attack.principle == adaptive.attack.principle and plain.knows - {Knows.DEFENCE} <= adaptive.knows
        models = adaptive.adaptive and not plain.adaptive and not is_undefended(adaptive.row.defence)
        return alike and models and plain.beats(adaptive)

    return [
        _flag(
            "adaptive_below_plain",
            f"The attack {adaptive.name} models the defence and gets less than {plain.name}, which ignores it, "
            f"{_where(pairs)}: it is badly set or its model of the defence is wrong. Its failure shows no protection; "
            "check its model (conformance), and give it more iterations.",
            pairs,
        )
        for (plain, adaptive), pairs in _contests(records, wins)
    ]


def more_budget_hurts(records: Sequence[Record]) -> list[Flag]:
    """The same attack with more iterations or restarts must not get less.

    If it does, what it minimises leads away from the truth.
    """

    def wins(less: Entry, more: Entry) -> bool:
        return less.knows == more.knows and _cheaper(less, more) and less.beats(more)

    return [
        _flag(
            "more_budget_hurts",
            f"The attack {more.name} has the settings of {less.name} and a larger budget ({_budget(less, more)}), and "
            f"gets less {_where(pairs)}: its objective leads away from the truth, or it diverges. Trust neither as the "
            "end of what can be got; try another distance, prior or step.",
            pairs,
        )
        for (less, more), pairs in _contests(records, wins)
    ]


def _contests(records: Sequence[Record], wins: Callable[[Entry, Entry], bool]) -> list[tuple[Beaten, list[Beaten]]]:
    """Return who wins against whom where it should not.

    Each loser comes with its first winner, and with all places where the same two met with this outcome.
    """
    found: dict[tuple[int, str, str], list[Beaten]] = {}
    for (scenario, *_), entries in entries_of(records).items():
        for loser in entries:
            winner = next((one for one in entries if wins(one, loser)), None)
            if winner is not None:
                found.setdefault((scenario, winner.name, loser.name), []).append((winner, loser))
    return [(pairs[0], pairs) for pairs in found.values()]


def _flag(name: str, sentence: str, pairs: Iterable[Beaten]) -> Flag:
    return Flag(name, sentence, cells_of(entry.row for pair in pairs for entry in pair))


def _word(entry: Entry) -> str:
    return "simple" if entry.attack.simple else _WORDS[entry.attack.principle]


def _where(pairs: Sequence[Beaten]) -> str:
    """Say under which defences and in which settings, the first few by name."""
    places = dict.fromkeys(f"under {name_of(loser.row.defence)} ({loser.row.setting})" for _, loser in pairs)
    more = [f"{len(places) - MOST_NAMED} more"] if len(places) > MOST_NAMED else []
    return join_words([*list(places)[:MOST_NAMED], *more])


def _cheaper(less: Entry, more: Entry) -> bool:
    """Return whether two attacks differ in their budget alone, and the first has less of it."""
    (one, rest), (other, others) = _split(less), _split(more)
    if rest != others or one.keys() != other.keys():
        return False
    return one != other and all(value <= other[name] for name, value in one.items())


def _split(entry: Entry) -> tuple[dict[str, float], str]:
    """Return the budget of an attack, and all its other settings; whose settings they are says nothing."""
    settings = entry.attack.to_dict()
    settings.pop("preset", None)
    budget = {name: settings.pop(name) for name in BUDGET if isinstance(settings.get(name), int | float)}
    return budget, json.dumps(settings, sort_keys=True)


def _budget(less: Entry, more: Entry) -> str:
    (one, _), (other, _) = _split(less), _split(more)
    return ", ".join(f"{name} {other[name]:g} for {value:g}" for name, value in one.items() if other[name] != value)
