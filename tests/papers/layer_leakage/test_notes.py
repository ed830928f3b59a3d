from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from leaktight.core.task import Batch
from leaktight.learning import classification
from leaktight.learning.target_jacobian import target_norms
from leaktight.papers import Order
from leaktight.papers.layer_leakage import LayerLeakage
from leaktight.papers.layer_leakage.networks import NETWORKS
from leaktight.papers.layer_leakage.notes import FLAGS, INTERVALS, SINGLE, SPREAD, notes_of
from leaktight.papers.layer_leakage.settings import Study, study_of

PAPER = LayerLeakage()


def test_what_is_always_so_is_always_told(study: Study, sets: str) -> None:
    for one in (study, study_of(Order()), study_of(Order(scale="paper", data=sets))):
        assert {INTERVALS, SPREAD, SINGLE} <= set(notes_of(one))


def test_faces_have_flags_and_a_size(study: Study, sets: str) -> None:
    told = notes_of(study)
    assert FLAGS in told
    assert any("brought to 32 pixels a side; the paper's are 62x47" in note for note in told)
    whole = notes_of(study_of(Order(scale="paper", data=sets)))
    assert FLAGS in whole
    assert not any("62x47" in note for note in whole)
    assert FLAGS not in notes_of(study_of(Order()))


def test_what_differs_from_the_paper_s_attack_is_told(study: Study) -> None:
    told = " ".join(notes_of(study))
    assert "a share of 0.5 of a batch with the property has it" in told
    assert "The attacker sits at the server" in told
    assert "compared on AlexNet alone" in told


def test_the_full_experiment_has_the_paper_s_attack(sets: str) -> None:
    told = " ".join(PAPER.notes(Order(scale="paper", data=sets)))
    assert "The attacker sits" not in told
    assert "alone." not in told


def test_with_two_classes_sensitivity_is_how_evenly_a_gradient_is_spread() -> None:
    model = NETWORKS["AlexNet"].build((1, 16, 16), classes=2, seed=0)
    inputs = torch.rand(1, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    found = target_norms(classification(model, (1, 16, 16), 2), model.tensors(), Batch(inputs, torch.tensor([1])))
    scores = model(inputs)
    F.cross_entropy(scores, torch.tensor([1])).backward()
    odds = (scores[0, 1] - scores[0, 0]).exp().item()
    for layer, norms in found.items():
        gradient = torch.cat(
            [tensor.grad.flatten() for tensor in model.get_submodule(layer).parameters() if tensor.grad is not None]
        )
        spread = gradient.square().mean().sqrt() / (gradient.max() - gradient.min())
        assert norms[0, 0].item() == pytest.approx((1 + odds**2) ** 0.5 * spread.item(), rel=1e-4)
