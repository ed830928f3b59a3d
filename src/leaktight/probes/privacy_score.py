"""Privacy score: how steadily a gradient tells an attacker that it comes closer to an image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.message import Tensors
from leaktight.core.metric import Quantity, Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream, uniform_like
from leaktight.core.run import Run
from leaktight.core.task import Batch, Task
from leaktight.learning.gradient import gradient
from leaktight.probes.public import latest, public_examples, through
from leaktight.statistics.interval import bootstrap
from leaktight.transforms.policy import Policy, Probability

Similarity = Literal["whole", "per_tensor"]
BLENDS = 21
SIMILARITY_AT = "similarity_at_"
"""How the names of readings begin that are points of a curve."""
CHUNK = 84
"""How many gradients are in work at once; more gain little in speed and take their memory."""


def privacy_scores(
    task: Task,
    parameters: Tensors,
    images: Tensor,
    labels: Tensor,
    noise: Tensor,
    similarity: Similarity = "whole",
    blends: int = BLENDS,
    chunk: int = CHUNK,
) -> Tensor:
    r"""Return the area under each image's gradient similarity, on the way from noise to it; lower is more private.

    With \(g(x)\) the gradient of the loss at x under the image's label, and \(x_i = (1 - i) x_0 + i \hat x\),

    .. math:: S(\hat x) = \int_0^1 \frac{\langle g(x_i), g(\hat x) \rangle}{\|g(x_i)\| \, \|g(\hat x)\|} \, di

    by the trapezoid rule. All blends of several images are one call of `torch.func`; the last blend is the image
    itself, whose gradient is what the others are compared with. A gradient of zero has no direction: its similarity
    counts as 0.

    Args:
        task: whose loss is differentiated, in the parameters that go out.
        parameters: every parameter, by the model's names; the paper's are of a model that was trained a little.
        images: what the attacker wants, after the transformation: (n, ...) as the model takes them.
        labels: one for each image.
        noise: where the attacker starts, one for each image, of the same shape.
        similarity: `whole` is one cosine over the whole gradient, `per_tensor` the mean of one cosine for each tensor.
        blends: how many points the curve has, both ends included, at least 2.
        chunk: about how many gradients are in work at once, at least 1; at least one image is.

    Example:
        >>> from leaktight.testing import toy_batch, toy_task
        >>> task, batch = toy_task(), toy_batch(3)
        >>> scores = privacy_scores(task, task.model.tensors(), batch.inputs, batch.labels, batch.inputs)
        >>> [round(score, 5) for score in scores.tolist()]  # from the image itself there is no way to go
        [1.0, 1.0, 1.0]

    Differs from the paper: eq. 7 is the left sum over K points, which leaves the end at the image out; this is the
    trapezoid rule over 21 points, as in the public code. Of its two readings of the cosine, the text has `whole` and
    the public code `per_tensor`.

    References:
        Gao et al., Privacy-preserving Collaborative Learning with Automatic Transformation Search, 2021, eq. 5 to 7.
    """
    curves = similarity_curves(task, parameters, images, labels, noise, similarity, blends, chunk)
    return torch.trapezoid(curves, dx=1 / (blends - 1))


def similarity_curves(
    task: Task,
    parameters: Tensors,
    images: Tensor,
    labels: Tensor,
    noise: Tensor,
    similarity: Similarity = "whole",
    blends: int = BLENDS,
    chunk: int = CHUNK,
) -> Tensor:
    """Return the gradient similarity of each blend with its image, (n, blends), from noise to the image (Fig. 1).

    The arguments are those of `privacy_scores`.
    """
    if images.shape != noise.shape or len(images) != len(labels):
        raise InvalidValue(
            "The `noise` and `labels` of a privacy score must be one for each of the images of shape "
            f"{tuple(images.shape)}. Got noise of shape {tuple(noise.shape)} and {len(labels)} labels instead."
        )
    if blends < 2 or chunk < 1:
        raise InvalidValue(
            f"A privacy score needs at least 2 blends and a chunk of at least 1. Got {blends} blends and a chunk of "
            f"{chunk} instead."
        )
    shared = [name for names in task.layers().values() for name in names]
    steps = torch.linspace(0, 1, blends, dtype=images.dtype, device=images.device).view(
        1, -1, *[1] * (images.dim() - 1)
    )
    curves = []
    for start in range(0, len(images), max(1, chunk // blends)):
        part = slice(start, start + max(1, chunk // blends))
        mixed = (1 - steps) * noise[part, None] + steps * images[part, None]
        batch = Batch(mixed.flatten(0, 1), labels[part].repeat_interleave(blends))
        each = gradient(task, parameters, batch, per_example=True).tensors
        curves.append(_cosines([each[name].reshape(*mixed.shape[:2], -1) for name in shared], similarity))
    return torch.cat(curves) if curves else images.new_zeros(0, blends)


def _cosines(gradients: list[Tensor], similarity: Similarity) -> Tensor:
    """Return the cosine of each blend's gradient (image, blend, entry) with the last blend's, over all tensors."""
    # A product and a sum: torch sums in pairs, while a matrix product adds up its entries one by one and loses the
    # sixth digit.
    dots = torch.stack([(gradient * gradient[:, -1:]).sum(2) for gradient in gradients])
    norms = torch.stack([torch.linalg.vector_norm(gradient, dim=2) for gradient in gradients])
    if similarity == "whole":
        dots, norms = dots.sum(0, keepdim=True), torch.linalg.vector_norm(norms, dim=0, keepdim=True)
    lengths = norms * norms[..., -1:]
    return torch.where(lengths > 0, dots / torch.where(lengths > 0, lengths, 1.0), 0.0).clamp(-1, 1).mean(0)


class PrivacyScore(Probe):
    """Estimate how private a transformation policy is, without an attack: by the area under the gradient similarity.

    Nothing private is read: public examples of the run go through the policy and are scored at the parameters that were
    sent last, as `privacy_scores` does. The reading `privacy_score` is the mean over images, in [-1, 1] and mostly in
    [0, 1]; a high one leaks. Its interval is bootstrapped over images, and `each` has the images in order.

    Args:
        policy: what the images go through, as `3-1-7+43-18-18`; None scores them as they are.
        probability: `always`, or `listed` for the library's probabilities.
        samples: how many public examples to draw, at least 2; more make the interval narrower.
        similarity: `whole` or `per_tensor`.
        blends: points of the curve, at least 2.
        curve: whether the similarity at each point is a reading of its own, `similarity_at_0.25` and so on, the mean
            over images.

    Example:
        >>> from leaktight.core.random import stream
        >>> from leaktight.testing import toy_run
        >>> [reading] = PrivacyScore(policy="0", samples=8).read(toy_run(), stream(0, "score")).readings
        >>> reading.name, reading.n, reading.leaks
        ('privacy_score', 8, 'high')

    Differs from the paper: as `privacy_scores`; and the model is the run's, however long it was trained.

    References:
        Gao et al., Privacy-preserving Collaborative Learning with Automatic Transformation Search, 2021, section 4.2.
    """

    kind: Literal["privacy_score"] = "privacy_score"
    policy: Policy | None = None
    probability: Probability = "always"
    samples: int = Field(100, ge=2)
    similarity: Similarity = "whole"
    blends: int = Field(BLENDS, ge=2)
    curve: bool = Field(False, exclude_if=lambda curve: not curve)

    @property
    def draws(self) -> str:
        """The probe without its policy: all policies are scored on the same examples."""
        return self.model_copy(update={"policy": None, "curve": False, "similarity": "whole"}).key

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings."""
        return {"privacy_score": Quantity("privacy score", leaks="high")}

    def read(self, run: Run, rng: Stream) -> Finding:
        """Score public examples at the latest parameters."""
        parameters = latest(run, self.kind)
        plain = public_examples(run, self.kind, self.samples, rng)
        # Before the policy draws anything, so that every policy is scored from the same noise.
        noise = uniform_like(plain.inputs, rng)
        images = through(plain, self.policy, self.probability, rng).inputs
        curves = similarity_curves(
            run.public, parameters, images, plain.labels, noise, self.similarity, self.blends
        ).double()
        each = torch.trapezoid(curves, dx=1 / (self.blends - 1))
        low, high = bootstrap(each, rng)
        reading = Reading(
            name=self.kind,
            value=each.mean().item(),
            low=low,
            high=high,
            n=len(each),
            leaks="high",
            each=tuple(each.tolist()),
        )
        return Finding((reading, *(self._points(curves, rng) if self.curve else ())))

    def _points(self, curves: Tensor, rng: Stream) -> Iterator[Reading]:
        for number, values in enumerate(curves.unbind(1)):
            low, high = bootstrap(values, rng)
            name = f"{SIMILARITY_AT}{number / (self.blends - 1):g}"
            yield Reading(name=name, value=values.mean().item(), low=low, high=high, n=len(values))
