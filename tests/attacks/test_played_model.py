"""Guesses are ranked by what the played defence makes of them."""

from typing import Literal

import pytest
import torch

from leaktight.attacks.played_channel import play
from leaktight.attacks.played_model import PlayedModel
from leaktight.core.defence import Defence
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel

KNOWS = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.LOCAL_STEPS}))


class Upside(Defence):
    """Turns every message upside down, a random number of times as large, and says nothing of it."""

    kind: Literal["test_upside"] = "test_upside"
    spread: float = 0.0

    def on_message(self, message: Message, local: Local) -> Message:
        factor = 1 + self.spread * local.draws.normals(())
        return message.map(lambda tensor: -factor * tensor.flip(0))


@pytest.fixture(params=[0.0, 0.1])
def judged(observe, request):
    defence = Upside(spread=request.param)
    run = observe(victims=2, defence=defence)
    view = KNOWS.view(run)
    truths = [run.truth(exchange.sent.key) for exchange in view.exchanges()]
    model = PlayedModel(view, defence, play(view, defence, stream(0)), stream(0))
    return model, [one.raw.inputs for one in truths], [one.raw.labels for one in truths], truths


def test_the_truth_is_preferred_to_what_fits_the_message_without_the_defence(judged):
    model, inputs, labels, truths = judged
    blank, other = [torch.full_like(one, 0.5) for one in inputs], [1 - one for one in inputs]
    scores = model.score(inputs, labels)
    assert (scores < model.score(blank, labels)).all()
    assert (scores < model.score(other, labels)).all()
    assert torch.equal(scores, model.at_truth(truths))


def test_every_label_is_tried_where_nobody_guesses_it(judged):
    model, inputs, labels, _ = judged
    assert torch.equal(model.score(inputs, [None, torch.tensor([-1])]), model.score(inputs, labels))


def test_what_cannot_be_played_has_no_score_and_nothing_is_explained(judged):
    model, inputs, labels, _ = judged
    assert model.score([None, inputs[1].repeat(2, 1, 1, 1)], labels).isinf().all()
    assert model.explains(inputs, labels) == [False, False]
