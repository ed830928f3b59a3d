"""Samples: what a guess of made-up pictures must look like; and keys, which only a threat model grants."""

from __future__ import annotations

from typing import ClassVar, Literal

import pytest
import torch

from leaktight.core.attack import Attack, GuessedSamples
from leaktight.core.errors import LeaktightError, Refusal
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.testing.toys import toy_run

SHAPE = (1, 3, 4)


class Maker(Attack):
    """Returns whatever it is told to, in the form of samples."""

    kind: Literal["test_maker"] = "test_maker"
    claims: ClassVar[frozenset[str]] = frozenset({"samples"})
    inputs: tuple[int, ...] = (2, *SHAPE)
    history: tuple[int, ...] = (3, 2, *SHAPE)
    rounds: tuple[int, ...] = (0, 1, 2)
    value: float = 0.5

    def run(self, view, rng):
        return GuessedSamples((), torch.full(self.inputs, self.value), 0, torch.zeros(self.history), self.rounds)


def make_samples(**settings):
    return Maker(**settings)(ThreatModel().view(toy_run(rounds=1)), stream(0))


def test_samples_of_the_task_shape_pass():
    assert make_samples().inputs.shape == (2, *SHAPE)


@pytest.mark.parametrize(
    "settings",
    [{"inputs": (2, 1, 4, 4)}, {"history": (3, 2, 1, 4, 4)}, {"rounds": (0, 1)}, {"history": (0, 2, *SHAPE)}],
)
def test_samples_of_another_form_are_an_error(settings):
    with pytest.raises(LeaktightError, match=r"test_maker must make samples of shape \(1, 3, 4\), now and in"):
        make_samples(**settings)


def test_samples_that_are_no_numbers_are_an_error():
    class Broken(Maker):
        kind: Literal["test_broken_maker"] = "test_broken_maker"

        def run(self, view, rng):
            return GuessedSamples((), torch.full(self.inputs, float("nan")), 0, torch.zeros(self.history), self.rounds)

    with pytest.raises(LeaktightError, match="test_broken_maker made samples that are not finite numbers"):
        Broken()(ThreatModel().view(toy_run(rounds=1)), stream(0))


def test_keys_are_granted_by_the_threat_model_alone():
    secrets = {"keys/client-0/3": torch.ones(4), "keys/client-2/3": torch.zeros(4)}
    assert ThreatModel(knows=frozenset(set(Knows) - {Knows.KEYS})).grant(secrets) == {}
    granted = ThreatModel(knows=frozenset({Knows.KEYS})).grant(secrets)
    assert granted.keys() == secrets.keys()
    granted["keys/client-0/3"].zero_()
    assert secrets["keys/client-0/3"].all()


def test_keys_go_to_json_and_back_and_are_named_in_a_refusal():
    threat = ThreatModel(seat="client-1", knows=frozenset({"keys", "labels"}))
    assert threat.to_dict()["knows"] == ["keys", "labels"]
    assert ThreatModel.model_validate(threat.to_dict()) == threat

    class Knowing(Maker):
        kind: Literal["test_knowing_maker"] = "test_knowing_maker"

        @property
        def needs(self):
            return frozenset({Knows.KEYS})

    with pytest.raises(Refusal, match="test_knowing_maker needs to know keys, which the threat model withholds"):
        Knowing().check(frozenset({Knows.HINTS}))
