"""Mean accuracy of participants over training, with and without a fixed layer, and with more of them (Fig. 3)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.defence import Defence
from leaktight.papers.check import Check, at_least
from leaktight.papers.class_keys import audits
from leaktight.papers.class_keys.mechanisms import PLAIN, frameworks
from leaktight.papers.class_keys.scales import OLIVETTI, Scope, Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, number, reading_of

REACHED = 0.95
"""What participants reach on faces in the paper."""
LEARNING, PARTICIPANTS = "learning", "participants"
ENDS = (
    "`participants_accuracy` is what the paper shows: the mean over participants of their own model's accuracy after "
    "their turn, on test examples of their own classes. `accuracy` is that of the joint model on all classes, if "
    "training ended there and keys were revealed: a harder question, which it does not ask."
)
SCALED = (
    "Keys have length 1 and the loss a factor of the root of their length, so that all frameworks share one learning "
    "rate."
)
PUBLISHED = claims(
    ("A fixed layer delays convergence, with similar accuracy in the end.", "5.2, Fig. 3"),
    ("It is better only at 128 dimensions.", "5.2, Fig. 3"),
    ("On faces every participant reaches at least 95 %.", "5.2, Fig. 3"),
)


def plans(scope: Scope) -> Plans:
    """Train without an attacker for different times, and with more participants to the end.

    A training run that ends earlier begins like one that ends later.
    """
    plans: Plans = {}
    for study in scope.studies:
        owned = audits.deal_classes(study.classes, study.participants[0])
        looks = {f"{rounds} rounds": audits.make_federation(study, owned, rounds) for rounds in study.looks}
        compared = frameworks(study.fixed, study.learned)
        plans[audits.audit_name(study.name, LEARNING)] = audits.plan_honest(
            scope, study, "accuracy over training", looks, compared
        )
        more = {
            f"{count} participants": audits.make_federation(
                study, audits.deal_classes(study.classes, count), study.rounds
            )
            for count in study.participants[1:]
        }
        if more:
            one_length = frameworks((study.dimensions,))
            plans[audits.audit_name(study.name, PARTICIPANTS)] = audits.plan_honest(
                scope, study, "more participants", more, one_length
            )
    return plans


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return a row for each framework, moment and number of participants."""
    return [row for study in scope.studies for row in _rows(study, records)]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask how much of the plain framework's accuracy keys keep in the end."""
    verdicts = []
    for (name,), own in groups(rows, "data_set"):
        last = max(number(row, "rounds") or 0 for row in own)
        verdicts += [
            at_least(
                f"Accuracy({row['framework']}) / accuracy(plain), {row['participants']} participants, {name}",
                reading_of(row, "of_plain"),
                audits.KEPT,
            )
            for row in own
            if number(row, "rounds") == last and row["framework"] != PLAIN
        ]
        verdicts += [
            at_least(
                f"Mean accuracy of {row['participants']} participants, {row['framework']}, {name}",
                reading_of(row, "participants_accuracy"),
                REACHED,
            )
            for row in own
            if number(row, "rounds") == last and row["framework"] != PLAIN and name == OLIVETTI
        ]
    return verdicts


def _rows(study: Study, records: Records) -> list[Row]:
    first, *more = study.participants
    over_time = [
        _row(study, records, LEARNING, first, name, defence, rounds)
        for name, defence in frameworks(study.fixed, study.learned).items()
        for rounds in study.looks
    ]
    return over_time + [
        _row(study, records, PARTICIPANTS, count, name, defence, study.rounds)
        for count in more
        for name, defence in frameworks((study.dimensions,)).items()
    ]


def _row(study: Study, records: Records, part: str, participants: int, name: str, defence: Defence, rounds: int) -> Row:
    audit, wanted = audits.audit_name(study.name, part), {"participants": participants, "rounds": rounds}
    return {
        "data_set": study.name,
        "participants": participants,
        "framework": name,
        "rounds": rounds,
        **audits.participant_columns(records, audit, defence, **wanted),
        **audits.accuracy_columns(records, audit, defence, "of_plain", **wanted),
    }


EXPERIMENT = Experiment(
    table="learning",
    keys=("data_set", "participants", "framework", "rounds"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda scope: [ENDS, SCALED],
)
