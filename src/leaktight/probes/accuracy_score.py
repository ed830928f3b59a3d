"""Accuracy score: how well an untrained network tells transformed images apart, as a hint of what it will learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.message import Tensors
from leaktight.core.metric import Quantity, Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream
from leaktight.core.run import Run
from leaktight.core.task import Task
from leaktight.probes.public import latest, public_examples, through
from leaktight.transforms.policy import Policy, Probability

EPSILON = 1e-5
CHUNK = 128


def accuracy_score(task: Task, parameters: Tensors, images: Tensor, chunk: int = CHUNK) -> float:
    r"""Return how little the responses to different images are correlated; higher is better, and -1 is the most.

    Row n of J is the derivative of the sum of all outputs for image n with respect to its pixels. With
    \(\sigma_1, \ldots, \sigma_N\) the eigenvalues of the correlation matrix of the N rows and \(\epsilon = 10^{-5}\),

    .. math:: S = -\frac{1}{N} \sum_{n=1}^N \left( \log(\sigma_n + \epsilon) + \frac{1}{\sigma_n + \epsilon} \right) .

    Rows that are all uncorrelated have eigenvalues of 1 and a score of -1; images that look alike to the network bring
    small eigenvalues, which weigh heavily. An image that the outputs do not depend on, or by the same amount in all
    pixels, counts as an eigenvalue of 0.

    Args:
        task: whose outputs are differentiated.
        parameters: every parameter, by the model's names; the paper's are of an untrained model.
        images: (N, ...) as the model takes them, at least 2; scores of different N do not compare.
        chunk: how many images are in work at once, at least 1.

    Example:
        >>> from leaktight.testing import toy_batch, toy_task
        >>> task, images = toy_task(), toy_batch(4).inputs
        >>> tensors = task.model.tensors()
        >>> accuracy_score(task, tensors, images) > accuracy_score(task, tensors, images[[0, 0, 1, 1]])
        True

    Differs from the paper: eq. 10 as printed has the other sign than "keep if at least T_acc" asks for, and eq. 9
    averages over N where it means the entries of a row. The public code sums over eigenvalues; the mean is the paper's.

    References:
        Gao et al., Privacy-preserving Collaborative Learning with Automatic Transformation Search, 2021, eq. 8 to 10.
        Mellor et al., Neural Architecture Search without Training, 2020.
    """
    if len(images) < 2 or chunk < 1:
        raise InvalidValue(
            f"An accuracy score needs at least 2 images and a chunk of at least 1. Got {len(images)} images and a "
            f"chunk of {chunk} instead."
        )
    rows = torch.cat([_jacobian(task, parameters, part) for part in torch.split(images, chunk)])
    rows = rows - rows.mean(1, keepdim=True)
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    units = torch.where(lengths > 0, rows / torch.where(lengths > 0, lengths, 1.0), 0.0)
    values = torch.linalg.eigvalsh(units @ units.T).clamp_min(0) + EPSILON
    return -float((values.log() + 1 / values).mean())


def _jacobian(task: Task, parameters: Tensors, images: Tensor) -> Tensor:
    """Return the derivative of each image's summed outputs by its pixels; one backward pass gives all."""
    leaf = images.detach().requires_grad_(True)
    outputs = task.predict(task.forward({name: tensor.detach() for name, tensor in parameters.items()}, leaf))
    [gradient] = torch.autograd.grad(outputs.sum(), leaf, allow_unused=True, materialize_grads=True)
    # Not every device has double precision.
    return gradient.flatten(1).cpu().double()


class AccuracyScore(Probe):
    """Estimate what a transformation policy costs in accuracy, without training: by the correlation of responses.

    Public examples of the run go through the policy; nothing private is read. The score wants the parameters of an
    untrained model, so read it at the stage `initial`. The reading `accuracy_score` is at most -1, and higher is
    better; it is not about leakage.

    Args:
        policy: what the images go through, as `3-1-7+43-18-18`; None scores them as they are.
        probability: `always`, or `listed` for the library's probabilities.
        samples: how many public examples to draw, at least 2; compare only scores of the same number.

    Example:
        >>> from leaktight.core.random import stream
        >>> from leaktight.testing import toy_run
        >>> [reading] = AccuracyScore(samples=6).read(toy_run(), stream(0, "score")).readings
        >>> reading.name, reading.n, reading.value < -1
        ('accuracy_score', 6, True)

    Differs from the paper: as `accuracy_score`.

    References:
        Gao et al., Privacy-preserving Collaborative Learning with Automatic Transformation Search, 2021, section 4.3.
    """

    kind: Literal["accuracy_score"] = "accuracy_score"
    policy: Policy | None = None
    probability: Probability = "always"
    samples: int = Field(100, ge=2)

    @property
    def draws(self) -> str:
        """The probe without its policy: all policies are scored on the same examples."""
        return self.model_copy(update={"policy": None}).key

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings."""
        return {"accuracy_score": Quantity("accuracy score")}

    def read(self, run: Run, rng: Stream) -> Finding:
        """Score public examples at the latest parameters."""
        parameters = latest(run, self.kind)
        plain = public_examples(run, self.kind, self.samples, rng)
        examples = through(plain, self.policy, self.probability, rng)
        value = accuracy_score(run.public, parameters, examples.inputs)
        return Finding((Reading(name=self.kind, value=value, n=len(examples)),))
