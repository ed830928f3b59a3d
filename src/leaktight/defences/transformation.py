"""Transformation: only changed images are trained on."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from leaktight.core.channel import Channel, Outcome
from leaktight.core.defence import Defence
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.task import Batch, Task
from leaktight.data.files import Location
from leaktight.transforms.crop_flip import crop_flip
from leaktight.transforms.images import CHANNELS, ImageDraws
from leaktight.transforms.lasting import lasting_draws
from leaktight.transforms.outcome import add_mirror, is_enumerable, outcomes
from leaktight.transforms.policy import Policy, Probability, read_policy


class Transformation(Defence):
    r"""Train only on images that went through a policy, for whoever fears that gradients show the images.

    Without it a message is made from the images \(x\) of a batch; with it from \(\hat x = T(x)\), where the policy T
    draws a branch and signs for each image,

    .. math:: \nabla_\theta \, \ell(f_\theta(T(x)), y) \quad \text{in place of} \quad
        \nabla_\theta \, \ell(f_\theta(x), y).

    Whoever inverts the message finds \(\hat x\) at best. The policy is public: `outcomes` tells an attacker what T can
    do. It promises nothing by itself; it hides as much as an attack that knows it cannot undo. There is no strength to
    sweep.

    Args:
        policy: what is applied, as `3-1-7+43-18-18`; the published ones are in `leaktight.transforms.PUBLISHED`.
        file: the path of a `policy.toml` that `leaktight search` wrote, in place of `policy`. It is read once, when the
            defence is made, and its policy kept in its stead: what is recorded says what was applied, whatever becomes
            of the file.
        crop_flip: whether images are first padded by 4, cropped at random and flipped, as in the paper's training.
            Alone, without a policy, it is the augmentation that the paper's undefended training run has too.
        probability: `always` applies every function of a branch, as the paper's code does; `listed` each with its
            listed probability, which is weaker.
        draw: `each_step` lets an image become something else in every step, so that messages about it add up to more
            than any one of them says; `once` draws what becomes of an image once, from a secret that its owner keeps,
            and all messages about it are of the same changed image.

    Example:
        >>> import torch
        >>> batch = Batch(torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0)), torch.arange(4))
        >>> used = Transformation(policy=Policy.of("3-1-7+43-18-18")).on_batch(batch, Local("client-0", seed=0))
        >>> used.inputs.shape, bool((used.inputs == batch.inputs).any())
        (torch.Size([4, 3, 32, 32]), False)

    Differs from the paper: none known. Its public code draws in each step; its text also allows to transform the whole
    data set once, before the training.

    References:
        Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, section 4.4.
        Balunovic et al., "Bayesian Framework for Gradient Leakage", ICLR 2022: attacks on these policies, which
        succeed early in training.
    """

    kind: Literal["transformation"] = "transformation"
    policy: Policy | None = None
    file: Location = ""
    crop_flip: bool = False
    probability: Probability = "always"
    # Left out where it is the old way, so that settings of before it was there keep their keys.
    draw: Literal["each_step", "once"] = Field("each_step", exclude_if=lambda draw: draw == "each_step")

    @model_validator(mode="before")
    @classmethod
    def _from_file(cls, data: Any) -> Any:
        settings = data if isinstance(data, dict) else {}
        file = settings.get("file")
        if not file or settings.get("policy") is not None or not isinstance(file, str | os.PathLike):
            return data
        return {**settings, "policy": read_policy(Path(file).expanduser()), "file": ""}

    @model_validator(mode="after")
    def _check_policy(self) -> Transformation:
        if self.policy is not None and self.file:
            raise InvalidValue(f"{self.kind} must be told its policy by one of `policy` and `file`. Got both instead.")
        if self.policy is None and not self.file and not self.crop_flip:
            raise InvalidValue(
                f"{self.kind} must be told what to do by `policy` or `file`, or to `crop_flip`. Got none of them "
                "instead."
            )
        return self

    @property
    def memoryless(self) -> bool:
        """Nothing is kept but the secret of the draws."""
        return True

    @property
    def redraws(self) -> bool:
        """Whether each image goes another way in each step."""
        return self.draw == "each_step"

    def channel(self, task: Task) -> Channel:
        """State what may become of each image, as far as it can be stated."""
        return Channel(outcomes=self.outcomes(task.shape), lasting=self.draw == "once", complete=self.states_channel)

    def on_batch(self, batch: Batch, local: Local) -> Batch:
        """Change every image; the originals are not trained on."""
        self._require_images(tuple(batch.inputs.shape[1:]))
        images = batch.inputs
        draws: ImageDraws = local.draws
        if self.draw == "once":
            draws = lasting_draws(images, local.memory, local.draws)
        if self.crop_flip:
            images = crop_flip(images, draws)
        if self.policy is not None:
            images = self.policy.apply(images, draws, self.probability)
        return dataclasses.replace(batch, inputs=images)

    @property
    def states_channel(self) -> bool:
        """Whether `outcomes` states everything that can become of an image; a crop, or a 65th outcome, it does not."""
        return not self.crop_flip and self.policy is not None and is_enumerable(self.policy, self.probability)

    def outcomes(self, shape: tuple[int, ...]) -> tuple[Outcome, ...]:
        """Return everything that can become of an image of this shape, with its probability.

        It is for an attacker who knows the defence.

        Of `crop_flip` the flip is among the outcomes; the crop is not, as its 81 places are more than can be tried: an
        attacker then finds the image as it was cropped.
        """
        self._require_images(shape)
        possible = (
            outcomes(self.policy, shape, self.probability)
            if self.policy is not None
            else (Outcome(1.0, lambda images: images, "as it is"),)
        )
        return add_mirror(possible) if self.crop_flip else possible

    def _require_images(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 3 or shape[0] not in CHANNELS:
            raise Refusal(f"{self.kind} changes images of 1 or 3 channels. Got examples of shape {shape} instead.")
