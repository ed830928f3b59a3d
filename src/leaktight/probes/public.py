"""What anyone can measure on: the model as it was last handed out, and public examples."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.core.draws import SeededDraws
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.random import Stream
from leaktight.core.run import Run
from leaktight.core.task import Batch
from leaktight.transforms.policy import Policy, Probability


def latest(run: Run, kind: str) -> dict[str, Tensor]:
    """Return every parameter of the public task, by the model's names, as last sent in the transcript.

    Args:
        run: what happened.
        kind: the probe that asks, for the sentence that refuses a run in which no whole model was sent.

    Example:
        >>> from leaktight.testing import toy_run
        >>> run = toy_run(rounds=2)
        >>> torch.equal(latest(run, "sensitivity")["head.bias"], run.transcript[2].tensors["head.bias"])
        True
    """
    wanted = run.public.public_parameters().keys()
    for message in reversed(run.transcript):
        if message.kind is Kind.PARAMETERS and wanted <= message.tensors.keys():
            return run.public.model_parameters(message.tensors)
    raise Refusal(f"{kind} needs the parameters of a whole model. Nobody sent them in this run.")


def public_examples(run: Run, kind: str, count: int, rng: Stream) -> Batch:
    """Return at most so many of the run's public examples, drawn without replacement.

    Args:
        run: what happened.
        kind: the probe that asks, for the sentence that refuses a run without public data.
        count: how many are wanted.
        rng: where the draw comes from.

    Example:
        >>> from leaktight.core.random import stream
        >>> from leaktight.testing import toy_run
        >>> len(public_examples(toy_run(), "sensitivity", 5, stream(0, "draw")))
        5
    """
    if run.auxiliary is None or not len(run.auxiliary):
        raise Refusal(f"{kind} needs public examples of the same kind as the private ones. This run has none.")
    drawn = torch.randperm(len(run.auxiliary), generator=rng)[:count]
    return run.auxiliary.take(drawn.to(run.auxiliary.labels.device))


def through(examples: Batch, policy: Policy | None, probability: Probability, rng: Stream) -> Batch:
    """Return examples after a policy; without one, as they are.

    Args:
        examples: with images as inputs.
        policy: what they go through; None for nothing.
        probability: `always`, or `listed` for the library's probabilities.
        rng: where the draws come from.

    Example:
        >>> from leaktight.core.random import stream
        >>> from leaktight.testing import toy_batch
        >>> plain, inverted = (through(toy_batch(3), policy, "always", stream(0)) for policy in (None, Policy.of("0")))
        >>> torch.allclose(plain.inputs, 1 - inverted.inputs, atol=1 / 255)
        True
    """
    return (
        examples
        if policy is None
        else dataclasses.replace(examples, inputs=policy.apply(examples.inputs, SeededDraws(rng), probability))
    )
