from types import ModuleType
from typing import ClassVar

import pytest

from leaktight.core import defence
from leaktight.core import display as texts
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.metric import Reading
from leaktight.data import Digits
from leaktight.defences import DPSGD, GaussianNoise, LayerGuard, TopK, Withhold
from leaktight.findings import display


def test_a_defence_is_named_with_its_strength_even_at_the_default():
    assert display.name_of(GaussianNoise()) == "Gaussian noise (std 0.01)"
    assert display.name_of(TopK(share=0.05, residual=True)) == "top-k (share 0.05, residual True)"
    assert (
        display.name_of(Chain(links=(TopK(share=0.1), GaussianNoise(std=1))))
        == "top-k (share 0.1) + Gaussian noise (std 1)"
    )


def test_a_guard_is_named_with_what_it_does_and_without_places_on_the_disk():
    layers = ("body.linear1", "head")
    assert display.name_of(Withhold(layers=layers)) == "withholding (layers body.linear1, head)"
    guard = LayerGuard(guard=GaussianNoise(std=0.5), count=2, layers=layers)
    assert display.name_of(guard) == "layer guard (guard Gaussian noise (std 0.5), count 2, layers body.linear1, head)"
    assert (
        display.name_of(guard, ("guard", "std"))
        == "layer guard (guard Gaussian noise, count 2, layers body.linear1, head)"
    )
    assert display.family_of(LayerGuard(public=Digits())) == "layer guard (public digits)"
    stored = LayerGuard(ranking="patients/anna/layers.json", risk="labels")
    assert display.name_of(stored) == "layer guard (count 1, ranking from a file, risk labels)"


def test_a_family_leaves_the_strength_out_and_nothing_else():
    assert display.family_of(TopK(share=0.05)) == display.family_of(TopK(share=0.3)) == "top-k"
    assert display.family_of(TopK(share=0.05, residual=True)) == "top-k (residual True)"


def test_an_empty_chain_is_no_defence():
    assert defence.is_undefended(Chain())
    assert defence.is_undefended(Chain(links=(Undefended(),)))
    assert not defence.is_undefended(Chain(links=(Undefended(), GaussianNoise())))


def test_links_of_nested_chains_are_found():
    nested = Chain(links=(Chain(links=(TopK(), GaussianNoise())), DPSGD()))
    assert [link.kind for link in defence.links(nested)] == ["top_k", "gaussian_noise", "dp_sgd"]


def test_rank_grows_with_protection_whichever_way_the_field_counts():
    assert display.rank(GaussianNoise(std=0.1)) > display.rank(GaussianNoise(std=0.01))
    assert display.rank(TopK(share=0.01)) > display.rank(TopK(share=0.5))
    assert display.rank(Undefended()) == 0
    assert display.strength_of(Undefended()) is None


def test_a_cell_without_label_is_named_by_its_attack(made):
    assert display.label_of(made.record(label="").cell).startswith("gradient_matching(")
    assert display.label_of(made.record(label="mine").cell) == "mine"


def test_gist_is_one_paragraph_without_markup():
    text = display.gist(GaussianNoise())
    assert text == "Add Gaussian noise to a message, for whoever wants the simplest defence to compare with."


@pytest.mark.parametrize(
    ("value", "n", "text"),
    [(1, 8, "all 8"), (0, 8, "none of 8"), (0.375, 8, "3 of 8"), (1, 1, "1 of 1"), (0, 1, "none of 1")],
)
def test_counts(value, n, text):
    assert texts.show_count(Reading(name="share", value=value, n=n)) == text


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("property_auc", "property AUC"),
        ("v_information", "V-information"),
        ("v_information_random_forest_share", "V-information (random forest), share"),
        ("property_sensitivity_inf_share", "property sensitivity (max), share"),
        ("mutual_information_lower", "mutual information, lower bound"),
        ("something_new", "something new"),
        ("something_new_share", "something new, share"),
        ("label_auc", "label AUC"),
        ("label_v_information_share", "V-information of labels, share"),
        ("label_sensitivity_f_share", "sensitivity (F), share (training with classes)"),
        ("label_distance", "labels missed"),
        ("label_something_new", "something new (training with classes)"),
        ("exact_share", "exact, share"),
        ("accuracy_after_10", "accuracy after 10"),
    ],
)
def test_readings_have_titles(name, title):
    assert display.title_of(name) == title


def test_what_a_plugin_brings_is_named_as_it_says(toys: ModuleType) -> None:
    assert display.name_of(toys.ToyNoise(std=0.5)) == "noise of the toys (std 0.5)"
    assert (
        display.name_of(Chain(links=(TopK(share=0.1), toys.ToyNoise())))
        == "top-k (share 0.1) + noise of the toys (std 0.1)"
    )
    assert display.title_of("turns") == "turns taken"
    assert display.title_of("size_share") == "size of what was handed out, share"
    assert display.title_of("toy_count") == "toy count"


def test_points_never_shows_a_negative_zero():
    assert texts.points(-0.0001) == "0.0"
    assert texts.points(-0.01) == "-1.0"


def test_a_name_can_leave_one_number_out_wherever_it_is():
    chain = Chain(links=(TopK(share=0.05), GaussianNoise(std=1)))
    assert display.name_of(chain, ("links", 1, "std")) == "top-k (share 0.05) + Gaussian noise"
    assert display.name_of(chain, ("links", 0, "share")) == "top-k + Gaussian noise (std 1)"
    nested = Chain(links=(chain, DPSGD()))
    assert display.name_of(nested, ("links", 0, "links", 1, "std")).startswith(
        "top-k (share 0.05) + Gaussian noise + DP-SGD"
    )
    assert display.name_of(TopK(share=0.05, noise=0.1), ("noise",)) == "top-k (share 0.05)"
    assert display.name_of(chain, ("std",)) == display.name_of(chain)


class Wrapped(Defence):
    """Holds another defence; without a default kind it stays out of the registry."""

    title: ClassVar[str] = "layer guard"
    inner: Defence


def test_a_defence_inside_another_is_named_in_words():
    wrapped = Wrapped.model_construct(kind="layer_guard", inner=TopK(share=0.05, noise=0.1))
    assert display.name_of(wrapped) == "layer guard (inner top-k (share 0.05, noise 0.1))"
    assert display.name_of(wrapped, ("inner", "noise")) == "layer guard (inner top-k (share 0.05))"
