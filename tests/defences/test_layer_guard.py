"""Layer guard: which layers, chosen by whom, and that all others go out as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from leaktight.core.channel import Channel
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, layer_of
from leaktight.core.scenario import flatten, unflatten
from leaktight.core.task import Task
from leaktight.data import ClassProperty, Digits
from leaktight.defences import (
    DPSGD,
    ClassKeys,
    GaussianNoise,
    IsotropicNoise,
    LaplaceNoise,
    LayerGuard,
    LocalDP,
    MaxNorm,
    Polarization,
    Pruning,
    Sealed,
    SumKL,
    TopK,
    Withhold,
)
from leaktight.defences.sealing_order import public_order
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.testing.conformance import contains
from leaktight.testing.cut import cut_run
from leaktight.testing.defences import CANARY, check_canary, check_defence
from leaktight.testing.toys import toy_message, toy_run, toy_task

BOTH = ("body.1", "head")
GUARDS = [
    Withhold(),
    Sealed(),
    GaussianNoise(std=0.5),
    Pruning(rate=0.5),
    TopK(share=0.3, noise=0.1, residual=True),
    Chain(links=(TopK(share=0.5), LaplaceNoise(scale=0.1))),
]


def ready(defence: Defence, task: Task | None = None) -> Local:
    """Return the Local of a party that has agreed and made its task."""
    local = Local("client-0", seed=0)
    defence.on_task(defence.on_agree(task or toy_task()), local)
    local.begin(0)
    return local


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_it_keeps_the_promises_of_a_defence(guard: Defence, count: int) -> None:
    check_defence(LayerGuard(guard=guard, count=count, layers=BOTH))


@pytest.mark.parametrize("layers", [BOTH, BOTH[::-1]], ids=str)
@pytest.mark.parametrize("guard", GUARDS[2:], ids=str)
def test_only_guarded_layers_change(guard: Defence, layers: tuple[str, ...]) -> None:
    clean, defence = toy_message(), LayerGuard(guard=guard, layers=layers)
    found = defence.on_message(clean, ready(defence)).tensors
    assert list(found) == list(clean.tensors)
    for name, tensor in clean.tensors.items():
        assert torch.equal(found[name], tensor) == (layer_of(name) != layers[0])


def test_withheld_layers_are_missing_and_the_order_stays() -> None:
    clean = toy_message()
    for layers, kept in ((BOTH, ["head.weight", "head.bias"]), (BOTH[::-1], ["body.1.weight", "body.1.bias"])):
        defence = LayerGuard(layers=layers)
        assert list(defence.on_message(clean, ready(defence)).tensors) == kept
    every = LayerGuard(layers=BOTH, count=2)
    assert every.on_message(clean, ready(every)).tensors == {}


def test_the_guard_sees_a_message_of_its_own() -> None:
    clean, defence = toy_message(), LayerGuard(guard=TopK(share=0.25), layers=("head",))
    part = {name: tensor for name, tensor in clean.tensors.items() if layer_of(name) == "head"}
    alone = Message(clean.kind, clean.sender, clean.receiver, clean.round, part, clean.facts)
    expected = TopK(share=0.25).on_message(alone, Local("client-0", seed=0)).tensors
    found = defence.on_message(clean, ready(defence)).tensors
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_the_guard_has_a_scope_of_its_own() -> None:
    defence = LayerGuard(guard=TopK(share=0.25, residual=True), layers=("head",))
    local = ready(defence)
    defence.on_message(toy_message(), local)
    assert local.memory["guarded"] == {"head": 0}
    assert sorted(local.memory["guard"]["residual"]) == ["head.bias", "head.weight"]
    restored = Local("client-0", seed=0, memory=unflatten(flatten(local.memory)))
    one, other = (defence.on_message(toy_message(round=1), place).tensors for place in (local, restored))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_canary_in_a_withheld_layer_does_not_go_out() -> None:
    defence, secret = LayerGuard(layers=("body.1",)), torch.tensor([CANARY, CANARY / 2])
    clean = toy_message()
    clean.tensors["body.1.weight"].view(-1)[5:7] = secret
    sent = defence.on_message(clean, ready(defence)).tensors
    assert contains(clean.tensors["body.1.weight"], secret)
    assert not any(contains(tensor, secret) for tensor in sent.values())
    check_canary(LayerGuard(guard=TopK(share=0.2, residual=True), layers=BOTH, count=2))


def test_a_channel_speaks_of_layers_that_were_agreed_on() -> None:
    guard = LayerGuard(guard=TopK(share=0.2), layers=BOTH, count=1)
    with pytest.raises(InvalidValue, match="must be agreed on before a party is made"):
        guard.channel(toy_task())
    assert guard.channel(guard.on_agree(toy_task())).complete
    owing = LayerGuard(guard=TopK(share=0.2, residual=True), layers=BOTH, count=1)
    assert not owing.channel(owing.on_agree(toy_task())).complete
    none = LayerGuard(layers=BOTH, count=0)
    assert none.channel(none.on_agree(toy_task())) == Channel()


def test_a_count_of_zero_is_no_defence() -> None:
    clean = toy_run(Undefended())
    off = toy_run(LayerGuard(count=0, layers=BOTH))
    for key, ground_truth in clean.truths.items():
        assert all(
            torch.equal(tensor, off.truths[key].sent.tensors[name])
            for name, tensor in ground_truth.sent.tensors.items()
        )


@pytest.mark.parametrize("links", [(0, 1), (1, 0)], ids=["guard first", "guard last"])
def test_in_a_chain_with_top_k(links: tuple[int, int]) -> None:
    both = (LayerGuard(layers=("body.1",)), TopK(share=0.5))
    run = toy_run(Chain(links=tuple(both[place] for place in links)))
    for ground_truth in run.truths.values():
        sent = torch.cat([tensor.flatten() for tensor in ground_truth.sent.tensors.values()])
        assert set(map(layer_of, ground_truth.sent.tensors)) == {"head"}
        if links == (0, 1):
            assert int((sent != 0).sum()) == 34  # half of what is left
        else:
            whole = torch.cat([tensor.flatten().abs() for tensor in ground_truth.clean.tensors.values()])
            assert sent[sent != 0].abs().min() >= whole.median()


def test_two_guards_in_a_chain_choose_apart() -> None:
    noise, pruned = LayerGuard(guard=GaussianNoise(), layers=("head",)), LayerGuard(guard=Pruning(), layers=("body.1",))
    run = toy_run(Chain(links=(noise, pruned)))
    assert run.public.agreed == {noise.key: ("head",), pruned.key: ("body.1",)}
    memory = run.locals["client-0"].memory["defence"]
    assert [memory[f"{place}-layer_guard"]["guarded"] for place in (0, 1)] == [{"head": 0}, {"body.1": 0}]


def test_beside_a_private_head_the_choice_is_made_in_public() -> None:
    guard = LayerGuard(public=ClassProperty(data=Digits()), guard=Pruning())
    task = Federated(data=Digits(), model=MLP(hidden=(4,))).task(Digits().load(), seed=0)
    chain = Chain(links=(Polarization(alpha2=5.0), guard))
    agreed, alone = (defence.on_agree(task).agreed[guard.key] for defence in (chain, guard))
    locals_ = [Local(f"client-{n}", seed=n) for n in range(2)]
    for local in locals_:
        chain.on_task(chain.on_agree(task), local)
    assert [local.memory["1-layer_guard"]["guarded"] for local in locals_] == [{agreed[0]: 0}] * 2
    assert agreed == alone


def test_by_public_data_those_layers_are_guarded_without_which_least_is_told() -> None:
    """Training examples have no part in it: the order is that of a shadow attack on the test part."""
    scenario, source = Federated(data=Digits(), model=MLP(hidden=(12,)), participants=3), ClassProperty(data=Digits())
    data = scenario.data.load()
    task = scenario.task(data, seed=1)
    ranked = public_order(task, source.load().test)
    for count in range(3):
        defence = LayerGuard(public=source, count=count)
        public = defence.on_agree(task)
        assert public.agreed[defence.key] == ranked[:count]
        clients = scenario.clients(public, data, defence, seed=1)
        assert all(sorted(c.local.memory["defence"]["guarded"]) == sorted(ranked[:count]) for c in clients)


def test_sealed_layers_are_trained_and_not_seen() -> None:
    clean, defence = toy_message(), LayerGuard(layers=BOTH, guard=Sealed())
    sent = defence.on_message(clean, ready(defence))
    assert list(map(layer_of, sent.tensors)) == ["head", "head"]
    assert sent.whole().keys() == clean.tensors.keys()
    assert all(torch.equal(sent.whole()[name], tensor) for name, tensor in clean.tensors.items())


def test_the_choice_is_the_same_wherever_it_is_made() -> None:
    task = Federated(data=Digits(), model=MLP(hidden=(12,))).task(Digits().load(), seed=0)
    defence = LayerGuard(public=ClassProperty(data=Digits()))
    state = torch.random.get_rng_state()
    first, again = (defence.on_agree(task.copy()).agreed for _ in range(2))
    assert first == again
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., str]:
    def write(**ranking: list[str]) -> str:
        file = tmp_path / "layers.json"
        file.write_text(json.dumps({"format": 1, "layers": [], "ranking": ranking}))
        return str(file)

    return write


def test_a_stored_ranking_is_followed(stored: Callable[..., str]) -> None:
    path = stored(property=["head", "body.1"], reconstruction=["body.1", "head"])
    for risk, first in (("property", "head"), ("reconstruction", "body.1")):
        defence = LayerGuard.model_validate({"ranking": path, "risk": risk})
        assert defence.on_agree(toy_task()).agreed[defence.key] == (first,)


def test_a_ranking_may_have_any_name_but_must_be_there(stored: Callable[..., str]) -> None:
    path = stored(outlines=["body.1", "head"])
    defence = LayerGuard(ranking=path, risk="outlines")
    assert defence.on_agree(toy_task()).agreed[defence.key] == ("body.1",)
    with pytest.raises(InvalidValue, match=r"has no ranking by `outline`\. Did you mean `outlines`\?"):
        LayerGuard(ranking=path, risk="outline").stamp()


def test_it_promises_what_its_guard_promises_where_it_guards() -> None:
    noisy = LayerGuard(guard=GaussianNoise(), layers=BOTH)
    assert (noisy.promise, noisy.redraws) == ("noise", True)
    for quiet in (noisy.with_strength(0), LayerGuard(guard=TopK(), layers=BOTH)):
        assert (quiet.promise, quiet.redraws) == (None, False)


def test_a_training_goes_on_with_the_layers_it_began_with(stored: Callable[..., str]) -> None:
    defence = LayerGuard(ranking=stored(property=["head", "body.1"]))
    local = ready(defence)
    stored(property=["body.1", "head"])
    defence.on_task(defence.on_agree(toy_task()), local)
    assert local.memory["guarded"] == {"head": 0}


def test_a_ranking_of_another_model_is_an_error(stored: Callable[..., str], tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"There is no layer named `body\.linear1`"):
        LayerGuard(ranking=stored(property=["head", "body.linear1"])).on_agree(toy_task())
    with pytest.raises(InvalidValue, match="There is no file or folder"):
        LayerGuard(ranking=str(tmp_path / "none.json")).on_agree(toy_task())


def test_a_layer_that_another_defence_has_fixed_is_refused() -> None:
    with pytest.raises(
        Refusal, match=r"guards layers that learn and are shared. Got `head`, which another defence has fixed"
    ):
        Chain(links=(ClassKeys(), LayerGuard(layers=("head",)))).on_agree(toy_task())


def test_layers_that_the_model_does_not_have() -> None:
    with pytest.raises(InvalidValue, match=r"There is no layer named `bodi\.1`. Did you mean `body\.1`\?"):
        LayerGuard(layers=("head", "bodi.1")).on_agree(toy_task())


def test_more_layers_than_there_are() -> None:
    sentence = "The `count` of layer_guard must be at most 2, as many layers as are ranked. Got 3 instead."
    with pytest.raises(InvalidValue, match=sentence):
        LayerGuard(layers=BOTH, count=3).on_agree(toy_task())


def test_public_data_must_say_what_is_private() -> None:
    task = Federated(data=Digits(), model=MLP(hidden=(4,))).task(Digits().load(), seed=0)
    with pytest.raises(InvalidValue, match="must have a private property, by which layers are ranked"):
        LayerGuard(public=Digits()).on_agree(task)


def test_public_data_of_another_kind_is_an_error() -> None:
    with pytest.raises(
        InvalidValue, match=r"shape \(1, 3, 4\) and 4 classes .* Got shape \(1, 8, 8\) and 10 classes instead"
    ):
        LayerGuard(public=Digits()).on_agree(toy_task())


def test_parameters_that_are_not_finite_have_no_ranking() -> None:
    task = Federated(data=Digits(), model=MLP(hidden=(4,))).task(Digits().load(), seed=0)
    with torch.no_grad():
        task.model.head.weight.fill_(float("inf"))
    with pytest.raises(InvalidValue, match=r"gradients of `.*` on public data must be finite numbers"):
        LayerGuard(public=ClassProperty(data=Digits())).on_agree(task)


def test_whoever_skips_the_agreement_sends_nothing() -> None:
    defence = LayerGuard(layers=BOTH)
    with pytest.raises(InvalidValue, match="layer_guard must be agreed on before a party is made"):
        defence.on_task(toy_task(), Local("client-0", seed=0))
    with pytest.raises(InvalidValue, match="Call `on_task` first"):
        defence.on_message(toy_message(), Local("client-0", seed=0))


@pytest.mark.parametrize("guard", [MaxNorm(), IsotropicNoise(), SumKL()], ids=str)
def test_a_guard_of_cut_gradients_is_refused(guard: Defence) -> None:
    defence = LayerGuard(guard=guard, layers=BOTH)
    with pytest.raises(Refusal, match=f"{guard.kind} protects cut gradients"):
        toy_run(defence)


def test_split_learning_has_no_layers_to_guard() -> None:
    with pytest.raises(Refusal, match="layer_guard changes the public task; split learning has no place for that"):
        cut_run(LayerGuard(layers=("head",)))
    defence = LayerGuard(layers=("head",))
    cut = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, {"cut": torch.ones(2, 2)})
    with pytest.raises(
        Refusal, match=r"guards layers of gradients and updates. Got a message of kind cut_gradient instead"
    ):
        defence.on_message(cut, ready(defence))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({}, "must be told the riskiest layers by one of `layers`, `ranking` and `public`. Got none of them instead."),
        ({"layers": ["a"], "ranking": "b"}, "Got `layers` and `ranking` instead."),
        ({"layers": ["a", "b", "a"]}, "The `layers` of layer_guard must be different ones. Got a, b, a instead."),
        ({"layers": ["a"], "risk": "labels"}, "The `risk` of layer_guard must be left out without a `ranking`"),
        ({"layers": ["a"], "count": -1}, "The `count` of layer_guard must be at least 0. Got -1 instead."),
        ({"layers": ["a"], "guard": Polarization()}, "Got polarization instead, which does nothing to a message."),
        ({"layers": ["a"], "guard": {"kind": "none"}}, "Got none instead, which does nothing to a message."),
        ({"layers": ["a"], "guard": Chain()}, "Got chain instead, which does nothing to a message."),
        ({"layers": ["a"], "guard": DPSGD()}, "Got dp_sgd instead, which needs the gradient of each example."),
        (
            {"layers": ["a"], "guard": LocalDP()},
            "Got local_dp instead, whose epsilon would leave out what the other layers tell.",
        ),
        ({"layers": ["a"], "guard": GaussianNoise(each="step")}, "which acts on the gradient of each local step."),
        (
            {"layers": ["a"], "guard": LayerGuard(layers=("a",))},
            "Got layer_guard instead, which acts in `on_agree` too.",
        ),
        ({"layers": ["a"], "guard": Chain(links=(TopK(), DPSGD()))}, "Got dp_sgd instead, which needs"),
    ],
)
def test_wrong_settings(setting: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidValue) as found:
        LayerGuard.model_validate(setting)
    assert sentence in str(found.value)
