"""Attacks on messages without some layers: what is there is used, what is needed and missing is refused in one sentence."""

import pytest
import torch

from leaktight.attacks import Analytic, GradientMatching, LabelReading, SearchGuardedLBFGS, SearchLBFGS
from leaktight.attacks.replay import Replay
from leaktight.core.errors import Refusal
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import LayerGuard, Withhold
from leaktight.metrics import standard
from leaktight.testing.toys import toy_run

VIEW = ThreatModel(knows=frozenset(Knows) - {Knows.HINTS})
ATTACK = {"distance": "l2", "descent": SearchLBFGS(history=20), "iterations": 20, "restarts": 4}
FIRST, HEAD = Withhold(layers=("body.1",)), Withhold(layers=("head",))


def errors(guess, run: Run) -> torch.Tensor:
    pairs = zip(guess.keys, guess.inputs, strict=True)
    return torch.stack([(inputs - run.truths[key].raw.inputs).square().mean() for key, inputs in pairs])


@pytest.mark.parametrize("labels", ["given", "joint"])
def test_matching_finds_the_examples_behind_what_is_left(observe, labels):
    run = observe(victims=4, defence=HEAD)
    guess = GradientMatching(labels=labels, **ATTACK)(VIEW.view(run), stream(0))
    assert errors(guess, run).median() < 1e-4


def test_matching_compares_with_what_was_sent_alone(observe):
    view = VIEW.view(observe(victims=2, defence=FIRST))
    exchanges = view.exchanges()
    replay = Replay.of(view.task, exchanges[0].sent)
    assert replay.names == ("head.weight", "head.bias")
    wanted = (
        GradientMatching(labels="given", **ATTACK).victims([replay], [exchanges], view, stream(0)).sightings[0].wanted
    )
    assert set(wanted) == {"head.weight", "head.bias"}


def test_an_update_is_replayed_with_the_layer_moving_along(observe):
    run = observe(victims=2, steps=2, rate=0.5, defence=HEAD)
    [exchange, _] = VIEW.view(run).exchanges()
    used = run.truths[exchange.sent.key].used
    targets = torch.nn.functional.one_hot(used.labels, 4).float()
    replayed = Replay.of(run.public, exchange.sent)(exchange.parameters, used.inputs, targets).means
    assert replayed.keys() == exchange.sent.tensors.keys()
    assert all(torch.allclose(tensor, exchange.sent.tensors[name], atol=1e-6) for name, tensor in replayed.items())


def test_who_models_the_defence_plays_what_was_agreed():
    run = toy_run(LayerGuard(layers=("head",)), rounds=2, batch_size=1)
    guess = GradientMatching(
        labels="given", **{**ATTACK, "distance": "likelihood", "descent": SearchGuardedLBFGS(), "iterations": 200}
    )(VIEW.view(run), stream(0))
    assert errors(guess, run).max() < 1e-3


def test_labels_cannot_be_read_off_a_head_that_is_not_there(observe):
    view = VIEW.view(observe(victims=1, defence=HEAD))
    for attack in (LabelReading(), GradientMatching(labels="read", **ATTACK)):
        with pytest.raises(Refusal, match="Labels can be read only off a linear head whose gradient is shared"):
            attack(view, stream(0))


def test_labels_are_read_as_before_where_only_the_body_is_withheld(observe):
    plain, guarded = (LabelReading()(VIEW.view(observe(victims=5, defence=each)), stream(0)) for each in (None, FIRST))
    assert [labels.tolist() for labels in guarded.labels] == [labels.tolist() for labels in plain.labels]


def test_the_analytic_attack_needs_the_first_layer(observe):
    with pytest.raises(Refusal, match=r"needs the gradients of `body\.1` in every message. Not all of them are shared"):
        Analytic()(VIEW.view(observe(victims=1, defence=FIRST)), stream(0))
    run = observe(victims=2, defence=HEAD)
    assert errors(Analytic()(VIEW.view(run), stream(0)), run).max() < 1e-8


def test_a_layer_that_was_withheld_cannot_be_chosen(observe):
    view = VIEW.view(observe(victims=1, defence=HEAD))
    with pytest.raises(Refusal, match="Layer `head` cannot be matched: the message holds no tensor of it"):
        GradientMatching(labels="given", layers=("head",), **ATTACK)(view, stream(0))


def test_a_free_loss_needs_something_of_the_body(observe):
    view = VIEW.view(observe(defence=FIRST))
    with pytest.raises(Refusal, match="matched by the tensors of the body, and none came"):
        GradientMatching(loss="free", labels="given", **ATTACK)(view, stream(0))


def test_where_everything_is_withheld_every_attack_refuses(observe):
    view = VIEW.view(observe(victims=1, defence=Withhold()))
    attacks = [
        Analytic(),
        LabelReading(),
        *(GradientMatching(labels=labels, **ATTACK) for labels in ("given", "joint", "read")),
    ]
    for attack in attacks:
        with pytest.raises(Refusal):
            attack(view, stream(0))


@pytest.mark.parametrize(
    "attack", [Analytic(), GradientMatching(labels="given", **ATTACK)], ids=["analytic", "matching"]
)
def test_every_metric_grades_an_attack_on_what_is_left(observe, attack):
    found = Attempt(attack=attack, threat=VIEW, metrics=standard()).read(observe(victims=3, defence=HEAD), stream(0))
    assert {"psnr", "mse"} <= {reading.name for reading in found.readings}
