"""Channels compose: outcomes, stages, noise."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.channel import MOST_OUTCOMES, Belief, Channel, Mask, Noise, Outcome, Stage, push_all


class Double(Stage):
    """Twice the means."""

    def push(self, belief: Belief) -> Belief:
        return Belief({name: 2 * mean for name, mean in belief.means.items()})


class Shift(Stage):
    """One more."""

    def push(self, belief: Belief) -> Belief:
        return Belief({name: mean + 1 for name, mean in belief.means.items()})


def outcome(weight: float, factor: float) -> Outcome:
    return Outcome(weight, lambda pixels: factor * pixels, str(factor))


def test_stages_act_in_order() -> None:
    pushed = push_all((Double(), Shift()), Belief({"weight": torch.tensor([3.0])}))
    assert pushed.means["weight"].tolist() == [7.0]


def test_a_chain_has_the_stages_of_both_and_every_pair_of_outcomes() -> None:
    first = Channel(outcomes=(outcome(0.5, 2), outcome(0.5, 3)), message=(Double(),))
    second = Channel(outcomes=(outcome(0.25, 5), outcome(0.75, 7)), message=(Shift(),), private_task=True)
    both = first.then(second)
    assert [type(stage) for stage in both.message] == [Double, Shift]
    assert both.private_task
    assert both.complete
    images = sorted((float(found.change(torch.ones(1))), found.weight) for found in both.outcomes)
    assert images == [(10.0, 0.125), (14.0, 0.375), (15.0, 0.125), (21.0, 0.375)]


def test_a_chain_is_complete_if_both_are_and_no_outcome_is_left_out() -> None:
    assert not Channel().then(Channel(complete=False)).complete
    nine = Channel(outcomes=tuple(outcome(1 / 9, factor) for factor in range(9)))
    assert not nine.then(nine).complete
    assert len(nine.then(nine).outcomes) == MOST_OUTCOMES


def test_outcomes_of_one_link_stay() -> None:
    some = Channel(outcomes=(outcome(1.0, 2),))
    assert some.then(Channel()).outcomes == Channel().then(some).outcomes == some.outcomes


def test_noise_adds_up() -> None:
    assert Noise(1.0, 2.0) + Noise(3.0) == Noise(4.0, 2.0)
    assert Noise(laplace=2.0) + Noise(1.0) == Noise(1.0, 2.0)
    assert Noise(laplace=2.0) + Noise(laplace=3.0) == Noise(18.0, 2.0, approximate=True)
    with pytest.raises(NotImplementedError, match="along a direction"):
        Noise(along=torch.ones(1, 2)) + Noise(along=torch.ones(1, 2))


def test_noise_is_scaled_and_what_is_not_there_stays_away() -> None:
    assert Noise(4.0, 3.0).scale(-0.5) == Noise(1.0, 1.5)
    assert Noise().scale(torch.tensor(3.0)).is_none
    scaled = Noise(4.0).scale(torch.tensor(-0.5))
    assert float(scaled.variance) == 1.0
    assert scaled.laplace == 0.0
    assert not Noise(along=torch.ones(1, 2)).is_none


def test_a_belief_about_some_tensors() -> None:
    mask = Mask(("a", "b"), 1)
    belief = Belief({"a": torch.zeros(1), "b": torch.zeros(1)}, {"a": Noise(1.0)}, {"a": mask, "b": mask}, examples=4)
    one = belief.only(["b"])
    assert (list(one.means), dict(one.noise), list(one.masks), one.examples) == (["b"], {}, ["b"], 4)
    assert belief.map_noise(lambda noise: noise + Noise(2.0)).noise == {"a": Noise(3.0), "b": Noise(2.0)}
