"""Which attack models which defence: every pair that is installed, and no more than an attack really does."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import pytest
import torch

from leaktight.attacks import (
    PRESETS,
    Analytic,
    GanAttack,
    GradientMatching,
    LearnedInverter,
    PropertyInference,
    Strongest,
)
from leaktight.core.attack import Attack
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, Tensors
from leaktight.defences import GaussianNoise, Polarization, TopK, Withhold
from leaktight.learning.client import Client
from leaktight.testing.conformance import installed_classes
from leaktight.testing.toys import toy_batch, toy_task

# A name before a comma is a kind.
SETTINGS: dict[str, dict[str, Any]] = {
    "none": {},
    "chain": {"links": (Undefended(),)},
    "gaussian_noise": {},
    "gaussian_noise, each step": {"each": "step"},
    "laplace_noise": {},
    "top_k": {},
    "top_k, with a residual": {"residual": True},
    "pruning": {},
    "dp_sgd": {},
    "local_dp": {},
    "polarization": {},
    "class_keys": {},
    "transformation": {"policy": "3-1-7+43-18-18"},
    "transformation, after a crop": {"policy": "3-1-7", "crop_flip": True},
    "transformation, crop alone": {"crop_flip": True},
    "transformation, more than can be tried": {"policy": "+".join(f"{n}-3-7-1" for n in range(8, 14))},
    "layer_guard": {"layers": ("head",)},
    "layer_guard, noise": {"layers": ("head",), "guard": GaussianNoise()},
    "layer_guard, with a residual": {"layers": ("head",), "guard": TopK(residual=True)},
    "sealed": {"layers": ("head",)},
    "withhold": {"layers": ("head",)},
    "sumkl": {},
    "isotropic_noise": {},
    "max_norm": {},
    "as_captured": {},
}
DEFENCES: dict[str, Defence] = {
    name: installed_classes("defence")[name.partition(",")[0]](**settings) for name, settings in SETTINGS.items()
}
LEFT_OUT = {"sealed", "withhold", "layer_guard"}
PLAYED = {
    "gaussian_noise",
    "gaussian_noise, each step",
    "laplace_noise",
    "top_k",
    "pruning",
    "dp_sgd",
    "local_dp",
    "class_keys",
    "layer_guard, noise",
}
STATED = PLAYED | {"polarization", "transformation", "sealed", "withhold", "layer_guard"}
CUT = {"sumkl", "isotropic_noise", "max_norm"}
LEARNED = PLAYED | {name for name in DEFENCES if name.startswith("transformation")}

ATTACKS: dict[str, tuple[Attack, set[str]]] = {
    "gradient_matching": (GradientMatching(), set()),
    "gradient_matching, knowing": (GradientMatching(distance="likelihood"), STATED),
    "property_inference": (PropertyInference(), LEFT_OUT),
    "property_inference, knowing": (PropertyInference(models_defence=True), LEFT_OUT | LEARNED),
    "strongest": (Strongest(), STATED | LEFT_OUT | LEARNED | CUT),
    "learned_inverter": (LearnedInverter(), LEFT_OUT | LEARNED),
    "learned_inverter, unaware": (LearnedInverter(models_defence=False), LEFT_OUT),
    "gan": (GanAttack(), {"class_keys"}),
    **{f"gan, {key}": (GanAttack(class_key=key), set()) for key in ("exact", "distance", "random")},
    "analytic": (Analytic(), STATED - {"transformation"}),
    **{name: (installed_classes("attack")[name](), set()) for name in ("label_reading", "gradient_norm", "direction")},
    **{name: (installed_classes("attack")[name](), set()) for name in ("inner_product", "few_hints", "clustering")},
    **{name: (installed_classes("attack")[name](), set()) for name in ("spectral", "completion", "surrogate")},
    "label_posterior": (installed_classes("attack")["label_posterior"](), CUT),
    "running_statistics": (installed_classes("attack")["running_statistics"](), set()),
}
KNOWING = {"fan2020-adaptive", "ats2021-adaptive", "posterior", "features-first", "free-loss", "public-head"}
ONE_BY_ONE = {kind: ATTACKS[kind.replace("-", "_")][1] for kind in ("strongest", "analytic", "learned-inverter")}


def ours(family: str) -> set[str]:
    return {kind for kind, made in installed_classes(family).items() if made.__module__.startswith("leaktight.")}


def modelled(attack: Attack) -> set[str]:
    return {name for name, defence in DEFENCES.items() if attack.adapts_to(defence)}


def test_the_tables_have_every_kind() -> None:
    assert {name.partition(",")[0] for name in DEFENCES} == ours("defence")
    assert {name.partition(",")[0] for name in ATTACKS} == ours("attack")


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_adapts_to_what_it_models_and_to_nothing_else(name: str) -> None:
    attack, expected = ATTACKS[name]
    assert modelled(attack) == expected


@pytest.mark.parametrize("name", PRESETS)
def test_so_does_every_preset(name: str) -> None:
    assert modelled(PRESETS[name]) == {**ONE_BY_ONE, **dict.fromkeys(KNOWING, STATED)}.get(name, set())


class Momentum(Defence):
    """A plugin that adds half of what it sent last; it says nothing about its memory."""

    kind: Literal["test_momentum"] = "test_momentum"

    def on_message(self, message: Message, local: Local) -> Message:
        last = local.memory.get("last", {})
        local.memory["last"] = {name: tensor + last.get(name, 0) / 2 for name, tensor in message.tensors.items()}
        return dataclasses.replace(message, tensors=local.memory["last"])


class Forgetful(Momentum):
    """A plugin that says that it has no memory."""

    kind: Literal["test_forgetful"] = "test_forgetful"

    @property
    def memoryless(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("links", "adapts"),
    [
        ((Polarization(), Withhold(layers=("head",))), True),
        ((Undefended(), Chain(links=(Polarization(),))), True),
        ((Polarization(), GaussianNoise()), True),
        ((Chain(links=(Polarization(), TopK(residual=True))),), False),
        ((GaussianNoise(), Momentum()), False),
    ],
)
def test_a_chain_is_modelled_only_with_all_its_links(links: tuple[Defence, ...], adapts: bool) -> None:
    assert GradientMatching(distance="likelihood").adapts_to(Chain(links=links)) is adapts


def test_a_plugin_is_modelled_only_if_it_says_that_it_has_no_memory() -> None:
    knowing = PropertyInference(models_defence=True)
    assert not knowing.adapts_to(Momentum())
    assert not knowing.adapts_to(Chain(links=(GaussianNoise(), Momentum())))
    assert knowing.adapts_to(Forgetful())


def second_update(defence: Defence, first: bool) -> Tensors:
    """Return a party's update of round 1, after one of round 0 or without it."""
    task = defence.on_agree(toy_task(shape=(3, 16, 16)))
    party = Client(
        "client-0", task, toy_batch(shape=(3, 16, 16)), defence, Local("client-0", seed=0), shares=Kind.UPDATE
    )
    sent = [
        party.respond(Message(Kind.PARAMETERS, "server", party.name, number, task.public_parameters()))
        for number in ([0, 1] if first else [1])
    ]
    return sent[-1].tensors


FEDERATED = [name for name in DEFENCES if name not in ("sumkl", "isotropic_noise", "max_norm", "as_captured")]


@pytest.mark.parametrize("name", FEDERATED)
def test_a_defence_says_rightly_whether_it_has_a_memory(name: str) -> None:
    fresh, later = (second_update(DEFENCES[name], first) for first in (False, True))
    assert all(torch.equal(fresh[one], later[one]) for one in later) is DEFENCES[name].memoryless


def test_what_protects_other_messages_is_not_called_memoryless() -> None:
    assert not any(DEFENCES[name].memoryless for name in set(DEFENCES) - set(FEDERATED))
