"""V-information: how much of a yes-or-no property an attacker of bounded means can use, in nats."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.random import Stream
from leaktight.statistics.interval import Interval

MOST = math.log(2)
"""All that there is to know of a property that half of the messages have, in nats."""

EDGE = 1e-3
"""How far probabilities are kept from 0 and 1: a forest returns both, and the logarithm of a wrong 0 is infinite."""


def gains(probabilities: Tensor, truth: Tensor, edge: float = EDGE) -> Tensor:
    r"""Return what each message's probability is worth beside knowing nothing, in nats.

    .. math:: \log f[g_i](p_i) - \log f[\emptyset](p_i)

    Without a message the attacker says \(f[\emptyset] = 1/2\), so that this is \(\log 2 + \log f[g_i](p_i)\): at most
    \(\log 2\), for certainty in what is true; 0 for a half; and far below for certainty in what is not.

    Args:
        probabilities: f[g](1), that of the property, for each message along the last dimension.
        truth: which messages have the property.
        edge: probabilities are clipped to [edge, 1 - edge]; in (0, 0.5).

    Example:
        >>> [round(gain, 3) for gain in gains(torch.tensor([1.0, 0.5, 0.0]), torch.tensor([1, 1, 1])).tolist()]
        [0.692, 0.0, -6.215]
    """
    if probabilities.shape[-1] != len(truth):
        raise InvalidValue(
            f"V-information needs one probability for each of {len(truth)} messages. Got {probabilities.shape[-1]} "
            "instead."
        )
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise InvalidValue("V-information needs probabilities in [0, 1]. Got others.")
    likely = probabilities.detach().cpu().double().clamp(edge, 1 - edge)
    return MOST + torch.where(truth.cpu().bool(), likely, 1 - likely).log()


def balanced_mean(values: Tensor, truth: Tensor) -> Tensor:
    """Return the mean over messages, where those with the property count for a half and those without for the other.

    Saying a half without a message is right only if either is as likely; the messages at hand may be otherwise.

    Example:
        >>> balanced_mean(torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.tensor([1, 1, 1, 0])).item()
        0.5
    """
    has = truth.cpu().bool()
    if has.all() or not has.any():
        raise InvalidValue(f"V-information needs messages with the property and without. Got {len(has)} of one kind.")
    return (values[..., has].mean(-1) + values[..., ~has].mean(-1)) / 2


def v_information(probabilities: Tensor, truth: Tensor, edge: float = EDGE) -> Tensor:
    r"""Return the empirical V-information of fitted classifiers on messages that they were not fitted to, in nats.

    .. math:: \hat I(G \to P) = \log 2 + \frac12 \sum_{p \in \{0, 1\}} \frac{1}{n_p} \sum_{i: p_i = p} \log f[g_i](p_i)

    At most \(\log 2\). Below 0 a classifier does worse than one that says a half to everything, which any attacker is
    free to do.

    Args:
        probabilities: f[g](1), that of the property, for each message along the last dimension.
        truth: which messages have the property; some do and some do not.
        edge: probabilities are clipped to [edge, 1 - edge]; in (0, 0.5).

    Example:
        >>> truth = torch.tensor([1, 1, 0, 0])
        >>> round(v_information(torch.tensor([0.9, 0.8, 0.1, 0.2]), truth).item(), 4)
        0.5289
        >>> v_information(torch.full((4,), 0.5), truth).item()
        0.0

    Differs from the paper: f is fitted to other messages than it is measured on, and each kind counts for a half.

    References:
        Xu et al., A Theory of Usable Information under Computational Constraints, 2020, Definition 2.
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, eq. 7.
    """
    return balanced_mean(gains(probabilities, truth, edge), truth)


def best_of(each: Tensor, truth: Tensor, rng: Stream) -> Tensor:
    """Return the V-information of the union of several families and of saying a half to everything.

    The best on some messages would look better there than it is. So messages are dealt out to two halves, and each half
    is judged by what is best on the other.

    Args:
        each: the gains of each family (first dimension) by each message (last dimension).
        truth: which messages have the property; at least two do and two do not.
        rng: where the halves come from.

    Example:
        >>> from leaktight.core.random import stream
        >>> truth = torch.tensor([1, 0]).repeat(4)
        >>> families = torch.stack([gains(truth.double(), truth), gains(1 - truth.double(), truth)])
        >>> round(best_of(families, truth, stream(0, "halves")).item(), 3)
        0.692
    """
    has = truth.cpu().bool()
    if min(int(has.sum()), int((~has).sum())) < 2:
        raise InvalidValue(
            "The best of several families takes two messages with the property and two without. Got fewer."
        )
    every = torch.cat([torch.zeros_like(each[:1]), each])
    half = torch.empty(len(has), dtype=torch.long)
    for kind in (has, ~has):
        members = kind.nonzero()[:, 0]
        half[members[torch.randperm(len(members), generator=rng)]] = torch.arange(len(members)) % 2
    chosen = torch.empty_like(each[0])
    for own in (half == 0, half == 1):
        best = balanced_mean(every[..., ~own], has[~own]).argmax(0)
        chosen[..., own] = every[..., own].gather(0, best[None, ..., None].expand(1, *chosen[..., own].shape))[0]
    return balanced_mean(chosen, has)


def t_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    r"""Return Student's interval of a mean over repetitions, \(\bar v \pm t_{n-1} s / \sqrt n\); one alone has none.

    Example:
        >>> [round(end, 3) for end in t_interval([1.0, 2.0, 3.0])]
        [-0.484, 4.484]
        >>> t_interval([1.0])
        (None, None)
    """
    from scipy.stats import t

    if len(values) < 2:
        return None, None
    repeated = torch.tensor(values, dtype=torch.float64)
    mean, spread = repeated.mean().item(), repeated.std().item() / math.sqrt(len(values))
    reach = float(t.ppf((1 + level) / 2, len(values) - 1)) * spread
    return mean - reach, mean + reach
