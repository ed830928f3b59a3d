"""Property classifiers: from features of gradients to the probability that the examples behind them have a property."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.core.errors import InvalidValue
from leaktight.core.random import Stream, global_seed

Single = Literal["random_forest", "network", "logistic"]
Family = Literal["random_forest", "network", "logistic", "best"]
Model = Callable[[Tensor], Tensor]

EDGE = 1e-3
"""How far probabilities stay from 0 and 1, whose logarithm would be infinite: a forest returns both.

They are shrunk, not cut, by p -> EDGE + (1 - 2 EDGE) p: no two of them become equal, and every AUC stays what it was.
"""

FAR = 5.0
"""How many deviations from its mean a feature counts at most.

Noise that a classifier has never seen would otherwise make it so sure of all messages that they all look alike.
"""

LEAST = 5
"""How many gradients of each kind a classifier needs: no leaf of the forest has fewer."""

FOLDS = 3

_TREES, _LEAF = 100, 5
_STRENGTHS, _ITERATIONS = (0.1, 1.0, 10.0, 100.0), 1000
_WIDTH, _RATE, _DECAY, _EPOCHS, _PATIENCE, _STEP = 64, 1e-3, 1e-3, 200, 20, 32


@dataclasses.dataclass(frozen=True)
class Classifier:
    """A fitted classifier of one predictive family.

    Args:
        family: which family it is of.
        mean: of each feature, over the unit rows that it was fitted to.
        spread: of each feature there; 1 for one that did not vary.
        model: standardised rows to probabilities.
    """

    family: Single
    mean: Tensor
    spread: Tensor
    model: Model

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the probability of the property for each row, between `EDGE` and 1 - `EDGE`."""
        return EDGE + (1 - 2 * EDGE) * self.model(_standardise(rows, self.mean, self.spread))


def fit(family: Family, rows: Tensor, positive: Tensor, rng: Stream) -> Classifier:
    r"""Fit a classifier of a predictive family to features of gradients whose property is known.

    Rows are brought to length one, \(x / \|x\|_2\), and each feature is standardised by its mean and deviation over
    them and cut at 5 deviations. Then

    - `random_forest` is 100 trees with at least 5 rows in a leaf and to split;
    - `network` has one hidden layer of 64 units with ReLU, by Adam with weight decay; it stops when the log loss on a
      fifth of the rows, kept out of the steps, has not fallen for 20 passes, and answers from its best pass;
    - `logistic` is logistic regression with an L2 penalty of \(\frac{d}{2c} \|w\|^2\) beside the summed log loss, d the
      number of features; of c = 0.1, 1, 10 and 100 that with the lowest log loss over 3 folds of the very same rows;
    - `best` is that of the three with the lowest log loss over 3 folds, fitted to all rows.

    Args:
        family: which one.
        rows: features, a row for each gradient.
        positive: which gradients have the property; at least 5 with it and 5 without.
        rng: where all of a fit's randomness comes from.

    Example:
        >>> rows = torch.tensor([[1.0, 0.1], [1.0, 0.9]]).repeat(10, 1)
        >>> positive = torch.tensor([0, 1]).repeat(10)
        >>> found = fit("logistic", rows, positive, torch.Generator().manual_seed(0))
        >>> (found(rows[:2]) > 0.5).tolist()
        [False, True]

    Differs from the paper: It does not describe its network, and applies a softmax to a forest's votes, after which no
    probability is outside [0.27, 0.73]; here votes are probabilities as they are. Cutting features, `logistic` and
    `best` are ours.

    References:
        Melis et al., Exploiting Unintended Feature Leakage in Collaborative Learning, 2019 (the forest's settings are
        those of its published code); Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated
        Learning, 2021, section 4.2, Fig. 5.
    """
    positive = positive.cpu().bool()
    if len(rows) != len(positive) or rows.dim() != 2 or not rows.shape[1]:
        raise InvalidValue(
            f"A property classifier needs a row of features for each of {len(positive)} gradients. Got shape "
            f"{tuple(rows.shape)} instead."
        )
    few = min(int(positive.sum()), int((~positive).sum()))
    if few < LEAST:
        raise InvalidValue(
            f"A property classifier needs at least {LEAST} gradients with the property and as many without. Got {few}."
        )
    return _fit_family(_best_family(rows, positive, rng) if family == "best" else family, rows, positive, rng)


def unit(rows: Tensor) -> Tensor:
    """Return rows of length one, on the CPU and in double precision; a row of zeros stays as it is.

    Example:
        >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]
    """
    exact = rows.detach().cpu().double()
    return F.normalize(exact, dim=1, eps=torch.finfo(exact.dtype).tiny)


def log_loss(probabilities: Tensor, positive: Tensor) -> float:
    """Return the mean of minus the natural logarithm of the probability of what is true.

    Example:
        >>> round(log_loss(torch.tensor([0.5, 0.5]), torch.tensor([0, 1])), 4)
        0.6931
    """
    return F.binary_cross_entropy(probabilities.double(), positive.double()).item()


def _fit_family(family: Single, rows: Tensor, positive: Tensor, rng: Stream) -> Classifier:
    directions = unit(rows)
    mean, spread = directions.mean(0), directions.std(0, correction=0)
    # What varies by rounding alone does not vary.
    spread = torch.where(spread > 1e-9 * mean.abs(), spread, torch.ones_like(spread))
    return Classifier(family, mean, spread, _FITS[family](_standardise(rows, mean, spread), positive, rng))


def _standardise(rows: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    return ((unit(rows) - mean) / spread).clamp(-FAR, FAR)


def _best_family(rows: Tensor, positive: Tensor, rng: Stream) -> Single:
    """Return the family with the lowest log loss on rows that it was not fitted to, among the attacker's own."""
    place = _deal_folds(positive, FOLDS, rng)
    losses = {family: _cross_validate(partial(_fit_family, family, rng=rng), rows, positive, place) for family in _FITS}
    return min(losses, key=lambda family: losses[family])


def _cross_validate(train: Callable[[Tensor, Tensor], Model], rows: Tensor, positive: Tensor, place: Tensor) -> float:
    """Return the log loss over all rows, each predicted by a fit to the rows of other folds."""
    predictions = torch.empty(len(rows), dtype=torch.float64)
    for fold in range(FOLDS):
        out = place == fold
        predictions[out] = train(rows[~out], positive[~out])(rows[out])
    return log_loss(predictions, positive)


def _deal_folds(positive: Tensor, parts: int, rng: Stream) -> Tensor:
    """Deal rows out to parts at random, those of each kind evenly."""
    place = torch.empty(len(positive), dtype=torch.long)
    for kind in (True, False):
        own = (positive == kind).nonzero()[:, 0]
        place[own[torch.randperm(len(own), generator=rng)]] = torch.arange(len(own)) % parts
    return place


def _forest(rows: Tensor, positive: Tensor, rng: Stream) -> Model:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(
        n_estimators=_TREES, min_samples_leaf=_LEAF, min_samples_split=_LEAF, n_jobs=1, random_state=_draw_seed(rng)
    ).fit(rows.numpy(), positive.numpy())
    return lambda others: torch.from_numpy(forest.predict_proba(others.numpy())[:, 1])


def _logistic(rows: Tensor, positive: Tensor, rng: Stream) -> Model:
    place = _deal_folds(positive, FOLDS, rng)
    strengths = [strength / rows.shape[1] for strength in _STRENGTHS]
    losses = [_cross_validate(partial(_regression, strength=strength), rows, positive, place) for strength in strengths]
    return _regression(rows, positive, strengths[losses.index(min(losses))])


def _regression(rows: Tensor, positive: Tensor, strength: float) -> Model:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        # A fit that was stopped early is a fit of the family all the same.
        warnings.simplefilter("ignore", ConvergenceWarning)
        regression = LogisticRegression(C=strength, max_iter=_ITERATIONS).fit(rows.numpy(), positive.numpy())
    return lambda others: torch.from_numpy(regression.predict_proba(others.numpy())[:, 1])


def _network(rows: Tensor, positive: Tensor, rng: Stream) -> Model:
    rows, target = rows.float(), positive.float()
    out = _deal_folds(positive, 5, rng) == 0
    inside = (~out).nonzero()[:, 0]
    with global_seed(_draw_seed(rng)):
        model = nn.Sequential(nn.Linear(rows.shape[1], _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, 1), nn.Flatten(0))
    steps = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=_DECAY)
    best, waited, weights = float("inf"), 0, model.state_dict()
    for _ in range(_EPOCHS):
        for places in torch.split(inside[torch.randperm(len(inside), generator=rng)], _STEP):
            steps.zero_grad()
            with torch.enable_grad():
                torch.autograd.backward(F.binary_cross_entropy_with_logits(model(rows[places]), target[places]))
            steps.step()
        with torch.no_grad():
            reached = F.binary_cross_entropy_with_logits(model(rows[out]), target[out]).item()
        waited = 0 if reached < best else waited + 1
        if reached < best:
            best, weights = reached, {name: tensor.clone() for name, tensor in model.state_dict().items()}
        if waited == _PATIENCE:
            break
    model.load_state_dict(weights)
    model.requires_grad_(False)
    return lambda others: torch.sigmoid(model(others.float()).double())


def _draw_seed(rng: Stream) -> int:
    return int(torch.randint(2**31 - 1, (), generator=rng))


_FITS: dict[Single, Callable[[Tensor, Tensor, Stream], Model]] = {
    "random_forest": _forest,
    "network": _network,
    "logistic": _logistic,
}
