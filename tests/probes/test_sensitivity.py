from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.core import registry
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.metric import Reading
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.task import Batch
from leaktight.learning.bounded_norm import NORMS
from leaktight.learning.target_jacobian import target_norms
from leaktight.probes import Sensitivity
from leaktight.probes.public import latest, public_examples
from leaktight.testing import toy_batch, toy_run, toy_task


@pytest.fixture
def run() -> Run:
    return toy_run(rounds=2)


def with_properties(run: Run, properties: torch.Tensor) -> Run:
    public = toy_batch(len(properties), seed=3)
    return dataclasses.replace(run, auxiliary=Batch(public.inputs, public.labels, properties=properties))


def read(run: Run, samples: int = 16, seed: int = 0) -> dict[tuple[str, str | None], Reading]:
    found = Sensitivity(samples=samples).read(run, stream(seed, "sensitivity")).readings
    made = {(reading.name, reading.layer): reading for reading in found}
    assert len(made) == len(found)
    return made


def test_there_is_a_reading_for_each_norm_and_layer(run: Run) -> None:
    found = read(run)
    assert found.keys() == {
        (f"sensitivity_{norm}{share}", layer) for norm in NORMS for share in ("", "_share") for layer in ("body.1", "head")
    }
    for reading in found.values():
        assert reading.leaks == "high"
        assert (reading.n, reading.chance) == (16, None)
        assert reading.low is not None
        assert reading.high is not None
        assert 0 < reading.low < reading.value < reading.high


def test_values_are_means_over_public_examples_at_the_latest_parameters(run: Run) -> None:
    examples = public_examples(run, "sensitivity", 16, stream(0, "sensitivity"))
    for layer, rows in target_norms(run.public, latest(run, "sensitivity"), examples).items():
        for norm, values in zip(NORMS, rows.T, strict=True):
            reading = read(run)[f"sensitivity_{norm}", layer]
            assert reading.each == pytest.approx(values.tolist())
            assert reading.value == pytest.approx(values.mean().item())


def test_shares_sum_to_one(run: Run) -> None:
    found = read(run)
    for norm in NORMS:
        values = {layer: found[f"sensitivity_{norm}", layer].value for layer in ("body.1", "head")}
        for layer, value in values.items():
            share = found[f"sensitivity_{norm}_share", layer]
            assert share.value == pytest.approx(value / sum(values.values()))
            assert share.each == ()


def test_the_interval_covers_the_mean_over_all_examples(run: Run) -> None:
    truth = read(run, samples=32)["sensitivity_f", "head"].value
    inside = 0
    for seed in range(20):
        found = read(run, samples=8, seed=seed)["sensitivity_f", "head"]
        inside += (found.low or 0) <= truth <= (found.high or 0)
    assert inside >= 14


def test_one_example_alone_has_no_interval(run: Run) -> None:
    for reading in read(dataclasses.replace(run, auxiliary=toy_batch(1))).values():
        assert (reading.n, reading.low, reading.high) == (1, None, None)


def test_gradients_of_zero_have_no_sensitivity() -> None:
    for reading in read(toy_run(task=toy_task(loss_scale=0.0))).values():
        assert reading.value == reading.low == reading.high == 0


def test_the_same_stream_gives_the_same_readings(run: Run) -> None:
    properties = torch.arange(12) % 2
    assert read(with_properties(run, properties)) == read(with_properties(run, properties))


def test_a_property_that_gradients_show_beats_chance(run: Run) -> None:
    """Who has the property is what the head learns."""
    properties = (toy_batch(200, seed=3).labels < 2).long()
    found = read(with_properties(run, properties), samples=100)
    for norm in NORMS:
        assert found[f"property_sensitivity_{norm}", "head"].beats_chance(), norm
        assert found[f"property_sensitivity_{norm}", "head"].n == 100


def test_shares_of_the_property_sum_to_one(run: Run) -> None:
    found = read(with_properties(run, torch.arange(20) % 2))
    for norm in NORMS:
        values = {layer: found[f"property_sensitivity_{norm}", layer].value for layer in ("body.1", "head")}
        for layer, value in values.items():
            assert found[f"property_sensitivity_{norm}_share", layer].value == pytest.approx(value / sum(values.values()))


def test_a_property_that_means_nothing_does_not(run: Run) -> None:
    beats, beyond = 0, []
    for seed in range(12):
        properties = torch.randperm(40, generator=stream(seed, "properties")) % 2
        found = read(with_properties(run, properties), samples=32, seed=seed)
        for layer in ("body.1", "head"):
            reading = found["property_sensitivity_f", layer]
            assert reading.chance is not None
            beats += reading.beats_chance()
            beyond.append(reading.value / reading.chance)
    assert beats <= 2
    assert sum(beyond) / len(beyond) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("properties", [torch.zeros(8), torch.ones(8), torch.tensor([1, 0, 0, 0])])
def test_without_two_of_either_kind_there_is_nothing_to_compare(run: Run, properties: torch.Tensor) -> None:
    assert all(name.startswith("sensitivity_") for name, _ in read(with_properties(run, properties.long())))


def test_at_most_half_of_the_samples_are_of_a_kind(run: Run) -> None:
    found = read(with_properties(run, torch.tensor([1] * 3 + [0] * 20)), samples=12)
    assert {reading.n for (name, _), reading in found.items() if name.startswith("property")} == {3 + 6}


def test_a_run_in_which_nothing_is_public_is_refused(run: Run) -> None:
    with pytest.raises(Refusal, match="sensitivity needs public examples"):
        read(dataclasses.replace(run, auxiliary=None))
    with pytest.raises(Refusal, match="sensitivity needs the parameters of a whole model"):
        read(dataclasses.replace(run, transcript=run.transcript[1:2]))


def test_nothing_private_is_read(run: Run) -> None:
    assert read(dataclasses.replace(run, truths={}, locals={})) == read(run)


def test_it_is_found_by_its_kind() -> None:
    assert registry.classes("probe")["sensitivity"] is Sensitivity
    with pytest.raises(InvalidValue, match="The `samples` of sensitivity must be at least 2"):
        Sensitivity(samples=1)
