"""The last rounds of a training run: the model after each of them, so that its utility does not hang on one round."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from leaktight.core.metric import Reading
from leaktight.core.task import Batch, Task
from leaktight.learning.evaluate import correct_examples, mean_accuracy_reading, utility
from leaktight.learning.protocol import Server


class LastRounds:
    """The parameters of a server after each of the last rounds.

    Args:
        server: whose.
        rounds: how many rounds the training run takes.
        count: how many of the last ones are kept, at least 1; all if there are fewer.
    """

    def __init__(self, server: Server, rounds: int, count: int = 1) -> None:
        self.server, self.rounds, self.count = server, rounds, count
        self._kept: list[dict[str, Tensor]] = []

    def then(self, after: Callable[[int], None]) -> Callable[[int], None]:
        """Return what is called after each round: it keeps the parameters, and calls `after`."""

        def keep(played: int) -> None:
            # The last round's are the server's own.
            if self.rounds - self.count < played < self.rounds:
                self._kept.append({name: tensor.clone() for name, tensor in self.server.parameters.items()})
            after(played)

        return keep

    def utility(self, task: Task, batch: Batch, keep: bool = False) -> tuple[Reading, ...]:
        """Return the accuracy on held-out examples, the mean over the rounds.

        Args:
            task: what is learned.
            batch: the examples, at least one.
            keep: whether the reading says what became of each.
        """
        states = [task.model_state(parameters) for parameters in (*self._kept, self.server.parameters)]
        if len(states) == 1:
            return utility(task, states[0], batch, keep=keep)
        correct = torch.stack([correct_examples(task, state, batch) for state in states])
        return (mean_accuracy_reading(correct, batch.labels.cpu(), keep),)
