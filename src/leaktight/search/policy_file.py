"""The file that a search leaves behind: the policy, for `transformation` and for people, and how it was found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from leaktight.core.private import write_private
from leaktight.search.result import Result, Scored

_Cell = str | float | int


def write_policy(path: Path, result: Result) -> None:
    """Write a policy with its scores and settings as TOML; the defence `transformation` takes the path as its `file`.

    The bytes depend on the settings and the data alone: not on the time, nor on how many workers there were.

    Args:
        path: where to.
        result: what was found.

    Example:
        >>> import tempfile
        >>> from leaktight.core.document import parse_toml
        >>> from leaktight.data import Photos
        >>> from leaktight.models import DLNet
        >>> from leaktight.search import Search
        >>> scored = Scored("3-1", 0.2, (0.1, 0.3), -1.5)
        >>> untransformed = Scored("", 0.4, (None, None), -1.4)
        >>> found = Result(Search(data=Photos(), model=DLNet()), (scored,), untransformed, 9, 8, 7, 6, 500)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_policy(Path(folder) / "policy.toml", found)
        ...     parse_toml((Path(folder) / "policy.toml").read_text())["policy"]
        '3-1'
    """
    search = result.search
    lines = [
        "# Found by `leaktight search`. Scores: privacy is the area under the gradient similarity, lower is more "
        "private;",
        "# accuracy is at most -1, higher is better.",
        f"policy = {_format_cell(str(result.policy))}",
    ]
    for one in result.chosen:
        lines += ["", "[[chosen]]", *_table({"policy": one.policy, **_scores(one)})]
    lines += ["", "[untransformed]", *_table(_scores(result.untransformed))]
    names = ("candidates", "distinct", "passed", "finalists", "image_scores", "tried")
    counts = {name: getattr(result, name) for name in names}
    lines += ["", "[counts]", *_table(counts)]
    settings: dict[str, _Cell] = {
        "data": str(search.data),
        "model": str(search.model),
        "optimiser": str(search.optimiser),
    }
    chosen_by = ("method", "functions", "policies", "threshold", "trained", "steps", "loss")
    shown = (*chosen_by, "images", "batches", "epochs", "share", "batch_size")
    settings |= {name: getattr(search, name) for name in (*shown, "similarity", "blends", "seed")}
    lines += ["", "[search]", *_table(settings), f"library = {json.dumps(list(search.library))}"]
    # The name of a folder may hold bytes that are no text.
    write_private(path, "\n".join([*lines, ""]).encode(errors="replace"))


def _scores(one: Scored) -> dict[str, _Cell]:
    low, high = one.interval
    found: dict[str, _Cell] = {"privacy_score": one.privacy, "accuracy_score": one.accuracy}
    if low is not None and high is not None:
        found |= {"privacy_low": low, "privacy_high": high}
    if one.learned is not None:
        found["accuracy_after_brief_training"] = one.learned
    if one.cost is not None:
        found["accuracy_lost"] = one.cost
    return found


def _table(cells: Mapping[str, _Cell]) -> list[str]:
    return [f"{name} = {_format_cell(cell)}" for name, cell in cells.items()]


def _format_cell(cell: _Cell) -> str:
    # A text of JSON is one of TOML too, unless it holds a delete character; a number is written alike in both.
    # Unlike JSON, TOML has no pairs of escapes for one character, so that letters are written as they are.
    return json.dumps(cell, allow_nan=False, ensure_ascii=False).replace("\x7f", "\\u007f")
