"""An honest attack passes the kit; one that cheats, guesses blindly or breaks a promise does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from leaktight.core.attack import Attack, Guess, PropertyScores, Reconstruction, Scores
from leaktight.core.errors import Refusal
from leaktight.core.random import Stream
from leaktight.core.run import Run
from leaktight.core.threat import Exchange, Knows, View
from leaktight.testing.attacks import check_attack
from leaktight.testing.conformance import ConformanceError
from leaktight.testing.toys import toy_batch, toy_run

Hook = Callable[..., Any]
INPUTS, LABELS = frozenset({"inputs"}), frozenset({"inputs", "labels"})


def guess(
    view: View, inputs: Callable[[Exchange], Tensor], labels: Callable[[Exchange], Tensor] | None = None
) -> Reconstruction:
    exchanges = view.exchanges()
    return Reconstruction(
        tuple(exchange.sent.key for exchange in exchanges),
        tuple(inputs(exchange) for exchange in exchanges),
        tuple(labels(exchange) for exchange in exchanges) if labels else None,
    )


def ratio(exchange: Exchange) -> Tensor:
    weight, bias = exchange.sent.tensors["body.1.weight"], exchange.sent.tensors["body.1.bias"]
    row = bias.abs().argmax()
    return (weight[row] / bias[row]).view(1, 1, 3, 4)


def sign(exchange: Exchange) -> Tensor:
    return exchange.sent.tensors["head.bias"].argmin()[None]


def honest(self: Attack, view: View, rng: Stream) -> Guess:
    return guess(view, ratio, sign)


def grey(self: Attack, view: View, rng: Stream) -> Guess:
    return guess(view, lambda exchange: torch.full((1, 1, 3, 4), 0.5))


def first_class(self: Attack, view: View, rng: Stream) -> Guess:
    return guess(view, ratio, lambda exchange: torch.tensor([0]))


def random(self: Attack, view: View, rng: Stream) -> Guess:
    return guess(view, lambda exchange: torch.rand(1, 1, 3, 4, generator=rng))


def lost_stream(self: Attack, view: View, rng: Stream) -> Guess:
    return guess(view, lambda exchange: ratio(exchange) + 1e-3 * torch.rand(1, 1, 3, 4))


def restless(self: Attack, view: View, rng: Stream) -> Guess:
    fresh = torch.Generator()
    fresh.seed()
    return guess(view, lambda exchange: ratio(exchange) + 1e-3 * torch.rand(1, 1, 3, 4, generator=fresh))


def message_in_place(self: Attack, view: View, rng: Stream) -> Guess:
    found = honest(self, view, rng)
    view.messages[1].tensors["head.bias"].zero_()
    return found


def model_in_place(self: Attack, view: View, rng: Stream) -> Guess:
    for name, parameter in view.task.model.named_parameters():
        parameter.data.copy_(view.exchanges()[0].parameters[name])
    return honest(self, view, rng)


def silent(self: Attack, view: View, rng: Stream) -> Guess:
    return Reconstruction((), ())


def stranger(self: Attack, view: View, rng: Stream) -> Guess:
    return Reconstruction((("nobody", 0),), (torch.zeros(1, 1, 3, 4),))


def knows_the_toy(self: Attack, view: View, rng: Stream) -> Guess:
    run = toy_run(rounds=12, batch_size=1)
    return Reconstruction(tuple(run.truths), tuple(ground_truth.raw.inputs for ground_truth in run.truths.values()))


CHEATS: dict[str, tuple[Hook, frozenset[str], str]] = {
    "grey": (grey, INPUTS, "must beat chance on an undefended toy. Its psnr is"),
    "first_class": (first_class, LABELS, "must beat chance on an undefended toy. Its label_distance is"),
    "random": (random, INPUTS, "must beat chance on an undefended toy. Its psnr is"),
    "lost_stream": (lost_stream, INPUTS, "It drew from torch's global generator."),
    "restless": (restless, INPUTS, "must guess the same from the same stream. Two runs differ."),
    "message_in_place": (message_in_place, LABELS, "must leave its input unchanged. Its message 1 changed in place."),
    "model_in_place": (model_in_place, LABELS, "must leave its input unchanged. Its task changed in place."),
    "silent": (silent, INPUTS, "must guess about the messages in view. Got no guess instead."),
    "stranger": (stranger, INPUTS, "must guess about the messages in view. Got [('nobody', 0)] instead."),
    "claimless": (honest, frozenset(), "must say in `claims` what its Reconstruction speaks of."),
    "misnamed": (honest, frozenset({"scores"}), "must say in `claims` what its Reconstruction speaks of."),
    "knows_the_toy": (knows_the_toy, INPUTS, "must be at chance where there is nothing to find. Its psnr is"),
}


def test_an_honest_attack_passes(make: Hook) -> None:
    check_attack(make(Attack, "honest", run=honest, claims=LABELS))


def test_an_attack_from_another_seat_passes(make: Hook) -> None:
    check_attack(make(Attack, "honest", run=honest, claims=LABELS), seat="wire")


@pytest.mark.parametrize("kind", CHEATS)
def test_a_broken_promise_is_named(kind: str, make: Hook) -> None:
    run, claims, sentence = CHEATS[kind]
    with pytest.raises(ConformanceError) as found:
        check_attack(make(Attack, kind, run=run, claims=claims))
    assert sentence in str(found.value)
    assert kind in str(found.value)


def test_an_attack_gets_what_it_needs_and_nothing_more(make: Hook) -> None:
    seen: list[View] = []

    def look(self: Attack, view: View, rng: Stream) -> Guess:
        seen.append(view)
        return guess(view, ratio, lambda exchange: view.labels[exchange.sent.key])

    needs = property(lambda self: frozenset({Knows.LABELS}))
    check_attack(make(Attack, "needs_labels", run=look, claims=INPUTS, needs=needs))
    assert all(view.auxiliary is None and view.defence is None and len(view.labels) == 12 for view in seen)


def test_an_undeclared_need_shows(make: Hook) -> None:
    def look(self: Attack, view: View, rng: Stream) -> Guess:
        return guess(view, ratio, lambda exchange: view.labels[exchange.sent.key])

    with pytest.raises(KeyError):
        check_attack(make(Attack, "undeclared", run=look, claims=LABELS))


def test_a_refusal_on_the_toy_reaches_the_author(make: Hook) -> None:
    def refuse(self: Attack, view: View, rng: Stream) -> Guess:
        raise Refusal("It needs a convolution.")

    with pytest.raises(Refusal, match="It needs a convolution"):
        check_attack(make(Attack, "refuses", run=refuse, claims=INPUTS))


def test_an_attack_that_scores_brings_its_own_metric(make: Hook) -> None:
    def score(self: Attack, view: View, rng: Stream) -> Guess:
        exchanges = view.exchanges()
        return Scores(tuple(e.sent.key for e in exchanges), tuple(torch.zeros(1) for _ in exchanges))

    with pytest.raises(ConformanceError, match=r"No metric grades its claims \['scores'\]"):
        check_attack(make(Attack, "scores", run=score, claims=frozenset({"scores"})))


def test_a_run_of_one_s_own_is_attacked(make: Hook) -> None:
    seen: list[int] = []

    def look(self: Attack, view: View, rng: Stream) -> Guess:
        seen.append(len(view.exchanges()))
        return honest(self, view, rng)

    run: Run = toy_run(rounds=8, batch_size=1, data=toy_batch(8, seed=9))
    check_attack(make(Attack, "elsewhere", run=look, claims=LABELS), run)
    assert set(seen) == {8}


PROPERTY = frozenset({"property"})
AUXILIARY = property(lambda self: frozenset({Knows.AUXILIARY}))


def tell(view: View, value: Callable[[Exchange], Tensor]) -> PropertyScores:
    exchanges = view.exchanges()
    values = torch.stack([value(exchange) for exchange in exchanges]).double()
    return PropertyScores(tuple(exchange.sent.key for exchange in exchanges), values[None])


def light(exchange: Exchange) -> Tensor:
    """Say how large the gradient is at the two pixels that the property lights, against all others."""
    weight = exchange.sent.tensors["body.1.weight"].abs().sum(0)
    return weight[:2].sum() / weight.sum()


def test_an_attack_on_a_property_is_tried_on_a_toy_that_has_one(make: Hook) -> None:
    def look(self: Attack, view: View, rng: Stream) -> Guess:
        assert view.auxiliary is not None
        assert view.auxiliary.properties is not None
        return tell(view, light)

    check_attack(make(Attack, "lit", run=look, claims=PROPERTY, needs=AUXILIARY))


@pytest.mark.parametrize(
    ("kind", "claims", "sentence"),
    [
        ("half", PROPERTY, "must beat chance on an undefended toy. Its property_auc is 0.5"),
        ("turned", PROPERTY, "must beat chance on an undefended toy. Its property_auc is 0"),
        ("lit", INPUTS, "must say in `claims` what its PropertyScores speaks of."),
        ("spoils", PROPERTY, "must leave its input unchanged. Its auxiliary data changed in place."),
    ],
)
def test_a_broken_promise_about_a_property_is_named(
    kind: str, claims: frozenset[str], sentence: str, make: Hook
) -> None:
    def run(self: Attack, view: View, rng: Stream) -> Guess:
        if kind == "spoils" and view.auxiliary is not None and view.auxiliary.properties is not None:
            view.auxiliary.properties.zero_()
        change = {"half": lambda value: 0 * value + 0.5, "turned": lambda value: 1 - value}.get(
            kind, lambda value: value
        )
        return tell(view, lambda exchange: change(light(exchange)))

    with pytest.raises(ConformanceError) as found:
        check_attack(make(Attack, kind, run=run, claims=claims, needs=AUXILIARY))
    assert sentence in str(found.value)
