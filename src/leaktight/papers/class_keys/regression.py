"""Key-based regression beside cross entropy, trained in one place (Table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.defence import Defence, Undefended
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import DecayedSgd
from leaktight.learning.protocol import FedSGD
from leaktight.papers.check import Check, at_least
from leaktight.papers.class_keys.audits import KEPT, UTILITY, accuracy_columns, audit_name
from leaktight.papers.class_keys.scales import CIFAR10, CIFAR100, Central, Scope
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, reading_of, rows_where
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import Utility

REGRESSION, ENTROPY = "key-based regression", "cross entropy"
REGRESSED = (
    "Table 1 is made by the paper's method: orthonormal keys by QR in the place of the last weights, tanh after the "
    "last convolution, and cosines in both arms, by a ResNet-10. At the scale `small` that has a quarter of the "
    "channels and learns for 500 steps, without changes of pictures, from what there is of CIFAR-10 (of ours 10,000 "
    "pictures, with 2,000 to test): only the difference of both arms can be compared with the published numbers. The "
    "paper does not say what cosines are multiplied by before the softmax (10 here)."
)
ACCURACY = {
    (REGRESSION, CIFAR10): 0.948,
    (ENTROPY, CIFAR10): 0.940,
    (REGRESSION, CIFAR100): 0.736,
    (ENTROPY, CIFAR100): 0.742,
}
"""Table 1."""
PUBLISHED: list[Row] = [
    {"data_set": data_set, "objective": objective, "accuracy": value}
    for (objective, data_set), value in ACCURACY.items()
]


def plans(scope: Scope) -> Plans:
    """Train in one place, by keys and by cross entropy."""
    return {_audit(central): _plan(scope, central) for central in scope.central}


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return the accuracy of both objectives on each data set."""
    return [
        {
            "data_set": central.name,
            "objective": name,
            **accuracy_columns(records, _audit(central), defence, "of_entropy"),
        }
        for central in scope.central
        for name, defence in _objectives(central).items()
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask how much of the accuracy of cross entropy keys keep."""
    return [
        at_least(
            f"Accuracy(keys) / accuracy(cross entropy), in one place, {row['data_set']}",
            reading_of(row, "of_entropy"),
            KEPT,
        )
        for row in rows_where(rows, objective=REGRESSION)
    ]


def notes(scope: Scope) -> list[str]:
    """Say what our keys are, and whether the data set has as many classes as the paper's."""
    notes = [REGRESSED]
    for central in scope.central:
        classes = central.data.load().classes if central.name == CIFAR100 else 100
        if classes != 100:
            notes.append(
                f"The CIFAR-100 of the data folder has {classes} classes, the paper's 100: their accuracies cannot be "
                "compared."
            )
    return notes


def _audit(central: Central) -> str:
    return audit_name(central.name, "central")


def _objectives(central: Central) -> dict[str, Defence]:
    return {REGRESSION: central.keys, ENTROPY: Undefended()}


def _plan(scope: Scope, central: Central) -> Plan:
    decay = (max(1, 3 * central.steps // 4),)
    optimiser = DecayedSgd(learning_rate=central.learning_rate, momentum=0.9, factor=0.1, rounds=decay)
    scenario = Federated(
        data=central.data,
        model=central.network,
        participants=1,
        protocol=FedSGD(optimiser=optimiser),
        rounds=central.steps,
        batch_size=central.batch_size,
        device=central.device,
    )
    return Plan(
        title=f"{central.name}: trained in one place",
        scenarios={"centralised": scenario},
        defences=(central.keys,),
        probes={UTILITY: Utility()},
        grid=Grid(seeds=tuple(range(scope.seed, scope.seed + central.seeds)), victims=1),
    )


EXPERIMENT = Experiment(
    table="regression",
    keys=("data_set", "objective"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=notes,
)
