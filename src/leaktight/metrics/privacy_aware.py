"""Privacy-aware: whether a defence hides images well enough at the agreed price, as far as measurements can tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.core.value import Value
from leaktight.statistics.interval import wilson
from leaktight.statistics.pooling import minus

Verdict = Literal["holds", "does not hold", "undecided"]
SHARE, LOSS = "hidden_share", "accuracy_loss"


class Claim(Value):
    r"""What is asked of a defence, the \((\epsilon, \delta, \gamma)\) of the definition.

    Args:
        epsilon: the PSNR in dB below which an image counts as hidden, in (0, 100]; the smaller, the more is asked.
        delta: the share of images that need not be hidden, in [0, 1]; the smaller, the more is asked, and the more
            images it takes: with 0.1 at least 35, all of them hidden.
        gamma: the accuracy that may be lost, in [-1, 1]; the smaller, the more is asked.
    """

    reading: ClassVar[str] = "psnr"
    """What epsilon is compared with."""
    epsilon: float = Field(gt=0, le=100)
    delta: float = Field(ge=0, le=1)
    gamma: float = Field(ge=-1, le=1)


class PrivacyAware(Value):
    """What measurements say about a claim.

    Args:
        claim: what was asked.
        used: the share of images hidden as the gradient saw them, which the definition speaks of.
        raw: the share hidden as the party holds them.
        loss: the accuracy lost.
    """

    claim: Claim
    used: Reading
    raw: Reading
    loss: Reading

    def hides(self, against: Literal["used", "raw"]) -> Verdict:
        """Return whether at least 1 - delta of the images are hidden."""
        return _above(self.used if against == "used" else self.raw, 1 - self.claim.delta)

    @property
    def affordable(self) -> Verdict:
        """Whether less than gamma is lost."""
        if self.loss.low is None or self.loss.high is None:
            return "undecided"
        return (
            "holds"
            if self.loss.high < self.claim.gamma
            else "does not hold"
            if self.loss.low >= self.claim.gamma
            else "undecided"
        )

    @property
    def as_printed(self) -> Verdict:
        """Whether the definition holds as printed: of the images as the gradient saw them."""
        return _both(self.hides("used"), self.affordable)

    @property
    def verdict(self) -> Verdict:
        """Whether it holds of the images as the party holds them, too: these are what is to be protected."""
        return _both(self.as_printed, self.hides("raw"))

    def __str__(self) -> str:
        """Say so in one sentence for each number."""
        claim = f"({self.claim.epsilon:g} dB, {self.claim.delta:g}, {self.claim.gamma:g})"
        said = {"holds": "is", "does not hold": "is not", "undecided": "may or may not be"}[self.verdict]
        return (
            f"The defence {said} {claim}-privacy-aware. Below {self.claim.epsilon:g} dB: {_percent(self.used)} of "
            f"{self.used.n} images as trained on, {_percent(self.raw)} as owned; {100 * (1 - self.claim.delta):g} % "
            f"are asked. Accuracy lost: {_percent(self.loss)}; less than {100 * self.claim.gamma:g} % is asked."
        )


def privacy_aware(
    claim: Claim, psnrs: Sequence[Reading], defended: Reading, undefended: Reading, messages: int | None = None
) -> PrivacyAware:
    r"""Return whether a defence is \((\epsilon, \delta, \gamma)\)-privacy-aware under one attack.

    .. math:: \Pr[PSNR(x^*, \hat x) < \epsilon] \ge 1 - \delta, \qquad ACC(M) - ACC(\hat M) < \gamma

    Either part holds if its whole 95 % interval is on the right side, does not if the whole interval is on the wrong
    side, and is undecided otherwise. Intervals are Wilson's for a share, and for the loss that of two independent
    accuracies (Newcombe's method 10, if these have Wilson's). All parts hold together with less than 95 % of
    confidence.

    It speaks of one attack: a defence holds against all that were tried if it does against each.

    Args:
        claim: what is asked.
        psnrs: the defended record's readings `psnr`, against the raw and the used images, with the value of each image.
        defended: the accuracy of the model trained under the defence, from the same record.
        undefended: that of the model trained without, from a record of the same scenario and seed.
        messages: how many messages the images are behind, which is the number of trials: images of one message stand or
            fall together. None if each is behind one of its own.

    Example:
        >>> psnr = Reading(name="psnr", value=8, n=40, each=(8.0,) * 40, against="raw")
        >>> psnrs = [psnr, psnr.model_copy(update={"against": "used"})]
        >>> accuracies = [Reading(name="accuracy", value=v, low=v - 0.01, high=v + 0.01) for v in (0.7, 0.71)]
        >>> found = privacy_aware(Claim(epsilon=10, delta=0.1, gamma=0.05), psnrs, *accuracies)
        >>> found.verdict, found.used.value, round(found.used.low, 2), round(found.loss.high, 3)
        ('holds', 1.0, 0.91, 0.024)
        >>> privacy_aware(Claim(epsilon=10, delta=0.01, gamma=0.05), psnrs, *accuracies).verdict
        'undecided'

    Differs from the paper: it says "for all x in D", over which the probability is taken; here it is the share of the
    images that were attacked, and an interval stands for the others. It scores the transformed image alone (`printed`);
    an attacker who undoes the transformation has the original, so that `verdict` asks for both.

    References:
        Gao et al., Privacy-preserving Collaborative Learning with Automatic Transformation Search, 2021, Definition 2,
        Eq. 3 and 4.
        `statistics.pooling.minus` for the interval of the loss.
    """
    by_batch = {reading.against: reading for reading in psnrs if reading.name == "psnr" and reading.each}
    missing = [against for against in ("raw", "used") if against not in by_batch]
    if missing:
        raise InvalidValue(
            f"Definition 2 needs readings of `psnr` with the value of each image. Got none against the {missing[0]} "
            "images."
        )
    shares = {against: _share(reading, claim.epsilon, messages) for against, reading in by_batch.items()}
    return PrivacyAware(claim=claim, used=shares["used"], raw=shares["raw"], loss=minus(undefended, defended, LOSS))


def _share(psnr: Reading, epsilon: float, messages: int | None) -> Reading:
    """Return the share of images below epsilon."""
    hidden = tuple(float(value < epsilon) for value in psnr.each)
    share, trials = sum(hidden) / len(hidden), len(hidden) if messages is None else messages
    if not 1 <= trials <= len(hidden):
        raise InvalidValue(
            f"The `messages` behind {len(hidden)} images must be a number in [1, {len(hidden)}]. Got {trials} instead."
        )
    low, high = wilson(share * trials, trials)
    return Reading(
        name=SHARE, value=share, low=low, high=high, n=len(hidden), leaks="low", against=psnr.against, each=hidden
    )


def _above(share: Reading, least: float) -> Verdict:
    if share.low is None or share.high is None:
        return "undecided"
    return "holds" if share.low >= least else "does not hold" if share.high < least else "undecided"


def _both(one: Verdict, other: Verdict) -> Verdict:
    for worst in ("does not hold", "undecided"):
        if worst in (one, other):
            return worst
    return "holds"


def _percent(reading: Reading) -> str:
    ends = (
        "" if reading.low is None or reading.high is None else f" [{100 * reading.low:.0f}, {100 * reading.high:.0f}]"
    )
    return f"{100 * reading.value:.0f} %{ends}"
