"""Summaries: what a paper is known for, by which checks that is judged, and why a check does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from leaktight.core.value import Value
from leaktight.papers.check import NOT_MEASURED, Check

Attacker = Literal["published", "strongest"]


class Naming(Value):
    """Which checks are meant.

    Args:
        checks: how their names begin.
        where: how their names end, such as a data set.
    """

    checks: str
    where: str = ""

    def names(self, check: Check) -> bool:
        """Return whether a check is meant."""
        return check.name.startswith(self.checks) and check.name.endswith(self.where)


class Claim(Naming):
    """What a paper is known for, and the checks by which that is judged.

    Args:
        claim: what is claimed, in a sentence.
        published: what the paper reports, in words or numbers, and where.
        attacker: whose attack judges it: the paper's own, or the strongest that we have.
    """

    claim: str
    published: str
    attacker: Attacker = "published"

    def among(self, checks: Iterable[Check]) -> list[Check]:
        """Return the checks that judge it."""
        return [check for check in checks if self.names(check)]


class Reason(Naming):
    """Why some checks do not hold in runs of the scale `small`.

    Args:
        why: one sentence that says why.
        unless: one sentence that says what would change our mind.
    """

    why: str
    unless: str


class Summary(Value):
    """What a page about a paper says beside numbers.

    Args:
        about: what the paper proposes and claims, in a few sentences.
        claims: what it is known for, the most important first.
        reasons: why checks do not hold; the first that names a check counts.
        not_run: what of the paper we could not run, a sentence each.
    """

    about: str = ""
    claims: tuple[Claim, ...] = ()
    reasons: tuple[Reason, ...] = ()
    not_run: tuple[str, ...] = ()

    def explain(self, checks: Iterable[Check]) -> list[Check]:
        """Return the checks, those that do not hold with their reason as far as there is one.

        Example:
            >>> reason = Reason(checks="PSNR", why="The attack failed.", unless="Another attack works.")
            >>> check = Check(name="PSNR falls", value=-1.0, expected="above 0", holds=False)
            >>> [explained] = Summary(reasons=(reason,)).explain([check])
            >>> explained.why
            'The attack failed.'
        """
        return [self._explain(check) for check in checks]

    def _explain(self, check: Check) -> Check:
        reason = next((reason for reason in self.reasons if reason.names(check)), None)
        if check.word != "does not hold" or reason is None:
            return check.model_copy(update={"why": "", "unless": ""})
        return check.model_copy(update={"why": reason.why, "unless": reason.unless})


def result_of(checks: Sequence[Check]) -> str:
    """Say whether a claim holds that several checks judge.

    Example:
        >>> one, other = (Check(name="x", value=1.0, expected="", holds=holds) for holds in (True, False))
        >>> result_of([one, one]), result_of([one, other]), result_of([])
        ('holds', 'holds in 1 of 2', 'not run')
    """
    words = [check.word for check in checks]
    if not words:
        return "not run"
    if len(set(words)) == 1:
        return words[0]
    others = [f"{words.count(word)} {word}" for word in ("undecided", NOT_MEASURED) if word in words]
    return ", ".join([f"holds in {words.count('holds')} of {len(words)}", *others])
