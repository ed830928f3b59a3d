"""What is matched: entries that were sent, and layers that were chosen."""

import pytest
import torch

from leaktight.attacks import GradientMatching, LbfgsDescent
from leaktight.attacks.replay import Replay
from leaktight.core.errors import Refusal
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import TopK

VIEW = ThreatModel(knows=frozenset({Knows.LABELS, Knows.LOCAL_STEPS}))
ATTACK = {"distance": "l2", "descent": LbfgsDescent(history=20), "iterations": 15, "restarts": 4, "labels": "given"}


def errors(guess, run) -> torch.Tensor:
    pairs = zip(guess.keys, guess.inputs, strict=True)
    return torch.stack([(inputs - run.inside[key].raw.inputs).square().mean() for key, inputs in pairs])


def test_who_does_not_match_what_was_left_out_sees_through_top_k(observe):
    run = observe(victims=4, defence=TopK(share=0.5))
    every, sent = (GradientMatching(entries=entries, **ATTACK)(VIEW.view(run), stream(0)) for entries in ("all", "sent"))
    assert errors(sent, run).median() < 0.01 * errors(every, run).median()


def test_where_nothing_was_left_out_both_are_the_same(observe):
    view = VIEW.view(observe(victims=2))
    every, sent = (GradientMatching(entries=entries, **ATTACK)(view, stream(0)) for entries in ("all", "sent"))
    for one, other in zip(every.inputs, sent.inputs, strict=True):
        assert torch.equal(one, other)


def test_only_chosen_layers_are_matched(observe):
    run = observe(victims=3)
    view = VIEW.view(run)
    exchanges = view.exchanges()
    names = list(exchanges[0].sent.tensors)
    first, last = names[0].rpartition(".")[0], names[-1].rpartition(".")[0]
    found = {}
    for layer in (first, last):
        attack = GradientMatching(layers=(layer,), **ATTACK)
        victims = attack.victims(Replay.of(view.task, exchanges[0].sent), exchanges, view, stream(0))
        assert set(victims.wanted) == {f"{layer}.weight", f"{layer}.bias"}
        found[layer] = errors(attack(view, stream(0)), run)
    assert found[first].min() < 1e-6  # its weights' gradient is a multiple of the input
    assert found[last].min() > 1e-3  # these see four numbers of it


def test_a_layer_that_is_not_in_the_message_is_refused(observe):
    with pytest.raises(Refusal, match=r"Layer `body.9` cannot be matched: the message holds no tensor of it"):
        GradientMatching(layers=("body.9",), **ATTACK)(VIEW.view(observe(victims=1)), stream(0))
