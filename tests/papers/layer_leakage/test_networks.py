from __future__ import annotations

import pytest

from leaktight.models import DeepDLNet
from leaktight.papers.layer_leakage.networks import CONVOLUTIONAL, NETWORKS, first_linear, layers_of, short_name


def test_layers_are_counted_as_in_the_paper() -> None:
    # Section 5: three and two, eight and three, and nine layers.
    assert {name: len(layers_of(network)) for name, network in NETWORKS.items()} == {
        "AlexNet": 5,
        "VGG11Net": 11,
        "FCNet": 9,
    }
    assert len(layers_of(DeepDLNet())) == 8


@pytest.mark.parametrize("name", NETWORKS)
def test_names_are_those_of_a_network_for_faces(name: str) -> None:
    parameters = NETWORKS[name].build((3, 62, 47), classes=5, seed=1).tensors()
    assert {f"{layer}.weight" for layer in layers_of(NETWORKS[name]).values()} <= parameters.keys()
    weights = [parameters[f"{layer}.weight"] for layer in layers_of(NETWORKS[name]).values()]
    assert [weight.dim() for weight in weights].index(2) + 1 == first_linear(name)
    assert (weights[0].dim() == 4) is (name in CONVOLUTIONAL)


def test_the_first_linear_layers_are_the_ones_that_the_paper_names() -> None:
    assert (first_linear("AlexNet"), first_linear("VGG11Net"), first_linear("FCNet")) == (4, 9, 1)
    assert short_name(layers_of(NETWORKS["VGG11Net"])[9]) == "linear1"
