"""An attacker who knows how a defence changes examples searches for what they were before."""

import dataclasses
from typing import Literal

import pytest
import torch

from leaktight.attacks import GradientMatching, SearchAdam, SearchGuardedLBFGS, SearchLBFGS, preset
from leaktight.attacks import search_engine as engine_module
from leaktight.attacks.distance import DISTANCES
from leaktight.attacks.hypotheses import guess_hypotheses
from leaktight.attacks.search_engine import Phase, SearchEngine
from leaktight.core.channel import Channel, Outcome
from leaktight.core.defence import Chain, Defence
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise, Polarization, Transformation
from leaktight.metrics import PSNR
from leaktight.testing.attacks import check_attack

EVERYTHING = ThreatModel(knows=frozenset(Knows))
PLAIN = GradientMatching(distance="l2", descent=SearchLBFGS(history=20), iterations=12, restarts=8)


def changed(attack, **changes):
    return type(attack).model_validate({**attack.to_dict(), **changes})


KNOWING = changed(PLAIN, distance="likelihood", descent=SearchGuardedLBFGS(), iterations=150, restarts=2)


def flipped(pixels):
    return pixels.flip(-1)


class Flip(Defence):
    """Trains on mirror images only."""

    kind: Literal["test_flip"] = "test_flip"

    def channel(self, task):
        return Channel(outcomes=(Outcome(1.0, flipped, "flipped"),))

    def on_batch(self, batch, local):
        return dataclasses.replace(batch, inputs=flipped(batch.inputs))


class Shade(Defence):
    """Darkens the left or the right half of each image: who takes one for the other needs pixels brighter than white."""

    kind: Literal["test_shade"] = "test_shade"

    def channel(self, task):
        masks = self.masks(task.shape)
        return Channel(
            outcomes=tuple(Outcome(0.5, lambda pixels, mask=mask: pixels * mask.to(pixels), "shaded") for mask in masks)
        )

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
def test_the_plain_attack_finds_the_changed_image_and_the_knowing_one_the_original(observe, standardise, labels):
    run = observe(victims=4, defence=Flip(), normalise=standardise)
    raw, used = quality(changed(PLAIN, labels=labels), run)
    assert used > 50
    assert raw < 15
    raw, used = quality(changed(KNOWING, labels=labels), run)
    assert raw > 40
    assert used < 15


def test_each_outcome_is_tried_and_the_draw_is_found(observe):
    run = observe(victims=6, defence=Shade())
    drawn = {
        bool((ground_truth.used.inputs != ground_truth.raw.inputs)[..., 0].all())
        for ground_truth in run.truths.values()
    }
    assert drawn == {True, False}
    # Without a box a candidate for the wrong half can be brighter than white, and fits as well.
    knowing, plain = (quality(changed(attack, box=True, initial="uniform"), run)[0] for attack in (KNOWING, PLAIN))
    assert knowing > 40
    assert knowing > 20 + plain


def test_the_kept_outcome_has_the_lowest_objective(observe):
    view = EVERYTHING.view(observe(victims=3, defence=Shade()))
    [(_, victims)] = KNOWING.cases(view, view.exchanges(), stream(0))
    objective = KNOWING.objective(victims, view)
    starts = KNOWING.starts(objective, 4, stream(1))
    tried = guess_hypotheses(victims, 4, stream(1))
    assert tried.choices[0].argmax(-1).view(3, 4).tolist() == [[0, 1, 0, 1]] * 3
    search = dataclasses.replace(KNOWING.search(4), phases=(Phase(150, keep=4),))
    engine = SearchEngine(objective.problem(tried), search)
    found, each = engine.run(starts, 3), engine.race(starts, 3).objective.view(3, 4)
    assert torch.equal(found.objective, each.amin(1))
    assert (found.rows - 4 * torch.arange(3)).tolist() == each.argmin(1).tolist()
    # The wrong half does not fit, wherever a search starts.
    drawn = found.rows % 2
    assert (each.view(3, 2, 2).amin(1).gather(1, 1 - drawn[:, None])[:, 0] > 1e3 * found.objective).all()


def test_of_more_combinations_than_can_be_tried_some_are_drawn(observe):
    run = observe(victims=2, batch=6, defence=Shade())
    view = EVERYTHING.view(run)
    attack = changed(KNOWING, iterations=2, restarts=1, labels="given")
    [(_, victims)] = attack.cases(view, view.exchanges(), stream(0))
    chosen = guess_hypotheses(victims, 16, stream(0)).choices[0]
    assert chosen.shape == (32, 6, 2)
    assert torch.equal(chosen.sum(-1), torch.ones(32, 6))
    assert len(chosen.argmax(-1).unique(dim=0)) > 16
    assert attack(view, stream(0)).inputs[0].shape == (6, 1, 6, 6)


@pytest.mark.parametrize("links", [(GaussianNoise(std=1e-6), Flip()), (Flip(), GaussianNoise(std=1e-6))])
def test_a_link_of_a_chain_is_seen_through(observe, links):
    raw, used = quality(KNOWING, observe(victims=3, defence=Chain(links=links)))
    assert raw > 30
    assert used < 15


def test_changes_and_secrets_are_searched_together(observe):
    run = observe(victims=3, defence=Chain(links=(Flip(), Polarization(bits=8, alpha2=0.3))))
    raw, used = quality(KNOWING, run)
    assert raw > 25
    assert used < 15


def test_an_update_of_several_steps_goes_through_the_changes_in_each(observe):
    run = observe(victims=2, steps=2, rate=0.5, defence=Flip())
    raw, used = quality(changed(KNOWING, labels="given", restarts=8), run)
    assert raw > 30
    assert used < 15


def test_the_box_holds_in_the_coordinates_of_the_original(observe, standardise):
    run = observe(victims=2, defence=Shade(), normalise=standardise)
    attack = changed(KNOWING, box=True, iterations=30)
    inputs = torch.cat(attack(EVERYTHING.view(run), stream(0)).inputs)
    assert inputs.min() >= -1e-6
    assert inputs.max() <= 1 + 1e-6


@pytest.mark.parametrize("policy", ["7-18", "9-8-11", "2-6", "0-37+28"])
def test_published_functions_can_be_searched_through_and_one_outcome_is_the_true_one(observe, standardise, policy):
    run = observe(victims=2, shape=(3, 8, 8), defence=Transformation(policy=policy), normalise=standardise)
    view = EVERYTHING.view(run)
    attack = changed(KNOWING, iterations=1, box=True, labels="given")
    assert attack(view, stream(0)).objective.isfinite().all()
    [(_, victims)] = attack.cases(view, view.exchanges(), stream(0))
    for row, exchange in enumerate(view.exchanges()):
        raw, wanted = run.truths[exchange.sent.key].raw.inputs, exchange.sent.tensors
        choices = torch.eye(len(victims.replay.channel.outcomes))[:, None]
        beliefs = [victims.replay(exchange.parameters, raw, victims.targets[row], {}, choice) for choice in choices]
        assert min(DISTANCES["cosine"](belief.means, wanted) for belief in beliefs) < 1e-4


def test_who_does_not_know_the_defence_is_refused(observe):
    with pytest.raises(Refusal, match="Add `defence` to `knows`"):
        KNOWING(ThreatModel().view(observe(victims=1, defence=Flip())), stream(0))


def test_chunks_change_nothing(observe, monkeypatch):
    view = EVERYTHING.view(observe(victims=3, defence=Shade()))
    attack = changed(KNOWING, descent=SearchAdam(), iterations=20)
    together = attack(view, stream(0))
    monkeypatch.setattr(engine_module, "MEMORY", 1)
    apart = attack(view, stream(0))
    assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(together.inputs, apart.inputs, strict=True))


def public(run, **settings):
    """Return the run with public examples: for each private one the same image, but for noise."""
    raws = [ground_truth.raw for ground_truth in run.truths.values()]
    noise = 0.05 * torch.randn(len(raws), 1, *raws[0].inputs.shape[1:], generator=torch.Generator().manual_seed(1))
    near = [Batch(raw.inputs + extra, raw.labels) for raw, extra in zip(raws, noise, strict=True)]
    return dataclasses.replace(run, auxiliary=Batch.join(near), **settings)


@pytest.mark.parametrize("defence", [Flip(), Shade()], ids=["one outcome", "two"])
def test_a_search_starts_at_the_mean_public_example_whatever_outcome_it_tries(observe, standardise, defence):
    run = public(observe(victims=3, defence=defence, normalise=standardise))
    view = EVERYTHING.view(run)
    attack = changed(KNOWING, initial="class_means", restarts=2, labels="given")
    [(_, victims)] = attack.cases(view, view.exchanges(), stream(0))
    objective, outcomes = attack.objective(victims, view), len(victims.replay.channel.outcomes)
    rows = 2 * outcomes
    points = attack.starts(objective, rows, stream(0))
    assert len(points) == 3 * rows
    _, inputs, *_ = torch.func.vmap(objective.unpack)(points, victims.targets.repeat_interleave(rows, 0))
    for place, exchange in enumerate(view.exchanges()):
        own = run.auxiliary.inputs[run.auxiliary.labels == view.labels[exchange.sent.key]]
        means, singles = inputs[rows * place :][:outcomes], inputs[rows * place + outcomes :][:outcomes]
        assert all(torch.allclose(mean, own.mean(0, keepdim=True), atol=1e-6) for mean in means)
        assert all(any(torch.allclose(single, one, atol=1e-6) for one in own) for single in singles)


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
    check_attack(changed(KNOWING, iterations=60, initial="class_means"))


def test_an_audit_can_hold_the_preset(observe):
    run = public(observe(victims=3, defence=Shade()))
    threat = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.AUXILIARY}))
    attack = preset("ats2021-adaptive", iterations=20)
    raw, used = Attempt(attack=attack, threat=threat, metrics=(PSNR(),)).read(run, stream(0)).readings
    assert raw.value > used.value
