from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from torch import Tensor

from leaktight.core import registry
from leaktight.core.defence import Undefended
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.core.run import GroundTruth, Run
from leaktight.core.scenario import Observation
from leaktight.core.task import Batch
from leaktight.data import RareDigit
from leaktight.learning import Split
from leaktight.models import MLP
from leaktight.probes import ClassGradients
from leaktight.probes.class_gradients import SHARES, class_quantiles


@pytest.fixture(scope="module")
def run() -> Run:
    scenario = Split(data=RareDigit(), model=MLP(hidden=(8,)), rounds=4, batch_size=128, moments=2)
    training = scenario.train(Undefended(), seed=0)
    return scenario.observe(training, Undefended(), Observation("training", batch_size=128, victims=4, seed=0))


def inside(run: Run, rows: Tensor, labels: Tensor) -> GroundTruth:
    """Return one message of these rows behind these labels."""
    message = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, {"gradient": rows})
    batch = Batch(torch.zeros(len(rows), 1), labels)
    return GroundTruth(run.public, batch, batch, message, message, losses=torch.full((len(rows),), 0.5))


def test_quantiles_are_those_of_each_class(run: Run) -> None:
    rows = torch.tensor([[3.0, 4.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -3.0]])
    found = class_quantiles(inside(run, rows, torch.tensor([1, 1, 0, 0])))
    assert found is not None
    negative, positive, below, above = found.view(8, len(SHARES))[:4]
    middle = SHARES.index(0.5)
    # Times the batch size: each row is a part of the mean loss's gradient.
    assert negative[middle].item() == pytest.approx(4 * 2.0)
    assert positive[middle].item() == pytest.approx(4 * 3.5)
    way = torch.tensor([1.5, 3.0]) / torch.tensor([1.5, 3.0]).norm()
    cosines = (rows / rows.norm(dim=1, keepdim=True)) @ way
    assert below[middle].item() == pytest.approx(cosines[2:].mean().item())
    assert above[middle].item() == pytest.approx(cosines[:2].mean().item())


@pytest.mark.parametrize("label", [0, 1])
def test_a_step_of_one_class_is_left_out(run: Run, label: int) -> None:
    assert class_quantiles(inside(run, torch.ones(3, 2), torch.full((3,), label))) is None


def test_gradients_of_zero_have_no_direction(run: Run) -> None:
    found = class_quantiles(inside(run, torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])))
    assert found is not None
    norms, cosines, errors, slopes = found.view(4, 2, len(SHARES))
    assert norms.abs().max().item() == cosines.abs().max().item() == slopes.abs().max().item() == 0
    assert errors.min().item() == errors.max().item() == pytest.approx(1 - math.exp(-0.5))


def test_each_step_has_its_place_in_order(run: Run) -> None:
    found = {reading.name: reading for reading in ClassGradients().read(run, stream(0, "unused")).readings}
    assert len(found) == 4 * 2 * len(SHARES)
    [steps] = {reading.n for reading in found.values()}
    assert steps == 4 == len(found["norm_positive_q50"].each)
    messages = [message for message in run.transcript if message.kind is Kind.CUT_GRADIENT]
    for place, message in enumerate(messages):
        one = run.truths[message.key]
        norms = next(iter(message.tensors.values())).double().norm(dim=1)[one.raw.labels == 1] * 128
        assert found["norm_positive_q50"].each[place] == pytest.approx(norms.quantile(0.5).item())
    # Below a linear top all gradients lie on one line.
    assert found["cosine_positive_q50"].value == pytest.approx(1, abs=1e-5)
    assert found["cosine_negative_q50"].value == pytest.approx(-1, abs=1e-5)
    assert {reading.leaks for reading in found.values()} == {None}


def test_the_norm_is_the_error_times_the_slope(run: Run) -> None:
    """Below a linear top the slope is the same for all: the norm tells classes apart because the error does."""
    found = {reading.name: reading for reading in ClassGradients().read(run, stream(0, "unused")).readings}
    for share in ("q5", "q50", "q95"):
        slopes = [found[f"slope_{label}_{share}"].value for label in ("negative", "positive")]
        assert slopes[0] == pytest.approx(slopes[1], rel=1e-4)
        for label in ("negative", "positive"):
            product = found[f"error_{label}_{share}"].value * slopes[0]
            assert found[f"norm_{label}_{share}"].value == pytest.approx(product, rel=0.05)
    assert all(0 < found[f"error_{label}_q50"].value < 1 for label in ("negative", "positive"))


def test_without_losses_there_are_no_factors(run: Run) -> None:
    one = dataclasses.replace(inside(run, torch.ones(4, 2), torch.tensor([0, 1, 0, 1])), losses=None)
    with pytest.raises(Refusal, match="needs the loss of each example"):
        class_quantiles(one)


def test_a_run_without_cut_gradients_is_refused(run: Run) -> None:
    with pytest.raises(Refusal, match="class_gradients needs a cut gradient of a batch with both classes"):
        ClassGradients().read(dataclasses.replace(run, transcript=()), stream(0, "unused"))


def test_it_is_found_by_its_kind() -> None:
    assert registry.classes("probe")["class_gradients"] is ClassGradients
