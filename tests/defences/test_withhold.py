"""Withholding: what is named does not go out, and nothing else changes."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.defences import ClassKeys, GaussianNoise, LayerGuard, TopK, Withhold
from leaktight.testing.cut import cut_run
from leaktight.testing.defences import check_defence
from leaktight.testing.toys import toy_run

TENSORS = {
    "body.1.weight": torch.ones(3, 2),
    "body.1.bias": torch.full((3,), 2.0),
    "body.10.weight": torch.full((2, 3), 3.0),
    "head.weight": torch.full((4, 2), 4.0),
}


def message(kind: Kind = Kind.GRADIENT, **more: torch.Tensor) -> Message:
    return Message(kind, "client-0", "server", 3, {**TENSORS, **more}, {"examples": 5.0})


def sent(defence: Withhold, kind: Kind = Kind.GRADIENT) -> Message:
    return defence.on_message(message(kind), Local("client-0", seed=0))


@pytest.mark.parametrize("layers", [(), ("head",), ("head", "body.1")], ids=str)
def test_it_keeps_the_promises_of_a_defence(layers: tuple[str, ...]) -> None:
    check_defence(Withhold(layers=layers))


@pytest.mark.parametrize("kind", [Kind.GRADIENT, Kind.UPDATE])
def test_whole_layers_are_left_out_and_the_rest_goes_out_as_it_is(kind: Kind) -> None:
    found = sent(Withhold(layers=("body.1",)), kind)
    assert list(found.tensors) == ["body.10.weight", "head.weight"]
    assert all(found.tensors[name] is TENSORS[name] for name in found.tensors)
    assert (found.kind, found.key, found.facts) == (kind, ("client-0", 3), {"examples": 5.0})


def test_without_names_nothing_goes_out() -> None:
    assert sent(Withhold()).tensors == {}


def test_what_is_broken_may_stay_home_but_not_go_out() -> None:
    broken = message(**{"head.weight": torch.tensor([float("nan")])})
    local = Local("client-0", seed=0)
    assert "head.weight" not in Withhold(layers=("head",)).on_message(broken, local).tensors
    with pytest.raises(InvalidValue, match=r"NaN or infinity in `head.weight`"):
        Withhold(layers=("body.1",)).on_message(broken, local)


def test_a_layer_that_is_not_there_is_an_error() -> None:
    with pytest.raises(InvalidValue, match=r"There is no layer named `body\.2`. Known are: `body\.1`"):
        sent(Withhold(layers=("head", "body.2")))
    with pytest.raises(InvalidValue, match="There is no layer named `weight`"):
        sent(Withhold(layers=("weight",)))


KEEPING = {
    "fixed by another": (ClassKeys(), Withhold(layers=("head",))),
    "fixed by one that comes after": (Withhold(layers=("body.1", "head")), ClassKeys()),
    "withheld before": (LayerGuard(layers=("head",)), Withhold(layers=("head",))),
    "everything withheld before": (Withhold(), Withhold(layers=("body.1",))),
    "guarded": (ClassKeys(), LayerGuard(layers=("body.1",), guard=Withhold(layers=("head",)))),
}


@pytest.mark.parametrize("links", KEEPING.values(), ids=KEEPING)
def test_a_layer_that_another_defence_keeps_back_is_refused(links: tuple[Defence, ...]) -> None:
    with pytest.raises(
        Refusal, match=r"withhold leaves out layers of a message\. Got `(head|body\.1)`, which another defence"
    ):
        toy_run(Chain(links=links))


@pytest.mark.parametrize("layer", ["tail", "body", "body.2", "head.weight", "normalise"])
@pytest.mark.parametrize("other", [Undefended(), ClassKeys()], ids=str)
def test_what_is_no_layer_of_the_model_is_an_error_whatever_else_is_done(layer: str, other: Defence) -> None:
    with pytest.raises(InvalidValue, match=f"There is no layer named `{layer}`"):
        toy_run(Chain(links=(other, Withhold(layers=(layer,)))))


def test_a_group_of_which_something_goes_out_is_no_layer() -> None:
    with pytest.raises(InvalidValue, match=r"There is no layer named `head`. Did you mean `head\.last`\?"):
        toy_run(Chain(links=(ClassKeys(fixed=False), Withhold(layers=("head",)))))


@pytest.mark.parametrize("kind", [Kind.ACTIVATION, Kind.CUT_GRADIENT])
def test_a_message_that_the_other_party_waits_for_is_refused(kind: Kind) -> None:
    with pytest.raises(Refusal, match=f"gradients and updates. Got a message of kind {kind} instead"):
        sent(Withhold(), kind)


def test_a_label_party_cannot_withhold() -> None:
    with pytest.raises(Refusal, match="withhold leaves layers out of gradients and updates"):
        cut_run(Withhold())


def test_a_chain_withholds_if_a_link_does() -> None:
    assert Withhold().withholds
    assert Chain(links=(TopK(), Chain(links=(Withhold(),)))).withholds
    assert not any(defence.withholds for defence in (Undefended(), TopK(), Chain(), Chain(links=(GaussianNoise(),))))
