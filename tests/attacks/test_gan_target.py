"""GAN targets: the losses of Hitaj et al. and of class keys."""

from __future__ import annotations

import torch

from leaktight.attacks.gan_target import ClassTarget, KeyTarget
from leaktight.core.draws import SeededDraws
from leaktight.core.random import stream
from leaktight.defences.key_theory import random_keys


def unit(dimensions, name="key"):
    return random_keys(1, dimensions, SeededDraws(stream(0, name)))[0]


def test_the_loss_of_a_class_is_its_cross_entropy():
    scores = torch.randn(5, 4, generator=stream(0))
    expected = torch.nn.functional.cross_entropy(scores, torch.full((5,), 2), reduction="none")
    torch.testing.assert_close(ClassTarget(2, lambda outputs: outputs).loss(scores), expected)


def test_scores_are_those_of_the_task():
    target = ClassTarget(1, lambda outputs: outputs["scores"])
    outputs = {"scores": torch.tensor([[0.0, 2.0], [2.0, 0.0]])}
    assert target.hits(outputs).tolist() == [True, False]
    assert target.loss(outputs)[0] < target.loss(outputs)[1]


def test_the_loss_of_a_key_is_minus_the_inner_product():
    outputs = torch.nn.functional.normalize(torch.randn(6, 8, generator=stream(1)), dim=1)
    target = KeyTarget(unit(8), unit(8, "other"))
    expected = -(outputs.double() * target.key.double()).sum(1)
    torch.testing.assert_close(target.loss(outputs).double(), expected, rtol=0, atol=1e-6)


def test_a_fake_hits_a_key_that_fits_better_than_another():
    key, other = unit(64), unit(64, "other")
    assert KeyTarget(key, other).hits(torch.stack([key, other])).tolist() == [True, False]
