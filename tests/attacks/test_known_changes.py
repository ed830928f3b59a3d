"""An attacker who knows how a defence changes examples searches for what they were before."""

import dataclasses
from typing import Literal

import pytest
import torch

from leaktight.attacks import AdamDescent, GradientMatching, LbfgsDescent, preset
from leaktight.attacks import engine as engine_module
from leaktight.attacks.distance import DISTANCES
from leaktight.attacks.engine import Engine, Found
from leaktight.core.defence import Chain, Defence
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise, Polarization, Transformation
from leaktight.metrics import PSNR
from leaktight.testing.attacks import check_attack
from leaktight.transforms.outcome import Outcome

EVERYTHING = ThreatModel(knows=frozenset(Knows))
PLAIN = GradientMatching(distance="l2", descent=LbfgsDescent(history=20), iterations=12, restarts=8)


def changed(attack, **changes):
    return type(attack).model_validate({**attack.to_dict(), **changes})


EXPECTED = changed(PLAIN, models_defence=True)
EACH = changed(PLAIN, models_defence=True, outcomes="each")


def flipped(pixels):
    return pixels.flip(-1)


class Flip(Defence):
    """Trains on mirror images only."""

    kind: Literal["test_flip"] = "test_flip"

    def outcomes(self, shape):
        return (Outcome(1.0, flipped, "flipped"),)

    def on_batch(self, batch, local):
        return dataclasses.replace(batch, inputs=flipped(batch.inputs))


class Shade(Defence):
    """Darkens the left or the right half of each image: who takes one for the other needs pixels brighter than white."""

    kind: Literal["test_shade"] = "test_shade"

    def outcomes(self, shape):
        return tuple(Outcome(0.5, lambda pixels, mask=mask: pixels * mask.to(pixels), "shaded") for mask in self.masks(shape))

    def masks(self, shape):
        left = torch.where(torch.arange(shape[-1]) < shape[-1] // 2, 0.2, 1.0)
        return left, left.flip(0)

    def on_batch(self, batch, local):
        masks = torch.stack(self.masks(batch.inputs.shape))
        drawn = local.draws.integers(2, (len(batch),))
        return dataclasses.replace(batch, inputs=batch.inputs * masks[drawn][:, None, None])


def quality(attack, run) -> tuple[float, float]:
    """The median PSNR against the raw and against the used images."""
    raw, used = Attempt(attack=attack, threat=EVERYTHING, metrics=(PSNR(),)).read(run, stream(0)).readings
    return tuple(torch.tensor(reading.each).median().item() for reading in (raw, used))


@pytest.mark.parametrize("labels", ["read", "joint", "given"])
def test_the_plain_attack_finds_the_changed_image_and_the_adaptive_one_the_original(observe, standardise, labels):
    run = observe(victims=4, defence=Flip(), normalise=standardise)
    raw, used = quality(changed(PLAIN, labels=labels), run)
    assert used > 50
    assert raw < 15
    raw, used = quality(changed(EXPECTED, labels=labels), run)
    assert raw > 50
    assert used < 15


def test_with_one_outcome_each_is_the_expected_one(observe):
    view = EVERYTHING.view(observe(victims=2, defence=Flip()))
    one, other = (attack(view, stream(0)) for attack in (EXPECTED, EACH))
    assert all(torch.equal(a, b) for a, b in zip(one.inputs, other.inputs, strict=True))


def test_each_finds_the_draw_where_the_expected_message_is_nobody_s(observe):
    run = observe(victims=6, defence=Shade())
    drawn = {bool((inside.used.inputs != inside.raw.inputs)[..., 0].all()) for inside in run.inside.values()}
    assert drawn == {True, False}
    expected, each, plain = (quality(attack, run)[0] for attack in (EXPECTED, EACH, PLAIN))
    assert each > 40
    assert each > 20 + max(expected, plain)


def test_the_kept_outcome_has_the_lowest_objective(observe):
    view = EVERYTHING.view(observe(victims=3, defence=Shade()))
    alone = []
    rng = stream(0)
    for _, victims in EACH.cases(view, view.exchanges(), rng):
        for outcome in victims.replay.changes:
            replay = dataclasses.replace(victims.replay, changes=(outcome,))
            alone.append(Engine(dataclasses.replace(victims, replay=replay), EACH.search()).run(rng).objective)
    assert torch.equal(EACH(view, stream(0)).objective, torch.stack(alone).amin(0))


def test_the_best_of_several_searches_is_chosen_for_each_victim():
    def found(*objectives):
        values = torch.tensor(objectives)
        return Found(values.view(-1, 1, 1), 10 * values.view(-1, 1, 1), values)

    best = Found.best([found(1.0, 5.0, float("inf")), found(2.0, 3.0, float("inf"))])
    assert best.objective.tolist() == [1.0, 3.0, float("inf")]
    assert best.inputs.flatten()[:2].tolist() == [1.0, 3.0]
    assert best.targets.flatten()[:2].tolist() == [10.0, 30.0]


@pytest.mark.parametrize("links", [(GaussianNoise(std=1e-6), Flip()), (Flip(), GaussianNoise(std=1e-6))])
def test_a_link_of_a_chain_is_seen_through(observe, links):
    raw, used = quality(EXPECTED, observe(victims=3, defence=Chain(links=links)))
    assert raw > 30
    assert used < 15


def test_changes_and_secrets_are_searched_together(observe):
    run = observe(victims=3, defence=Chain(links=(Flip(), Polarization(bits=8, alpha2=0.3))))
    raw, used = quality(EXPECTED, run)
    assert raw > 25
    assert used < 15


def test_an_update_of_several_steps_goes_through_the_changes_in_each(observe):
    run = observe(victims=2, steps=2, rate=0.5, defence=Flip())
    raw, used = quality(changed(EXPECTED, labels="given", iterations=40), run)
    assert raw > 30
    assert used < 15


@pytest.mark.parametrize("outcomes", ["expected", "each"])
def test_the_box_holds_in_the_coordinates_of_the_original(observe, standardise, outcomes):
    run = observe(victims=2, defence=Shade(), normalise=standardise)
    attack = GradientMatching(
        iterations=200, box=True, sign="hard", decay="steps", total_variation=1e-4, models_defence=True, outcomes=outcomes
    )
    inputs = torch.cat(attack(EVERYTHING.view(run), stream(0)).inputs)
    assert inputs.min() >= -1e-6
    assert inputs.max() <= 1 + 1e-6


@pytest.mark.parametrize("policy", ["7-18", "9-8-11", "2-6", "0-37+28"])
def test_published_functions_can_be_searched_through_and_one_outcome_is_the_true_one(observe, standardise, policy):
    run = observe(victims=2, shape=(3, 8, 8), defence=Transformation(policy=policy), normalise=standardise)
    view = EVERYTHING.view(run)
    attack = GradientMatching(iterations=1, box=True, labels="given", models_defence=True)
    for outcomes in ("expected", "each"):
        assert changed(attack, outcomes=outcomes)(view, stream(0)).objective.isfinite().all()
    [(_, victims)] = attack.cases(view, view.exchanges(), stream(0))
    for row, exchange in enumerate(view.exchanges()):
        raw, wanted = run.inside[exchange.sent.key].raw.inputs, exchange.sent.tensors
        alone = (dataclasses.replace(victims.replay, changes=(outcome,)) for outcome in victims.replay.changes)
        found = [DISTANCES["cosine"](replay(exchange.parameters, raw, victims.targets[row]), wanted) for replay in alone]
        assert min(found) < 1e-4


def test_without_outcomes_the_field_changes_nothing(observe):
    view = EVERYTHING.view(observe(victims=2, defence=GaussianNoise(std=0.01)))
    one, other = (changed(attack, iterations=3)(view, stream(0)) for attack in (EXPECTED, EACH))
    assert all(torch.equal(a, b) for a, b in zip(one.inputs, other.inputs, strict=True))


def test_who_does_not_know_the_defence_is_refused(observe):
    with pytest.raises(Refusal, match="Add `defence` to `knows`"):
        EACH(ThreatModel().view(observe(victims=1, defence=Flip())), stream(0))


def test_the_estimate_of_memory_counts_every_outcome_and_chunks_change_nothing(observe, monkeypatch):
    view = EVERYTHING.view(observe(victims=3, defence=Shade()))
    attack = changed(EXPECTED, descent=AdamDescent(), iterations=20, restarts=2)
    needed = {
        plan.models_defence: Engine(next(plan.cases(view, view.exchanges(), stream(0)))[1], plan.search())._bytes_per_row()
        for plan in (attack, changed(attack, models_defence=False))
    }
    assert needed[True] > needed[False]
    together = attack(view, stream(0))
    monkeypatch.setattr(engine_module, "MEMORY", 1)
    apart = attack(view, stream(0))
    assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(together.inputs, apart.inputs, strict=True))


def public(run, **settings):
    """Return the run with public examples: for each private one the same image, but for noise."""
    raws = [inside.raw for inside in run.inside.values()]
    noise = 0.05 * torch.randn(len(raws), 1, *raws[0].inputs.shape[1:], generator=torch.Generator().manual_seed(1))
    near = [Batch(raw.inputs + extra, raw.labels) for raw, extra in zip(raws, noise, strict=True)]
    return dataclasses.replace(run, auxiliary=Batch.join(near), **settings)


def test_a_search_starts_at_the_mean_public_example_in_pixels(observe, standardise):
    run = public(observe(victims=3, defence=Flip(), normalise=standardise))
    view = EVERYTHING.view(run)
    attack = changed(EXPECTED, initial="class_means", restarts=2, labels="given")
    [(_, victims)] = attack.cases(view, view.exchanges(), stream(0))
    engine = Engine(victims, attack.search())
    inputs, *_ = engine._unpack(engine._start(6, stream(0)), victims.targets.repeat_interleave(2, 0))
    for place, exchange in enumerate(view.exchanges()):
        own = run.auxiliary.inputs[run.auxiliary.labels == view.labels[exchange.sent.key]]
        assert torch.allclose(inputs[2 * place], own.mean(0, keepdim=True), atol=1e-6)
        assert any(torch.allclose(inputs[2 * place + 1], one, atol=1e-6) for one in own)


def test_class_means_need_public_examples_and_labels(observe):
    attack = changed(PLAIN, initial="class_means")
    assert attack.needs == {Knows.AUXILIARY}
    with pytest.raises(Refusal, match="needs to know auxiliary"):
        attack.check(frozenset({Knows.LABELS}))
    with pytest.raises(Refusal, match=r"only where public examples are known. Add `auxiliary` to `knows`"):
        attack(EVERYTHING.view(observe(victims=1)), stream(0))
    with pytest.raises(InvalidValue, match=r"must be `given` or `read` to start at `class_means`. Got `joint` instead"):
        changed(attack, labels="joint")


def test_it_keeps_the_promises_of_an_attack():
    check_attack(changed(EACH, iterations=10, restarts=2, initial="class_means"))


def test_the_presets_differ_from_their_source_in_what_they_know():
    source, expected, each = (dict(preset(f"ats2021-{name}")) for name in ("adam-cosine", "adaptive", "adaptive-each"))
    assert {name for name in source if source[name] != expected[name]} == {"models_defence", "initial", "preset"}
    assert {name for name in source if expected[name] != each[name]} == {"outcomes", "preset"}
    assert preset("ats2021-adaptive").needs == {Knows.DEFENCE, Knows.AUXILIARY}


@pytest.mark.parametrize("name", ["ats2021-adaptive", "ats2021-adaptive-each"])
def test_an_audit_can_hold_the_presets(observe, name):
    run = public(observe(victims=3, defence=Shade()))
    threat = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.AUXILIARY}))
    attack = preset(name, iterations=5)
    raw, used = Attempt(attack=attack, threat=threat, metrics=(PSNR(),)).read(run, stream(0)).readings
    assert raw.value > used.value
