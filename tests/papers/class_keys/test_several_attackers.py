from __future__ import annotations

from collections.abc import Callable

from leaktight.attacks import GanAttack
from leaktight.core.probe import Attempt
from leaktight.data import ByClass
from leaktight.learning import Federated
from leaktight.papers import Check, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where


def test_several_attackers_must_fail_too(tables: Tables, find_check: Callable[..., Check]) -> None:
    start = "Samples recognised as the victim's class, 2 attackers with random keys"
    assert find_check(start).holds
    rows_where(tables["several_attackers"], framework="keys of 4,096")[0]["recognised"] = 0.5
    assert not find_check(start).holds


def test_several_attackers_must_succeed_on_the_plain_framework(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    start = "Samples recognised as the victim's class, 2 attackers on the plain framework"
    assert find_check(start).holds
    rows_where(tables["several_attackers"], framework="plain")[0]["recognised"] = 0.5
    assert not find_check(start).holds


def test_each_participant_is_attacked_by_all_others(
    plans: Plans, scenario: Callable[..., Federated], attacks: Callable[..., dict[str, GanAttack]]
) -> None:
    for victim, others in enumerate(({"client-1", "client-2"}, {"client-2", "client-0"}, {"client-0", "client-1"})):
        plan = plans[f"digits-crowd-{victim}"]
        [probe] = plan.probes.values()
        [attack] = attacks(plans, f"digits-crowd-{victim}").values()
        assert isinstance(probe, Attempt)
        assert {probe.threat.seat, *attack.accomplices} == others
        owned = ((0, 1, 2), (3, 4, 5), (6, 7, 8, 9))
        assert scenario(plans, f"digits-crowd-{victim}").partition == ByClass(owned=owned)
        assert attack.victim_class == owned[victim][0]
        assert (plan.grid.victims, plan.grid.seeds) == (3, (5 + victim,))
