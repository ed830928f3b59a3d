"""Label reading: the labels behind a message, straight off the gradient of the last layer, before any search."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.attacks.linear_layer import LinearLayer, augment
from leaktight.attacks.replay import Replay
from leaktight.core.attack import Attack, GuessedLabels, Principle
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind, Tensors
from leaktight.core.random import Stream
from leaktight.core.threat import View

PROBES = 64
MOST_PLAYED = 64
"""Behind how many examples the steps of an update are played through."""


def read_labels(replay: Replay, parameters: Tensors, sent: Tensors, rng: Stream) -> Tensor:
    """Return the labels behind one message, sorted, repeated as often as they seem to occur.

    With cross entropy the gradient of the head's bias is g_c = mean(p_c) - n_c / n, with p the predicted probabilities
    and n_c the number of examples of class c. For one example only its own class has a negative entry (iDLG). For more,
    mean(p) is estimated by the model's answers to random inputs, and the n labels are dealt one by one to the class
    with the largest rest of n (mean(p_c) - g_c). A head without bias is read by the row sums of its weight's gradient
    over the mean feature sum.

    An update of several steps is played through on the head alone, as if all examples had the mean features: with every
    step the bias and the outputs move on. Label by label, the one is exchanged that brings the bias closest to the
    observed one, until none does. Labels then come in the order of the steps, as far as that can be told. Behind more
    than 64 examples that would take too long: then the update is read as if all its steps had followed one gradient.

    A private head beside the public one adds nothing to the public head's gradient, so the labels of a defended message
    are read with the public task. A defence that weighs the public loss by other than 1 scales g: one label stays
    exact, and so do counts for whoever knows that weight; else they blur.

    Differs from the paper: iDLG reads the sign of the weight's gradient and is for one example; the counting rule is
    the plain moment estimate, without the impact factors of Wainakh et al.

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
    outputs, features = _typical(replay, parameters, rng)
    probabilities, feature_sum = outputs.softmax(1).mean(0), features.sum(1).mean()
    slope = sent[bias] if bias is not None and bias in sent else sent[weight].sum(1) / feature_sum
    several = replay.steps.count > 1 or replay.steps.adaptive
    if replay.kind is Kind.UPDATE and several and replay.examples <= MOST_PLAYED:
        mean = features.mean(0)
        return _play_steps(
            replay, outputs.mean(0), mean.abs().sum() if replay.steps.adaptive else mean.square().sum(), slope
        )
    if replay.kind is Kind.UPDATE:
        slope = -slope / (replay.steps.learning_rate * replay.steps.plain_steps)
    if replay.examples == 1:
        return slope.argmin()[None]
    return deal(replay.examples * (probabilities - slope / (replay.head_weight or 1.0)), replay.examples)


def _play_steps(replay: Replay, outputs: Tensor, gain: Tensor, moved: Tensor) -> Tensor:
    """Return the labels whose steps move the head's bias as it moved, in the order of the steps.

    Args:
        replay: how the sender is modelled.
        outputs: the mean outputs before the first step.
        gain: how much further than the bias a step moves the outputs, by the weights.
        moved: how the bias moved.
    """
    classes = len(moved)

    def misfit(labels: Tensor) -> Tensor:
        current = torch.zeros(len(labels), classes, dtype=moved.dtype, device=moved.device)
        moments = replay.steps.moments({"bias": current})
        for step, batch in enumerate(replay.steps.split(labels, 1), start=1):
            counts = F.one_hot(batch, classes).to(moved.dtype).mean(1)
            probabilities = (outputs + (1 + gain) * current).softmax(1)
            moves, moments = replay.steps.move({"bias": probabilities - counts}, moments, step)
            current = current + moves["bias"]
        return (current - moved).square().sum(1)

    every = torch.arange(classes, device=moved.device)
    best = moved.topk(min(classes, replay.examples)).indices.repeat(replay.examples)[: replay.examples]
    lowest = misfit(best[None])[0]
    while True:
        changed = best.repeat(replay.examples, classes, 1)
        for place in range(replay.examples):
            changed[place, :, place] = every
        one, other = torch.triu_indices(replay.examples, replay.examples, 1, device=moved.device)[:, :, None]
        swapped = best.repeat(len(one), 1)
        swapped = swapped.scatter(1, one, best[other]).scatter(1, other, best[one])
        candidates = torch.cat([changed.flatten(0, 1), swapped])
        values = misfit(candidates)
        place = int(values.argmin())
        if not values[place] < lowest * (1 - 1e-6):
            return best
        best, lowest = candidates[place], values[place]


def can_read_labels(replay: Replay, sent: Tensors) -> bool:
    """Return whether there is a linear head whose gradient was shared."""
    return isinstance(replay.task.model.head, nn.Linear) and replay.task.wire("head.weight") in sent


def _typical(replay: Replay, parameters: Tensors, rng: Stream) -> tuple[Tensor, Tensor]:
    """Return the outputs and the features of random inputs."""
    inputs = torch.rand(PROBES, *replay.task.shape, generator=rng).to(replay.task.device)
    model, named = replay.task.model, replay.task.model_parameters(parameters)
    body = {name: named[f"body.{name}"] for name, _ in model.body.named_parameters()}
    with torch.no_grad():
        features: Tensor = torch.func.functional_call(model.body, body, (model.normalise(inputs),))
        outputs = F.linear(features, named["head.weight"], named.get("head.bias"))
        return outputs, features


def deal(amounts: Tensor, count: int) -> Tensor:
    """Deal labels one by one to the class with the largest rest.

    Example:
        >>> deal(torch.tensor([0.1, 2.2, 0.9]), 3).tolist()
        [1, 1, 2]
    """
    rest, labels = amounts.clone(), []
    for _ in range(count):
        label = int(rest.argmax())
        labels.append(label)
        rest[label] -= 1
    return torch.tensor(sorted(labels), device=amounts.device)


class LabelReading(Attack):
    r"""Read the labels behind every message off the gradient of the public head, without any search.

    With cross entropy the head's bias has the gradient \(g_c = mean(p_c) - n_c / n\), so the class of a single example
    is the one negative entry, and of a batch the counts follow up to the mean prediction
    (`attacks.label_reading.read_labels`). This is the cheapest membership attack in the sense of Fan et al.: a defence
    that works on the body alone, as a private head does, leaves it untouched.

    What it needs: a model with a linear head whose gradient is shared, and for an update the local steps. It looks at
    the public task, whatever the defence made of it on the participant's side.

    Example:
        >>> LabelReading().simple, sorted(LabelReading.claims)
        (True, ['labels'])

    Differs from the paper: Fan et al. take the labels that the reconstruction attack finds along the way; they are read
    directly here.

    References: Zhao et al. 2020, iDLG, Eq. 3 and 4; Fan et al. 2020, Algorithm 5 (membership attack).
    """

    kind: Literal["label_reading"] = "label_reading"
    claims: ClassVar[frozenset[str]] = frozenset({"labels"})
    goals: ClassVar[tuple[str, ...]] = ("read off the labels",)
    principle: ClassVar[Principle] = "algebra"
    simple: ClassVar[bool] = True

    def run(self, view: View, rng: Stream) -> GuessedLabels:
        """Answer every gradient and update in view."""
        exchanges = view.exchanges()
        if not exchanges:
            raise Refusal("Label reading needs a shared gradient or update. The view holds none.")
        return GuessedLabels(
            keys=tuple(exchange.sent.key for exchange in exchanges),
            labels=tuple(
                read_labels(Replay.of(view.task, exchange.sent), exchange.parameters, exchange.sent.tensors, rng)
                for exchange in exchanges
            ),
        )


SURE = 0.999
"""From which cosine on with what a label would send an example has that label."""


def labels_by_head(layer: LinearLayer, seen: Tensor, sent: Tensors) -> Tensor:
    r"""Return the label of each example, -1 where it cannot be told.

    The gradient of a linear head with cross entropy is \(G = \alpha \sum_i (p_i - e_i) f_i^T\), with the features f and
    probabilities p of each example, its label e as a unit vector, and a weight \(\alpha\) that a private loss beside it
    may change. If all examples behind it are known, so are f and p, and \(G F^+\) has columns along \(p_i - e_i\).

    Args:
        layer: a layer of the network.
        seen: what it saw of all examples behind a message, (examples, width + 1).
        sent: the message.

    References: Fan et al. 2020, section 3, whose public head keeps its own loss.
    """
    task, unknown = layer.task, torch.full((len(seen),), -1)
    wires = {task.wire(name): name for name in layer.parameters}
    if not {"head.weight", "head.bias"} <= wires.keys() & sent.keys() or len(seen) > sent["head.weight"].shape[1]:
        return unknown
    head = task.model.get_submodule(wires["head.weight"].removesuffix(".weight"))
    if not isinstance(head, nn.Linear):
        return unknown
    features: list[Tensor] = []
    hook = head.register_forward_pre_hook(lambda module, given: features.append(given[0]))
    try:
        with torch.no_grad():
            layer.outputs(seen)
    finally:
        hook.remove()
    ours = augment(features[0], torch.ones(len(seen), device=features[0].device))
    weight = augment(layer.parameters[wires["head.weight"]], layer.parameters[wires["head.bias"]])
    probabilities = (ours @ weight.T).softmax(1)
    gradient = augment(sent["head.weight"], sent["head.bias"])
    slopes = torch.linalg.lstsq(ours.T, gradient.T).solution
    expected = probabilities[:, None] - torch.eye(task.classes, dtype=torch.float64)
    cosine = torch.nn.functional.cosine_similarity(slopes[:, None], expected, dim=2)
    best, labels = cosine.max(1)
    return torch.where(best > SURE, labels, unknown)
