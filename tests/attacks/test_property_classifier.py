"""Property classifiers: scikit-learn's own forest, probabilities that can be trusted, and choices made from the attacker's data alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss as wanted_loss
from sklearn.preprocessing import StandardScaler, normalize

from leaktight.attacks import property_classifier
from leaktight.attacks.property_classifier import EDGE, FAR, fit, log_loss
from leaktight.core.errors import InvalidValue
from leaktight.statistics.auc import auc
from leaktight.testing.conformance import own_randomness

SINGLE = ["random_forest", "network", "logistic"]


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def gradients(count=200, width=30, gap=1.0, seed=0):
    """Rows of all lengths, whose first five features are larger with the property."""
    generator = rng(seed)
    positive = torch.arange(count) % 2
    rows = torch.rand(count, width, generator=generator) + 0.5
    rows[:, :5] += gap * positive[:, None] * torch.rand(count, 5, generator=generator)
    return rows * torch.rand(count, 1, generator=generator).exp(), positive


@pytest.mark.parametrize("family", [*SINGLE, "best"])
def test_a_property_that_shows_is_told_on_new_rows(family):
    found = fit(family, *gradients(), rng())
    rows, positive = gradients(seed=1)
    told = found(rows)
    assert told.shape == (200,)
    assert auc(told, positive) > 0.9
    assert log_loss(told, positive) < 0.45


@pytest.mark.parametrize("family", [*SINGLE, "best"])
def test_one_that_does_not_show_is_not(family):
    found = fit(family, *gradients(gap=0.0), rng())
    rows, positive = gradients(gap=0.0, seed=1)
    told = found(rows)
    assert 0.35 < auc(told, positive) < 0.65
    # Nothing is known, and hardly more is claimed.
    assert log_loss(told, positive) < 0.85


@pytest.mark.parametrize("family", [*SINGLE, "best"])
def test_a_fit_follows_from_its_stream_alone(family):
    rows, positive = gradients(count=60)
    before = np.random.get_state()[1].tolist()
    with own_randomness("fit"):
        one, other = (fit(family, rows, positive, rng())(rows) for _ in range(2))
    assert torch.equal(one, other)
    assert np.random.get_state()[1].tolist() == before


@pytest.mark.parametrize("family", ["random_forest", "network"])
def test_other_streams_give_other_fits(family):
    rows, positive = gradients(count=60)
    assert not torch.equal(fit(family, rows, positive, rng(0))(rows), fit(family, rows, positive, rng(1))(rows))


def test_the_forest_is_that_of_the_published_code():
    rows, positive = gradients()
    others, _ = gradients(seed=1)
    seed = int(torch.randint(2**31 - 1, (), generator=rng()))
    plain = RandomForestClassifier(n_estimators=100, min_samples_leaf=5, min_samples_split=5, random_state=seed)
    scaler = StandardScaler().fit(normalize(rows.double().numpy()))
    plain.fit(scaler.transform(normalize(rows.double().numpy())), positive.bool().numpy())
    votes = plain.predict_proba(scaler.transform(normalize(others.double().numpy())))[:, 1]
    told = fit("random_forest", rows, positive, rng())(others)
    assert told.tolist() == pytest.approx((EDGE + (1 - 2 * EDGE) * votes).tolist(), abs=0.02)
    assert np.corrcoef(told, votes)[0, 1] > 0.999


def test_logistic_regression_takes_the_penalty_that_its_folds_favour(monkeypatch):
    rows, positive = gradients(width=40)
    tried = []
    own = property_classifier._regression
    monkeypatch.setattr(
        property_classifier,
        "_regression",
        lambda rows, positive, strength: tried.append(strength) or own(rows, positive, strength),
    )
    told = fit("logistic", rows, positive, rng())(rows)
    *folds, last = tried
    assert sorted(set(folds)) == pytest.approx([c / 40 for c in (0.1, 1, 10, 100)])
    assert len(folds) == 12
    scaled = StandardScaler().fit_transform(normalize(rows.double().numpy()))
    wanted = LogisticRegression(C=last, max_iter=1000).fit(scaled, positive).predict_proba(scaled)[:, 1]
    assert told.tolist() == pytest.approx((EDGE + (1 - 2 * EDGE) * wanted).tolist(), abs=1e-3)


@pytest.mark.parametrize("family", SINGLE)
def test_lengths_of_rows_do_not_count(family):
    rows, positive = gradients(count=60)
    found = fit(family, rows, positive, rng())
    assert torch.allclose(found(rows), found(1e-20 * rows.double()), atol=1e-6)
    assert torch.allclose(found(rows), found(1e20 * rows.double()), atol=1e-6)


@pytest.mark.parametrize("family", SINGLE)
def test_probabilities_stay_off_zero_and_one_and_keep_their_order(family):
    rows, positive = gradients(gap=40.0)
    told = fit(family, rows, positive, rng())(rows)
    assert told.min() >= EDGE
    assert told.max() <= 1 - EDGE
    assert auc(told, positive) == 1
    assert torch.isfinite(told.log()).all()


def test_a_forest_s_full_vote_is_shrunk_not_cut():
    rows, positive = gradients(gap=40.0)
    found = fit("random_forest", rows, positive, rng())
    votes = (found(rows) - EDGE) / (1 - 2 * EDGE)
    assert votes.max() == pytest.approx(1)
    assert votes.min() == pytest.approx(0)


@pytest.mark.parametrize("family", SINGLE)
def test_features_that_never_vary_and_rows_of_zeros_do_no_harm(family):
    rows, positive = gradients(count=60)
    rows = torch.cat([rows, torch.zeros(60, 3)], dim=1)
    rows[:4] = 0
    told = fit(family, rows, positive, rng())(torch.cat([rows, torch.zeros(1, 33), torch.ones(1, 33)]))
    assert torch.isfinite(told).all()


def test_what_a_model_sees_are_standardised_directions_cut_at_five_deviations():
    rows, positive = gradients()
    seen = []
    found = fit("logistic", rows, positive, rng())
    watched = dataclasses.replace(found, model=lambda scaled: seen.append(scaled) or scaled[:, 0].sigmoid())
    noisy = rows + 2 * torch.randn(rows.shape, generator=rng(3)).abs()
    watched(noisy)
    scaler = StandardScaler().fit(normalize(rows.double().numpy()))
    wanted = scaler.transform(normalize(noisy.double().numpy()))
    assert np.abs(wanted).max() > FAR == 5
    assert np.allclose(seen[0].numpy(), wanted.clip(-5, 5))


def test_what_varies_by_rounding_alone_is_not_blown_up():
    rows = torch.ones(20, 3).double()
    rows[:, 2] += 1e-15 * torch.arange(20)
    found = fit("logistic", rows, torch.arange(20) % 2, rng())
    assert found.spread.tolist() == [1, 1, 1]


@pytest.mark.parametrize("better", SINGLE)
def test_the_best_family_is_chosen_by_folds_of_the_given_rows(better, monkeypatch):
    seen = []

    def constant(family):
        def fitted(rows, positive, generator):
            seen.append((family, len(rows)))
            return lambda others: torch.full((len(others),), 0.5 if family == better else 0.8, dtype=torch.float64)

        return fitted

    # Of kinds that are equally common, who says a half loses least.
    monkeypatch.setattr(property_classifier, "_FITS", {family: constant(family) for family in SINGLE})
    assert fit("best", *gradients(count=60), rng()).family == better
    assert seen == [*((family, 40) for family in SINGLE for _ in range(3)), (better, 60)]


def test_rows_of_each_kind_are_dealt_out_evenly():
    positive = torch.arange(31) % 3 == 0
    place = property_classifier._deal_folds(positive, 3, rng())
    for kind in (True, False):
        counts = place[positive == kind].bincount(minlength=3)
        assert counts.max() - counts.min() <= 1
    assert not torch.equal(place, property_classifier._deal_folds(positive, 3, rng(1)))


def test_the_network_answers_from_its_best_pass(monkeypatch):
    # One pass more is never worse on the rows that were kept out, although steps as long as these soon learn the others
    # by heart.
    rows, positive = gradients(count=60, gap=0.2)
    out = property_classifier._deal_folds(positive.bool(), 5, rng()) == 0
    monkeypatch.setattr(property_classifier, "_RATE", 0.02)
    losses = []
    for passes in range(1, 16):
        monkeypatch.setattr(property_classifier, "_EPOCHS", passes)
        losses.append(log_loss(fit("network", rows, positive, rng())(rows)[out], positive[out]))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == losses[-2]


def test_log_loss_is_scikit_learn_s():
    told, positive = torch.rand(50, generator=rng()), torch.arange(50) % 2
    assert log_loss(told, positive) == pytest.approx(wanted_loss(positive, told.double()), rel=1e-6)


@pytest.mark.parametrize(
    ("rows", "positive", "sentence"),
    [
        (
            torch.rand(10, 3),
            torch.arange(11) % 2,
            r"a row of features for each of 11 gradients. Got shape \(10, 3\) instead",
        ),
        (torch.rand(10), torch.arange(10) % 2, r"Got shape \(10,\) instead"),
        (torch.rand(10, 0), torch.arange(10) % 2, r"Got shape \(10, 0\) instead"),
        (torch.rand(20, 3), torch.arange(20) < 4, "at least 5 gradients with the property and as many without. Got 4"),
        (torch.rand(20, 3), torch.ones(20), "Got 0"),
    ],
)
def test_too_little_to_learn_from_is_an_error(rows, positive, sentence):
    with pytest.raises(InvalidValue, match=sentence):
        fit("logistic", rows, positive, rng())
