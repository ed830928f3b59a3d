"""The norm attack: the paper's formula, and its two observations as numbers."""

import pytest
import torch

from leaktight.attacks import GradientNorm
from leaktight.core.errors import InvalidValue
from leaktight.core.threat import Hints
from leaktight.statistics.auc import auc

NOBODY = Hints(torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long))


def cut_gradients(logits, labels, slopes):
    """Return the gradients of Section 2.1 by autograd: logit h(a) = logit + <slope, a> at a = 0, binary cross entropy."""
    activations = torch.zeros_like(slopes, requires_grad=True)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        logits + (activations * slopes).sum(1), labels.double(), reduction="sum"
    )
    return torch.autograd.grad(loss, activations)[0]


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


def test_the_score_is_confidence_gap_times_slope(rng):
    logits, labels = torch.randn(50, generator=rng).double(), torch.arange(50) % 5 == 0
    slopes = torch.randn(50, 8, generator=rng).double()
    scores = GradientNorm().score(cut_gradients(logits, labels, slopes), NOBODY)
    gap = (torch.sigmoid(logits) - labels.double()).abs()
    assert torch.allclose(scores, gap * slopes.norm(dim=1))


@pytest.mark.parametrize(("prior", "low", "high"), [(-3.0, 0.99, 1.0), (0.0, 0.3, 0.7), (3.0, 0.0, 0.01)])
def test_rare_positives_have_longer_gradients_and_common_ones_shorter(prior, low, high, rng):
    # A model that knows only how common positives are: the confidence gap tells the class where one is rare.
    labels = torch.rand(400, generator=rng) < torch.sigmoid(torch.tensor(prior))
    slopes = torch.ones(400, 8).double() + 0.05 * torch.randn(400, 8, generator=rng).double()
    rows = cut_gradients(torch.full((400,), prior).double(), labels, slopes)
    straight, turned = (auc(GradientNorm(rare=rare).score(rows, NOBODY), labels) for rare in ("positive", "negative"))
    assert low <= straight <= high
    assert turned == pytest.approx(1 - straight)


def test_the_sign_is_known_where_the_rare_class_is():
    assert {rare: GradientNorm(rare=rare).signed for rare in ("positive", "negative", "unknown")} == {
        "positive": True,
        "negative": True,
        "unknown": False,
    }
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(GradientNorm(rare="unknown").score(rows, NOBODY), GradientNorm().score(rows, NOBODY))


def test_another_class_is_refused():
    with pytest.raises(
        InvalidValue, match="The `rare` of gradient_norm must be one of 'positive', 'negative' or 'unknown'"
    ):
        GradientNorm(rare="both")


def test_no_label_is_needed_and_every_example_scored():
    assert GradientNorm().needs == frozenset()
    assert not len(GradientNorm().used_positions(Hints(torch.tensor([1, 2]), torch.tensor([1, 0]))))
