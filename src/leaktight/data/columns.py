"""Columns: what each position of a table's row holds, a number or the id of a category.

It is public; the cells are not.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Sequence

from leaktight.core.errors import InvalidValue, closest, did_you_mean

_SHOWN = 30


@dataclasses.dataclass(frozen=True)
class Columns:
    """The positions of a row, in order.

    Args:
        names: the column that each position comes from; a column that was made one-hot has several positions.
        ids: for each position how many ids it can hold, from 0; 0 means that it holds a number.

    Example:
        >>> columns = Columns(names=("age", "job"), ids=(0, 5))
        >>> columns.numbers, columns.categories
        ((0,), (1,))
    """

    names: tuple[str, ...]
    ids: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.ids):
            raise InvalidValue(
                f"The `ids` of Columns must be as many as its {len(self.names)} names. Got {len(self.ids)} instead."
            )
        if min(self.ids, default=0) < 0:
            raise InvalidValue(f"The `ids` of Columns must be at least 0. Got {min(self.ids)} instead.")

    @staticmethod
    def plain(count: int) -> Columns:
        """Return columns of numbers that are named by their position."""
        return Columns(tuple(map(str, range(count))), (0,) * count)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The positions that hold numbers."""
        return tuple(at for at, ids in enumerate(self.ids) if not ids)

    @property
    def categories(self) -> tuple[int, ...]:
        """The positions that hold ids."""
        return tuple(at for at, ids in enumerate(self.ids) if ids)

    def take(self, positions: Sequence[int]) -> Columns:
        """Return the columns at these positions, in their order."""
        return Columns(tuple(self.names[at] for at in positions), tuple(self.ids[at] for at in positions))

    def find(self, patterns: Sequence[str], whose: str = "a party") -> tuple[int, ...]:
        """Return the positions of the columns that these names or patterns mean, ascending.

        Args:
            patterns: names of columns; `*` stands for any text, as in `C*`.
            whose: for whom they are looked up, for the error.

        Raises:
            InvalidValue: a name or pattern means no column.

        Example:
            >>> Columns(names=("I1", "I2", "C1"), ids=(0, 0, 9)).find(["I*"])
            (0, 1)
        """
        positions: set[int] = set()
        for pattern in patterns:
            meant = [at for at, name in enumerate(self.names) if name == pattern or fnmatch.fnmatchcase(name, pattern)]
            if not meant:
                raise InvalidValue(f"There is no column `{pattern}` for {whose}. {self._hint(pattern)}")
            positions.update(meant)
        return tuple(sorted(positions))

    def _hint(self, pattern: str) -> str:
        known = list(dict.fromkeys(self.names))
        if len(known) <= _SHOWN or closest(pattern, known):
            return did_you_mean(pattern, known)
        return f"There are {len(known)}, from `{known[0]}` to `{known[-1]}`."
