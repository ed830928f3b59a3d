"""Aggregation: many gradients or updates become one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

from leaktight.core.errors import LeaktightError
from leaktight.core.message import Message


def mean(messages: Sequence[Message], *, weighted: bool = False) -> dict[str, Tensor]:
    """Return the mean of messages by tensor name.

    Args:
        messages: what the participants sent, all with the same names; a tensor that all withhold is not in the mean
            either, one that they sealed is.
        weighted: whether each counts by the examples that its sender owns, as in FedAvg, or all count alike.
    """
    if not messages:
        raise LeaktightError("There is nothing to aggregate: no participant answered.")
    contents = [message.whole() for message in messages]
    names = contents[0].keys()
    for message, content in zip(messages, contents, strict=True):
        if content.keys() != names:
            odd = sorted(names ^ content.keys())
            raise LeaktightError(
                f"{message.sender} must send the same tensors as {messages[0].sender}. They differ in {odd}."
            )
    weights = torch.tensor([message.facts["owned"] if weighted else 1.0 for message in messages])
    weights = weights / weights.sum()
    return {name: _combine([content[name] for content in contents], weights) for name in names}


def secure_sum(messages: Sequence[Message], *, weighted: bool = False) -> Message:
    """Return the one message a server sees under secure aggregation: the mean, and how many examples are behind it.

    Differs from the paper: it stands for a protocol whose masks cancel in the sum; what a single participant sent is in
    no transcript, but no masks are drawn, nobody drops out, and the sum is given as its mean.

    References: Bonawitz et al. 2017, Practical Secure Aggregation for Privacy-Preserving Machine Learning.
    """
    first = messages[0]
    totals = {name: sum(message.facts[name] for message in messages) for name in ("examples", "owned")}
    facts = {**first.facts, **totals, "participants": float(len(messages))}
    total = mean(messages, weighted=weighted)
    seen, sealed = ({name: total[name] for name in part} for part in (first.tensors, first.sealed))
    return dataclasses.replace(first, sender="sum", tensors=seen, facts=facts, sealed=sealed)


def _combine(tensors: Sequence[Tensor], weights: Tensor) -> Tensor:
    total: Tensor = torch.tensordot(weights.to(tensors[0]), torch.stack(list(tensors)), dims=1)
    return total
