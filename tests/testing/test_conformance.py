"""The kit's own tools, and what every value promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from leaktight.core.defence import Chain, Defence
from leaktight.core.errors import LeaktightError
from leaktight.defences import GaussianNoise, TopK
from leaktight.testing.conformance import (
    ConformanceError,
    close,
    contains,
    finite,
    installed_classes,
    own_randomness,
    picture,
    plain,
    require,
    require_unchanged,
    sample,
)
from leaktight.testing.values import check_value

Hook = Callable[..., Any]


def test_a_broken_promise_is_an_error_of_ours() -> None:
    assert issubclass(ConformanceError, LeaktightError)
    require(True, "Never said.")
    with pytest.raises(ConformanceError, match=r"^It must hold\.$"):
        require(False, "It must hold.")


@pytest.mark.parametrize(
    "other",
    [
        torch.tensor([1.0, 0.0]),
        torch.tensor([[1.0, -0.0]]),
        torch.tensor([1.0, -0.0]).double(),
        torch.tensor([1.0, -0.0, 0.0]),
    ],
    ids=["sign of zero", "shape", "type", "length"],
)
def test_pictures_see_every_difference(other: torch.Tensor) -> None:
    assert picture({"a": torch.tensor([1.0, -0.0])}) == picture({"a": torch.tensor([1.0, -0.0])})
    assert picture({"a": torch.tensor([1.0, -0.0])}) != picture({"a": other})


@pytest.mark.parametrize(
    "tensor", [torch.tensor(1.5), torch.empty(0), torch.arange(6).view(2, 3).T, torch.zeros(2, requires_grad=True)]
)
def test_pictures_take_any_tensor(tensor: torch.Tensor) -> None:
    assert picture({"a": tensor}) == picture({"a": tensor.clone()})


def test_a_change_in_place_is_seen() -> None:
    tensor = torch.zeros(3)
    with require_unchanged("Nobody", message={"a": tensor}):
        tensor + 1
    with (
        pytest.raises(
            ConformanceError, match=r"Somebody must leave its input unchanged\. Its message changed in place\."
        ),
        require_unchanged("Somebody", message={"a": tensor}),
    ):
        tensor[1] = 1


def test_the_global_generator_is_watched_and_put_back() -> None:
    state = torch.random.get_rng_state()
    with pytest.raises(ConformanceError, match="Somebody must draw from the stream"), own_randomness("Somebody"):
        torch.rand(1)
    assert torch.equal(state, torch.random.get_rng_state())


def test_small_tools() -> None:
    assert finite({"a": torch.zeros(2)})
    assert not finite({"a": torch.zeros(2), "b": torch.tensor([float("nan")])})
    assert close({"a": torch.ones(2)}, {"a": torch.ones(2) + 1e-6})
    assert not close({"a": torch.ones(2)}, {"b": torch.ones(2)})
    assert not close({"a": torch.ones(2)}, {"a": torch.ones(2) + 0.01})
    assert plain({"a": {"b": torch.ones(1), "c": 1}, "d": 0.5})
    assert not plain({"a": [1]})
    assert not plain({1: 1.0})
    assert contains(torch.tensor([[0.0, 2.0], [1.0, 3.0]]), torch.tensor([2, 1]))
    assert not contains(torch.tensor([0.0, 2.0, 5.0, 1.0]), torch.tensor([2, 1]))
    assert not contains(torch.tensor([2.0]), torch.tensor([2, 1]))


@pytest.mark.parametrize(
    "value",
    [GaussianNoise(std=0.5), TopK(share=0.2, residual=True), Chain(links=(TopK(), GaussianNoise(std=2.0)))],
    ids=repr,
)
def test_values_pass(value: Defence) -> None:
    check_value(value)


def hidden(self: Defence) -> str:
    return "hidden"


def forgets(self: Defence) -> dict[str, Any]:
    return {"kind": self.kind}


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (
            {"__str__": hidden},
            "The str of odd must name every setting that is not at its default. `std` is missing in hidden.",
        ),
        ({"__repr__": hidden}, "The repr of odd must print every setting. `kind` is missing."),
        ({"to_dict": forgets}, "odd must come back from its JSON as an equal value"),
        ({"model_config": {"extra": "ignore"}}, "odd must refuse a setting that it does not have."),
        ({"model_config": {"frozen": False}}, "odd must be frozen. Its settings can be changed."),
    ],
)
def test_broken_values_are_named(members: dict[str, Any], sentence: str, make: Hook) -> None:
    value = type(make(Defence, "odd", {"std": 1.0}, **members))(std=2.0)
    with pytest.raises(ConformanceError) as found:
        check_value(value)
    assert sentence in str(found.value)


def test_samples_are_what_plugins_bring(make: Hook) -> None:
    make(Defence, "only_in_this_test")
    assert {"gaussian_noise", "none", "chain"} <= set(installed_classes("defence"))
    assert "only_in_this_test" not in installed_classes("defence")
    assert sample(GaussianNoise) == GaussianNoise()
    assert installed_classes("no such family") == {}


def test_a_class_without_defaults_has_no_sample() -> None:
    assert sample(installed_classes("probe")["attempt"]) is None
