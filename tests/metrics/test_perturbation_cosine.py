"""The cosine of what a defence adds with the undefended gradient, tensor by tensor."""

import dataclasses

import pytest
import torch

from leaktight.core.attack import Guess
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.defences import Polarization
from leaktight.metrics import PerturbationCosine
from leaktight.testing.toys import toy_run
from leaktight.testing.values import check_value


def message(**tensors):
    return Message(Kind.GRADIENT, "client-0", "server", 0, {name: torch.tensor(t) for name, t in tensors.items()})


@pytest.fixture
def graded(ground_truths):
    def grade(*pairs):
        truth = [
            dataclasses.replace(one, plain=plain, clean=clean)
            for one, (plain, clean) in zip(ground_truths([torch.zeros(1, 1)] * len(pairs)), pairs, strict=True)
        ]
        guess = Guess(tuple(one.sent.key for one in truth))
        return {reading.layer: reading for reading in PerturbationCosine().grade(guess, truth, stream(0))}

    return grade


def test_it_says_nothing_about_leakage():
    check_value(PerturbationCosine())
    assert PerturbationCosine().leaks is None


def test_each_tensor_has_the_mean_over_messages(graded):
    along = message(a=[1.0, 0.0], b=[1.0, 1.0]), message(a=[3.0, 0.0], b=[1.0, 1.0])
    across = message(a=[1.0, 0.0], b=[1.0, 1.0]), message(a=[1.0, 5.0], b=[0.0, 0.0])
    found = graded(along, across)
    assert found["a"].each == (1.0, 0.0)
    assert found["a"].value == 0.5
    # What was not changed in a message has no cosine there.
    assert (found["b"].value, found["b"].n) == (pytest.approx(-1.0), 1)


def test_what_is_the_same_in_all_messages_has_none(graded):
    same = message(a=[1.0], b=[0.0])
    assert graded((same, same), (same, message(a=[1.0], b=[2.0]))) == {}
    assert graded((None, same)) == {}


def test_polarization_changes_the_body_alone_and_every_strength_has_the_same_cosine():
    """Eq. 6: what is added is the gradient of the private loss, alpha2 times."""

    def cosines(alpha2):
        run, plain = toy_run(Polarization(alpha2=alpha2)), toy_run()
        truth = [dataclasses.replace(one, plain=plain.truths[key].sent) for key, one in run.truths.items()]
        guess = Guess(tuple(run.truths))
        return {r.layer: r.each for r in PerturbationCosine().grade(guess, truth, stream(0))}

    weak, strong = cosines(0.1), cosines(0.4)
    assert weak.keys() == strong.keys()
    assert weak
    assert not [name for name in weak if name.startswith("head")]
    for name in weak:
        assert weak[name][0] == pytest.approx(strong[name][0], abs=1e-3)
