"""Every installed attack keeps the promises of its family."""

from __future__ import annotations

import pytest

from leaktight.core.attack import Attack
from leaktight.testing.attacks import check_attack
from leaktight.testing.conformance import installed_classes, sample

# Settings that are quick enough for a test, where the defaults are meant for an audit.
QUICK: dict[str, list[dict[str, object]]] = {
    "gradient_matching": [
        {"iterations": 100, "descent": {"kind": "adam", "learning_rate": 0.1}},
        {"iterations": 100, "distance": "l2", "labels": "given"},
        {"iterations": 20, "distance": "l2", "labels": "joint", "descent": {"kind": "lbfgs"}},
    ],
    "gan": [
        {
            "generator": {"noise": 16, "width": 4},
            "generator_steps": 20,
            "batch_size": 32,
            "optimiser": {"kind": "adam", "learning_rate": 0.01},
            "fakes": 50,
            "samples": 100,
        }
    ],
    "learned_inverter": [{"messages": 200}, {"messages": 200, "models_defence": False}],
    "property_inference": [
        {"gradients": 80, "classifier": "logistic"},
        {"gradients": 80, "layers": "each"},
        {"gradients": 80, "classifier": "logistic", "models_defence": True},
    ],
}


ATTACKS = [
    pytest.param(made, attack, id=repr(attack or made))
    for kind, made in installed_classes("attack").items()
    for attack in ([made.model_validate(settings) for settings in QUICK[kind]] if kind in QUICK else [sample(made)])
]


@pytest.mark.parametrize(("made", "attack"), ATTACKS)
def test_the_attack_conforms(made: type[Attack], attack: Attack | None) -> None:
    if attack is None:
        pytest.skip(f"{made.__name__} has settings without a default; its own test calls check_attack")
    if "scores" in attack.claims:
        pytest.skip(f"{made.__name__} claims scores; its own test calls check_attack with its run and metric")
    check_attack(attack)


def test_our_attacks_say_their_goals_in_words() -> None:
    ours = [made for made in installed_classes("attack").values() if made.__module__.startswith("leaktight.")]
    assert ours
    assert [made.__name__ for made in ours if not made.goals] == []
