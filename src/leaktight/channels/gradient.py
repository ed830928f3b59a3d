"""The gradient of a step: what is done to each example's own, and to their mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from leaktight.core.channel import Belief, Mask, Noise, Stage, push_all
from leaktight.core.errors import InvalidValue
from leaktight.core.message import Tensors


def push_examples(stages: tuple[Stage, ...], gradients: Tensors) -> Belief:
    """Return what is known of the mean over examples, after stages that see each example's own gradient.

    Noise on single examples is of a mean then: Gaussian, of the mean variance over their number.

    Args:
        stages: what is done to each, in order. None of them may leave entries out: a mean hides which ones.
        gradients: one gradient for each example along the first dimension, by name.

    Example:
        >>> from leaktight.channels.clip import Clip
        >>> gradients = {"weight": torch.tensor([[3.0, 4.0], [0.3, 0.4]])}
        >>> push_examples((Clip(bound=1.0),), gradients).means["weight"]
        tensor([0.4500, 0.6000])
    """
    examples = len(next(iter(gradients.values())))
    noisy: set[str] = set()

    def push(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        belief = push_all(stages, Belief(tensors))
        if belief.masks or any(belief.noise_of(name).along is not None for name in belief.means):
            raise InvalidValue(
                "A stage on single examples must scale them or add independent noise. Got another; state less."
            )
        variances = {}
        for name, mean in belief.means.items():
            noise = belief.noise_of(name)
            noisy.update(() if noise.is_none else (name,))
            variance = torch.as_tensor(noise.as_gaussian().variance, dtype=mean.dtype, device=mean.device)
            variances[name] = variance.expand(mean.shape)
        return dict(belief.means), variances

    means, variances = torch.func.vmap(push)(dict(gradients))
    return Belief(
        {name: mean.mean(0) for name, mean in means.items()},
        {name: Noise(variances[name].mean(0) / examples) for name in means if name in noisy},
        examples=examples,
    )


def outward(belief: Belief, wire: Callable[[str], str | None]) -> Belief:
    """Return what is known of the tensors that go out, by wire name.

    Args:
        belief: of the parameters' gradients, by the model's own names.
        wire: a parameter's name to its name in messages; None if it stays home.

    Example:
        >>> list(outward(Belief({"head.public.bias": torch.zeros(1)}), lambda name: name.replace("public.", "")).means)
        ['head.bias']
    """
    names = {name: sent for name in belief.means if (sent := wire(name)) is not None}
    return dataclasses.replace(
        belief,
        means={sent: belief.means[name] for name, sent in names.items()},
        noise={sent: belief.noise_of(name) for name, sent in names.items()},
        masks={sent: _rename(belief.masks[name], names) for name, sent in names.items() if name in belief.masks},
    )


def _rename(mask: Mask, names: dict[str, str]) -> Mask:
    group = tuple(names[name] for name in mask.group if name in names)
    before = None if mask.before is None else _rename(mask.before, names)
    return dataclasses.replace(
        mask, group=group, count=mask.count if len(group) == len(mask.group) else 0, before=before
    )
