"""An attacker that models the defence: finds what a private head hides, and is the plain attacker where nothing is hidden."""

import dataclasses
from typing import Literal

import pytest
import torch

from leaktight.attacks import AdamDescent, GradientMatching, LbfgsDescent, preset
from leaktight.attacks import engine as engine_module
from leaktight.attacks.engine import Engine
from leaktight.attacks.replay import Replay
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import ClassKeys, GaussianNoise, TopK
from leaktight.defences.polarization import Polarization
from leaktight.metrics import PSNR
from leaktight.testing.attacks import check_attack
from leaktight.testing.toys import toy_run

EVERYTHING = ThreatModel(knows=frozenset(Knows))
PLAIN = GradientMatching(distance="l2", descent=LbfgsDescent(history=20), iterations=15, restarts=4)
ADAPTIVE = PLAIN.model_copy(update={"models_defence": True})
SPN = Polarization(bits=8, alpha2=0.3)


def changed(attack, **changes):
    return type(attack).model_validate({**attack.to_dict(), **changes})


def errors(guess, run) -> torch.Tensor:
    """The mean squared error of each message; these hold one example."""
    pairs = zip(guess.keys, guess.inputs, strict=True)
    return torch.stack([(inputs - run.inside[key].raw.inputs).square().mean() for key, inputs in pairs])


class Scaled(Defence):
    """Multiplies the loss with one secret number, kept in memory."""

    kind: Literal["test_scaled"] = "test_scaled"

    def on_task(self, task, local):
        memory = local.memory
        memory["factor"] = 0.5 + local.draws.uniforms(())
        return dataclasses.replace(task, loss=lambda outputs, labels: memory["factor"] * task.loss(outputs, labels))


def test_it_needs_to_know_the_defence_and_says_so():
    assert PLAIN.needs == frozenset()
    assert ADAPTIVE.needs == {Knows.DEFENCE}
    assert changed(ADAPTIVE, labels="given").needs == {Knows.DEFENCE, Knows.LABELS}
    with pytest.raises(Refusal, match="needs to know defence"):
        ADAPTIVE.check(ThreatModel().knows)


def test_it_keeps_the_promises_of_an_attack():
    check_attack(changed(ADAPTIVE, iterations=10, restarts=2))


def test_a_view_without_the_defence_is_refused(observe):
    with pytest.raises(Refusal, match="Add `defence` to `knows`"):
        ADAPTIVE(ThreatModel().view(observe(victims=1)), stream(0))


@pytest.mark.parametrize("labels", ["read", "joint", "given"])
def test_it_recovers_what_a_private_head_hides_from_the_plain_attack(observe, labels):
    run = observe(victims=3, defence=SPN)
    view = EVERYTHING.view(run)
    plain, adaptive = (changed(attack, labels=labels)(view, stream(0)) for attack in (PLAIN, ADAPTIVE))
    assert errors(adaptive, run).median() < 0.1 * errors(plain, run).median()
    assert errors(adaptive, run).median() < 1e-3
    assert (adaptive.objective < plain.objective).all()
    for row, key in enumerate(adaptive.keys):
        assert labels == "given" or torch.equal(adaptive.labels[row], run.inside[key].used.labels)


@pytest.mark.parametrize("defence", [Undefended(), GaussianNoise(std=0.01), TopK(share=0.9)], ids=str)
def test_where_nothing_is_kept_it_is_the_plain_attack(observe, defence):
    """From the same start both take the same path: the defence hides nothing that could be searched along."""
    view = EVERYTHING.view(observe(victims=2, defence=defence))
    plain, adaptive = (engine(changed(attack, iterations=3, labels="given"), view) for attack in (PLAIN, ADAPTIVE))
    assert plain.layout.shapes == adaptive.layout.shapes
    points = plain._start(2 * PLAIN.restarts, stream(1))
    one, other = (made.run_from(points.clone()) for made in (plain, adaptive))
    assert torch.equal(one.objective, other.objective)
    assert torch.equal(one.inputs, other.inputs)
    assert torch.isfinite(one.objective).all()


def engine(attack, view) -> Engine:
    exchanges = view.exchanges()
    return Engine(attack.victims(Replay.of(view.task, exchanges[0].sent), exchanges, view, stream(0)), attack.search())


def test_a_chain_is_modelled_through_its_links(observe):
    run = observe(victims=2, defence=Chain(links=(SPN, GaussianNoise(std=1e-5))))
    view = EVERYTHING.view(run)
    assert {"head.private.weight", "defence/0-polarization/codes"} <= set(engine(ADAPTIVE, view).layout.shapes)
    assert errors(ADAPTIVE(view, stream(0)), run).max() < 0.5 * errors(PLAIN(view, stream(0)), run).min()


def test_a_secret_that_is_one_number_in_memory_is_found(observe):
    run = observe(victims=2, defence=Scaled())
    view = EVERYTHING.view(run)
    adaptive, plain = (attack(view, stream(0)) for attack in (ADAPTIVE, PLAIN))
    assert errors(adaptive, run).max() < 1e-3
    assert (adaptive.objective < plain.objective).all()


def test_updates_carry_the_private_head_through_the_local_steps(observe):
    run = observe(victims=1, steps=2, rate=0.5, defence=SPN)
    view = EVERYTHING.view(run)
    short, long = (changed(ADAPTIVE, labels="given", iterations=n)(view, stream(0)) for n in (1, 15))
    assert long.inputs[0].shape == (2, 1, 6, 6)
    assert long.objective[0] < 0.1 * short.objective[0]


def test_candidates_start_at_secrets_of_their_own_in_units_of_their_spread(observe):
    found = engine(ADAPTIVE, EVERYTHING.view(observe(victims=3, defence=SPN)))
    points = found._start(12, stream(0))
    assert points.shape == (12, found.layout.width)
    assert found.layout.width == 36 + 24 * 8 + 8 + 4 * 8
    heads = found.layout.unpack(points)["head.private.weight"]
    assert heads.std(correction=0) == pytest.approx(1.0, abs=1e-3)
    assert len(heads.flatten(1).unique(dim=0)) == 12
    _, _, secrets = found._unpack(points, found.victims.targets)
    for name, tensor in found.victims.secrets.items():
        assert torch.allclose(secrets[name], tensor, atol=1e-6)


def test_only_pixels_are_boxed(observe):
    found = engine(changed(ADAPTIVE, box=True), EVERYTHING.view(observe(victims=1, defence=SPN)))
    points = torch.full((1, found.layout.width), 3.0)
    inside = found.layout.unpack(found._boxed(points))
    assert (inside.pop("pixels") == 1).all()
    assert all((tensor == 3).all() for tensor in inside.values())


def test_the_estimate_of_memory_counts_every_unknown(observe):
    run = observe(victims=1, defence=SPN)
    plain, adaptive = (engine(attack, EVERYTHING.view(run)) for attack in (PLAIN, ADAPTIVE))
    more = adaptive._bytes_per_row() - plain._bytes_per_row()
    assert more >= 4 * PLAIN.descent.remembered * (adaptive.layout.width - plain.layout.width)


@pytest.mark.parametrize("sign", ["none", "hard", "soft"])
def test_every_sign_and_decay_lowers_the_objective(observe, sign):
    view = EVERYTHING.view(observe(victims=2, defence=SPN))
    settings = {"sign": sign, "decay": "steps", "descent": AdamDescent(learning_rate=0.02), "restarts": 1}
    short, long = (changed(ADAPTIVE, iterations=n, **settings)(view, stream(0)).objective for n in (1, 200))
    assert (long < 0.5 * short).all()


def test_the_same_stream_gives_the_same_guess_and_chunks_change_nothing(observe, monkeypatch):
    view = EVERYTHING.view(observe(victims=2, defence=SPN))
    attack = changed(ADAPTIVE, descent=AdamDescent(), iterations=30, restarts=2)
    one = attack(view, stream(3))
    same = attack(view, stream(3))
    assert all(torch.equal(a, b) for a, b in zip(one.inputs, same.inputs, strict=True))
    monkeypatch.setattr(engine_module, "MEMORY", 1)
    apart = attack(view, stream(3))
    assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(one.inputs, apart.inputs, strict=True))


def test_it_leaves_global_randomness_and_the_view_alone(observe):
    view = EVERYTHING.view(observe(victims=1, defence=SPN))
    before, state = view.task.model.state_dict(), torch.random.get_rng_state()
    before = {name: tensor.clone() for name, tensor in before.items()}
    changed(ADAPTIVE, iterations=1)(view, stream(0))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(tensor, before[name]) for name, tensor in view.task.model.state_dict().items())


def test_an_audit_can_hold_the_preset(observe):
    attack = preset("fan2020-adaptive", iterations=2)
    assert attack.preset == "fan2020-adaptive*"
    threat = ThreatModel(knows=frozenset({Knows.DEFENCE}))
    finding = Attempt(attack=attack, threat=threat, metrics=(PSNR(),)).read(observe(victims=2, defence=SPN), stream(0))
    assert len(finding.readings) == 2
    assert isinstance(finding.truth[0].raw, Batch)


def test_class_keys_are_searched_for_together_with_the_image():
    run = toy_run(ClassKeys(dimensions=64), batch_size=1)
    view = EVERYTHING.view(run)
    plain, adaptive = (changed(attack, labels="given")(view, stream(0)) for attack in (PLAIN, ADAPTIVE))
    assert errors(adaptive, run).median() < 1e-6
    assert errors(plain, run).median() > 0.1
