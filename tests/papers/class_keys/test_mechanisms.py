from __future__ import annotations

from leaktight.attacks import GanAttack
from leaktight.core.defence import Undefended
from leaktight.core.threat import Knows
from leaktight.defences import TopK
from leaktight.papers.class_keys.mechanisms import attempt, frameworks, guesses, keys_of, other_defences


def test_attackers_know_what_they_need_and_no_more() -> None:
    for name, attack in guesses(GanAttack(), (0.5,)).items():
        probe = attempt(attack)
        assert probe.threat.seat == "client-1"
        assert probe.threat.knows == frozenset({Knows.KEYS}), name
    assert attempt(GanAttack()).threat.knows == frozenset()


def test_what_is_compared_has_a_name() -> None:
    compared = frameworks((128,), (64,))
    assert compared["plain"] == Undefended()
    assert list(compared)[1:] == [keys_of(128), keys_of(64, fixed=False)]
    assert other_defences((0.5,), (0.25,))["top-k 0.25"] == TopK(share=0.25)
