from __future__ import annotations

from leaktight.attacks.label_reading import LabelReading
from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.strongest import Strongest
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.defences import LaplaceNoise
from leaktight.defences.polarization import Polarization
from leaktight.learning import Adam, Federated, FedSGD, RoundRobin
from leaktight.metrics import RelativeRMSE
from leaktight.metrics.tracing import TracingDistance
from leaktight.models.dlnet import DLNet
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network.audits import METRICS
from leaktight.papers.polarization_network.mechanisms import hardened, sweep_mechanisms
from leaktight.papers.polarization_network.scales import Study


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
        assert probe.threat.knows == {Knows.DEFENCE, Knows.LOCAL_STEPS}
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
