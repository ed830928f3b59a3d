"""Secrets: what an attacker plays itself is the participant that the defence would make, with other secrets."""

import dataclasses
from typing import Literal

import pytest
import torch

from leaktight.attacks.private_state import PlayedParty, draw_secrets, replace_secrets
from leaktight.attacks.replay import Replay
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.random import stream
from leaktight.core.threat import ThreatModel
from leaktight.defences import GaussianNoise
from leaktight.defences.polarization import Polarization

SPN = Polarization(bits=6, alpha2=0.4)
HEAD = {"head.private.weight", "head.private.bias"}


class Remembering(Defence):
    """Keeps things of every kind in memory, and lets one of them weigh the loss."""

    kind: Literal["test_remembering"] = "test_remembering"

    def on_task(self, task, local):
        weight = local.draws.uniforms(())
        local.memory.update({"count": torch.tensor(3), "number": 0.5, "inner": {"weight": weight}})
        memory = local.memory
        return dataclasses.replace(
            task, loss=lambda outputs, labels: memory["inner"]["weight"] * task.loss(outputs, labels)
        )


@pytest.fixture
def public(observe):
    return observe(victims=1).public


def test_secrets_are_the_parameters_that_stay_home_and_the_floating_tensors_in_memory(public):
    played = PlayedParty.of(SPN, public, 5, stream(0))
    assert set(played.secrets()) == HEAD | {"defence/codes"}
    assert set(PlayedParty.of(Remembering(), public, 5, stream(0)).secrets()) == {"defence/inner/weight"}


@pytest.mark.parametrize(
    "defence", [Undefended(), GaussianNoise(std=1.0), Chain(links=(GaussianNoise(std=1.0),))], ids=str
)
def test_a_defence_that_keeps_nothing_has_no_secret(public, defence):
    assert draw_secrets(defence, public, 5, 4, stream(0))[1] == {}


def test_a_chain_has_the_secrets_of_its_links_in_their_scopes(public):
    found = PlayedParty.of(Chain(links=(GaussianNoise(std=1.0), SPN)), public, 5, stream(0)).secrets()
    assert set(found) == HEAD | {"defence/1-polarization/codes"}


def test_every_row_is_another_draw_and_a_stream_gives_the_same_ones(public):
    _, one = draw_secrets(SPN, public, 5, 3, stream(0))
    _, same = draw_secrets(SPN, public, 5, 3, stream(0))
    for name, rows in one.items():
        assert torch.equal(rows, same[name])
        assert len(rows) == 3
        assert not torch.equal(rows[0], rows[1])
    assert one["defence/codes"].abs().unique().tolist() == [1.0]


def test_the_attacker_draws_neither_the_victim_s_secrets_nor_touches_the_public_task(observe):
    run = observe(victims=1, defence=SPN)
    before = {name: tensor.clone() for name, tensor in run.public.model.state_dict().items()}
    _, found = draw_secrets(run.defence, run.public, 1, 64, stream(0))
    true = run.locals["client-0"].memory["defence"]["codes"]
    assert not any(torch.equal(codes, true) for codes in found["defence/codes"])
    assert all(torch.equal(tensor, before[name]) for name, tensor in run.public.model.state_dict().items())


def test_memory_holds_other_values_inside_the_block_only():
    memory = {"codes": torch.ones(2), "scope": {"key": torch.zeros(1)}, "count": 3}
    before = memory["codes"]
    with (
        pytest.raises(ZeroDivisionError),
        replace_secrets(memory, {"codes": torch.tensor(7.0), "scope/key": torch.tensor(8.0), "x": before}),
    ):
        assert (memory["codes"], memory["scope"]["key"], memory["count"]) == (7.0, 8.0, 3)
        raise ZeroDivisionError
    assert memory["codes"] is before
    assert memory["scope"]["key"] == 0
    assert set(memory) == {"codes", "scope", "count"}


@pytest.mark.parametrize("links", [(SPN,), (SPN, GaussianNoise(std=0.0)), (Remembering(), SPN)])
@pytest.mark.parametrize("steps", [1, 2])
def test_with_the_true_secrets_the_replay_is_the_message(observe, links, steps):
    run = observe(victims=1, batch=2, steps=steps, defence=Chain(links=links))
    view = ThreatModel().view(run)
    [exchange] = view.exchanges()
    inside = run.truths[exchange.sent.key]
    played, _ = draw_secrets(run.defence, view.task, 4, 1, stream(0))
    own = run.locals["client-0"]
    true = PlayedParty(inside.task, {"defence": own.memory["defence"]}).secrets()
    replay = dataclasses.replace(Replay.of(view.task, exchange.sent), task=played.task, memory=played.memory)
    targets = torch.nn.functional.one_hot(inside.used.labels, 4).float()
    found = replay(exchange.parameters, inside.used.inputs, targets, true).means
    for name, tensor in exchange.sent.tensors.items():
        assert torch.allclose(found[name], tensor, atol=1e-6)
    other = replay(exchange.parameters, inside.used.inputs, targets, played.secrets()).means
    assert not torch.allclose(other["body.1.weight"], exchange.sent.tensors["body.1.weight"], atol=1e-3)
