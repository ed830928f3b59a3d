"""The attack with a few hints: mean directions, and more hints against noise."""

import pytest
import torch

from leaktight.attacks import Direction, FewHints
from leaktight.core.errors import InvalidValue
from leaktight.core.threat import Hints, Knows
from leaktight.statistics.auc import auc

HINTS = Hints(torch.tensor([9, 4, 1, 6, 0, 2, 3]), torch.tensor([0, 1, 1, 0, 1, 1, 0]))


def rows(seed=0):
    return torch.randn(40, 6, generator=torch.Generator().manual_seed(seed))


def test_one_positive_alone_is_the_direction_attack():
    assert torch.allclose(FewHints(hints=1).score(rows(), HINTS), Direction().score(rows(), HINTS), atol=1e-6)


@pytest.mark.parametrize(("hints", "negatives"), [(2, 0), (3, 1), (5, 5)])
def test_it_is_the_projection_on_the_difference_of_mean_directions(hints, negatives):
    made = rows(1)
    each = made / made.norm(dim=1, keepdim=True)
    way = each[[4, 1, 0, 2][:hints]].mean(0)
    if negatives:
        way = way - each[[9, 6, 3][:negatives]].mean(0)
    scores = FewHints(hints=hints, negatives=negatives).score(made, HINTS)
    assert torch.allclose(scores, each @ way, atol=1e-6)


@pytest.mark.parametrize(
    ("hints", "negatives", "used"), [(1, 0, [4]), (2, 1, [1, 4, 9]), (5, 0, [0, 1, 2, 4]), (5, 5, [0, 1, 2, 3, 4, 6, 9])]
)
def test_what_is_used_is_not_more_than_is_known(hints, negatives, used):
    assert sorted(FewHints(hints=hints, negatives=negatives).used_positions(HINTS).tolist()) == used


def test_more_hints_average_noise_away():
    rng = torch.Generator().manual_seed(3)
    values = {1: [], 5: []}
    for _ in range(40):
        labels = torch.rand(300, generator=rng) < 0.2
        noisy = torch.where(labels, 1.0, -1.0)[:, None] + 3 * torch.randn(300, 16, generator=rng)
        known = torch.cat([labels.nonzero().flatten()[:5], (~labels).nonzero().flatten()[:5]])
        for count, found in values.items():
            attack = FewHints(hints=count, negatives=count)
            scores = attack.score(noisy, Hints(known, labels[known].long()))
            scored = torch.ones(300, dtype=torch.bool)
            scored[known] = False
            found.append(auc(scores[scored], labels[scored]))
    assert sum(values[5]) / 40 > sum(values[1]) / 40 + 0.05


def test_negatives_alone_are_not_enough():
    assert FewHints(negatives=3).score(rows(), Hints(torch.tensor([1]), torch.tensor([0]))) is None
    assert FewHints().needs == {Knows.HINTS}


@pytest.mark.parametrize(("settings", "told"), [({"hints": 0}, "at least 1"), ({"negatives": 6}, "at most 5")])
def test_more_than_a_threat_model_grants_cannot_be_asked_for(settings, told):
    with pytest.raises(InvalidValue, match=told):
        FewHints(**settings)
