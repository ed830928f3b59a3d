"""The kit must catch a defence that breaks a promise, and name the promise."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from leaktight.core.defence import Defence, Gradient, Strength, Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.random import normal_like, stream
from leaktight.core.task import Batch, Task
from leaktight.defences import DPSGD, GaussianNoise, LaplaceNoise, Pruning, TopK
from leaktight.testing.conformance import ConformanceError
from leaktight.testing.defences import (
    check_canary,
    check_defence,
    check_extremes,
    check_form,
    check_off,
    check_strength,
)
from leaktight.testing.toys import toy_parameters, toy_run, toy_task

Hook = Callable[..., Any]
GOOD = [
    GaussianNoise(std=1.0),
    LaplaceNoise(scale=0.2),
    TopK(share=0.3, scope="tensor"),
    TopK(share=0.5, noise=0.1, residual=True),
    Pruning(rate=0.5),
    DPSGD(clip=0.1, multiplier=2.0),
    DPSGD(clip=10.0, multiplier=0.5),
]


@pytest.mark.parametrize("defence", GOOD, ids=repr)
def test_defences_with_unusual_settings_pass(defence: Defence) -> None:
    check_defence(defence)


def make_key(self: Defence, task: Task, local: Local) -> Task:
    local.memory.setdefault("key", local.draws.normals((2, 2)))
    return task


def put(message: Message, name: str, place: int, values: torch.Tensor) -> Message:
    """Return the message with these values in one of its tensors, from some place on."""
    tensor = message.tensors[name].clone()
    tensor.view(-1)[place : place + values.numel()] = values.flatten()
    return dataclasses.replace(message, tensors={**message.tensors, name: tensor})


def send_key(self: Defence, message: Message, local: Local) -> Message:
    return put(message, "head.bias", 0, local.memory["key"])


def hide_key(self: Defence, message: Message, local: Local) -> Message:
    return put(message, "body.1.weight", 7, local.memory["key"])


def send_the_last_key(self: Defence, message: Message, local: Local) -> Message:
    old = local.memory["key"]
    local.memory["key"] = local.draws.normals((2, 2))
    return put(message, "head.bias", 0, old) if message.round == 1 else message


def send_private_head(self: Defence, message: Message, local: Local) -> Message:
    local.memory["own"] = {"head": local.draws.normals((4, 16))}
    return put(message, "head.weight", 0, local.memory["own"]["head"])


def leak_labels(self: Defence, message: Message, local: Local) -> Message:
    return put(message, "head.weight", 3, local.batch.labels.float())


def leak_inputs(self: Defence, message: Message, local: Local) -> Message:
    return put(message, "body.1.weight", 0, local.batch.inputs[0])


def leak_facts(self: Defence, message: Message, local: Local) -> Message:
    return dataclasses.replace(message, facts={**message.facts, "label": float(local.batch.labels[0])})


def drop(self: Defence, message: Message, local: Local) -> Message:
    return dataclasses.replace(message, tensors={n: t for n, t in message.tensors.items() if n != "head.bias"})


def drop_bias(self: Defence, message: Message, local: Local) -> Message:
    return dataclasses.replace(message, tensors={n: t for n, t in message.tensors.items() if not n.endswith("bias")})


def flatten(self: Defence, message: Message, local: Local) -> Message:
    return message.map(torch.flatten)


def rename(self: Defence, message: Message, local: Local) -> Message:
    return dataclasses.replace(message, kind=Kind.UPDATE)


def in_place(self: Defence, message: Message, local: Local) -> Message:
    for tensor in message.tensors.values():
        tensor.mul_(0.5)
    return message


def batch_in_place(self: Defence, batch: Batch, local: Local) -> Batch:
    batch.inputs.clamp_(0.2, 0.8)
    return batch


def gradient_in_place(self: Defence, gradient: Gradient, local: Local) -> Gradient:
    gradient.tensors["head.bias"].zero_()
    return gradient


def task_in_place(self: Defence, task: Task, local: Local) -> Task:
    with torch.no_grad():
        task.model.head.bias.zero_()
    return task


def global_noise(self: Defence, message: Message, local: Local) -> Message:
    return message.map(lambda tensor: tensor + torch.randn_like(tensor))


def same_noise_in_every_round(self: Defence, message: Message, local: Local) -> Message:
    rng = stream(local.seed, local.party)
    return message.map(lambda tensor: tensor + normal_like(tensor, rng))


def same_noise_for_every_party(self: Defence, message: Message, local: Local) -> Message:
    rng = stream(local.seed, local.round)
    return message.map(lambda tensor: tensor + normal_like(tensor, rng))


def constant_noise(self: Defence, message: Message, local: Local) -> Message:
    rng = stream(0, "noise")
    return message.map(lambda tensor: tensor + normal_like(tensor, rng))


def noise_on_the_first_tensor(self: Defence, message: Message, local: Local) -> Message:
    name, tensor = next(iter(message.tensors.items()))
    return dataclasses.replace(message, tensors={**message.tensors, name: tensor + local.draws.normal_like(tensor)})


def own_generator(self: Defence, message: Message, local: Local) -> Message:
    rng = stream(local.seed, local.party, local.round, "noise")
    return message.map(lambda tensor: tensor + normal_like(tensor, rng))


def own_numpy_generator(self: Defence, message: Message, local: Local) -> Message:
    rng = np.random.default_rng([local.seed, local.round, *local.party.encode()])
    return message.map(lambda tensor: tensor + torch.as_tensor(rng.normal(size=tuple(tensor.shape))).to(tensor))


def own_python_generator(self: Defence, message: Message, local: Local) -> Message:
    rng = random.Random(f"{local.seed} {local.round} {local.party}")  # noqa: S311
    return message.map(lambda tensor: tensor + rng.gauss(0, 1))


def own_numpy_state(self: Defence, message: Message, local: Local) -> Message:
    rng = np.random.RandomState([local.seed, local.round, *local.party.encode()])
    return message.map(lambda tensor: tensor + torch.as_tensor(rng.normal(size=tuple(tensor.shape))).to(tensor))


def from_few_bits(self: Defence, message: Message, local: Local) -> Message:
    rng = torch.Generator().manual_seed(int(local.draws.integers(2**62)))
    return message.map(lambda tensor: tensor + normal_like(tensor, rng))


def same_noise_on_all_but_one(self: Defence, message: Message, local: Local) -> Message:
    fixed, last = local.fixed_draws("cheat", "noise"), list(message.tensors)[-1]
    sent = {name: t + (local.draws if name == last else fixed).normal_like(t) for name, t in message.tensors.items()}
    return dataclasses.replace(message, tensors=sent)


def same_noise_in_every_other_round(self: Defence, message: Message, local: Local) -> Message:
    draws = local.named_draws("cheat", local.round % 2)
    return message.map(lambda tensor: tensor + draws.normal_like(tensor))


def noise_on_the_first_entry(self: Defence, message: Message, local: Local) -> Message:
    def noisy(tensor: torch.Tensor) -> torch.Tensor:
        found = tensor.clone()
        found.view(-1)[0] += local.draws.normals(())
        return found

    return message.map(noisy)


def one_number_for_all_entries(self: Defence, message: Message, local: Local) -> Message:
    return message.map(lambda tensor: tensor + local.draws.normals(()))


def shared_secret(self: Defence, task: Task, local: Local) -> Task:
    local.memory.setdefault("key", torch.linspace(0.1, 0.7, 4).view(2, 2))
    return task


def keep_an_object(self: Defence, message: Message, local: Local) -> Message:
    local.memory["accountant"] = object()
    return message


def note_words(self: Defence, message: Message, local: Local) -> Message:
    local.notes["state"] = "fine"
    return message


def not_finite(self: Defence, message: Message, local: Local) -> Message:
    return message.map(lambda tensor: tensor / tensor.norm())


def no_scalars(self: Defence, message: Message, local: Local) -> Message:
    if any(tensor.dim() == 0 for tensor in message.tensors.values()):
        raise Refusal("No scalars here.")
    return message


def half_a_chain(self: Defence, message: Message, local: Local) -> Message:
    sound = all(bool((tensor != 0).all()) for tensor in message.tensors.values())
    return message if sound else drop(self, message, local)


def only_alone(self: Defence, message: Message, local: Local) -> Message:
    if len(local.path) > 1:
        raise InvalidValue("No company here.")
    return message


def many_words(self: Defence) -> str:
    return "a defence"


CHEATS: dict[str, tuple[dict[str, Hook], str]] = {
    "sends_key": (
        {"on_task": make_key, "on_message": send_key},
        "must keep its memory at home. Its `defence/key` shows in a gradient message.",
    ),
    "hides_key": (
        {"on_task": make_key, "on_message": hide_key},
        "must keep its memory at home. Its `defence/key` shows",
    ),
    "last_key": (
        {"on_task": make_key, "on_message": send_the_last_key},
        "must keep its memory at home. Its `defence/key`",
    ),
    "sends_head": ({"on_message": send_private_head}, "must keep its memory at home. Its `defence/own/head` shows"),
    "leaks_labels": (
        {"on_message": leak_labels},
        "must keep the batch at home. Its labels show in a gradient message.",
    ),
    "leaks_inputs": (
        {"on_message": leak_inputs},
        "must keep the batch at home. Its inputs show in a gradient message.",
    ),
    "leaks_facts": ({"on_message": leak_facts}, "must keep the facts of a message"),
    "drops": ({"on_message": drop}, "must keep names, types and shapes"),
    "flattens": ({"on_message": flatten}, "must keep names, types and shapes"),
    "renames": ({"on_message": rename}, "must keep the kind of a message. Got <Kind.UPDATE"),
    "message_in_place": (
        {"on_message": in_place},
        "in on_message must leave its input unchanged. Its message changed in place.",
    ),
    "batch_in_place": ({"on_batch": batch_in_place}, "in on_batch must leave its input unchanged. Its batch changed"),
    "gradient_in_place": (
        {"on_gradient": gradient_in_place},
        "in on_gradient must leave its input unchanged. Its gradient",
    ),
    "task_in_place": ({"on_task": task_in_place}, "in on_task must leave its input unchanged. Its task changed"),
    "global_noise": ({"on_message": global_noise}, "It drew from torch's global generator."),
    "constant_noise": ({"on_message": constant_noise}, "must not add the same numbers to every message"),
    "promised_noise": (
        {"on_message": constant_noise, "promise": property(lambda self: "noise")},
        "must draw other noise for another seed, since it promises noise",
    ),
    "first_tensor": (
        {"on_message": noise_on_the_first_tensor},
        "must put noise on every tensor of a message. It left `",
    ),
    "own_generator": ({"on_message": own_generator}, "in on_message must draw its random numbers from `local.draws`"),
    "own_numpy": ({"on_message": own_numpy_generator}, "in on_message must draw its random numbers from `local.draws`"),
    "own_python": (
        {"on_message": own_python_generator},
        "must draw its noise from `local.draws`. Under two keys it put the same on",
    ),
    "own_numpy_state": (
        {"on_message": own_numpy_state},
        "must draw its noise from `local.draws`. Under two keys it put the same on",
    ),
    "from_few_bits": ({"on_message": from_few_bits}, "in on_message must draw its random numbers from `local.draws`"),
    "all_but_one": (
        {"on_message": same_noise_on_all_but_one},
        "must draw other noise for another round. It drew the same for `",
    ),
    "every_other": (
        {"on_message": same_noise_in_every_other_round},
        "must draw other noise for another round. It drew the same",
    ),
    "first_entry": (
        {"on_message": noise_on_the_first_entry, "promise": property(lambda self: "noise")},
        "must put noise on every entry. It left some of `",
    ),
    "one_number": (
        {"on_message": one_number_for_all_entries, "promise": property(lambda self: "noise")},
        "must draw noise for each entry. It put the same on several of `",
    ),
    "shared_secret": (
        {"on_task": shared_secret},
        "must make secrets of each party's own. Two keys made the same `key`",
    ),
    "one_noise": ({"on_message": same_noise_in_every_round}, "must draw other noise for another round"),
    "shared_noise": ({"on_message": same_noise_for_every_party}, "must draw other noise for another party"),
    "keeps_objects": ({"on_message": keep_an_object}, "must keep nothing in memory but tensors, numbers"),
    "notes_words": ({"on_message": note_words}, "must note numbers"),
    "not_finite": ({"on_message": not_finite}, "It sent others for gradients scaled by 0 of 1 example(s)"),
    "no_scalars": ({"on_message": no_scalars}, "must accept parameters of no dimension"),
    "half_a_chain": ({"on_message": half_a_chain}, "+ half_a_chain must keep names, types and shapes"),
    "only_alone": ({"on_message": only_alone}, "must send a message or raise a Refusal. It raised: No company here."),
}


def test_a_key_of_each_party_s_own_is_no_noise(make: Hook) -> None:
    """Other seeds make other keys and other messages; in another round the key is the same, and so is the message."""

    def turn(self: Defence, message: Message, local: Local) -> Message:
        sign = 1.0 if local.memory["key"].sum() > 0 else -1.0
        return message.map(lambda tensor: sign * (1 + local.memory["key"].norm()) * tensor)

    check_defence(make(Defence, "keyed", on_task=make_key, on_message=turn))


@pytest.mark.parametrize("title", ["", "two\nlines", "top_k"])
def test_a_defence_has_a_title_of_words(title: str, make: Hook) -> None:
    with pytest.raises(ConformanceError, match="must have a title of words"):
        check_defence(make(Defence, "untitled", title=title))


@pytest.mark.parametrize("kind", CHEATS)
def test_a_broken_promise_is_named(kind: str, make: Hook) -> None:
    members, sentence = CHEATS[kind]
    with pytest.raises(ConformanceError) as found:
        check_defence(make(Defence, kind, **members))
    assert sentence in str(found.value)
    assert kind in str(found.value)


def more(self: Defence, message: Message, local: Local) -> Message:
    return dataclasses.replace(message, tensors={**message.tensors, "more": torch.zeros(1)})


def test_whoever_says_so_may_leave_tensors_out(make: Hook) -> None:
    check_form(make(Defence, "says_so", on_message=drop_bias, withholds=property(lambda self: True)))


@pytest.mark.parametrize("hook", [more, flatten])
def test_whoever_leaves_tensors_out_may_do_nothing_else_to_the_form(hook: Hook, make: Hook) -> None:
    defence = make(Defence, f"withholds_{hook.__name__}", on_message=hook, withholds=property(lambda self: True))
    with pytest.raises(ConformanceError, match="must keep names, types and shapes"):
        check_form(defence)


def test_what_is_left_out_counts_as_a_change(make: Hook) -> None:
    def shy(self: Any, message: Message, local: Local) -> Message:
        names = sorted(message.tensors)[self.fewer :]
        return dataclasses.replace(message, tensors={name: message.tensors[name] for name in names})

    members = {"on_message": shy, "withholds": property(lambda self: True)}
    check_strength(make(Defence, "shy", {"fewer": 4}, strength=Strength("fewer", "up", 0), **members))


def noisy(self: Any, message: Message, local: Local) -> Message:
    return message.map(lambda tensor: tensor + (0.1 + self.std) * local.draws.normal_like(tensor))


def weaker(self: Any, message: Message, local: Local) -> Message:
    return message.map(lambda tensor: tensor + local.draws.normal_like(tensor) / self.std) if self.std else message


def constant(self: Any, message: Message, local: Local) -> Message:
    return message.map(lambda tensor: tensor + 1) if self.std else message


def test_off_must_be_the_identity(make: Hook) -> None:
    defence = make(Defence, "never_off", {"std": 1.0}, strength=Strength("std", "up", 0.0), on_message=noisy)
    with pytest.raises(ConformanceError, match=r"never_off\(std=0\.0\) must be the identity, because 0\.0 means off"):
        check_off(defence)


def test_strength_must_strengthen(make: Hook) -> None:
    defence = make(Defence, "weakens", {"std": 1.0}, strength=Strength("std", "up", 0.0), on_message=weaker)
    with pytest.raises(
        ConformanceError, match=r"weakens\(std=0\.5\) must change a message more than weakens\(std=0\.25\)"
    ):
        check_strength(defence)


def test_strength_must_matter(make: Hook) -> None:
    defence = make(Defence, "constant", {"std": 1.0}, strength=Strength("std", "up", 0.0), on_message=constant)
    with pytest.raises(ConformanceError, match="Both changed"):
        check_strength(defence)


def test_strength_must_point_away_from_off(make: Hook) -> None:
    defence = make(Defence, "backwards", {"std": 1.0}, strength=Strength("std", "down", 0.0), on_message=noisy)
    with pytest.raises(
        ConformanceError, match=r"must be stronger than off. Its strength 1\.0 is on the other side of 0\.0"
    ):
        check_strength(defence)


def test_a_defence_that_is_off_cannot_be_checked() -> None:
    with pytest.raises(ConformanceError, match=r"gaussian_noise\(std=0\.0\) must be on to be checked"):
        check_strength(GaussianNoise(std=0.0))


def test_whole_strengths_are_swept_in_whole_steps(make: Hook) -> None:
    def shift(self: Any, message: Message, local: Local) -> Message:
        return message.map(lambda tensor: tensor + self.times) if self.times else message

    check_strength(make(Defence, "whole", {"times": 3}, strength=Strength("times", "up", 0), on_message=shift))


def test_a_hidden_setting_is_named(make: Hook) -> None:
    defence = make(Defence, "silent", {"std": 1.0}, __str__=many_words)
    with pytest.raises(
        ConformanceError, match=r"The str of silent must name every setting.*`std` is missing in a defence"
    ):
        check_defence(type(defence)(std=2.0))


def test_what_is_revealed_at_the_end_is_no_leak(make: Hook) -> None:
    def reveal(self: Defence, local: Local) -> dict[str, torch.Tensor]:
        return {"key": local.memory["key"]}

    defence = make(Defence, "reveals", on_task=make_key, on_close=reveal)
    assert toy_run(defence).transcript[-1].kind is Kind.REVEAL
    check_canary(defence)


def test_what_was_received_or_says_nothing_may_be_remembered(make: Hook) -> None:
    """Everybody knows the parameters, and zeros are in many messages."""

    def remember(self: Defence, message: Message, local: Local) -> Message:
        local.memory["zeros"] = torch.zeros(3)
        local.memory["round"] = message.round
        local.memory["start"] = toy_parameters(toy_task())["head.weight"]
        return message.map(lambda tensor: torch.where(tensor > 0, tensor, 0))

    check_canary(make(Defence, "remembers", on_message=remember))


def test_a_run_of_one_s_own_is_used(make: Hook) -> None:
    seen = []

    def play(defence: Defence, **options: Any) -> Any:
        seen.append(defence)
        return toy_run(defence, **options)

    check_extremes(Undefended(), play)
    assert len(seen) == 8


def test_where_only_a_secret_is_harder_to_guess_every_strength_must_change_a_message(make: Hook) -> None:
    def shift(self: Any, message: Message, local: Local) -> Message:
        return message.map(lambda tensor: tensor + self.by / self.length)

    strength = Strength("length", "up", None, changes=False)
    check_strength(make(Defence, "secret", {"length": 8, "by": 1.0}, strength=strength, on_message=shift))
    with pytest.raises(ConformanceError, match="must change a message"):
        check_strength(make(Defence, "silent", {"length": 8, "by": 0.0}, strength=strength, on_message=shift))
