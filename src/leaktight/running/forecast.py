"""The forecast: how long the tasks that are left take, by what tasks of the same kind took.

Training runs, cheap attacks and searches differ a thousandfold, so that a mean over all that has ended says little
about what is left. Each kind of task has a cost of its own, measured as its first ones end.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Hashable

from leaktight.core.display import duration
from leaktight.core.probe import attack_of
from leaktight.core.record import Cell
from leaktight.running.training_cache import TrainingSpec

Kinds = tuple[Hashable, ...]
"""The kinds that a task is of, from the narrowest to the widest."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """How long it still takes.

    Args:
        seconds: by what is known.
        at_least: whether tasks are left of which no other of their kind has ended, so that it may take longer.
    """

    seconds: float
    at_least: bool = False

    def __str__(self) -> str:
        """Say it in words.

        Example:
            >>> str(Estimate(240)), str(Estimate(240, at_least=True))
            ('about 4 min left', 'at least 4 min left')
        """
        return f"{'at least' if self.at_least else 'about'} {duration(self.seconds)} left"


@dataclasses.dataclass
class _Running:
    kinds: Kinds
    since: float
    share: float = 0.0


class Forecast:
    """What tasks cost, and what is left of them.

    Args:
        workers: how many tasks are done at the same time; None counts those that are.
        clock: what tells the time in seconds.

    Example:
        >>> now = [0.0]
        >>> forecast = Forecast(1, lambda: now[0])
        >>> for name in "abc":
        ...     forecast.expect(("search",))
        >>> forecast.start("a", ("search",))
        >>> now[0] = 8.0
        >>> forecast.estimate()
        Estimate(seconds=16.0, at_least=True)
        >>> forecast.end("a", ("search",), 10.0)
        >>> forecast.estimate()
        Estimate(seconds=20.0, at_least=False)
    """

    def __init__(self, workers: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._workers, self._clock = workers, clock
        self._waiting: Counter[Kinds] = Counter()
        self._running: dict[str, _Running] = {}
        self._costs: dict[Hashable, tuple[float, int]] = {}
        self._most = 1

    def learn(self, kinds: Kinds, seconds: float) -> None:
        """Take in what a task took; nothing is learned from one that was not done."""
        if seconds <= 0:
            return
        for kind in kinds:
            total, number = self._costs.get(kind, (0.0, 0))
            self._costs[kind] = total + seconds, number + 1

    def expect(self, kinds: Kinds) -> None:
        """Take in a task that is to be done."""
        self._waiting[kinds] += 1

    def start(self, name: str, kinds: Kinds) -> None:
        """Take in that a task was begun, or begun again."""
        if name not in self._running:
            self._waiting[kinds] -= 1
        self._running[name] = _Running(kinds, self._clock())
        self._most = max(self._most, len(self._running))

    def advance(self, name: str, share: float) -> None:
        """Take in how much of a task is done, in [0, 1]."""
        if name in self._running:
            self._running[name].share = share

    def end(self, name: str, kinds: Kinds, seconds: float) -> None:
        """Take in that a task has ended, and how long it took; 0 if it was not begun."""
        if self._running.pop(name, None) is None:
            self._waiting[kinds] -= 1
        self.learn(kinds, seconds)

    def estimate(self) -> Estimate | None:
        """Return how long it still takes; None as long as next to nothing is known."""
        now = self._clock()
        rest: list[tuple[float, int]] = []
        known = True
        for kinds, number in self._waiting.items():
            if number > 0:
                cost = self._cost(kinds)
                known &= cost is not None
                rest.append((self._longest(kinds, now) if cost is None else cost, number))
        for task in self._running.values():
            spent, cost = now - task.since, self._cost(task.kinds)
            if task.share > 0:
                rest.append((spent * (1 - task.share) / task.share, 1))
            else:
                known &= cost is not None
                rest.append((max((cost or 0.0) - spent, 0.0), 1))
        total = sum(seconds * number for seconds, number in rest)
        if total < 1 and not known:
            return None
        longest = max((seconds for seconds, _ in rest), default=0.0)
        return Estimate(max(total / (self._workers or self._most), longest), not known)

    def _cost(self, kinds: Kinds) -> float | None:
        """Return what a task takes, by the narrowest of its kinds of which one has ended."""
        for kind in kinds:
            if kind in self._costs:
                total, number = self._costs[kind]
                return total / number
        return None

    def _longest(self, kinds: Kinds, now: float) -> float:
        """Return how long a task of the same kind lasts already."""
        alike = [now - task.since for task in self._running.values() if task.kinds[-1] == kinds[-1]]
        return max(alike, default=0.0)


def kinds_of(work: TrainingSpec | Cell) -> Kinds:
    """Return the kinds that a training run or a cell is of.

    A training run is like others under a defence of the same kind, then like all others. A cell is like others with the
    same attack on as many messages of as many examples, then like others with the same attack, then like all whose
    attacks rest on the same principle.
    """
    model = str(dict(work.scenario).get("model"))
    if isinstance(work, TrainingSpec):
        length = work.scenario.length
        inside = "" if work.entrant is None else work.entrant.kind
        return ("training", model, length, inside, work.defence.kind), ("training", model, length, inside), "training"
    attack = attack_of(work.probe)
    what = work.probe.kind if attack is None else attack.kind
    place = ("cell", work.label, what, model)
    return (*place, work.batch_size, work.victims), place, ("cell", what), attack.principle if attack else "measurement"
