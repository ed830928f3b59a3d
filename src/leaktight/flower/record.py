"""Record: a server's strategy that writes down every update it receives, as whoever runs the server could."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from leaktight.captures.capture import make_capture_folder
from leaktight.flower.tap import write_exchange


class RecordingStrategy(Strategy):
    """A strategy that does what another one does, and writes down what was sent out and came back in each round.

    Args:
        strategy: the one that decides.
        folder: where captures are written.
        known: what is known of the training run, as in `record`.
    """

    def __init__(self, strategy: Strategy, folder: Path, known: dict[str, Any]) -> None:
        self.strategy, self.folder, self.known = strategy, folder, known
        self._asked: dict[int, RecordDict] = {}

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send out what the strategy sends out, and remember it for each node."""
        messages = list(self.strategy.configure_train(server_round, arrays, config, grid))
        self._asked = {message.metadata.dst_node_id: message.content for message in messages}
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Write down every answer, and aggregate as the strategy does."""
        received = list(replies)
        for reply in received:
            node = reply.metadata.src_node_id
            if not reply.has_error() and node in self._asked:
                write_exchange(self.folder, f"node-{node}", server_round, self._asked[node], reply.content, self.known)
        self._asked = {}
        return self.strategy.aggregate_train(server_round, received)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Do as the strategy does."""
        return self.strategy.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Do as the strategy does."""
        return self.strategy.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """Say what the strategy says."""
        self.strategy.summary()


def record(strategy: Strategy, folder: Path | str, **known: Any) -> RecordingStrategy:
    """Return a strategy that trains as before and writes every update to a folder, for `leaktight audit --captured`.

    What is written is what the server sees anyway: the parameters that it sent and what each node answered, as
    safetensors with a manifest each, for the owner of the files alone. The learning rate, batch size, epochs and local
    steps are taken from the configuration of train messages where it has them, the number of examples from the reply's
    `num-examples`.

    Args:
        strategy: any strategy of Flower's message API.
        folder: where to write; it must hold no captures of another run.
        known: what the messages do not say: `model` (`package.module:function`), `shape`, `classes`, `mean`, `std`,
            `batch_size`, `epochs`, `local_steps`, `learning_rate`, `momentum`, `adaptive`, `training`.

    Example:
        >>> import tempfile
        >>> from flwr.serverapp.strategy import FedAvg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     strategy = record(FedAvg(), folder, shape=(1, 28, 28), batch_size=32, epochs=1)
    """
    return RecordingStrategy(strategy, make_capture_folder(Path(folder)), known)
