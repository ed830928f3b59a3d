"""An attacker that models the defence: finds what a private task hides, and what a mask leaves out."""

import dataclasses
from typing import Literal

import pytest
import torch

from leaktight.attacks import GradientMatching, SearchAdam, SearchGuardedLBFGS, SearchLBFGS, preset
from leaktight.attacks import search_engine as engine_module
from leaktight.attacks.objective import Objective
from leaktight.core.channel import Channel
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import DPSGD, ClassKeys, GaussianNoise
from leaktight.defences.polarization import Polarization
from leaktight.metrics import PSNR
from leaktight.priors import Generic
from leaktight.testing.attacks import check_attack
from leaktight.testing.toys import toy_run

EVERYTHING = ThreatModel(knows=frozenset(Knows))
PLAIN = GradientMatching(distance="l2", descent=SearchLBFGS(history=20), iterations=10, restarts=4)
KNOWING = GradientMatching(distance="likelihood", descent=SearchGuardedLBFGS(), iterations=150, restarts=4)
SPN = Polarization(bits=8, alpha2=0.3)


def changed(attack, **changes):
    return type(attack).model_validate({**attack.to_dict(), **changes})


def errors(guess, run) -> torch.Tensor:
    """The mean squared error of each message; these hold one example."""
    pairs = zip(guess.keys, guess.inputs, strict=True)
    return torch.stack([(inputs - run.truths[key].raw.inputs).square().mean() for key, inputs in pairs])


class Scaled(Defence):
    """Multiplies the loss with one secret number, kept in memory."""

    kind: Literal["test_scaled"] = "test_scaled"

    def channel(self, task):
        return Channel(private_task=True)

    def on_task(self, task, local):
        memory = local.memory
        memory["factor"] = 0.5 + local.draws.uniforms(())
        return dataclasses.replace(task, loss=lambda outputs, labels: memory["factor"] * task.loss(outputs, labels))


class Silent(Scaled):
    """Does the same and states nothing."""

    kind: Literal["test_silent"] = "test_silent"

    def channel(self, task):
        return Defence.channel(self, task)

    @property
    def states_channel(self):
        return False


def test_it_needs_to_know_the_defence_and_says_so():
    assert PLAIN.needs == frozenset()
    assert KNOWING.needs == {Knows.DEFENCE}
    assert changed(KNOWING, labels="given").needs == {Knows.DEFENCE, Knows.LABELS}
    with pytest.raises(Refusal, match="needs to know defence"):
        KNOWING.check(ThreatModel().knows)


def test_it_keeps_the_promises_of_an_attack():
    check_attack(changed(KNOWING, iterations=60, restarts=2))


def test_a_view_without_the_defence_is_refused(observe):
    with pytest.raises(Refusal, match="Add `defence` to `knows`"):
        KNOWING(ThreatModel().view(observe(victims=1)), stream(0))


@pytest.mark.parametrize("labels", ["read", "joint", "given"])
def test_it_recovers_what_a_private_head_hides_from_the_plain_attack(observe, labels):
    run = observe(victims=3, defence=SPN)
    view = EVERYTHING.view(run)
    plain, knowing = (changed(attack, labels=labels)(view, stream(0)) for attack in (PLAIN, KNOWING))
    assert errors(plain, run).median() > 1e-3
    assert errors(knowing, run).median() < 1e-6
    for row, key in enumerate(knowing.keys):
        assert labels == "given" or torch.equal(knowing.labels[row], run.truths[key].used.labels)


def test_a_free_loss_needs_to_know_nothing_of_what_is_private(observe):
    """The gradient at the features stands for the private head, whoever sends and whatever the attacker knows."""
    run = observe(victims=3, defence=SPN)
    view = ThreatModel(knows=frozenset({Knows.LABELS})).view(run)
    free = changed(PLAIN, loss="free", labels="given", initial="uniform", restarts=8)
    assert errors(free(view, stream(0)), run).max() < 1e-6
    [(_, victims)] = free.cases(view, view.exchanges(), stream(0))
    assert set(victims.sightings[0].wanted) == {"body.1.weight", "body.1.bias"}


def test_columns_of_tables_are_kept_in_no_box(observe):
    """They are standardised: half of them lie below 0, and many above 1."""
    rows = torch.randn(4, 12, generator=stream(3))
    run = observe(victims=4, shape=(12,), images=rows, defence=GaussianNoise(std=0.003))
    found = preset("posterior", iterations=60)(EVERYTHING.view(run), stream(0))
    assert errors(found, run).max() < 0.01


@pytest.mark.parametrize(
    "settings", [{"steps": 2}, {"defence": DPSGD(clip=1.0, multiplier=0.1)}], ids=["steps", "examples"]
)
def test_a_free_loss_is_for_one_gradient_of_a_whole_batch(observe, settings):
    view = EVERYTHING.view(observe(**settings))
    with pytest.raises(Refusal, match='Set `loss` to "known"'):
        changed(KNOWING, loss="free", labels="given")(view, stream(0))


@pytest.mark.parametrize("defence", [Undefended(), GaussianNoise(std=0.01)], ids=str)
def test_where_every_entry_has_the_same_law_it_is_the_squared_distance(observe, defence):
    """A Gaussian law is the squared distance over twice the variance: from the same start both end at the same examples."""
    run = observe(victims=2, defence=defence)
    settings = {"labels": "given", "descent": SearchGuardedLBFGS(), "iterations": 150}
    view = EVERYTHING.view(run)
    plain, knowing = (changed(attack, **settings)(view, stream(0)) for attack in (PLAIN, KNOWING))
    assert all(torch.allclose(one, other, atol=2e-3) for one, other in zip(plain.inputs, knowing.inputs, strict=True))
    if isinstance(defence, GaussianNoise):
        assert torch.allclose(knowing.objective, plain.objective / (2 * defence.std**2), rtol=1e-3)


def objective(attack, view) -> Objective:
    [(_, victims)] = attack.cases(view, view.exchanges(), stream(0))
    return attack.objective(victims, view)


def test_a_chain_is_modelled_through_its_links(observe):
    run = observe(victims=2, defence=Chain(links=(SPN, GaussianNoise(std=1e-5))))
    view = EVERYTHING.view(run)
    assert {"head.private.weight", "defence/0-polarization/codes"} <= set(objective(KNOWING, view).layout.shapes)
    assert errors(KNOWING(view, stream(0)), run).max() < 0.01 * errors(PLAIN(view, stream(0)), run).min()


def test_a_secret_that_is_one_number_in_memory_is_found(observe):
    run = observe(victims=2, defence=Scaled())
    view = EVERYTHING.view(run)
    assert errors(KNOWING(view, stream(0)), run).max() < 1e-6


def test_a_defence_that_states_nothing_is_attacked_as_if_it_were_off(observe):
    run, silent = (observe(victims=2, defence=each) for each in (Undefended(), Silent()))
    assert objective(KNOWING, EVERYTHING.view(silent)).layout.shapes.keys() == {"examples"}
    swapped = dataclasses.replace(run, defence=Silent())
    one, other = (changed(KNOWING, iterations=5)(EVERYTHING.view(each), stream(0)) for each in (run, swapped))
    assert torch.equal(one.objective, other.objective)
    assert not KNOWING.adapts_to(Silent())
    assert KNOWING.adapts_to(Scaled())


def test_updates_carry_the_private_head_through_the_local_steps(observe):
    run = observe(victims=1, steps=2, rate=0.5, defence=SPN)
    view = EVERYTHING.view(run)
    plain, knowing = (changed(attack, labels="given")(view, stream(0)) for attack in (PLAIN, KNOWING))
    assert knowing.inputs[0].shape == (2, 1, 6, 6)
    assert errors(knowing, run).max() < 0.1 * errors(plain, run).min()


def test_candidates_start_at_secrets_of_their_own_in_units_of_their_spread(observe):
    found = objective(KNOWING, EVERYTHING.view(observe(victims=3, defence=SPN)))
    points = KNOWING.starts(found, 4, stream(0))
    assert points.shape == (12, found.layout.width)
    assert found.layout.width == 36 + 24 * 8 + 8 + 4 * 8
    heads = found.layout.unpack(points)["head.private.weight"]
    assert heads.std(correction=0) == pytest.approx(1.0, abs=1e-3)
    assert len(heads.flatten(1).unique(dim=0)) == 12
    *_, secrets = torch.func.vmap(found.unpack)(points, found.victims.targets.repeat_interleave(4, 0))
    for name, tensor in found.victims.secrets.items():
        assert torch.allclose(secrets[name], tensor, atol=1e-6)


def test_only_pixels_are_boxed(observe):
    found = objective(changed(KNOWING, box=True), EVERYTHING.view(observe(victims=1, defence=SPN)))
    points = torch.full((1, found.layout.width), 3.0)
    inside = found.layout.unpack(found._clip(points))
    assert (inside.pop("examples") == 1).all()
    assert all((tensor == 3).all() for tensor in inside.values())


@pytest.mark.parametrize("sign", ["none", "hard", "soft"])
def test_every_sign_and_decay_lowers_the_objective(observe, sign):
    view = EVERYTHING.view(observe(victims=2, defence=SPN))
    settings = {"sign": sign, "decay": "steps", "descent": SearchAdam(learning_rate=0.02), "restarts": 1}
    short, long = (changed(KNOWING, iterations=n, **settings)(view, stream(0)).objective for n in (1, 200))
    assert (long < 0.5 * short).all()


def test_the_same_stream_gives_the_same_guess_and_chunks_change_nothing(observe, monkeypatch):
    view = EVERYTHING.view(observe(victims=2, defence=SPN))
    attack = changed(KNOWING, descent=SearchAdam(), iterations=30, restarts=2)
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
    changed(KNOWING, iterations=1)(view, stream(0))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(tensor, before[name]) for name, tensor in view.task.model.state_dict().items())


@pytest.mark.parametrize("name", ["fan2020-adaptive", "posterior"])
def test_an_audit_can_hold_the_presets(observe, name):
    attack = preset(name, iterations=2)
    assert attack.preset == f"{name}*"
    threat = ThreatModel(knows=frozenset({Knows.DEFENCE}))
    finding = Attempt(attack=attack, threat=threat, metrics=(PSNR(),)).read(observe(victims=2, defence=SPN), stream(0))
    assert len(finding.readings) == 2
    assert isinstance(finding.truth[0].raw, Batch)


@pytest.mark.parametrize("settings", [{"prior": Generic(), "initial": "prior"}, {"loss": "free"}], ids=["keys", "free"])
def test_class_keys_are_searched_for_together_with_the_image_or_not_at_all(settings):
    run = toy_run(ClassKeys(dimensions=64), batch_size=1)
    view = EVERYTHING.view(run)
    plain, knowing = (
        changed(attack, labels="given", restarts=8) for attack in (PLAIN, changed(KNOWING, iterations=250, **settings))
    )
    assert errors(knowing(view, stream(0)), run).median() < 1e-6
    assert errors(plain(view, stream(0)), run).median() > 0.1
