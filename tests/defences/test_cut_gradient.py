"""Cut gradients as rows: what is accepted, what is refused, that rows find back into their tensors, and the memory for them."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.task import Batch
from leaktight.defences import IsotropicNoise, MaxNorm, SumKL
from leaktight.defences.cut_gradient import positives, rows_of, scratch, with_rows


def message(*tensors: torch.Tensor, kind: Kind = Kind.CUT_GRADIENT) -> Message:
    named = {f"cut-{number}": tensor for number, tensor in enumerate(tensors)}
    return Message(kind, "label-party", "feature-party", 4, named, {"examples": 2.0})


def local(labels: torch.Tensor | None) -> Local:
    made = Local("label-party", seed=0)
    made.now.batch = None if labels is None else Batch(torch.zeros(len(labels), 1), labels)
    return made


def test_tensors_are_taken_together_example_by_example() -> None:
    first, second, third = torch.rand(3, 2, 2), torch.rand(3), torch.rand(3, 1)
    found = rows_of(message(first, second, third), "sumkl")
    assert torch.equal(found.matrix, torch.cat([first.flatten(1), second[:, None], third], 1))
    assert torch.allclose(found.norms, found.matrix.norm(dim=1))
    assert (len(found), found.dimensions) == (3, 6)


def test_rows_find_back_into_their_tensors() -> None:
    clean = message(torch.rand(3, 2, 2), torch.rand(3).double(), torch.rand(3, 1).half())
    back = with_rows(clean, rows_of(clean, "sumkl").matrix, "sumkl")
    for name, tensor in clean.tensors.items():
        assert torch.equal(back.tensors[name], tensor)
        assert back.tensors[name].dtype is tensor.dtype
    assert (back.kind, back.round, back.facts) == (clean.kind, 4, {"examples": 2.0})


@pytest.mark.parametrize("size", [1e-38, 1e-20, 1e-3, 1.0, 1e20, 1e37])
def test_lengths_are_right_at_every_size(size: float) -> None:
    found = rows_of(message(torch.tensor([[3.0, 4.0], [0.0, 1.0]]) * size), "max_norm")
    assert (found.norms.double() / size).tolist() == pytest.approx([5.0, 1.0], rel=1e-6)


@pytest.mark.parametrize("defence", [SumKL(), IsotropicNoise(), MaxNorm()], ids=str)
@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.CUT_GRADIENT])
def test_other_messages_are_refused(defence: SumKL, kind: Kind) -> None:
    with pytest.raises(Refusal, match=f"{defence.kind} protects cut gradients.* Got a message of kind {kind} instead"):
        defence.on_message(message(torch.rand(2, 3), kind=kind), local(torch.tensor([0, 1])))


@pytest.mark.parametrize("defence", [SumKL(), SumKL(scale=0.0), IsotropicNoise(ratio=0.0), MaxNorm()], ids=str)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_never_goes_out(defence: SumKL, bad: float) -> None:
    rows = torch.rand(2, 3)
    rows[1, 2] = bad
    with pytest.raises(InvalidValue, match=f"of label-party in round 4 under {defence.kind} must hold finite numbers"):
        defence.on_message(message(rows), local(torch.tensor([0, 1])))


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        ((), "must have one row per example in every tensor. Got no tensor instead."),
        ((torch.tensor(1.0),), r"must have one row per example in every tensor. Got `cut-0` of shape \(\) instead."),
        ((torch.rand(2, 3), torch.tensor(1.0)), r"Got `cut-0` of shape \(2, 3\), `cut-1` of shape \(\) instead."),
        ((torch.rand(2, 3), torch.rand(3, 3)), r"Got `cut-0` of shape \(2, 3\), `cut-1` of shape \(3, 3\) instead."),
        (
            (torch.ones(2, 3, dtype=torch.int64),),
            "must hold floating-point numbers. Got another type in `cut-0` instead.",
        ),
        (
            (torch.full((2, 3), 1e200, dtype=torch.float64),),
            r"must be of a size between 1e-150 and 1e\+150. Got 1e\+200 instead.",
        ),
        (
            (torch.full((2, 3), 1e-200, dtype=torch.float64),),
            r"must be of a size between 1e-150 and 1e\+150. Got 1e-200 instead.",
        ),
    ],
)
def test_rows_without_sense(tensors: tuple[torch.Tensor, ...], sentence: str) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        rows_of(message(*tensors), "sumkl")


def test_noise_that_does_not_fit_the_type_does_not_go_out() -> None:
    clean = message(torch.full((2, 3), 6e4).half())
    with pytest.raises(InvalidValue, match="under isotropic_noise must hold finite numbers"):
        with_rows(clean, torch.full((2, 3), 1e6), "isotropic_noise")


def test_a_sum_that_overflows_is_no_reason_to_stop() -> None:
    clean = message(torch.full((4, 8), 3e38))
    assert torch.equal(with_rows(clean, clean.tensors["cut-0"], "max_norm").tensors["cut-0"], clean.tensors["cut-0"])


@pytest.mark.parametrize(
    "labels", [torch.tensor([0, 1, 1]), torch.tensor([False, True, True]), torch.tensor([0.0, 1.0, 1.0])]
)
def test_labels_of_any_type_tell_the_positives(labels: torch.Tensor) -> None:
    assert positives(local(labels), 3, "sumkl").tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("labels", "error", "sentence"),
    [
        (None, InvalidValue, "sumkl must know the label of each row of a cut gradient. Got no batch instead."),
        (torch.tensor([0, 1]), InvalidValue, "Got 2 labels for 3 rows instead."),
        (
            torch.tensor([0, 1, 2]),
            Refusal,
            "sumkl hides which of two classes an example has. Got labels other than 0 and 1 instead.",
        ),
        (torch.tensor([0, 1, -1]), Refusal, "Got labels other than 0 and 1 instead."),
        (torch.tensor([0.0, 0.3, 1.0]), Refusal, "Got labels other than 0 and 1 instead."),
        (torch.tensor([0.0, float("nan"), 1.0]), Refusal, "Got labels other than 0 and 1 instead."),
        (torch.tensor([[0, 1], [1, 0], [0, 1]]), Refusal, "Got labels other than 0 and 1 instead."),
    ],
)
def test_labels_without_sense(labels: torch.Tensor | None, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        positives(local(labels), 3, "sumkl")


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
def test_scratch_memory_has_shape_type_and_device_of_what_it_is_for(kind: torch.dtype) -> None:
    found = scratch((3, 4), torch.zeros(2, dtype=kind))
    assert (found.shape, found.dtype, found.device.type) == ((3, 4), kind, "cpu")
    assert scratch((3,), torch.zeros(1, dtype=kind, device="meta")).device.type == "meta"


def test_two_pieces_of_scratch_memory_do_not_overlap_and_can_be_written_to() -> None:
    one, other = scratch((1000,), torch.zeros(1)), scratch((1000,), torch.zeros(1))
    one.fill_(1)
    other.fill_(2)
    assert one.sum() == 1000
