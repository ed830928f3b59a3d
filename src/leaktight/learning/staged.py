"""Staged scenarios: which moments of a training run are kept, and how an observation is spread over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

from pydantic import Field

from leaktight.core.errors import InvalidValue
from leaktight.core.scenario import Progress, Scenario, Snapshot


class Staged(Scenario):
    """A scenario whose training takes a number of rounds, some of which can be looked at.

    Args:
        rounds: how many rounds a training run takes; 0 leaves the model untrained.
        moments: how many evenly spread moments of the training run are kept for the stage `training`, which
            continues from each of them; 0 keeps none.
    """

    rounds: int = Field(100, ge=0)
    moments: int = Field(0, ge=0)

    @property
    def stages(self) -> tuple[str, ...]:
        """Those of every training run, and `training` where moments are kept."""
        return (*super().stages, *(["training"] if self.moments else []))

    def shorten(self, rounds: int) -> Self:
        """Return it with so many rounds."""
        return type(self).model_validate({**dict(self), "rounds": rounds})

    @property
    def length(self) -> int:
        """How many rounds a training run really takes."""
        return self.rounds

    @property
    def untrained(self) -> bool:
        """Whether there are no rounds."""
        return self.rounds == 0

    def least_rounds(self, messages: int) -> int:
        """Leave a round for each message, and for each moment that is kept."""
        return messages + self.moments

    def repeats_examples(self, notes: Mapping[str, float]) -> bool:
        """Return whether there are several rounds."""
        return self.length > 1

    def rounds_before(self, stage: str) -> int:
        """Return how many rounds come before a stage.

        `early` is after a tenth of the training run, at least one round.
        """
        early = min(self.length, max(1, self.length // 10))
        return {"initial": 0, "early": early, "end": self.length}[stage]

    def spread(self) -> tuple[int, ...]:
        """Return after how many rounds a moment is kept."""
        length = self.length
        count = min(self.moments, max(1, length))
        return tuple(at * length // count for at in range(count))

    def keeper(
        self, take: Callable[[], Snapshot], progress: Progress | None
    ) -> tuple[Mapping[str, Snapshot], Callable[[int], None]]:
        """Return the snapshots of a training run about to begin, and the function that fills them after each round."""
        length = self.length
        wanted = {stage: self.rounds_before(stage) for stage in ("initial", "early", "end")}
        wanted |= {moment(number): played for number, played in enumerate(self.spread())}
        snapshots: dict[str, Snapshot] = {}

        def after(played: int) -> None:
            snapshot = take() if played in wanted.values() else None
            if snapshot is not None:
                snapshots.update({stage: snapshot for stage, at in wanted.items() if at == played})
            if progress is not None and played:
                progress(played, length)

        after(0)
        return snapshots, after

    def continuations(self, rounds: int) -> dict[int, int]:
        """Return how many rounds follow each moment, by the moment's number, `rounds` in all.

        If that is all rounds of the training run, each moment runs up to the next, and nothing is missing.
        """
        if not self.moments:
            raise InvalidValue(
                "The stage `training` needs moments of the training run. Set `moments` of the scenario to 10, say."
            )
        starts, length = self.spread(), self.length
        if rounds == length:
            ends = (*starts[1:], length)
            return {number: end - start for number, (start, end) in enumerate(zip(starts, ends, strict=True))}
        count = len(starts)
        most = count * (length // count)
        if rounds > most:
            raise InvalidValue(
                f"The stage `training` can show at most {most} rounds, for {length} rounds and {count} moments. Asked "
                f"were {rounds}; look at fewer messages (`victims`), or train for more rounds."
            )
        chosen = [number * count // rounds for number in range(rounds)]
        return {number: chosen.count(number) for number in sorted(set(chosen))}


def moment(number: int) -> str:
    """Return the name of a moment among the stages of a training run."""
    return f"moment-{number}"
