from __future__ import annotations

import pytest

from leaktight.attacks.label_reading import LabelReading
from leaktight.attacks.matching import GradientMatching
from leaktight.core.defence import Chain, Undefended
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.defences import GaussianNoise, LaplaceNoise, TopK
from leaktight.defences.polarization import Polarization
from leaktight.learning import Adam, DecayedSgd, FedAvg, Federated, FedSGD, RoundRobin, Standalone
from leaktight.metrics.tracing import TracingDistance
from leaktight.models.dlnet import DLNet
from leaktight.papers import Order
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network.mechanisms import MECHANISMS, gaussian, ppdl, swept
from leaktight.papers.polarization_network.plans import METRICS, PARTITIONS, plans_of
from leaktight.papers.polarization_network.settings import Study, studies


@pytest.fixture(scope="module")
def study() -> Study:
    [found] = studies(Order())
    return found


@pytest.fixture(scope="module")
def plans(study: Study) -> Plans:
    return plans_of(study, seed=5)


def test_each_part_has_a_plan(plans: Plans) -> None:
    attacks = ["attack-1", "modelled-1", "attack-4", "modelled-4"]
    parts = ["accuracy", *attacks, "alexnet-federated", "alexnet-standalone"]
    assert list(plans) == [f"digits-{part}" for part in parts]
    assert {plan.grid.seeds for plan in plans.values()} == {(5,)}


def test_accuracies_come_from_round_robin_over_ten_participants(plans: Plans, study: Study) -> None:
    [scenario] = plans["digits-accuracy"].scenarios.values()
    assert isinstance(scenario, Federated)
    assert scenario.participants == 10
    # 1,438 digits, ten participants, batches of 32: four whole batches are an epoch.
    assert scenario.protocol == RoundRobin(optimiser=Adam(learning_rate=0.003), local_steps=4)
    assert (scenario.model, scenario.normalise) == (DLNet(), False)
    assert plans["digits-accuracy"].defences == tuple(swept(study.noise, study.alpha2).values())


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
    more = [defence for defence in first if defence not in swept(study.noise, study.alpha2).values()]
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
        for defence in swept(sweep.noise, sweep.alpha2).values():
            assert attacked.count(defence) == 1


def test_federations_differ_in_clients_and_partition_alone(plans: Plans) -> None:
    federated, alone = (plans[f"digits-alexnet-{part}"] for part in ("federated", "standalone"))
    assert list(federated.scenarios) == ["IID, 4 clients", "Dirichlet 0.9, 4 clients"] == list(alone.scenarios)
    for name, scenario in federated.scenarios.items():
        assert isinstance(scenario, Federated)
        assert scenario.partition == PARTITIONS[name.split(",")[0]]
        assert isinstance(scenario.protocol, FedAvg)
        assert scenario.protocol.local_steps == 1438 // 4 // 32
        assert alone.scenarios[name] == Standalone(federation=scenario, sample=1)
    assert federated.defences == (Polarization(alpha2=0.1),)
    assert alone.defences == ()


def test_the_full_experiment_halves_its_learning_rate_and_trains_the_others(study: Study) -> None:
    [small] = study.federations
    full = small.model_copy(update={"halved": (100, 200), "others": True})
    plan = plans_of(study.model_copy(update={"federations": (full,)}), 0)["digits-alexnet-federated"]
    [first, _] = plan.scenarios.values()
    assert isinstance(first, Federated)
    assert first.protocol.optimiser == DecayedSgd(learning_rate=0.05, momentum=0.9, rounds=(100, 200))
    assert [defence.kind for defence in plan.defences] == ["polarization", "gaussian_noise", "chain", "chain"]


def test_mechanisms_are_those_of_table_2() -> None:
    made = {mechanism.name: mechanism.make(0.1) for mechanism in MECHANISMS}
    noise = GaussianNoise(std=0.1, each="step")
    assert made == {
        "Gaussian": noise,
        "PPDL-0.05": Chain(links=(noise, TopK(share=0.05))),
        "PPDL-0.3": Chain(links=(noise, TopK(share=0.3))),
        "SPN": Polarization(alpha2=0.1, bits=64, alpha1=1.0, bound=0.3),
    }
    assert Undefended() not in swept((0.1,), (0.1,)).values()
