"""Quantities: what readings measure, and how people are shown them."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from leaktight.core import registry
from leaktight.core.metric import MEASURING, Quantity, quantity_of
from leaktight.testing import installed_classes


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        (Quantity("PSNR", "dB", digits=1), 23.456, "23.5"),
        (Quantity("SSIM", digits=2), 1.0, "1.00"),
        (Quantity("MSE"), 0.0123456, "0.0123"),
        (Quantity("MSE"), math.inf, "inf"),
        (Quantity("recognised", "%"), 0.875, "88 %"),
        (Quantity("accuracy", "%", digits=1), 0.875, "87.5 %"),
        (Quantity("V-information", "nats"), -0.25, "-0.25"),
    ],
)
def test_a_number_has_as_many_digits_as_its_quantity_says(quantity: Quantity, value: float, text: str) -> None:
    assert quantity.number(value) == text


def test_a_heading_names_the_unit_unless_numbers_do() -> None:
    assert quantity_of("psnr").heading == "PSNR (dB)"
    assert quantity_of("v_information").heading == "V-information (nats)"
    assert quantity_of("mutual_information_upper").heading == "mutual information, upper bound (bits)"
    assert quantity_of("reconstruction_statement").heading == "images recognised"


def test_a_share_of_a_quantity_is_shown_in_per_cent() -> None:
    share = quantity_of("v_information_share")
    assert (share.heading, share.number(0.1234), share.leaks) == ("V-information, share", "12.3 %", "high")


def test_a_class_in_the_place_of_a_property_keeps_unit_and_direction() -> None:
    assert quantity_of("label_psnr") == Quantity("PSNR (training with classes)", "dB", digits=1, leaks="high")


def test_no_two_classes_say_different_things_of_one_reading() -> None:
    stated: dict[str, Quantity] = {}
    for family in MEASURING:
        for made in installed_classes(family).values():
            for name, quantity in made.quantities().items():
                assert stated.setdefault(name, quantity) == quantity, name
    assert {"psnr", "leak_auc_q95", "sensitivity_inf", "objective", "accuracy", "auc", "training_loss"} <= set(stated)


def test_every_class_has_a_title() -> None:
    for family in registry.families():
        for kind, made in installed_classes(family).items():
            assert made.title, f"{family} {kind}"
            assert "_" not in made.title


def test_a_title_is_not_inherited_by_another_kind(toys: ModuleType) -> None:
    assert toys.ToyNoise.title == "noise of the toys"
    assert toys.ToyAttack.title == "toy attack"


def test_what_a_plugin_measures_is_shown_as_it_says(toys: ModuleType) -> None:
    size = quantity_of("size")
    assert (size.heading, size.number(1.2345)) == ("size of what was handed out (nats)", "1.23")
    assert quantity_of("turns").number(3.0) == "3"
