"""PSNR above chance: by how much each guessed image is better than the best answer that needs no message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from leaktight.core.attack import Guess, Reconstruction
from leaktight.core.metric import Direction, Metric, Reading
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.chance import Blind, chance_each
from leaktight.metrics.comparison import pair_guess, read, resample_messages
from leaktight.metrics.image import psnr
from leaktight.metrics.pairing import is_image


class PSNRAboveChance(Metric):
    """PSNR of guessed images less that of the best answer that needs no message, image by image, in dB.

    PSNR alone follows how dark and how contrasty images are, so that a defence which changes images moves it where no
    attack works. The best answer is one for all images, chosen by its mean (`chance.chance_each`). It knows public
    examples, whether the attacker does or not: with labels, the mean image of the class. A negative value says that the
    attack failed, not by how much.

    Example:
        >>> import torch
        >>> from leaktight.core.random import stream
        >>> keys, images = (("client-0", 0), ("client-0", 1)), torch.full((2, 1, 1, 4, 4), 0.5)
        >>> PSNRAboveChance().grade(Reconstruction(keys, tuple(images)), (), stream(0))
        ()
    """

    kind: Literal["psnr_above_chance"] = "psnr_above_chance"
    title: ClassVar[str] = "PSNR above chance"
    claim: ClassVar[str] = "inputs"
    unit: ClassVar[str] = "dB"
    digits: ClassVar[int | None] = 1
    leaks: ClassVar[Direction | None] = "high"
    learns_from_public: ClassVar[bool] = True

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return a reading against the raw and one against the used images."""
        if not isinstance(guess, Reconstruction) or not truth:
            return ()
        blind = Blind.of(guess, truth, public)
        readings = []
        for pairs in pair_guess(guess, truth, clamp=True):
            if not is_image(pairs.truth.shape[1:]):
                continue
            chance = chance_each(psnr, "high", pairs.truth, pairs.messages, blind, rng)
            values = psnr(pairs.guess, pairs.truth) - chance
            interval = resample_messages(self, values, pairs.messages, rng)
            readings.append(read(self, values, interval, 0.0, pairs.against))
        return tuple(readings)
