"""Checks: what the paper claims, on our numbers, for each data set; and whether it also holds for an attacker who estimates keys."""

from __future__ import annotations

import math

from leaktight.papers.class_keys.geometry import NORMAL
from leaktight.papers.class_keys.mechanisms import ESTIMATED, EXACT, PLAIN, RANDOM
from leaktight.papers.class_keys.settings import OLIVETTI
from leaktight.papers.class_keys.tables import REGRESSION
from leaktight.papers.estimate import Estimate, difference, largest
from leaktight.papers.reproduction import Check, Row, Tables, above, at_least, at_most, estimate, number, rows_where, within

LEAKS, STOPPED, LONG = 0.6, 0.1, 4096
"""Which share of recognised samples is a success, which is none, and from how many dimensions keys must stop the attack."""
KEPT = 0.97
"""How much of the plain framework's accuracy keys must keep."""
FAR, FAR_FACES = 0.5, 1.1
"""From which distance to the victim's key on the paper recognises nothing: digits, and faces."""
ROOT, POINTS = math.sqrt(0.5), 0.02
"""The score of a class with each of two orthogonal keys, and how far from it ours may be."""


def checks_of(tables: Tables) -> list[Check]:
    """Return every claim: about keys alone, for each data set, and about training in one place."""
    names = dict.fromkeys(str(row["data_set"]) for row in tables["experiments"])
    found = [_overlap(tables["key_overlap"])]
    for name in names:
        own = {table: [row for row in rows if row.get("data_set") == name] for table, rows in tables.items()}
        found += [*_attacks(own, name), *_accuracies(own, name)]
    found += _shared_keys(tables["shared_keys"])
    return found + [_objectives(row) for row in rows_where(tables["regression"], objective=REGRESSION)]


def _overlap(rows: list[Row]) -> Check:
    """Count where the largest overlap of Gaussian keys is in the interval that theory gives."""
    own = rows_where(rows, distribution=NORMAL)
    inside = [_within(row) for row in own]
    known = [each for each in inside if each is not None]
    share = sum(known) / len(own) if own and len(known) == len(own) else None
    return at_least("Share of dimensions at which the largest overlap of random keys is as theory says", share, 1)


def _attacks(own: Tables, name: str) -> list[Check]:
    rows = own["experiments"]
    found = [
        at_least(
            f"Samples recognised as the victim's class, {words}, {name}", _value(rows, "recognised", experiment=kind), LEAKS
        )
        for words, kind in (("plain framework", PLAIN), ("exact key", f"I: {EXACT}"))
    ]
    for words, kind in ((RANDOM, f"III: {RANDOM}"), (ESTIMATED, f"beyond: {ESTIMATED}")):
        for row in rows_where(rows, experiment=kind):
            dimensions = number(row, "dimensions") or 0
            if dimensions >= LONG:
                found += _stopped(row, f"{words} of {dimensions:,.0f}, {name}")
    found += _curve(own["distances"], name)
    for row in own["several_attackers"]:
        crowd = f"{number(row, 'attackers'):.0f} attackers"
        if row["framework"] == PLAIN:
            words = f"Samples recognised as the victim's class, {crowd} on the plain framework, {name}"
            found.append(at_least(words, estimate(row, "recognised"), LEAKS))
        else:
            found += _stopped(row, f"{crowd} with random keys, {name}")
    return found


def _stopped(row: Row, who: str) -> list[Check]:
    """Look for the class that an attacker without a key was after, and for any other that it may have hit upon."""
    columns = {"recognised": "the victim's class", "recognised_any": "any class of the victim"}
    return [
        at_most(f"Samples recognised as {words}, {who}", estimate(row, column), STOPPED) for column, words in columns.items()
    ]


def _curve(rows: list[Row], name: str) -> list[Check]:
    """Compare the key itself, and the nearest other one on this side of the paper's threshold, with the farthest; and look beyond it."""
    threshold = FAR_FACES if name == OLIVETTI else FAR
    near = [row for row in rows[:-1] if (number(row, "distance") or 0) < threshold]
    far = [row for row in rows if (number(row, "distance") or 0) >= threshold]
    found = []
    for row in near[:2]:
        gap = difference(estimate(row, "recognised"), estimate(rows[-1], "recognised"))
        words = " - ".join(f"recognised({number(each, 'distance'):g})" for each in (row, rows[-1]))
        found.append(above(f"The delta curve: {words}, {name}", gap, 0))
    if far:
        most = largest([estimate(row, "recognised") for row in far])
        found.append(at_most(f"Most samples recognised, key at {threshold:g} or farther, {name}", most, STOPPED))
    return found


def _accuracies(own: Tables, name: str) -> list[Check]:
    learning = own["learning"]
    last = max((number(row, "rounds") or 0 for row in learning), default=0)
    found = [
        at_least(
            f"Accuracy({row['framework']}) / accuracy(plain), {row['participants']} participants, {name}",
            estimate(row, "of_plain"),
            KEPT,
        )
        for row in learning
        if number(row, "rounds") == last and row["framework"] != PLAIN
    ]
    for row in own["shared_classes"]:
        if row["framework"] != PLAIN:
            words = f"Accuracy({row['framework']}) / accuracy(plain), shared classes, {name}"
            found.append(at_least(words, estimate(row, "of_plain"), KEPT))
    return found


def _shared_keys(rows: list[Row]) -> list[Check]:
    """Look at the longest keys of Fig. 8."""
    row: Row = rows[-1] if rows else {}
    words = f"keys of {number(row, 'dimensions') or 0:,.0f}"
    score = number(row, "mean_score")
    return [
        within(f"Score of a class with each of its two keys - 0.71, {words}", None if score is None else score - ROOT, POINTS),
        at_most(f"Largest overlap of a shared class with another key, {words}", number(row, "largest_other"), STOPPED),
    ]


def _objectives(row: Row) -> Check:
    return at_least(
        f"Accuracy(keys) / accuracy(cross entropy), in one place, {row['data_set']}", estimate(row, "of_entropy"), KEPT
    )


def _value(rows: list[Row], column: str, **wanted: str) -> Estimate | None:
    found = rows_where(rows, **wanted)
    return estimate(found[0], column) if found else None


def _within(row: Row) -> bool | None:
    value, low, high = (number(row, name) for name in ("largest", "theory_low", "theory_high"))
    # In two dimensions all are 1, but for rounding.
    return None if value is None or low is None or high is None else low - 1e-6 <= value <= high + 1e-6
