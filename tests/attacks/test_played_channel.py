"""What a defence adds is found by playing it; what depends on the example is left alone."""

import dataclasses
from typing import Literal

import pytest
import torch

from leaktight.attacks.played_channel import clean, play, remaining_defence
from leaktight.core.channel import Channel
from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.learning.optimiser import Sgd

KNOWS = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.LOCAL_STEPS}))
WEIGHT, BIAS = "body.1.weight", "body.1.bias"
Way = Literal["constant", "few", "noise", "shifted", "scale", "flip"]


class Unstated(Defence):
    """Does one thing to one tensor, and says nothing of it."""

    kind: Literal["test_unstated"] = "test_unstated"
    way: Way = "constant"
    size: float = 2.0

    def on_message(self, message: Message, local: Local) -> Message:
        tensor = message.tensors[WEIGHT]
        fixed = torch.randn(tensor.shape, generator=stream(1, self.way))
        changed = {
            "constant": lambda: tensor + self.size * fixed,
            "few": lambda: (
                tensor + self.size * torch.randn(tensor.shape, generator=stream(int(local.draws.integers(16))))
            ),
            "noise": lambda: tensor + self.size * local.draws.normal_like(tensor),
            "shifted": lambda: tensor + 3 + self.size * local.draws.normal_like(tensor),
            "scale": lambda: tensor * (1 + local.draws.uniforms(())),
            "flip": lambda: tensor * fixed.sign(),
        }[self.way]()
        return dataclasses.replace(message, tensors={**message.tensors, WEIGHT: changed})


def play_out(observe, defence, **settings):
    run = observe(victims=2, defence=defence, **settings)
    view = KNOWS.view(run)
    return run, view, play(view, defence, stream(0))


@pytest.mark.parametrize(("way", "outcomes"), [("constant", 1), ("few", 16)])
def test_what_is_one_of_few_things_is_taken_off(observe, way, outcomes):
    run, view, found = play_out(observe, Unstated(way=way))
    [(played, _)] = found
    assert [len(played[name].outcomes) for name in (WEIGHT, BIAS)] == [outcomes, 1]
    cleaned = clean(view, found, remaining_defence(found))
    assert cleaned.defence.channel(view.task) == Channel()
    for exchange in cleaned.exchanges():
        honest = run.truth(exchange.sent.key).clean.tensors
        assert all(torch.allclose(tensor, honest[name], atol=1e-5) for name, tensor in exchange.sent.tensors.items())


def test_noise_in_one_tensor_is_known_by_its_variance(observe):
    _, _, found = play_out(observe, Unstated(way="noise", size=0.5))
    left = remaining_defence(found)
    assert left.whole
    assert left.states_channel
    assert left.variances[WEIGHT] == pytest.approx(0.25, rel=0.05)
    assert {variance for name, variance in left.variances.items() if name != WEIGHT} == {0.0}


def test_noise_around_a_constant_is_centred(observe):
    _, _, [(played, _)] = play_out(observe, Unstated(way="shifted", size=0.5))
    assert played[WEIGHT].added
    assert played[WEIGHT].outcomes.mean().item() == pytest.approx(3, abs=0.05)


@pytest.mark.parametrize("way", ["scale", "flip"])
def test_what_depends_on_the_example_is_left_alone(observe, way):
    _, view, found = play_out(observe, Unstated(way=way))
    left = remaining_defence(found)
    assert not left.whole
    assert left.channel(view.task) == Channel(complete=False)
    seen = zip(clean(view, found, left).exchanges(), view.exchanges(), strict=True)
    assert all(torch.equal(one.sent.tensors[WEIGHT], other.sent.tensors[WEIGHT]) for one, other in seen)


def test_nothing_is_found_where_nothing_is_done(observe):
    _, view, found = play_out(observe, Undefended())
    assert remaining_defence(found).channel(view.task) == Channel()


def test_the_order_of_local_steps_cannot_be_played(observe):
    with pytest.raises(Refusal, match="of several local steps cannot be told"):
        play_out(observe, Unstated(), steps=2, optimiser=Sgd(learning_rate=0.1), shares=Kind.UPDATE)
