"""Privacy-preserving characteristics (PPC): ratio, accuracy and distances at every strength (Fig. 5, 9 to 23).

The attacked network is the initial one, as in the paper, or the trained one whose accuracy stands beside.
"""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.defence import Defence
from leaktight.metrics.tradeoff import region
from leaktight.papers.check import Check, at_least
from leaktight.papers.comparison import difference, mean_of
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.polarization_network import audits
from leaktight.papers.polarization_network.mechanisms import GAUSSIAN, SPN, sweep_mechanisms, with_none
from leaktight.papers.polarization_network.scales import Study
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, columns, reading_of, rows_where

HIDDEN = 0.3
"""The share of labels that stay hidden under SPN: its published CAPs under membership, by its accuracies, are 0.35 and
more."""
TRACING = (
    "Tracing asks whose the attacked images are. The paper's text asks for every image that a participant owns, but of "
    "those almost none was sent, so that perfect reconstructions would score hardly better than noise."
)
KNOWING = (
    "The strongest attacker knows the mechanism, has the test images as public examples, and runs the paper's attack, "
    "the suite `strongest` and, for membership, label reading. At each strength its distance is the smallest of them; "
    "the paper has no such attacker."
)
STAGE = (
    "Every accuracy is that of the trained network. The paper attacks the initial one (stage `initial`), so its CAP "
    "multiplies the accuracy of one network with the leak of another; at the stage `trained` both are of the same "
    "network, and the attack is on the gradient of one batch of it."
)
RATIO = (
    "The ratio is the paper's, over biases: those of all layers but the head, as the paper does not say which. Beside "
    "it stand the ratio over all tensors of these layers, and that over the whole message, in which the public head "
    "that SPN never touches has a part. Regions go by the paper's ratio."
)
UNCLIPPED_ERROR = (
    "`reconstruction` cuts guesses to the range of pixels, as anyone would who looks at them; `unclipped` takes them "
    "as the search left them, where one search that ran away rules the mean."
)
PUBLISHED = claims(
    ("In red regions (ratios from tens) pixels of the training data are almost completely disclosed.", "4.2, Fig. 5"),
    (
        "In green regions (ratio below 1) accuracy drops by more than 20 points on CIFAR10, 5 on MNIST, for DP and "
        "PPDL.",
        "4.2",
    ),
    ("SPN keeps its accuracy although its perturbation exceeds the gradient.", "4.2"),
)


def plans(studies: Sequence[Study]) -> Plans:
    """Return the audits behind accuracies and distances."""
    return audits.plan_trained(studies) | audits.plan_attacks(studies)


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a point for each mechanism, strength, batch size and stage."""
    return [
        _point(study, records, stage, name, strength, defence, batch_size)
        for study in studies
        for stage, batch_size, noise, alpha2 in settings(study)
        for (name, strength), defence in with_none(sweep_mechanisms(noise, alpha2)).items()
    ]


def settings(study: Study) -> list[tuple[str, int, Sequence[float], Sequence[float]]]:
    """Return stage, batch size and strengths of every curve of a study."""
    initial = [
        (audits.INITIAL, size, sweep.noise, sweep.alpha2) for sweep in study.sweeps for size in sweep.batch_sizes
    ]
    return [*initial, (audits.TRAINED, 1, study.noise, study.alpha2)]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether polarization keeps accuracy where noise does not, and hides labels from who reads the public head."""
    focus = audits.focus_of(rows)
    own = rows_where(rows, data_set=focus, mechanism=SPN, stage=audits.INITIAL)
    return [
        _kept_accuracy(rows, focus),
        *(
            at_least(
                f"Membership distance(SPN) of label reading, mean over strengths, batch {size}, {focus}",
                mean_of([reading_of(row, audits.LABELS) for row in rows_where(own, batch_size=size)]),
                HIDDEN,
            )
            for size in dict.fromkeys(row["batch_size"] for row in own)
        ),
    ]


def _point(
    study: Study, records: Records, stage: str, name: str, strength: float, defence: Defence, batch_size: int
) -> Row:
    perturbed = audits.ratio(study, records, defence, batch_size, stage)
    row: Row = {
        "data_set": study.name,
        "stage": stage,
        "mechanism": name,
        "strength": strength,
        "batch_size": batch_size,
        **columns("ratio", perturbed),
        "region": region(perturbed.value) if perturbed else None,
        **columns("accuracy", audits.accuracy(study, records, defence)),
    }
    for aim in audits.DISTANCES:
        row |= columns(aim, audits.distance(study, records, aim, defence, batch_size, stage=stage))
    row |= audits.unclipped(study, records, defence, batch_size, stage)
    reading = audits.distance(study, records, audits.MEMBERSHIP, defence, batch_size, audits.LABELS, stage)
    row |= columns(audits.LABELS, reading)
    for aim in audits.DISTANCES:
        suite = audits.distance(study, records, aim, defence, batch_size, audits.STRONGEST, stage)
        row |= columns(f"suite_{aim}", suite)
    for aim in audits.DISTANCES:
        row |= columns(f"strongest_{aim}", audits.strongest_distance(study, records, aim, defence, batch_size, stage))
    return row | audits.other_ratios(study, records, defence, batch_size, stage)


def iterations(studies: Sequence[Study]) -> list[str]:
    """Say how long the paper's attack searches, where that is less than in its public code."""
    fewer = {
        f"{sweep.iterations} for {study.name} at batch {', '.join(map(str, sweep.batch_sizes))}": None
        for study in studies
        for sweep in study.sweeps
        if sweep.iterations < audits.PUBLISHED_ITERATIONS
    }
    start = f"In its public code the paper's attack has {audits.PUBLISHED_ITERATIONS} iterations; here it has"
    return [f"{start} {'; '.join(fewer)}."] if fewer else []


def repeats(studies: Sequence[Study]) -> list[str]:
    """Say how often training runs and attacks are repeated."""
    parts = []
    for study in studies:
        fewer = [
            f" ({sweep.seeds} for batches of {', '.join(map(str, sweep.batch_sizes))}, but for label reading)"
            for sweep in study.sweeps
            if audits.has_fewer_seeds(study, sweep)
        ]
        parts.append(f"{study.name} {study.seeds}{''.join(fewer)}")
    return [
        f"Seeds: {'; '.join(parts)}. Where there are several, numbers are means over them, and intervals count seeds "
        "as well as victims or test images. Federations have their own number."
    ]


def _kept_accuracy(rows: Sequence[Row], focus: str) -> Check:
    """Compare mean accuracies over the strengths at which the perturbation exceeds the gradient."""
    means = []
    for mechanism in (SPN, GAUSSIAN):
        green = rows_where(
            rows, data_set=focus, stage=audits.INITIAL, mechanism=mechanism, batch_size=1, region="green"
        )
        means.append(mean_of([known for row in green if (known := reading_of(row, "accuracy"))]))
    return at_least(f"Accuracy(SPN) - Accuracy(Gaussian) where the ratio is below 1, {focus}", difference(*means), 0.1)


EXPERIMENT = Experiment(
    table="ppc",
    keys=("data_set", "stage", "mechanism", "strength", "batch_size"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda studies: [STAGE, RATIO, UNCLIPPED_ERROR, TRACING, KNOWING, *iterations(studies), *repeats(studies)],
)
