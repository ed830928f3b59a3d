from __future__ import annotations

import pytest

from leaktight.attacks import GanAttack
from leaktight.core.defence import Undefended
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.data import ByClass
from leaktight.defences import ClassKeys, GaussianNoise, Polarization, TopK
from leaktight.learning import Federated, FedSGD, RoundRobin
from leaktight.papers.class_keys.mechanisms import attempt, frameworks, guesses, keys, others
from leaktight.papers.class_keys.plans import dealt, overlapping, plans_of, victim_of
from leaktight.papers.class_keys.settings import Scope
from leaktight.papers.paper import Plans
from leaktight.probes import Utility


def scenario(plans: Plans, name: str) -> Federated:
    found = next(iter(plans[name].scenarios.values()))
    assert isinstance(found, Federated)
    return found


def attacks(plans: Plans, name: str) -> dict[str, GanAttack]:
    found = {}
    for label, probe in plans[name].probes.items():
        assert isinstance(probe, Attempt)
        assert isinstance(probe.attack, GanAttack)
        found[label] = probe.attack
    return found


def test_each_part_has_a_plan_and_each_attack_one_for_each_seed(plans: Plans) -> None:
    assert list(plans) == [
        *("digits-learning", "digits-participants", "digits-shared"),
        *(f"digits-{part}-{repeat}" for repeat in range(3) for part in ("guessed", "known", "told")),
        *("digits-crowd", "digits-central"),
    ]
    assert plans["digits-guessed-2"].grid.seeds == (7,)
    assert plans["digits-learning"].grid.seeds == plans["digits-crowd"].grid.seeds == (5, 6, 7)


def test_with_one_number_of_participants_there_is_no_plan_for_more(scope: Scope) -> None:
    study = scope.studies[0].model_copy(update={"participants": (2,)})
    assert "digits-participants" not in plans_of(scope.model_copy(update={"studies": (study,)}), 0)


def test_accuracies_are_measured_without_an_attacker(plans: Plans, scope: Scope) -> None:
    plan = plans["digits-learning"]
    assert plan.probes == {"utility": Utility()}
    assert [getattr(each, "rounds", None) for each in plan.scenarios.values()] == [40, 120]
    assert plan.defences == (*(ClassKeys(dimensions=d) for d in (128, 4096)), ClassKeys(dimensions=128, fixed=False))
    assert scenario(plans, "digits-learning").spare_classes == 0
    assert scenario(plans, "digits-participants").participants == 5


def test_participants_take_turns_and_one_half_of_the_classes_is_the_victim_s(plans: Plans) -> None:
    found = scenario(plans, "digits-guessed-0")
    assert isinstance(found.protocol, RoundRobin)
    assert found.partition == ByClass(owned=((0, 1, 2, 3, 4), (5, 6, 7, 8, 9)))
    assert (found.participants, found.spare_classes) == (2, 1)


def test_a_blind_attacker_meets_every_defence(plans: Plans) -> None:
    plan = plans["digits-guessed-0"]
    assert plan.bare
    kinds = [type(defence) for defence in plan.defences]
    assert kinds == [ClassKeys, ClassKeys, GaussianNoise, TopK, Polarization]
    [attack] = attacks(plans, "digits-guessed-0").values()
    assert attack.class_key == "random"


def test_who_knows_of_a_key_meets_keys_alone(plans: Plans) -> None:
    plan = plans["digits-known-0"]
    measured = [cell for cell in plan.cells() if cell.purpose == "measure"]
    assert {cell.defence for cell in measured} == {ClassKeys(dimensions=4096)}
    assert not any(cell.purpose == "null" for cell in plan.cells())
    found = attacks(plans, "digits-known-0")
    assert [(each.class_key, each.distance) for each in found.values()][1:] == [("distance", 0.5), ("distance", 1.3)]
    assert found["exact key"].class_key == "exact"


def test_each_seed_attacks_the_next_class(plans: Plans, scope: Scope) -> None:
    for part in ("guessed", "known"):
        victims = [next(iter(attacks(plans, f"digits-{part}-{repeat}").values())).victim_class for repeat in range(3)]
        assert victims == [0, 1, 0]
    assert victim_of(scope.studies[0], 1) == 1


def test_in_a_crowd_everybody_but_the_victim_attacks(plans: Plans) -> None:
    [attack] = attacks(plans, "digits-crowd").values()
    assert attack.accomplices == ("client-2",)
    found = scenario(plans, "digits-crowd")
    assert found.partition == ByClass(owned=((0, 1, 2, 3, 4), (5, 6), (7, 8, 9)))
    assert plans["digits-crowd"].grid.victims == 3


def test_classes_are_shared_in_part(plans: Plans) -> None:
    one, other = overlapping(10)
    assert set(one) & set(other) == {3, 4, 5, 6}
    assert scenario(plans, "digits-shared").partition == ByClass(owned=(one, other))


def test_table_1_is_trained_in_one_place(plans: Plans) -> None:
    found = scenario(plans, "digits-central")
    assert isinstance(found.protocol, FedSGD)
    assert (found.participants, found.rounds) == (1, 150)
    assert plans["digits-central"].defences == (ClassKeys(dimensions=1024),)


@pytest.mark.parametrize(("classes", "participants"), [(10, 2), (10, 5), (7, 3), (40, 2)])
def test_every_class_has_one_owner(classes: int, participants: int) -> None:
    owned = dealt(classes, participants)
    assert [label for part in owned for label in part] == list(range(classes))
    assert max(map(len, owned)) - min(map(len, owned)) <= 1


def test_attackers_know_what_they_need_and_no_more() -> None:
    for name, attack in guesses(GanAttack(), (0.5,)).items():
        probe = attempt(attack)
        assert probe.threat.seat == "client-1"
        assert probe.threat.knows == frozenset({Knows.KEYS}), name
    assert attempt(GanAttack()).threat.knows == frozenset()


def test_what_is_compared_has_a_name() -> None:
    compared = frameworks((128,), (64,))
    assert compared["plain"] == Undefended()
    assert list(compared)[1:] == [keys(128), keys(64, fixed=False)]
    assert others((0.5,), (0.25,))["top-k 0.25"] == TopK(share=0.25)


def test_keys_are_estimated_for_the_same_victims(plans: Plans) -> None:
    told = plans["digits-told-1"]
    [attack] = attacks(plans, "digits-told-1").values()
    [guess] = attacks(plans, "digits-guessed-1").values()
    assert attack == guess.model_copy(update={"class_key": "estimated"})
    assert guess.class_key == "random"
    assert told.grid == plans["digits-guessed-1"].grid
    assert told.defences == (ClassKeys(dimensions=4096),)
    assert not told.bare
    assert [one.class_key for one in attacks(plans, "digits-crowd").values()] == ["random"]
