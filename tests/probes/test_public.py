from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.probes.public import latest, public_examples
from leaktight.testing import toy_batch, toy_run, toy_task


@pytest.fixture
def run() -> Run:
    return toy_run(rounds=2)


def test_the_last_whole_model_counts(run: Run) -> None:
    first, answer, second, last = run.transcript
    newer = second.map(lambda tensor: tensor + 1)
    part = dataclasses.replace(newer, tensors={"head.bias": torch.zeros(4)})
    found = latest(dataclasses.replace(run, transcript=(first, answer, newer, last, part)), "sensitivity")
    assert found.keys() == run.public.model.tensors().keys()
    for name, tensor in found.items():
        assert torch.equal(tensor, newer.tensors[name])


def test_what_stays_home_is_taken_from_the_model(run: Run) -> None:
    task = dataclasses.replace(run.public, wire=lambda name: None if name.startswith("head") else f"shared.{name}")
    sent = run.transcript[0]
    renamed = dataclasses.replace(sent, tensors={f"shared.{name}": tensor for name, tensor in sent.tensors.items()})
    found = latest(dataclasses.replace(run, public=task, transcript=(renamed,)), "sensitivity")
    assert torch.equal(found["body.1.weight"], sent.tensors["body.1.weight"])
    assert torch.equal(found["head.weight"], task.model.tensors()["head.weight"])


def test_a_run_without_a_model_is_refused(run: Run) -> None:
    answers = tuple(message for message in run.transcript if message.kind is not Kind.PARAMETERS)
    with pytest.raises(Refusal, match="sensitivity needs the parameters of a whole model"):
        latest(dataclasses.replace(run, transcript=answers), "sensitivity")


def test_examples_are_drawn_once_each(run: Run) -> None:
    assert run.auxiliary is not None
    everything = public_examples(run, "sensitivity", 1000, stream(0, "draw"))
    assert torch.equal(everything.inputs.flatten(1).sum(1).sort()[0], run.auxiliary.inputs.flatten(1).sum(1).sort()[0])
    few = public_examples(run, "sensitivity", 4, stream(0, "draw"))
    assert torch.equal(few.inputs, everything.inputs[:4])
    assert not torch.equal(few.inputs, public_examples(run, "sensitivity", 4, stream(1, "draw")).inputs)


@pytest.mark.parametrize("auxiliary", [None, toy_batch(0)])
def test_a_run_without_public_examples_is_refused(run: Run, auxiliary: object) -> None:
    with pytest.raises(Refusal, match="sensitivity needs public examples of the same kind as the private ones"):
        public_examples(dataclasses.replace(run, auxiliary=auxiliary), "sensitivity", 4, stream(0, "draw"))


def test_layers_are_those_that_go_out() -> None:
    task = dataclasses.replace(toy_task(), wire=lambda name: None if name.startswith("head") else f"shared.{name}")
    assert task.layers() == {"shared.body.1": ("body.1.weight", "body.1.bias")}
