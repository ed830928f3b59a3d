"""Surveys: what each column of a table holds, as far as its cells tell, for whoever has to choose settings for it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Literal

from leaktight.data.column import is_missing, is_number

Holds = Literal["numbers", "words", "id", "text", "constant", "nothing"]
MANY_WORDS = 200
"""How many different words a column may have to become a column for each; what has more is text."""
LEAST_ROWS = 20
"""With fewer rows than this, that no cell occurs twice says nothing."""
FEW = 20
"""Whole numbers with at most so many different values may be codes."""
_ID = re.compile(r"(^|[^A-Za-z]|(?<=[a-z])(?=[A-Z]))(?i:id|uuid|guid|key|index|row|nr|no|number)$")


@dataclasses.dataclass(frozen=True)
class ColumnSurvey:
    """What one column holds.

    Args:
        name: the column's name.
        holds: `numbers`; `words` of which there are few; an `id`, which is another in each row; `text` of too many
            different words; a `constant`, the same in each row; or `nothing`.
        different: how many different cells it has, beside missing ones.
        missing: how many cells are missing.
        whole: whether all its numbers are whole.
    """

    name: str
    holds: Holds
    different: int
    missing: int = 0
    whole: bool = False

    @property
    def is_input(self) -> bool:
        """Whether something can be learned from it as it is."""
        return self.holds in ("numbers", "words")

    @property
    def may_be_codes(self) -> bool:
        """Whether its numbers may stand for categories: whole, and more than two of them but few."""
        return self.holds == "numbers" and self.whole and 2 < self.different <= FEW

    @property
    def reason(self) -> str:
        """Why it cannot be learned from, in words; empty if it can."""
        return {
            "id": "another value in each row: it names the row",
            "text": f"{self.different} different words, too many for a column each",
            "constant": "the same in each row",
            "nothing": "empty",
        }.get(self.holds, "")


def survey_column(name: str, cells: Sequence[str]) -> ColumnSurvey:
    """Return what a column holds.

    Args:
        name: the column's name; one like `customer_id` is that of an id, if no number occurs twice.
        cells: its cells, one for each row.

    Example:
        >>> [survey_column("a", cells).holds for cells in (["1", "2.5", "?"], ["x", "y", "x"], ["x", "x"], ["", "NA"])]
        ['numbers', 'words', 'constant', 'nothing']
        >>> survey_column("customer_id", [str(7 * row) for row in range(50)]).holds
        'id'
    """
    present = [cell for cell in cells if not is_missing(cell)]
    values = set(present)
    numeric = bool(present) and all(map(is_number, values))
    whole = numeric and all(float(value).is_integer() for value in values)
    return ColumnSurvey(
        name, _holds(name, present, values, numeric, whole), len(values), len(cells) - len(present), whole
    )


def _holds(name: str, present: Sequence[str], values: set[str], numeric: bool, whole: bool) -> Holds:
    if len(values) < 2:
        return "constant" if values else "nothing"
    once = len(values) == len(present) >= LEAST_ROWS
    if not numeric:
        rare = len(values) > max(LEAST_ROWS, len(present) / 2)
        return "id" if once else "text" if rare or len(values) > MANY_WORDS else "words"
    return "id" if once and whole and (_ID.search(name) or _is_count(values)) else "numbers"


def _is_count(values: set[str]) -> bool:
    """Return whether whole numbers run from one to the next without a gap."""
    numbers = [float(value) for value in values]
    return max(numbers) - min(numbers) == len(numbers) - 1
