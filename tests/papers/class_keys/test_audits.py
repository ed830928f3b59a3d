from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.attacks import GanAttack
from leaktight.data import ByClass
from leaktight.defences import ClassKeys, GaussianNoise, Polarization, TopK
from leaktight.learning import Federated, RoundRobin
from leaktight.papers.class_keys.audits import attack_in, deal_classes, ratios
from leaktight.papers.class_keys.scales import Scope
from leaktight.papers.paper import Plans


def test_participants_take_turns_and_one_half_of_the_classes_is_the_victim_s(
    plans: Plans, scenario: Callable[..., Federated]
) -> None:
    found = scenario(plans, "digits-guessed-0")
    assert isinstance(found.protocol, RoundRobin)
    assert found.partition == ByClass(owned=((0, 1, 2, 3, 4), (5, 6, 7, 8, 9)))
    assert (found.participants, found.spare_classes) == (2, 1)


def test_a_blind_attacker_meets_every_defence(plans: Plans, attacks: Callable[..., dict[str, GanAttack]]) -> None:
    plan = plans["digits-guessed-0"]
    assert plan.bare
    kinds = [type(defence) for defence in plan.defences]
    assert kinds == [ClassKeys, ClassKeys, GaussianNoise, TopK, Polarization]
    [attack] = attacks(plans, "digits-guessed-0").values()
    assert (attack.class_key, attack.controls) == ("random", 0)
    assert {one.controls for one in attacks(plans, "digits-known-0").values()} == {0}
    # Only who estimates a key is compared with a random one in the same training run.
    assert {one.controls for one in attacks(plans, "digits-estimated-0").values()} == {1}


def test_each_seed_attacks_the_next_class(
    plans: Plans, scope: Scope, attacks: Callable[..., dict[str, GanAttack]]
) -> None:
    for part in ("guessed", "known"):
        victims = [next(iter(attacks(plans, f"digits-{part}-{repeat}").values())).victim_class for repeat in range(3)]
        assert victims == [0, 1, 0]
    assert attack_in(scope.studies[0], 1).victim_class == 1


@pytest.mark.parametrize(("classes", "participants"), [(10, 2), (10, 5), (7, 3), (40, 2)])
def test_every_class_has_one_owner(classes: int, participants: int) -> None:
    owned = deal_classes(classes, participants)
    assert [label for part in owned for label in part] == list(range(classes))
    assert max(map(len, owned)) - min(map(len, owned)) <= 1


def test_ratios_need_both() -> None:
    assert ratios({0: 0.5, 1: 1.0, 2: 1.0}, {0: 1.0, 1: 0.0}) == [0.5]
