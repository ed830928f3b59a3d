"""PSNR above chance: image by image, against an answer that knows public images and the classes."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.attack import Reconstruction
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.metrics import PSNR, PSNRAboveChance
from leaktight.testing.toys import toy_run


def test_it_is_psnr_less_that_of_the_class_mean() -> None:
    run = toy_run(batch_size=1)
    truth = tuple(run.truths.values())
    keys = tuple(run.truths)
    labels = tuple(each.used.labels for each in truth)
    # The public images of a class are the private ones, nearly: nobody needs a message.
    known = Batch.join([each.raw for each in truth])
    public = Batch(known.inputs.clamp(0, 1), known.labels)
    guesses = tuple(torch.full_like(each.raw.inputs, 0.5) for each in truth)
    guess = Reconstruction(keys, guesses, labels)
    for against in (0, 1):
        above = PSNRAboveChance().grade(guess, truth, stream(0), public)[against]
        plain = PSNR().grade(guess, truth, stream(0), public)[against]
        assert plain.chance is not None
        assert above.value == pytest.approx(plain.value - plain.chance, abs=1e-4)
        assert above.against == plain.against
        assert above.chance == 0
        assert len(above.each) == len(plain.each)
        assert len(set(above.each)) > 1


def test_public_images_count_whether_the_attacker_has_them_or_not() -> None:
    assert PSNRAboveChance.learns_from_public
    assert not PSNR.learns_from_public
