"""What a search found, on the terminal: the policy in words, its scores beside images as they are, how to use it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from rich.console import Console
from rich.text import Text

from leaktight.cli.text_table import Group, TextTable, print_lines
from leaktight.core.display import count
from leaktight.search import Result
from leaktight.search.result import Scored
from leaktight.transforms.policy import Policy

WIDE = 160
AS_IT_IS = "as it is"
NO_MORE_PRIVATE = (
    "Warning: this policy is no more private than images as they are. Draw more candidates, or raise the threshold, "
    "before you use it."
)


def show(result: Result, out: Path, console: Console | None = None) -> None:
    """Print the policy and its scores, and how to use it; that it does not help comes last.

    Args:
        result: what was found.
        out: where it was written.
        console: where to print; by default standard output.
    """
    where = console or Console()
    if not where.is_terminal:
        where.width = WIDE
    _say(where, f"Policy {result.policy}: {result.policy.words}.")
    _say(where, "Each image goes through one of these sequences, drawn at random.\n" if len(result.chosen) > 1 else "")
    _say(where, _counts(result))
    titles = ["Policy", "Privacy score (lower is better)", "Accuracy score, times that of images as they are"]
    rows = [
        [one.policy or AS_IT_IS, _privacy(one), f"{relative_accuracy(one, result):.2f}"]
        for one in (*result.chosen, result.untransformed)
    ]
    _say(where, "")
    print_lines(where, TextTable(titles, [Group("", rows)]).lines(where.width))
    _say(
        where,
        f"An accuracy score of 1.00 is as good as without a change, a higher one is worse; at most "
        f"{result.search.threshold:.2f} was allowed.",
    )
    _say(where, f"\nWritten to {out}. In a plan for `leaktight audit`:\n")
    # These lines are copied, so they are not broken.
    lines = [
        "  [[defences]]",
        '  kind = "transformation"',
        f"  file = {json.dumps(str(out), ensure_ascii=False)}",
        "",
        "In PyTorch, as the transform of a Dataset:",
        "",
        "  from leaktight.transforms import Policy",
        f'  transform = Policy.of("{result.policy}").transform()',
        "  image = transform(image)",
    ]
    print_lines(where, [Text(line) for line in lines])
    if not is_more_private(result):
        _say(where, f"\n{NO_MORE_PRIVATE}", style="bold red")


def words_of(result: Result, out: Path) -> list[str]:
    """Return the policy, and where it is."""
    warning = [] if is_more_private(result) else [NO_MORE_PRIVATE]
    return [f"Policy {result.policy}: {result.policy.words}", f"Written to {out}", *warning]


def as_json(result: Result, out: Path) -> str:
    """Return what was found as JSON."""

    def scores(one: Scored) -> dict[str, object]:
        return {
            **dataclasses.asdict(one),
            "words": Policy.of(one.policy).words if one.policy else AS_IT_IS,
            "relative_accuracy": relative_accuracy(one, result),
        }

    counts = {name: getattr(result, name) for name in ("candidates", "distinct", "passed", "finalists", "image_scores")}
    found = {
        "policy": str(result.policy),
        "words": result.policy.words,
        "more_private": is_more_private(result),
        "chosen": [scores(one) for one in result.chosen],
        "untransformed": scores(result.untransformed),
        "counts": counts,
        "file": str(out),
    }
    return json.dumps(found, indent=2, allow_nan=False)


def is_more_private(result: Result) -> bool:
    """Return whether the policy hides more than images as they are."""
    return result.privacy < result.untransformed.privacy


def relative_accuracy(one: Scored, result: Result) -> float:
    """Return how many times worse than that of images as they are an accuracy score is; scores are negative."""
    return one.accuracy / result.untransformed.accuracy


def _counts(result: Result) -> str:
    """Say how many candidates there were, and why more than asked for."""
    asked = result.search.candidates
    again = f" ({asked}, and more because too few would do)" if result.candidates > asked else ""
    return (
        f"{count(result.candidates, 'candidate')} drawn{again}; {result.distinct} do different things, {result.passed} "
        f"of these were good enough in accuracy, {result.finalists} were scored on all images."
    )


def _privacy(one: Scored) -> str:
    low, high = one.interval
    interval = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
    return f"{one.privacy:.3f}{interval}"


def _say(where: Console, text: str, style: str = "") -> None:
    where.print(Text(text, style=style), highlight=False, soft_wrap=not where.is_terminal)
