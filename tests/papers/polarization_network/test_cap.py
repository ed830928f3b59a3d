from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import pytest

from leaktight.papers import Check, Row, Tables
from leaktight.papers.polarization_network.accuracy import ACCURACY
from leaktight.papers.polarization_network.cap import CAP, CLIPPED, GRIDS, IMPLIED, notes
from leaktight.papers.polarization_network.scales import ALPHA2, NOISE, Study
from leaktight.papers.row import rows_where

# Where Table 1 does not repeat Tables 8 and 9: the place in the row, and what these have there.
MISPRINTS: dict[tuple[str, str], dict[int, float]] = {
    ("CIFAR10", "SPN"): {5: 0.56, 6: 0.61, 7: 0.63},
    ("CIFAR100", "Gaussian"): {3: 0.03},
    ("CIFAR100", "SPN"): {0: 0.37, 1: 0.36, 2: 0.35},
}
# Table 1, as printed, for reconstruction, membership and tracing at batch 1, 4, 8.
TABLE_1 = {
    ("CIFAR10", "Gaussian"): (0.57, 0.63, 0.63, 0.00, 0.45, 0.47, 0.42, 0.57, 0.58),
    ("CIFAR10", "PPDL-0.05"): (0.55, 0.55, 0.55, 0.00, 0.37, 0.44, 0.50, 0.50, 0.50),
    ("CIFAR10", "PPDL-0.3"): (0.57, 0.61, 0.61, 0.00, 0.43, 0.49, 0.54, 0.54, 0.54),
    ("CIFAR10", "SPN"): (0.69, 0.70, 0.70, 0.24, 0.50, 0.55, 0.60, 0.62, 0.64),
    ("CIFAR100", "Gaussian"): (0.23, 0.31, 0.30, 0.01, 0.22, 0.25, 0.14, 0.24, 0.24),
    ("CIFAR100", "PPDL-0.05"): (0.18, 0.18, 0.18, 0.02, 0.13, 0.16, 0.16, 0.16, 0.16),
    ("CIFAR100", "PPDL-0.3"): (0.21, 0.26, 0.26, 0.00, 0.19, 0.22, 0.19, 0.19, 0.19),
    ("CIFAR100", "SPN"): (0.35, 0.35, 0.36, 0.17, 0.28, 0.31, 0.29, 0.30, 0.30),
}
# Tables 7 to 10: the sum of each row, and of each column.
CAP_SUMS: dict[str, tuple[dict[str, float], tuple[float, ...]]] = {
    "MNIST": (
        {"Gaussian": 15.19, "PPDL-0.05": 16.79, "PPDL-0.3": 16.91, "SPN": 17.03},
        (16.14, 15.82, 16.06, 0.74, 2.82, 3.17, 3.68, 3.73, 3.76),
    ),
    "CIFAR10": (
        {"Gaussian": 4.32, "PPDL-0.05": 3.96, "PPDL-0.3": 4.33, "SPN": 5.27},
        (2.38, 2.49, 2.49, 0.24, 1.75, 1.96, 2.07, 2.24, 2.26),
    ),
    "CIFAR100": (
        {"Gaussian": 1.96, "PPDL-0.05": 1.33, "PPDL-0.3": 1.71, "SPN": 2.73},
        (0.99, 1.11, 1.09, 0.22, 0.82, 0.94, 0.78, 0.89, 0.89),
    ),
    "SVHN": (
        {"Gaussian": 5.73, "PPDL-0.05": 5.65, "PPDL-0.3": 5.56, "SPN": 6.87},
        (3.16, 3.35, 3.36, 0.60, 2.22, 2.62, 2.72, 2.89, 2.89),
    ),
}


def with_strengths(study: Study, noise: tuple[float, ...], alpha2: tuple[float, ...], name: str = "CIFAR10") -> Study:
    sweeps = tuple(sweep.model_copy(update={"noise": noise, "alpha2": alpha2}) for sweep in study.sweeps)
    return study.model_copy(update={"name": name, "sweeps": sweeps})


def test_caps_are_compared_at_batch_1(tables: Tables, find_check: Callable[..., Check]) -> None:
    plain = find_check("CAP(SPN) - CAP(Gaussian), reconstruction, batch 1, initial")
    assert plain.value == pytest.approx(0.8 * 1.01 - 0.4 * 0.51)
    assert plain.holds
    for row in rows_where(tables["cap"], stage="initial", mechanism="SPN", attack="reconstruction", batch_size=1):
        row["cap"] = 0.0
    assert not find_check("CAP(SPN) - CAP(Gaussian), reconstruction, batch 1, initial").holds
    trained = find_check("CAP(SPN) - CAP(Gaussian), reconstruction, batch 1, trained")
    assert trained.value == pytest.approx(0.8 * 1.21 - 0.4 * 0.71)


def test_the_strongest_attacker_has_checks_of_its_own_over_the_same_strengths(find_check: Callable[..., Check]) -> None:
    # The paper's attack is the better one at the weak strength, the suite at the strong.
    spn = 0.8 * (1.01 + 0.51) / 2
    end = "initial network, digits"
    check = find_check("CAP(SPN, strongest attacker) - CAP(Gaussian, strongest attacker)", end)
    assert check.value == pytest.approx(spn - 0.4 * 0.26)
    other = find_check("CAP(SPN, strongest attacker) - CAP(PPDL-0.3, strongest attacker)", end)
    assert other.value == pytest.approx(spn - 0.3 * 0.16)


def test_a_check_carries_the_interval_of_its_difference(tables: Tables, find_check: Callable[..., Check]) -> None:
    name = "CAP(SPN) - CAP(Gaussian), reconstruction, batch 1, initial"
    check = find_check(name)
    assert check.low is not None
    assert check.high is not None
    assert check.value is not None
    assert check.low < check.value < check.high
    assert check.undecided is (check.low <= 0)
    for row in rows_where(tables["cap"], stage="initial", attack="reconstruction", batch_size=1):
        cap = {"SPN": 0.8, "Gaussian": 0.2}.get(str(row["mechanism"]), 0.5)
        row |= {"cap": cap, "cap_low": cap - 0.03, "cap_high": cap + 0.04}
    sure = find_check(name)
    assert (sure.low, sure.high) == pytest.approx((0.6 - 0.05, 0.6 + 0.05))
    assert (sure.holds, sure.undecided) == (True, False)


def test_cifar10_is_what_the_claims_are_about(tables: Tables, find_check: Callable[..., Check]) -> None:
    for rows in tables.values():
        rows += [{**row, "data_set": "CIFAR10"} for row in rows]
    assert find_check("CAP(SPN) - CAP(Gaussian), reconstruction, batch 1, initial").name.endswith("CIFAR10")


def test_unlike_grids_and_fewer_strengths_than_published_are_noted(study: Study) -> None:
    whole = notes([with_strengths(study, NOISE, ALPHA2)])
    assert whole == [GRIDS, IMPLIED]
    [note] = [note for note in notes([with_strengths(study, (0.1, 0.5), ALPHA2)]) if note not in whole]
    assert "CIFAR10 at batch 1 (0.1, 0.5 for noise" in note


def test_the_published_errors_of_mnist_are_unclipped(study: Study) -> None:
    assert notes([with_strengths(study, NOISE, ALPHA2, name="MNIST")])[-1] == CLIPPED


def test_a_cap_of_unclipped_errors_stands_beside_that_of_the_paper_s_attack(only: Callable[..., Row]) -> None:
    place = {"stage": "initial", "batch_size": 1}
    row = only("cap", mechanism="SPN", attack="reconstruction", **place)
    assert row["unclipped"] == pytest.approx(0.8 * 10.1)
    for other in ({"mechanism": "SPN", "attack": "tracing"}, {"mechanism": "SPN, strongest attacker"}):
        place_of_other = {"attack": "reconstruction", **other, **place}
        assert only("cap", **place_of_other)["unclipped"] is None


def test_the_notes_say_what_follows_from_the_published_numbers() -> None:
    """The published CAPs over the published mean accuracies are distances near 1, and those of tracing about a half."""
    accuracies = {name: [values[1] for values in rows.values()] for name, rows in ACCURACY.items()}
    distances = {name: CAP["CIFAR10"][name][1] / fmean(values) for name, values in accuracies.items()}
    assert all(0.9 < distance < 1.08 for distance in distances.values()), distances


@pytest.mark.parametrize(("which", "values"), TABLE_1.items())
def test_table_1_agrees_with_tables_8_and_9_but_for_its_misprints(
    which: tuple[str, str], values: tuple[float, ...]
) -> None:
    data_set, mechanism = which
    other = MISPRINTS.get(which, {})
    assert CAP[data_set][mechanism] == tuple(other.get(place, value) for place, value in enumerate(values))


@pytest.mark.parametrize(("data_set", "sums"), CAP_SUMS.items())
def test_each_cap_is_as_printed(data_set: str, sums: tuple[dict[str, float], tuple[float, ...]]) -> None:
    """A mistyped number changes a row's sum and a column's."""
    rows = CAP[data_set]
    assert {name: round(sum(values), 2) for name, values in rows.items()} == sums[0]
    assert tuple(round(sum(column), 2) for column in zip(*rows.values(), strict=True)) == sums[1]


@pytest.mark.parametrize(
    ("mechanism", "attack", "batch_size", "cap"),
    [
        ("Gaussian", "reconstruction", 1, 0.4 * 0.51),
        ("PPDL-0.05", "reconstruction", 1, 0.3 * 0.76),
        ("SPN", "reconstruction", 4, 0.8 * 1.04),
        ("SPN, strongest attacker", "reconstruction", 1, 0.8 * (1.01 + 0.51) / 2),
        ("PPDL-0.05, strongest attacker", "reconstruction", 1, 0.3 * 0.16),
        ("SPN, strongest attacker", "reconstruction", 4, 0.8 * 0.54),
        ("SPN", "membership", 1, 0.8 * 0.25),
        ("PPDL-0.3", "tracing", 4, 0.3 * 0.75),
    ],
)
def test_a_cap_is_the_mean_of_accuracy_times_distance(
    mechanism: str, attack: str, batch_size: int, cap: float, only: Callable[..., Row]
) -> None:
    row = only("cap", stage="initial", mechanism=mechanism, attack=attack, batch_size=batch_size)
    assert row["cap"] == pytest.approx(cap)
    assert row["strengths"] == (2 if batch_size == 1 else 1)
    low, high = row["cap_low"], row["cap_high"]
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low < cap < high


def test_nobody_gets_zero_membership_without_reading_labels(only: Callable[..., Row]) -> None:
    row = only("cap", stage="initial", mechanism="SPN, strongest attacker", attack="membership", batch_size=4)
    assert (row["cap"], row["strengths"]) == (0.0, 1)
