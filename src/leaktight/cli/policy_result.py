"""What a search found, on the terminal: the policy in words, its scores beside images as they are, how to use it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from rich.console import Console
from rich.text import Text

from leaktight.cli.text_table import Group, TextTable, print_lines, print_text
from leaktight.core.display import count
from leaktight.core.metric import Reading
from leaktight.findings.sentence import price_words
from leaktight.search import Result, Verification
from leaktight.search.prediction import read_prediction
from leaktight.search.result import Scored
from leaktight.transforms.policy import Policy

WIDE = 160
AS_IT_IS = "as it is"
UNVERIFIED = "Nothing has attacked this policy yet: run the same command with --verify."


def show(result: Result, out: Path, console: Console | None = None, verification: Verification | None = None) -> None:
    """Print the policy and its scores, how to use it, and what attacks found of it.

    Args:
        result: what was found.
        out: where it was written.
        console: where to print; by default standard output.
        verification: what attacks on it found; None if there were none.
    """
    where = console or Console()
    if not where.is_terminal:
        where.width = WIDE
    print_text(where, f"Policy {result.policy}: {result.policy.words}.")
    print_text(
        where, "Each image goes through one of these sequences, drawn at random.\n" if len(result.chosen) > 1 else ""
    )
    print_text(where, _counts(result))
    titles = ["Policy", "Privacy score (lower is better)", "Accuracy score, times that of images as they are"]
    titles += ["Accuracy after brief training, and points lost"] if result.tried else []
    rows = [
        [one.policy or AS_IT_IS, _privacy(one), f"{relative_accuracy(one, result):.2f}", *_brief_accuracy(one)]
        for one in (*result.chosen, result.untransformed)
    ]
    print_text(where, "")
    print_lines(where, TextTable(titles, [Group("", rows)]).lines(where.width))
    print_text(
        where,
        f"An accuracy score of 1.00 is as good as without a change, a higher one is worse; at most "
        f"{result.search.threshold:.2f} was allowed.",
    )
    for sentence in remarks_of(result):
        print_text(where, sentence)
    print_text(where, f"\nEight images before and after it: {picture_of(out)}")
    print_text(where, f"\nWritten to {out}. In a plan for `leaktight audit`:\n")
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
    print_text(where, "")
    for sentence in verification_words(verification, out):
        print_text(where, sentence, style="bold")


def remarks_of(result: Result) -> list[str]:
    """Say what is to be known about the scores, and that fewer policies were found than asked for."""
    few = []
    if len(result.chosen) < result.search.policies:
        few = [
            f"{result.search.policies} policies were asked for; no other is more private than images as they are, "
            "keeps the accuracy and shares no function."
        ]
    return [*few, *result.doubts, str(read_prediction())]


def verification_words(verification: Verification | None, out: Path) -> list[str]:
    """Say what attacks on the policy found, or that there were none."""
    if verification is None:
        return [UNVERIFIED]
    return [*verification.sentences(), f"All of it: leaktight report {audit_of(out)}"]


def picture_of(out: Path) -> Path:
    """Return where the picture of a policy is."""
    return out.with_suffix(".png")


def audit_of(out: Path) -> Path:
    """Return the folder of the audit that verifies a policy."""
    return out.with_suffix(".verified")


def words_of(result: Result, out: Path, verification: Verification | None = None) -> list[str]:
    """Return the policy, where it is, and what attacks on it found."""
    return [
        f"Policy {result.policy}: {result.policy.words}",
        f"Written to {out}",
        *remarks_of(result),
        *verification_words(verification, out),
    ]


def as_json(result: Result, out: Path, verification: Verification | None = None) -> str:
    """Return what was found as JSON."""

    def scores(one: Scored) -> dict[str, object]:
        return {
            **dataclasses.asdict(one),
            "words": Policy.of(one.policy).words if one.policy else AS_IT_IS,
            "relative_accuracy": relative_accuracy(one, result),
        }

    names = ("candidates", "distinct", "passed", "finalists", "image_scores", "tried")
    counts = {name: getattr(result, name) for name in names}
    prediction = read_prediction()
    found = {
        "policy": str(result.policy),
        "words": result.policy.words,
        "chosen": [scores(one) for one in result.chosen],
        "untransformed": scores(result.untransformed),
        "counts": counts,
        "doubts": list(result.doubts),
        "prediction": {**prediction.to_dict(), "interval": list(prediction.interval)},
        "verification": None if verification is None else _as_dict(verification),
        "picture": str(picture_of(out)),
        "file": str(out),
    }
    return json.dumps(found, indent=2, allow_nan=False)


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


def _brief_accuracy(one: Scored) -> list[str]:
    """Return the accuracy after brief training and what was lost; nothing if there was none."""
    if one.learned is None:
        return []
    accuracy = f"{100 * one.learned:.1f} %"
    if one.cost is None:
        return [accuracy]
    low, high = one.cost_interval
    return [f"{accuracy}; {price_words(Reading(name='accuracy_loss', value=one.cost, low=low, high=high))}"]


def _as_dict(verification: Verification) -> dict[str, object]:
    attacked = [
        {**dataclasses.asdict(each), "policy": each.policy.value, "rebuilt": each.policy.beats_chance()}
        for each in verification.attacked
    ]
    cost = verification.cost
    return {
        "attacked": attacked,
        "accuracy": verification.accuracy,
        "plain_accuracy": verification.plain_accuracy,
        "accuracy_lost": cost and cost.value,
        "accuracy_lost_interval": cost and [cost.low, cost.high],
        "failed": list(verification.failed),
        "sentences": verification.sentences(),
    }
