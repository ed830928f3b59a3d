from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.attacks.label_reading import LabelReading
from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.strongest import Strongest
from leaktight.core.probe import Attempt
from leaktight.core.record import Cell, Record, Status
from leaktight.core.threat import Knows
from leaktight.defences import LaplaceNoise
from leaktight.defences.polarization import Polarization
from leaktight.learning import Adam, Federated, FedSGD, RoundRobin
from leaktight.metrics import RelativeRMSE
from leaktight.metrics.tracing import TracingDistance
from leaktight.models.dlnet import DLNet
from leaktight.papers import Order, Records
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network import PAPER, ppc
from leaktight.papers.polarization_network.audits import METRICS
from leaktight.papers.polarization_network.mechanisms import hardened, sweep_mechanisms
from leaktight.papers.polarization_network.scales import Study
from leaktight.papers.row import rows_where


def test_accuracies_come_from_round_robin_over_ten_participants(plans: Plans, study: Study) -> None:
    plan = plans["digits-trained"]
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Federated)
    assert scenario.participants == 10
    # 1,438 digits, ten participants, batches of 32: four whole batches are an epoch.
    assert scenario.protocol == RoundRobin(optimiser=Adam(learning_rate=0.003), local_steps=4)
    assert (scenario.model, scenario.normalise) == (DLNet(), False)
    swept = tuple(sweep_mechanisms(study.noise, study.alpha2).values())
    assert plan.defences == (*swept, hardened(0.1, 0.0), hardened(0.1, 0.5))


def test_the_trained_network_is_attacked_by_the_gradient_of_one_batch(plans: Plans) -> None:
    plan = plans["digits-trained"]
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Federated)
    assert (scenario.observed, plan.grid.stages, plan.grid.batch_sizes) == (FedSGD(), ("end",), (1,))
    assert {name: probe for name, probe in plan.probes.items() if name != "utility"} == plans["digits-attack-1"].probes


def test_attacks_see_one_gradient_of_the_initial_network(plans: Plans) -> None:
    plan = plans["digits-attack-1"]
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Federated)
    assert (scenario.protocol, scenario.rounds, scenario.participants) == (FedSGD(), 0, 10)
    probe, labels = (plan.probes[name] for name in ("fan2020", "label_reading"))
    assert isinstance(probe, Attempt)
    assert isinstance(probe.attack, GradientMatching)
    assert (probe.attack.initial, probe.attack.labels, probe.attack.distance) == ("pattern", "joint", "l2")
    assert isinstance(labels, Attempt)
    assert isinstance(labels.attack, LabelReading)
    for one in (probe, labels):
        assert one.metrics == METRICS
        assert Knows.DEFENCE not in one.threat.knows


def test_the_suite_knows_the_mechanism_and_stands_beside_the_papers_own_attack(plans: Plans) -> None:
    for part in ("attack-1", "attack-4", "trained"):
        probe = plans[f"digits-{part}"].probes["strongest"]
        assert isinstance(probe, Attempt)
        assert isinstance(probe.attack, Strongest)
        assert probe.threat.knows == {Knows.AUXILIARY, Knows.DEFENCE, Knows.LOCAL_STEPS}
        assert probe.metrics == METRICS
        posterior = probe.attack.member("posterior")
        assert isinstance(posterior, GradientMatching)
        assert posterior.iterations == 6


def test_tracing_asks_for_the_attacked_images() -> None:
    [tracing] = [metric for metric in METRICS if isinstance(metric, TracingDistance)]
    assert tracing.queries == "attacked"


def test_errors_are_measured_clipped_and_as_they_are() -> None:
    assert [metric.reading for metric in METRICS if isinstance(metric, RelativeRMSE)] == [
        "rmse_relative",
        "rmse_unclipped",
    ]


def test_ablations_are_attacked_by_the_papers_attack_alone(plans: Plans) -> None:
    plan = plans["digits-ablations"]
    assert plan.defences == (Polarization(alpha2=0.5, bits=128, bound=0.3), LaplaceNoise(scale=0.001, each="step"))
    assert list(plan.probes) == ["fan2020"]


def test_every_swept_mechanism_is_attacked_once_at_each_batch_size(plans: Plans, study: Study) -> None:
    for sweep in study.sweeps:
        [size] = sweep.batch_sizes
        attacked = plans[f"digits-attack-{size}"].defences
        for defence in sweep_mechanisms(sweep.noise, sweep.alpha2).values():
            assert attacked.count(defence) == 1
        assert (hardened(0.1, 0.5) in attacked) is (sweep == study.sweeps[0])


def test_batches_are_attacked_for_as_long_as_single_images(plans: Plans) -> None:
    one, four = (plans[f"digits-attack-{size}"].probes["fan2020"] for size in (1, 4))
    assert one == four


@pytest.fixture
def repeated(study: Study) -> Study:
    """Return the study with three seeds, of which the searches on batches have one."""
    first, batches = study.sweeps
    return study.model_copy(update={"seeds": 3, "sweeps": (first, batches.model_copy(update={"seeds": 1}))})


def _records(study: Study, answer: Callable[[Cell], Record], fails: Callable[[Cell], bool]) -> Records:
    """Answer every cell; a number is larger by a tenth with each seed."""

    def own(cell: Cell) -> Record:
        if fails(cell):
            return Record(cell=cell, status=Status.FAILED, reason="No luck.")
        found = answer(cell)
        more = (cell.seed - study.seed) / 10
        readings = [one.model_copy(update={"value": one.value + more, "outcomes": None}) for one in found.readings]
        return found.model_copy(update={"readings": tuple(readings)})

    plans = PAPER.plans([study])
    return Records(
        {name: [own(cell) for cell in plan.cells() if cell.purpose == "measure"] for name, plan in plans.items()}
    )


def test_labels_of_batches_are_read_with_all_seeds_where_searches_have_one(repeated: Study) -> None:
    plans = PAPER.plans([repeated])
    assert list(plans["digits-labels-4"].probes) == ["label_reading"]
    assert plans["digits-labels-4"].probes["label_reading"] == plans["digits-attack-4"].probes["label_reading"]
    assert plans["digits-labels-4"].defences == plans["digits-attack-4"].defences
    seeds = {name: plan.grid.seeds for name, plan in plans.items() if "alexnet" not in name}
    assert seeds.pop("digits-attack-4") == (5,)
    assert set(seeds.values()) == {(5, 6, 7)}


def test_numbers_are_means_over_seeds_that_count_their_spread(
    repeated: Study, answer: Callable[[Cell], Record]
) -> None:
    records = _records(repeated, answer, fails=lambda cell: False)
    rows = rows_where(ppc.rows([repeated], records), mechanism="SPN", strength=0.5, stage="initial")
    [one], [batch] = (rows_where(rows, batch_size=size) for size in (1, 4))
    assert (one["accuracy"], one["reconstruction"]) == (pytest.approx(0.9), pytest.approx(1.01 + 0.1))
    assert (one["label_reading"], batch["label_reading"]) == (pytest.approx(0.1), pytest.approx(0.1))
    # Searches on batches have the first seed alone.
    assert batch["reconstruction"] == pytest.approx(1.04)
    tables = PAPER.tables([repeated], records)
    [first] = rows_where(tables["left_open"], left_open="labels", strength=0.1)
    assert first["error"] == pytest.approx(0.1)
    [cosine] = rows_where(tables["cosines"], tensor="body.conv1.weight", stage="end")
    assert cosine["cosine"] == pytest.approx(0.3 + 0.1)
    [note] = [note for note in PAPER.remarks(Order(), [repeated]) if note.startswith("Seeds")]
    assert "digits 3 (1 for batches of 4, but for label reading)" in note


def test_a_mean_over_fewer_seeds_is_a_gap(repeated: Study, answer: Callable[[Cell], Record]) -> None:
    records = _records(repeated, answer, fails=lambda cell: cell.label == "fan2020" and cell.seed == 7)
    [row] = rows_where(ppc.rows([repeated], records), mechanism="SPN", strength=0.5, stage="initial", batch_size=1)
    assert (row["reconstruction"], row["ratio"]) == (None, None)
    assert row["label_reading"] is not None
