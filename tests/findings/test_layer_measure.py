"""What an attack on layers asks comes from the settings of the data; nothing is loaded for it."""

import pytest

from leaktight.data import Attributes, ClassProperty, Csv, Npz, Parity
from leaktight.findings.layer_measure import asks_class, question_of
from leaktight.learning import Federated
from leaktight.models import MLP


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (Parity(), "have the property `6 or more`"),
        (Npz(path="nowhere.npz"), "have the private property"),
        (Npz(path="nowhere.npz", private_property="smoker"), "have the property `smoker`"),
        (
            Csv(path="nowhere.csv", label="y", private_property="sex", private_property_positive="f"),
            "have the property `sex: f`",
        ),
        (Csv(path="nowhere.csv", label="y", private_property="sex"), "have the property `sex`"),
        (
            Attributes(path="nowhere.npz", label="Male", private_property=("Hat", "Cap")),
            "have the property `Hat or Cap`",
        ),
        (ClassProperty(data=Parity()), "are of the commonest class"),
        (ClassProperty(data=Npz(path="nowhere.npz", private_property="smoker"), label=3), "are of class 3"),
    ],
)
def test_what_is_asked_comes_from_settings_alone(data, words):
    scenario = Federated(data=data, model=MLP())
    assert question_of(scenario) == words
    assert asks_class(scenario) is isinstance(data, ClassProperty)


def test_a_class_in_place_of_a_property_is_called_by_its_name():
    scenario = Federated(data=ClassProperty(data=Parity(), label=1), model=MLP())
    assert question_of(scenario, ("even", "odd")) == "are of class odd"


def test_a_scenario_of_another_kind_has_no_name_for_it(made):
    assert question_of(made.SCENARIO) == "have the private property"
    assert not asks_class(made.SCENARIO)
