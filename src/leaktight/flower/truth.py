"""The truth of a participant: the private batches behind its updates, kept on its own machine to grade an audit."""

from __future__ import annotations

from pathlib import Path

from flwr.app import Context, Message
from torch import Tensor

from leaktight.captures.truth import write_truth
from leaktight.core.errors import InvalidValue
from leaktight.core.task import Batch
from leaktight.flower.tap import round_in


def keep_truth(folder: Path | str, message: Message, context: Context, inputs: Tensor, labels: Tensor) -> Path:
    """Write the examples behind one update for their owner alone; `leaktight audit --truth FOLDER` grades with them.

    Nothing of it is sent. Use it to test your own app: whoever has the folder has the examples.

    Args:
        folder: where each update gets a file; made if need be.
        message: the train message that is answered.
        context: the node's context.
        inputs: the examples of all local steps, in order, before they are normalised; pixels in [0, 1].
        labels: their classes.

    Returns:
        The file.

    Raises:
        InvalidValue: the message does not name its round.
    """
    sender, number = f"node-{context.node_id}", round_in(message.content)
    if number is None:
        raise InvalidValue(
            "A train message must name its round, so that examples are kept beside the update that they are behind. "
            "Got none; let the strategy put `server-round` into the configuration of train messages."
        )
    path = Path(folder).expanduser() / f"{sender}-{number}.safetensors"
    write_truth(path, {f"{sender}/{number}": Batch(inputs.detach().cpu(), labels.detach().cpu())})
    return path
