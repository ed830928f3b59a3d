"""Every installed class of every family is a value: JSON both ways, frozen, strict, and it says its settings."""

from __future__ import annotations

import pytest

from leaktight.core import registry
from leaktight.core.value import Registered
from leaktight.testing.samples import installed, sample
from leaktight.testing.values import check_value

CLASSES = [
    pytest.param(family, made, id=f"{family}-{made.__name__}")
    for family in registry.families()
    for made in installed(family).values()
]
EXPLAINED = [
    pytest.param(made, id=made.__name__)
    for family in ("defence", "prior", "attack", "metric")
    for made in installed(family).values()
    if not made.__module__.startswith("leaktight.core")
]


@pytest.mark.parametrize(("family", "made"), CLASSES)
def test_the_class_is_a_value(family: str, made: type[Registered]) -> None:
    value = sample(made)
    if value is None:
        pytest.skip(f"{made.__name__} has settings without a default")
    assert made.family == family
    check_value(value)


@pytest.mark.parametrize("made", EXPLAINED)
def test_every_setting_is_explained_and_there_is_an_example(made: type[Registered]) -> None:
    text = made.__doc__ or ""
    assert ">>> " in text
    assert [name for name in made.model_fields if name != "kind" and f"        {name}: " not in text] == []
