from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from leaktight.core import registry
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.metric import Reading
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.task import Batch
from leaktight.metrics.kernel_information import information_bounds
from leaktight.probes import MutualInformation
from leaktight.probes.layer_outputs import LayerOutputs
from leaktight.probes.mutual_information import layer_distances
from leaktight.probes.public import latest
from leaktight.testing import toy_batch, toy_run, toy_task


@pytest.fixture
def run() -> Run:
    return toy_run(rounds=2)


def read(run: Run, **settings: object) -> dict[tuple[str, str | None], Reading]:
    found = MutualInformation.model_validate(settings).read(run, stream(0, "information")).readings
    return {(reading.name, reading.layer): reading for reading in found}


def test_the_bounds_are_those_of_each_layers_activations(run: Run) -> None:
    found = read(run, noise=0.2)
    assert run.auxiliary is not None
    assert len(found) == 2 * 4
    for layer, rows in LayerOutputs(run.public, latest(run, ""))(run.auxiliary.inputs).items():
        squared = torch.cdist(rows.double(), rows.double(), compute_mode="donot_use_mm_for_euclid_dist") ** 2
        for end, bits in zip(("lower", "upper"), information_bounds(squared, 0.2), strict=True):
            reading = found[f"mutual_information_{end}", layer]
            assert reading.value == pytest.approx(bits, rel=1e-9)
            assert found[f"mutual_information_{end}_share", layer].value == pytest.approx(
                bits / math.log2(32), rel=1e-9
            )
            assert (reading.n, reading.chance, reading.leaks, reading.low) == (32, 0.0, "high", None)


def test_lower_is_below_upper_and_both_within_all_there_is(run: Run) -> None:
    found = read(run)
    for layer in ("body.1", "head"):
        lower, upper = (found[f"mutual_information_{end}", layer].value for end in ("lower", "upper"))
        assert 0 < lower < upper < 5


@pytest.mark.parametrize("kept", [0, 1, 2, 5, 11, 64])
def test_distances_come_out_the_same_however_few_fit(kept: int) -> None:
    task, inputs = toy_task(), toy_batch(11).inputs
    outputs = LayerOutputs(task, task.model.tensors())
    whole = outputs(inputs)
    size = sum(rows[:1].nbytes for rows in whole.values())
    for layer, (squared, width) in layer_distances(outputs, inputs, memory=kept * size).items():
        rows = whole[layer].double()
        expected = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist") ** 2
        assert width == rows.shape[1]
        assert torch.allclose(squared, expected, atol=1e-6)


def test_examples_that_are_all_alike_tell_nothing(run: Run) -> None:
    one = toy_batch(1)
    alike = dataclasses.replace(run, auxiliary=Batch(one.inputs.repeat(9, 1, 1, 1), one.labels.repeat(9)))
    for scaled in (False, True):
        for reading in read(alike, scaled=scaled).values():
            assert reading.value == pytest.approx(0, abs=1e-9)


def test_without_noise_to_speak_of_everything_is_told(run: Run) -> None:
    for (name, _), reading in read(run, noise=1e-6).items():
        assert reading.value == pytest.approx(1 if name.endswith("share") else 5)


def test_scaled_noise_does_not_care_how_large_activations_are(run: Run) -> None:
    def louder(factor: float) -> Run:
        sent = run.transcript[2]
        tensors = {name: tensor * (factor if name.startswith("head") else 1) for name, tensor in sent.tensors.items()}
        return dataclasses.replace(run, transcript=(dataclasses.replace(sent, tensors=tensors),))

    key = ("mutual_information_upper", "head")
    plain = [read(louder(factor), noise=0.1)[key].value for factor in (1, 10)]
    scaled = [read(louder(factor), noise=0.1, scaled=True)[key].value for factor in (1, 10)]
    assert plain[1] > plain[0] + 0.5
    assert scaled[1] == pytest.approx(scaled[0], rel=1e-6)


def test_the_unit_of_scaled_noise_is_the_layers_deviation(run: Run) -> None:
    assert run.auxiliary is not None
    rows = LayerOutputs(run.public, latest(run, ""))(run.auxiliary.inputs)["head"].double()
    deviation = rows.var(0, correction=0).mean().sqrt().item()
    key = ("mutual_information_lower", "head")
    assert read(run, noise=0.3, scaled=True)[key].value == pytest.approx(
        read(run, noise=0.3 * deviation)[key].value, rel=1e-6
    )


def test_at_most_the_samples_are_drawn(run: Run) -> None:
    assert {reading.n for reading in read(run, samples=7).values()} == {7}


def test_a_run_with_too_little_in_public_is_refused(run: Run) -> None:
    with pytest.raises(Refusal, match="mutual_information needs at least two public examples"):
        read(dataclasses.replace(run, auxiliary=toy_batch(1)))
    with pytest.raises(Refusal, match="mutual_information needs public examples"):
        read(dataclasses.replace(run, auxiliary=None))
    with pytest.raises(Refusal, match="mutual_information needs the parameters of a whole model"):
        read(dataclasses.replace(run, transcript=run.transcript[1:2]))


def test_it_is_found_by_its_kind_and_checks_its_settings() -> None:
    assert registry.classes("probe")["mutual_information"] is MutualInformation
    assert MutualInformation().noise ** 2 == pytest.approx(0.1)
    with pytest.raises(InvalidValue, match="The `noise` of mutual_information must be above 0"):
        MutualInformation(noise=0.0)
    with pytest.raises(InvalidValue, match="The `samples` of mutual_information must be at least 2"):
        MutualInformation(samples=1)
