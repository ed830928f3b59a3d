from __future__ import annotations

from leaktight.attacks.label_reading import LabelReading
from leaktight.attacks.matching import GradientMatching
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.defences import LaplaceNoise
from leaktight.defences.polarization import Polarization
from leaktight.learning import Adam, Federated, FedSGD, RoundRobin
from leaktight.metrics.tracing import TracingDistance
from leaktight.models.dlnet import DLNet
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network.audits import METRICS
from leaktight.papers.polarization_network.mechanisms import gaussian, ppdl, sweep_mechanisms
from leaktight.papers.polarization_network.scales import Study


def test_accuracies_come_from_round_robin_over_ten_participants(plans: Plans, study: Study) -> None:
    [scenario] = plans["digits-accuracy"].scenarios.values()
    assert isinstance(scenario, Federated)
    assert scenario.participants == 10
    # 1,438 digits, ten participants, batches of 32: four whole batches are an epoch.
    assert scenario.protocol == RoundRobin(optimiser=Adam(learning_rate=0.003), local_steps=4)
    assert (scenario.model, scenario.normalise) == (DLNet(), False)
    assert plans["digits-accuracy"].defences == tuple(sweep_mechanisms(study.noise, study.alpha2).values())


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


def test_tracing_asks_for_the_attacked_images() -> None:
    [tracing] = [metric for metric in METRICS if isinstance(metric, TracingDistance)]
    assert tracing.queries == "attacked"


def test_the_first_sweep_carries_the_ablations(plans: Plans, study: Study) -> None:
    first, other = (plans[f"digits-attack-{size}"].defences for size in (1, 4))
    assert other == tuple(gaussian(std) for std in study.sweeps[1].noise)
    more = [defence for defence in first if defence not in sweep_mechanisms(study.noise, study.alpha2).values()]
    assert more == [Polarization(alpha2=0.5, bits=128, bound=0.3), LaplaceNoise(scale=0.001, each="step")]


def test_what_can_be_modelled_is_attacked_by_who_knows_of_it_and_who_does_not_in_one_audit(plans: Plans) -> None:
    plan, others = plans["digits-modelled-1"], plans["digits-attack-1"]
    assert list(plan.probes) == ["fan2020", "label_reading", "fan2020-adaptive"]
    assert {name: plan.probes[name] for name in others.probes} == others.probes
    probe = plan.probes["fan2020-adaptive"]
    assert isinstance(probe, Attempt)
    assert probe.attack.distance == "likelihood"
    probe.attack.check(probe.threat.knows)
    strengths = (0.001, 0.5)
    ppdls = [ppdl(share)(std) for share in (0.05, 0.3) for std in strengths]
    assert plan.defences == (*ppdls, *(Polarization(alpha2=alpha2, bits=64, bound=0.3) for alpha2 in strengths))


def test_every_swept_mechanism_is_attacked_once_at_each_batch_size(plans: Plans, study: Study) -> None:
    for sweep in study.sweeps:
        [size] = sweep.batch_sizes
        attacked = [one for part in ("attack", "modelled") for one in plans[f"digits-{part}-{size}"].defences]
        for defence in sweep_mechanisms(sweep.noise, sweep.alpha2).values():
            assert attacked.count(defence) == 1
