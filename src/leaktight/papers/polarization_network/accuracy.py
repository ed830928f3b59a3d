"""Accuracies of DLNet under every mechanism (Table 11)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.paper import Experiment
from leaktight.papers.polarization_network.audits import accuracy, plan_trained
from leaktight.papers.polarization_network.mechanisms import (
    GAUSSIAN,
    PPDL_05,
    PPDL_30,
    SPN,
    sweep_mechanisms,
    with_none,
)
from leaktight.papers.polarization_network.scales import SETS, Study
from leaktight.papers.records import Records
from leaktight.papers.row import Row, columns

# Table 11: MNIST, CIFAR10, CIFAR100, SVHN.
ACCURACY: dict[str, dict[float, tuple[float, ...]]] = {
    GAUSSIAN: {
        0.5: (0.9466, 0.4205, 0.0876, 0.6882),
        0.1: (0.9757, 0.5808, 0.2084, 0.8295),
        0.01: (0.9922, 0.6853, 0.3614, 0.8950),
        0.001: (0.9942, 0.7027, 0.3803, 0.8980),
        0.0001: (0.9925, 0.7025, 0.3902, 0.9015),
    },
    PPDL_05: {
        0.5: (0.9305, 0.3783, 0.0469, 0.5151),
        0.1: (0.9708, 0.5184, 0.1497, 0.8254),
        0.01: (0.9881, 0.6081, 0.2323, 0.8829),
        0.001: (0.9886, 0.5906, 0.2237, 0.8894),
        0.0001: (0.9897, 0.5814, 0.2068, 0.8740),
    },
    PPDL_30: {
        0.5: (0.9466, 0.4250, 0.0894, 0.5132),
        0.1: (0.9775, 0.5672, 0.1931, 0.8424),
        0.01: (0.9910, 0.6783, 0.3127, 0.8992),
        0.001: (0.9926, 0.6672, 0.3177, 0.8992),
        0.0001: (0.9934, 0.6686, 0.3223, 0.8975),
    },
    SPN: {
        0.5: (0.9936, 0.6583, 0.2990, 0.8711),
        0.4: (0.9939, 0.6594, 0.2999, 0.8740),
        0.3: (0.9933, 0.6814, 0.2999, 0.8727),
        0.2: (0.9937, 0.6898, 0.3230, 0.8788),
        0.1: (0.9927, 0.6897, 0.3457, 0.8880),
        0.01: (0.9928, 0.6970, 0.3843, 0.9163),
        0.001: (0.9938, 0.6968, 0.3768, 0.9154),
        0.0001: (0.9944, 0.7154, 0.3740, 0.9126),
    },
}


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each mechanism and strength."""
    return [
        {
            "data_set": study.name,
            "mechanism": name,
            "strength": strength,
            **columns("accuracy", accuracy(study, records, defence)),
        }
        for study in studies
        for (name, strength), defence in with_none(sweep_mechanisms(study.noise, study.alpha2)).items()
    ]


def published_rows() -> list[Row]:
    """Return Table 11."""
    return [
        {"data_set": name, "mechanism": mechanism, "strength": strength, "accuracy": values[place]}
        for place, name in enumerate(SETS.values())
        for mechanism, strengths in ACCURACY.items()
        for strength, values in sorted(strengths.items())
    ]


EXPERIMENT = Experiment(
    table="accuracy",
    keys=("data_set", "mechanism", "strength"),
    plans=plan_trained,
    rows=rows,
    published=published_rows(),
)
