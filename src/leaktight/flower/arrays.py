"""Arrays of Flower as tensors, by name, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from torch import Tensor

from leaktight.core.errors import InvalidValue

NUM_EXAMPLES = ("num-examples", "num_examples")
"""What replies call their number of examples: Flower's messages, and its older clients."""


def tensors_of(record: ArrayRecord) -> dict[str, Tensor]:
    """Return the arrays of a record as tensors of their own, scalars included.

    Example:
        >>> tensors_of(ArrayRecord({"scale": Array(np.asarray(0.5)), "steps": Array(np.asarray(3))}))
        {'scale': tensor(0.5000, dtype=torch.float64), 'steps': tensor(3)}
    """
    return {name: torch.from_numpy(np.array(array.numpy())) for name, array in record.items()}


def record_of(tensors: Mapping[str, Tensor]) -> ArrayRecord:
    """Return tensors as a record of arrays, in their order."""
    return ArrayRecord({name: Array(np.asarray(tensor.detach().cpu().numpy())) for name, tensor in tensors.items()})


def matching_record(name: str, received: RecordDict, reply: RecordDict) -> ArrayRecord:
    """Return the record that a reply's record of arrays answers: the one of the same name, or the only one there is.

    Args:
        name: the name of the reply's record.
        received: what the participant was sent.
        reply: what it answers.
    """
    if name in received.array_records:
        return received.array_records[name]
    if len(received.array_records) == 1 and len(reply.array_records) == 1:
        return next(iter(received.array_records.values()))
    raise InvalidValue(
        f"The reply's record `{name}` must answer a record of the same name, so that its update can be computed. "
        f"Got {', '.join(f'`{other}`' for other in received.array_records) or 'no arrays'} with the message instead."
    )


def examples_in(content: RecordDict) -> int | None:
    """Return how many examples a reply says it was made from; None if it does not say.

    Example:
        >>> examples_in(RecordDict({"metrics": MetricRecord({"num-examples": 12, "loss": 0.5})}))
        12
    """
    metrics: list[MetricRecord] = list(content.metric_records.values())
    counts = [metric[name] for metric in metrics for name in NUM_EXAMPLES if name in metric]
    return int(counts[0]) if counts and isinstance(counts[0], int | float) and counts[0] >= 1 else None
