"""The cut toys: cut gradients row by row, hooks watched, and defences without a place refused."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.defence import Defence
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.defences import DPSGD, GaussianNoise, IsotropicNoise, LaplaceNoise, MaxNorm, Pruning, SumKL, TopK
from leaktight.testing.conformance import ConformanceError
from leaktight.testing.cut import binary, cut_message, cut_run, cut_step
from leaktight.testing.toys import PARTY, toy_batch, toy_task


def test_a_row_is_the_gradient_of_the_mean_loss_by_one_example_s_features() -> None:
    task, batch = toy_task(), binary(toy_batch(4))
    found = cut_message(task, batch).tensors["cut"]
    scores = task.model.head(task.model.features(batch.inputs)).softmax(1)
    errors = scores - torch.nn.functional.one_hot(batch.labels, 4)
    assert torch.allclose(found, errors @ task.model.head.weight / 4, atol=1e-6)
    assert not found.requires_grad


def test_a_run_has_both_sides_of_every_answer() -> None:
    run = cut_run(IsotropicNoise(), rounds=3, batch_size=2)
    assert [message.kind for message in run.transcript] == [Kind.ACTIVATION, Kind.CUT_GRADIENT] * 3
    for key, ground_truth in run.truths.items():
        assert key == ground_truth.sent.key
        assert set(ground_truth.used.labels.tolist()) <= {0, 1}
        assert torch.equal(
            ground_truth.clean.tensors["cut"], cut_message(run.public, ground_truth.used, key[1]).tensors["cut"]
        )
        assert not torch.equal(ground_truth.clean.tensors["cut"], ground_truth.sent.tensors["cut"])


@pytest.mark.parametrize(
    "defence", [GaussianNoise(), LaplaceNoise(), TopK(), Pruning(), IsotropicNoise(), MaxNorm(), SumKL()], ids=str
)
def test_message_defences_take_cut_gradients(defence: Defence) -> None:
    assert cut_step(defence, Local(PARTY, 0), 0).kind is Kind.CUT_GRADIENT


def test_a_defence_of_parameter_gradients_has_no_place() -> None:
    for play in (lambda: cut_run(DPSGD()), lambda: cut_step(DPSGD(), Local(PARTY, 0), 0)):
        with pytest.raises(Refusal, match="split learning has no place for that"):
            play()


def test_a_change_in_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(self: Defence, message: Message, local: Local) -> Message:
        message.tensors["cut"].zero_()
        return message

    monkeypatch.setattr(GaussianNoise, "on_message", spoil)
    with pytest.raises(ConformanceError, match="in on_message must leave its input unchanged"):
        cut_step(GaussianNoise(), Local(PARTY, 0), 0)
