"""Record: a server's strategy that writes down every update it receives, as whoever runs the server could."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from leaktight.captures.capture import make_capture_folder
from leaktight.captures.known import SETTINGS, phrase_assumptions, unknown_settings
from leaktight.captures.manifest import Manifest
from leaktight.core.display import join_words
from leaktight.flower.tap import check_known, write_exchange


class RecordingStrategy(Strategy):
    """A strategy that does what another one does, and writes down what was sent out and came back in each round.

    Args:
        strategy: the one that decides.
        folder: where captures are written.
        known: what is known of the training run, as in `record`.
        run_config: the configuration of the run, if it is known.
    """

    def __init__(
        self, strategy: Strategy, folder: Path, known: dict[str, Any], run_config: dict[str, Any] | None = None
    ) -> None:
        self.strategy, self.folder, self.known, self.run_config = strategy, folder, known, run_config
        self._asked: dict[int, RecordDict] = {}
        self._has_asked = False

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
                sent = self._asked[node]
                self._ask(
                    write_exchange(
                        self.folder, f"node-{node}", server_round, sent, reply.content, self.known, self.run_config
                    )
                )
        self._asked = {}
        return self.strategy.aggregate_train(server_round, received)

    def _ask(self, manifest: Manifest | None) -> None:
        """Ask once for what neither the app nor its owner said of how participants train."""
        if manifest is None or self._has_asked:
            return
        self._has_asked = True
        question = question_about(manifest)
        if question:
            log(logging.WARNING, question)

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


def question_about(manifest: Manifest) -> str:
    """Return what a recorder asks its owner about recorded updates; nothing if all is known."""
    names = unknown_settings(manifest, update=True)
    if not names:
        return ""
    unknown = join_words([SETTINGS[name].title for name in names])
    stated = ", ".join(SETTINGS[name].stated for name in names)
    assumed = phrase_assumptions(names)
    return (
        f"The app does not say how its updates are made: {unknown} {'is' if len(names) == 1 else 'are'} unknown. "
        f"State what is true, such as `record(..., {stated})`"
        + (f"; until then audits assume {assumed}." if assumed else ".")
    )


def record(
    strategy: Strategy, folder: Path | str, *, context: Context | None = None, **known: Any
) -> RecordingStrategy:
    """Return a strategy that trains as before and writes every update to a folder, for `leaktight audit --captured`.

    What is written is what the server sees anyway: the parameters that it sent and what each node answered, as
    safetensors with a manifest each, for the owner of the files alone.

    How participants train is taken from what you state here, then from what their replies say (`describe_training`),
    then from the configuration of train messages, then from that of the run: optimiser, learning rate, momentum, weight
    decay, epochs or steps, batch size. The number of examples is the reply's `num-examples`. What nobody says stays
    unknown, and a warning asks for it once.

    Args:
        strategy: any strategy of Flower's message API.
        folder: where to write; it must hold no captures of another run.
        context: that of the ServerApp, whose run configuration is then read.
        known: what nothing else says: `model` (a function or class, or `package.module:function`), and any field of
            `leaktight.captures.Known`: `shape`, `classes`, `mean`, `std` (both `()` if inputs are not normalised),
            `batch_size`, `epochs`, `local_steps`, `optimiser`, `learning_rate`, `momentum`, `weight_decay`, `training`.

    Example:
        >>> import tempfile
        >>> from flwr.serverapp.strategy import FedAvg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     strategy = record(FedAvg(), folder, shape=(1, 28, 28), batch_size=32, epochs=1)
    """
    stated = check_known(known)
    run_config = None if context is None else dict(context.run_config)
    return RecordingStrategy(strategy, make_capture_folder(Path(folder)), stated, run_config)
