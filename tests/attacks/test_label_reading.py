"""Label reading: the labels of every message at once, whatever a private head adds to the body."""

import dataclasses

import pytest
import torch

from leaktight.attacks import GradientMatching, LabelReading
from leaktight.core.attack import Labels
from leaktight.core.defence import Chain
from leaktight.core.errors import Refusal
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import TopK
from leaktight.defences.polarization import Polarization
from leaktight.metrics import PSNR, LabelDistance, standard
from leaktight.testing.attacks import check_attack

DEFENCES = [None, Polarization(alpha2=5.0), Chain(links=(Polarization(alpha2=0.5, alpha1=3.0), TopK(share=0.9)))]

KNOWS_STEPS = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS}))


def attempt(run):
    return Attempt(attack=LabelReading(), metrics=standard()).read(run, stream(0))


def test_it_keeps_the_promises_of_an_attack():
    check_attack(LabelReading())


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
def test_one_label_is_read_exactly_under_any_private_head(observe, defence):
    run = observe(victims=12, defence=defence)
    guess = LabelReading()(ThreatModel().view(run), stream(0))
    assert isinstance(guess, Labels)
    for key, labels in zip(guess.keys, guess.labels, strict=True):
        assert torch.equal(labels, run.truths[key].used.labels)


def test_a_private_head_changes_no_count(observe):
    plain, private = (
        LabelReading()(ThreatModel().view(observe(victims=6, batch=4, defence=defence)), stream(0)).labels
        for defence in (None, Polarization(alpha2=5.0))
    )
    assert all(torch.equal(one, other) for one, other in zip(plain, private, strict=True))


def test_a_guess_of_labels_is_graded_by_labels_alone(observe):
    finding = attempt(observe(victims=4, defence=Polarization(alpha2=0.5)))
    graded = {reading.name: reading.value for reading in finding.readings if reading.leaks is not None}
    assert graded["label_distance"] == 0.0
    assert not {"psnr", "ssim", "mse", "tracing_distance"} & set(graded)
    assert not PSNR().grade(finding.guess, finding.truth, stream(0))


def test_it_says_the_same_as_matching_that_reads_labels(observe):
    view = ThreatModel().view(observe(victims=3, batch=2))
    matched = GradientMatching(iterations=1)(view, stream(0))
    read = LabelReading()(view, stream(0))
    assert matched.keys == read.keys
    assert all(torch.equal(one, other) for one, other in zip(matched.labels, read.labels, strict=True))


def test_updates_of_several_steps_are_read(observe):
    run = observe(victims=4, batch=1, steps=2, rate=0.01, labels=[1, 3], defence=Polarization())
    guess = LabelReading()(ThreatModel().view(run), stream(0))
    truth = [run.truths[key] for key in guess.keys]
    assert LabelDistance().grade(guess, truth, stream(0))[0].value <= 0.25


@pytest.mark.parametrize(("examples", "steps"), [(9, 4), (100, 6), (600, 5)])
def test_updates_of_any_number_of_examples_are_read(observe, examples, steps):
    """As from a loader whose last batch is smaller; here the facts of a message say so."""
    run = observe(victims=1, batch=2, steps=2)
    ask, sent = run.transcript
    changed = dataclasses.replace(sent, facts={**sent.facts, "examples": float(examples), "local_steps": float(steps)})
    view = KNOWS_STEPS.view(dataclasses.replace(run, transcript=(ask, changed)))
    [labels] = LabelReading()(view, stream(0)).labels
    assert labels.shape == (examples,)
    assert bool(((labels >= 0) & (labels < 4)).all())


def test_nothing_to_read_is_refused(observe):
    run = observe(victims=1)
    with pytest.raises(Refusal, match="Label reading needs a shared gradient"):
        LabelReading()(ThreatModel().view(dataclasses.replace(run, transcript=run.transcript[:1])), stream(0))
