"""Values: JSON both ways, the class found by kind, one sentence for each fault."""

import json
from typing import Literal

import pytest
from pydantic import Field, ValidationError

from leaktight.core import registry
from leaktight.core.defence import Chain, Defence, Strength, Undefended
from leaktight.core.errors import InvalidValue, closest, did_you_mean


class Dimmer(Defence):
    """A defence for these tests."""

    kind: Literal["test_dimmer"] = "test_dimmer"
    strength = Strength("by", "up", 0.0)
    by: float = Field(0.1, ge=0)
    colour: str = "grey"


def test_a_value_goes_to_json_and_back():
    chain = Chain(links=(Dimmer(by=2), Undefended()))
    text = json.dumps(chain.to_dict())
    assert Defence.model_validate(json.loads(text)) == chain


def test_the_key_depends_on_every_setting_and_on_nothing_else():
    assert Dimmer(by=2).key == Dimmer(by=2.0, colour="grey").key
    assert len({Dimmer().key, Dimmer(by=2).key, Dimmer(colour="red").key, Undefended().key}) == 4


def test_a_value_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Dimmer().by = 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kind": "test_dimmer", "by": -1}, "The `by` of test_dimmer must be at least 0. Got -1 instead."),
        ({"kind": "test_dimmer", "by": float("nan")}, "The `by` of test_dimmer must be a finite number."),
        ({"kind": "test_dimmer", "bye": 1}, "test_dimmer has no setting `bye`. Did you mean `by`?"),
        ({"kind": "test_dimer"}, "There is no defence named `test_dimer`. Did you mean `test_dimmer`?"),
        ({}, "A defence needs a `kind`."),
        (
            {"kind": "chain", "links": [{"kind": "test_dimmer", "by": "x"}]},
            "The `by` of test_dimmer must be a valid number",
        ),
    ],
)
def test_a_fault_is_a_sentence(settings, sentence):
    with pytest.raises(InvalidValue) as caught:
        Defence.model_validate(settings)
    assert sentence in str(caught.value)


def test_all_faults_are_told_at_once():
    with pytest.raises(InvalidValue) as caught:
        Defence.model_validate({"kind": "test_dimmer", "by": -1, "bye": 1})
    assert len(str(caught.value).splitlines()) == 2


def test_text_shows_what_is_not_default():
    assert str(Dimmer(by=2)) == "test_dimmer(by=2.0)"
    assert str(Chain(links=(Dimmer(), Undefended()))) == "test_dimmer + none"
    assert str(Chain()) == "none"


def test_two_classes_of_one_kind_are_refused():
    with pytest.raises(InvalidValue, match="is defined by"):
        registry.add("defence", "test_dimmer", Undefended)


def test_strength_is_changed_and_checked():
    assert Dimmer(colour="red").with_strength(0.5) == Dimmer(by=0.5, colour="red")
    with pytest.raises(InvalidValue, match="at least 0"):
        Dimmer().with_strength(-1)
    with pytest.raises(InvalidValue, match="no strength"):
        Undefended().with_strength(1.0)


def test_a_far_word_lists_what_is_known():
    assert did_you_mean("zzz", ["a", "b"]) == "Known are: `a`, `b`."


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("mpl", ["mlp", "mlps"], "mlp"),
        ("Titel", ["title", "threat"], "title"),
        ("DP_SGD", ["dp_sgd"], "dp_sgd"),
        ("topk", ["top_k", "top"], "top_k"),
        ("gaussian", ["gaussian_noise", "laplace_noise"], "gaussian_noise"),
        ("dlg2091", ["dlg2019", "fan2020"], "dlg2019"),
        # What is not a slip of the hand: another word, another number, an end.
        ("income", ["outcome", "incident"], None),
        ("client-9", ["client-0", "client-1"], None),
        ("body.2", ["body.1", "head"], None),
        ("noise", ["gaussian_noise", "laplace_noise"], None),
        ("", ["a"], None),
    ],
)
def test_only_a_likely_slip_gets_a_suggestion(word, known, meant):
    assert closest(word, known) == meant
