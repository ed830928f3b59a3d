from __future__ import annotations

import dataclasses
from types import ModuleType

import pytest
import torch

from leaktight.core.attack import GuessedSamples, Reconstruction, Scores
from leaktight.core.defence import Undefended
from leaktight.core.errors import LeaktightError
from leaktight.core.probe import Finding
from leaktight.core.run import GroundTruth
from leaktight.core.scenario import Observation
from leaktight.core.task import Batch
from leaktight.running.gallery import SHOWN, decode, encode, gallery_of


@pytest.fixture
def truths(toys: ModuleType) -> tuple[GroundTruth, ...]:
    scenario = toys.ToyScenario()
    run = scenario.observe(scenario.train(Undefended(), 0), Undefended(), Observation("initial", 3, 4, 0))
    labelled = [
        dataclasses.replace(ground_truth, raw=Batch(ground_truth.raw.inputs, torch.arange(3) + 10 * number))
        for number, ground_truth in enumerate(run.truths.values())
    ]
    return tuple(labelled)


def finding(
    truths: tuple[GroundTruth, ...], inputs: list[torch.Tensor], labels: list[torch.Tensor] | None = None
) -> Finding:
    keys = tuple(ground_truth.sent.key for ground_truth in truths)
    return Finding((), Reconstruction(keys, tuple(inputs), tuple(labels) if labels else None), truths)


def test_guesses_stand_beside_the_examples_they_are_paired_with(truths: tuple[GroundTruth, ...]) -> None:
    shuffled = [ground_truth.used.inputs.flip(0) for ground_truth in truths]
    labels = [torch.tensor([2, 1, 0]) for _ in truths]
    shown = gallery_of(finding(truths, shuffled, labels))
    assert torch.equal(shown["guess"], shown["truth_used"])
    assert torch.equal(shown["guess"], shown["truth_raw"])
    assert shown["guess"].shape == (SHOWN, 1, 2, 2)
    assert shown["guess"].dtype == torch.uint8
    assert shown["labels"].tolist() == [0, 1, 2, 10, 11, 12, 20, 21]
    assert shown["guess_labels"].tolist() == [0, 1, 2, 0, 1, 2, 0, 1]


def test_raw_and_used_are_kept_apart(truths: tuple[GroundTruth, ...]) -> None:
    changed = tuple(
        dataclasses.replace(ground_truth, used=Batch(1 - ground_truth.raw.inputs, ground_truth.raw.labels))
        for ground_truth in truths
    )
    shown = gallery_of(finding(changed, [ground_truth.used.inputs for ground_truth in changed]))
    assert torch.equal(shown["guess"], shown["truth_used"])
    assert not torch.equal(shown["truth_raw"], shown["truth_used"])
    assert (shown["truth_raw"].int() + shown["truth_used"].int() - 255).abs().max() <= 1


def test_bytes_are_rounded_and_clamped(truths: tuple[GroundTruth, ...]) -> None:
    one = dataclasses.replace(
        truths[0], used=truths[0].used.take(torch.tensor([0])), raw=truths[0].raw.take(torch.tensor([0]))
    )
    guess = torch.tensor([-3.0, 0.5, 1.0, 7.0]).view(1, 1, 2, 2)
    assert gallery_of(finding((one,), [guess]))["guess"].flatten().tolist() == [0, 128, 255, 255]


def test_guesses_are_paired_as_they_are_shown(truths: tuple[GroundTruth, ...]) -> None:
    """As numbers, a dark guess with one runaway pixel would stand for the white image."""
    truth = Batch(torch.stack([torch.ones(1, 2, 2), torch.full((1, 2, 2), 0.2)]), torch.arange(2))
    one = dataclasses.replace(truths[0], used=truth, raw=truth)
    guess = torch.stack([torch.full((1, 2, 2), 0.5), torch.tensor([[[9.0, 0.0], [0.0, 0.0]]])])
    assert gallery_of(finding((one,), [guess]))["guess"].flatten(1).tolist() == [[128] * 4, [255, 0, 0, 0]]


def test_a_missing_guess_is_grey_and_has_no_label(truths: tuple[GroundTruth, ...]) -> None:
    [ground_truth, *_] = truths
    shown = gallery_of(finding((ground_truth,), [ground_truth.used.inputs[:1]], [torch.tensor([5])]))
    assert shown["guess_labels"].tolist() == [5, -1, -1]
    assert shown["guess"][1:].unique().tolist() == [128]
    assert gallery_of(finding((ground_truth,), [ground_truth.used.inputs]))["guess_labels"].tolist() == [-1, -1, -1]


def test_soft_labels_show_the_likeliest(truths: tuple[GroundTruth, ...]) -> None:
    [ground_truth, *_] = truths
    soft = torch.eye(3)[[1, 2, 0]]
    assert gallery_of(finding((ground_truth,), [ground_truth.used.inputs], [soft]))["guess_labels"].tolist() == [
        1,
        2,
        0,
    ]


def test_nothing_for_scores_tables_and_empty_findings(truths: tuple[GroundTruth, ...]) -> None:
    assert gallery_of(Finding(())) == {}
    assert gallery_of(Finding((), Scores((truths[0].sent.key,), (torch.ones(3),)), truths[:1])) == {}
    task = dataclasses.replace(truths[0].task, shape=(4,))
    table = dataclasses.replace(truths[0], task=task)
    assert gallery_of(finding((table,), [truths[0].used.inputs])) == {}


def test_bytes_and_back(truths: tuple[GroundTruth, ...]) -> None:
    shown = gallery_of(finding(truths, [ground_truth.used.inputs for ground_truth in truths]))
    back = decode(encode(shown))
    assert back.keys() == shown.keys()
    assert all(torch.equal(back[name], tensor) for name, tensor in shown.items())
    assert encode({}) == b""
    assert decode(b"") == decode(None) == {}
    with pytest.raises(LeaktightError, match="The pictures of a cell cannot be read"):
        decode(encode(shown)[:-1])


def samples(shape: tuple[int, ...], label: int) -> GuessedSamples:
    made = torch.linspace(0, 1, 20)[:, None, None, None].expand(20, *shape)
    return GuessedSamples((("all but client-1", 3),), made, label, torch.stack([made, 1 - made]), (0, 4))


def test_made_up_examples_stand_beside_private_ones_of_their_class(truths: tuple[GroundTruth, ...]) -> None:
    label = int(truths[0].raw.labels[1])
    shown = gallery_of(Finding((), samples((1, 2, 2), label), truths[:1]))
    assert {name: tuple(tensor.shape) for name, tensor in shown.items()} == {
        "owned": (1, 1, 2, 2),
        "made": (SHOWN, 1, 2, 2),
        "history": (2, SHOWN, 1, 2, 2),
        "rounds": (2,),
    }
    assert shown["rounds"].tolist() == [0, 4]
    assert torch.equal(shown["owned"][0].float(), (truths[0].raw.inputs[1].clamp(0, 1) * 255).round())
    assert torch.equal(decode(encode(shown))["history"], shown["history"])


def test_of_a_class_that_nobody_holds_there_is_no_private_example(truths: tuple[GroundTruth, ...]) -> None:
    shown = gallery_of(Finding((), samples((1, 2, 2), 99), truths))
    assert len(shown["owned"]) == 0
    assert len(decode(encode(shown))["made"]) == SHOWN


def test_made_up_rows_of_a_table_are_no_pictures(truths: tuple[GroundTruth, ...]) -> None:
    rows = torch.rand(4, 7, generator=torch.Generator())
    assert gallery_of(Finding((), GuessedSamples((("all", 0),), rows, 0, rows[None], (0,)), truths)) == {}
