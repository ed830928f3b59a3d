from __future__ import annotations

import torch

from leaktight.core import registry
from leaktight.data import Digits, HeldOut, RareDigit, Source


def rows(inputs: torch.Tensor) -> set[bytes]:
    return {row.numpy().tobytes() for row in inputs.flatten(1)}


def test_training_examples_are_divided_and_test_examples_are_not_there() -> None:
    whole = Digits().load()
    held = HeldOut(data=Digits(), share=0.25).load()
    train, test = rows(held.train.inputs), rows(held.test.inputs)
    assert len(held.train) + len(held.test) == len(whole.train)
    assert train | test == rows(whole.train.inputs)
    assert not test & (rows(whole.test.inputs) - rows(whole.train.inputs))
    assert not train & test


def test_each_class_keeps_its_share_and_columns_stay() -> None:
    whole, held = RareDigit().load(), HeldOut(data=RareDigit()).load()
    share = whole.train.labels.float().mean().item()
    for part in (held.train, held.test):
        assert abs(part.labels.float().mean().item() - share) < 0.01
    assert (held.columns, held.names, held.classes) == (whole.columns, whole.names, 2)


def test_it_is_found_by_its_kind_and_comes_back_from_json() -> None:
    held = HeldOut(data=RareDigit(digit=3), share=0.5)
    assert registry.classes("data")["held_out"] is HeldOut
    assert Source.model_validate(held.to_dict()) == held
    assert held.stamp() == RareDigit(digit=3).stamp()


def test_the_same_rows_are_held_out_every_time() -> None:
    first = HeldOut(data=RareDigit()).load().test.inputs
    RareDigit().load()
    assert torch.equal(first, HeldOut(data=RareDigit()).load().test.inputs)
