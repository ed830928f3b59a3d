"""Labels read off the last layer, before any search."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.attacks.replay import Replay
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind, Tensors
from leaktight.core.random import Stream

PROBES = 64


def read_labels(replay: Replay, parameters: Tensors, sent: Tensors, rng: Stream) -> Tensor:
    """Return the labels behind one message, sorted, repeated as often as they seem to occur.

    With cross entropy the gradient of the head's bias is g_c = mean(p_c) - n_c / n, with p the predicted probabilities and n_c
    the number of examples of class c. For one example only its own class has a negative entry (iDLG). For more, mean(p) is
    estimated by the model's answers to random inputs, and the n labels are dealt one by one to the class with the largest
    rest of n (mean(p_c) - g_c). A head without bias is read by the row sums of its weight's gradient over the mean feature sum.

    An update of K steps of size r with momentum m is -r sum over i < K of (K - i) m^i times the gradient, as far as the gradients of
    its steps are alike; it is divided by that. With momentum the labels of earlier steps weigh more than those of later ones, so
    that counts over several steps blur.

    A private head beside the public one adds nothing to the public head's gradient, so the labels of a defended message are read
    with the public task. A defence that weighs the public loss by other than 1 scales g: one label stays exact, counts blur.

    Differs from the paper: iDLG reads the sign of the weight's gradient and is for one example; the counting rule is the plain
    moment estimate, without the impact factors of Wainakh et al.

    Args:
        replay: how the sender is modelled, with the public task.
        parameters: what the sender was sent.
        sent: what it answered.
        rng: where the random inputs come from.

    References: Zhao et al. 2020, iDLG, Eq. 3 and 4; Wainakh et al. 2022, User-Level Label Leakage from Gradients.
    """
    weight, bias = replay.task.wire("head.weight"), replay.task.wire("head.bias")
    if not can_read_labels(replay, sent) or weight is None:
        raise Refusal(
            "Labels can be read only off a linear head whose gradient is shared. "
            'Let gradient matching search for them (`labels = "joint"`) instead.'
        )
    probabilities, feature_sum = _typical(replay, parameters, rng)
    slope = sent[bias] if bias is not None and bias in sent else sent[weight].sum(1) / feature_sum
    if replay.kind is Kind.UPDATE:
        slope = -slope / (replay.steps.learning_rate * replay.steps.moved)
    if replay.examples == 1:
        return slope.argmin()[None]
    return _deal(replay.examples * (probabilities - slope), replay.examples)


def can_read_labels(replay: Replay, sent: Tensors) -> bool:
    """Return whether there is a linear head whose gradient was shared."""
    return isinstance(replay.task.model.head, nn.Linear) and replay.task.wire("head.weight") in sent


def _typical(replay: Replay, parameters: Tensors, rng: Stream) -> tuple[Tensor, Tensor]:
    """Return the mean probabilities and the mean feature sum over random inputs."""
    inputs = torch.rand(PROBES, *replay.task.shape, generator=rng).to(replay.task.device)
    model, named = replay.task.model, replay.task.named(parameters)
    body = {name: named[f"body.{name}"] for name, _ in model.body.named_parameters()}
    with torch.no_grad():
        features: Tensor = torch.func.functional_call(model.body, body, (model.normalise(inputs),))
        outputs = F.linear(features, named["head.weight"], named.get("head.bias"))
        return outputs.softmax(1).mean(0), features.sum(1).mean()


def _deal(amounts: Tensor, count: int) -> Tensor:
    """Deal labels one by one to the class with the largest rest.

    Example:
        >>> _deal(torch.tensor([0.1, 2.2, 0.9]), 3).tolist()
        [1, 1, 2]
    """
    rest, labels = amounts.clone(), []
    for _ in range(count):
        label = int(rest.argmax())
        labels.append(label)
        rest[label] -= 1
    return torch.tensor(sorted(labels), device=amounts.device)
