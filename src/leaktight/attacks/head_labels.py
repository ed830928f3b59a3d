"""Labels off the public head: which label each example has of a batch whose examples are known, whatever private loss there is beside."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from leaktight.attacks.linear_layer import LinearLayer, augment
from leaktight.core.message import Tensors

SURE = 0.999
"""From which cosine on with what a label would send an example has that label."""


def labels_by_head(layer: LinearLayer, seen: Tensor, sent: Tensors) -> Tensor:
    r"""Return the label of each example, -1 where it cannot be told.

    The gradient of a linear head with cross entropy is \(G = \alpha \sum_i (p_i - e_i) f_i^T\), with the features f and probabilities p of
    each example, its label e as a unit vector, and a weight \(\alpha\) that a private loss beside it may change. If all examples behind
    it are known, so are f and p, and \(G F^+\) has columns along \(p_i - e_i\).

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
