"""The level that an attack has to beat is that of the best answer made without any message."""

import pytest
import torch
from torch import nn

from leaktight.attacks import preset
from leaktight.core.defence import Undefended
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.task import Batch, Normalise
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.learning import Federated
from leaktight.metrics import MSE, PSNR, SSIM, ReconstructionStatement, RelativeRMSE
from leaktight.metrics.chance import DRAWS, Blind, chance_level
from leaktight.metrics.image import mse, psnr, ssim
from leaktight.metrics.pairing import arrange
from leaktight.models import MLP

INPUTS = [PSNR(), SSIM(), MSE(), RelativeRMSE(), ReconstructionStatement()]
everywhere = pytest.mark.parametrize("metric", INPUTS, ids=str)


@pytest.fixture(scope="module")
def digits():
    return Digits().load()


def batches(data, size, count=48, seed=0):
    order = torch.randperm(len(data.train), generator=torch.Generator().manual_seed(seed))[:count]
    return list(data.train.inputs[order].split(size))


def better(reading: Reading) -> bool:
    """Whether the value itself is on the leaking side of chance, interval or not."""
    assert reading.chance is not None
    gain = reading.value - reading.chance
    return (gain if reading.leaks == "high" else -gain) > 1e-9


def per_channel(images):
    return images.mean((0, 2, 3), keepdim=True).expand(1, *images.shape[1:])


@pytest.mark.parametrize("size", [1, 8])
@everywhere
def test_nobody_beats_chance_by_knowing_the_public_data_alone(metric, size, digits, ground_truths, reconstruction):
    truth, public = batches(digits, size), digits.test
    answers = {
        "grey": torch.full((1, 1, 8, 8), 0.5),
        "public colour": per_channel(public.inputs),
        "public mean": public.inputs.mean(0, keepdim=True),
    }
    for name, answer in answers.items():
        guess = reconstruction([answer.expand_as(images) for images in truth])
        for reading in metric.grade(guess, ground_truths(truth), stream(0), public):
            assert not better(reading), name


def test_the_prior_of_dark_images_no_longer_looks_like_a_leak(digits, ground_truths, reconstruction):
    """Grey is a weak answer where images have a common shape: what beats it may have seen nothing but public examples."""
    truth = batches(digits, 1)
    prior = reconstruction([digits.test.inputs.mean(0, keepdim=True)] * len(truth))
    weak, _ = PSNR().grade(prior, ground_truths(truth), stream(0))
    level, _ = PSNR().grade(prior, ground_truths(truth), stream(0), digits.test)
    assert weak.beats_chance()
    assert not level.beats_chance()
    mean = digits.test.inputs.mean(0, keepdim=True)
    assert level.chance == pytest.approx(psnr(mean.expand(48, -1, -1, -1), torch.cat(truth)).mean().item())


def test_the_answer_of_least_squared_error_is_the_mean_example(digits):
    truth = torch.cat(batches(digits, 1)).double()
    mean = digits.test.inputs.double().mean(0)
    level = chance_level(mse, "low", truth, torch.arange(48), Blind(digits.test), stream(0))
    assert level == pytest.approx((truth - mean).square().mean().item())


@pytest.mark.parametrize("granted", [False, True], ids=["without", "with public examples"])
def test_wrong_guesses_that_pairing_flatters_are_at_chance_in_ssim(granted, ground_truths, reconstruction):
    """Of sixteen noise images some fit by luck; grey has no structure that could fit, so it is no measure for them."""
    rng = torch.Generator().manual_seed(0)
    truth, guess = ([torch.rand(16, 1, 8, 8, generator=rng) for _ in range(12)] for _ in range(2))
    public = Batch(torch.rand(200, 1, 8, 8, generator=rng), torch.zeros(200, dtype=torch.long)) if granted else None
    reading, _ = SSIM().grade(reconstruction(guess), ground_truths(truth), stream(0), public)
    grey = ssim(torch.full((1, 1, 8, 8), 0.5).expand(192, -1, -1, -1).double(), torch.cat(truth).double()).mean().item()
    assert reading.low > grey
    assert not reading.beats_chance()
    assert reading.chance == pytest.approx(reading.value, abs=0.03)


def test_drawn_examples_are_paired_within_their_message(digits):
    truths = batches(digits, 8)
    truth, messages = torch.cat(truths).double(), torch.arange(6).repeat_interleave(8)
    level = chance_level(ssim, "high", truth, messages, Blind(digits.test), stream(3, "cell"))
    rng = torch.Generator().manual_seed(99)
    scores = []
    for _ in range(40):
        drawn = [digits.test.inputs[torch.randint(len(digits.test), (8,), generator=rng)] for _ in truths]
        scores.append(ssim(torch.cat([arrange(a, b) for a, b in zip(drawn, truths, strict=True)]), truth).mean())
    scores = torch.stack(scores)
    assert level == pytest.approx(scores.mean().item(), abs=4 * scores.std().item() / DRAWS**0.5)


@everywhere
def test_chance_depends_neither_on_the_guess_nor_on_metrics_graded_before(
    metric, digits, ground_truths, reconstruction
):
    truth = ground_truths(batches(digits, 4))
    perfect = reconstruction([ground_truth.raw.inputs for ground_truth in truth])
    rng = stream(5)
    levels = {reading.chance for reading in metric.grade(perfect, truth, stream(5), digits.test)}
    for other in INPUTS:
        other.grade(perfect, truth, rng, digits.test)
    black = reconstruction([torch.zeros_like(ground_truth.raw.inputs) for ground_truth in truth])
    assert {reading.chance for reading in metric.grade(black, truth, rng, digits.test)} == levels
    assert len(levels) == 1


@everywhere
def test_public_data_makes_no_answer_worse_and_stays_as_it_is(metric, photos, ground_truths, reconstruction):
    public = Batch(nn.functional.interpolate(torch.rand(6, 3, 4, 4), size=(16, 16)), torch.zeros(6, dtype=torch.long))
    before = public.copy()
    alone = metric.grade(reconstruction(photos), ground_truths(photos), stream(0))[0].chance
    known = metric.grade(reconstruction(photos), ground_truths(photos), stream(0), public)[0].chance
    assert known >= alone if metric.leaks == "high" else known <= alone
    assert torch.equal(public.inputs, before.inputs)


@pytest.mark.parametrize("metric", [MSE(), RelativeRMSE()], ids=str)
def test_rows_of_a_table_are_answered_by_their_public_mean(metric, ground_truths, reconstruction):
    rows = torch.tensor([[4.0, 7.0], [6.0, 9.0]])
    public = Batch(torch.tensor([[5.0, 6.0], [5.0, 10.0]]), torch.zeros(2, dtype=torch.long))
    reading, _ = metric.grade(reconstruction([rows]), ground_truths([rows]), stream(0), public)
    mean = torch.tensor([[5.0, 8.0]]).expand(2, -1)
    assert reading.chance == pytest.approx(metric.measure(mean, rows).mean().item())


def test_no_public_example_is_as_good_as_none(photos, ground_truths, reconstruction):
    nothing = Batch(torch.zeros(0, 3, 16, 16), torch.zeros(0, dtype=torch.long))
    readings = [
        PSNR().grade(reconstruction(photos), ground_truths(photos), stream(0), known) for known in (None, nothing)
    ]
    assert readings[0] == readings[1]


@pytest.mark.parametrize(("channels", "grey"), [(1, 0.33), (3, 0.43)])
def test_without_public_data_the_middle_of_the_generic_prior_is_an_answer(
    channels, grey, ground_truths, reconstruction
):
    truth = [torch.full((1, channels, 8, 8), grey + 0.01)]
    reading, _ = MSE().grade(reconstruction(truth), ground_truths(truth), stream(0))
    assert reading.chance == pytest.approx(1e-4, rel=1e-3)


def test_who_knows_a_network_knows_the_middle_of_its_units():
    truth = torch.full((2, 3, 4, 4), 0.9, dtype=torch.float64)
    levels = [
        chance_level(mse, "low", truth, torch.arange(2), Blind(normalise=normalise), stream(0))
        for normalise in (nn.Identity(), Normalise([0.9] * 3, [0.2] * 3))
    ]
    assert levels[0] == pytest.approx(0.4**2)
    assert levels[1] == pytest.approx(0, abs=1e-12)


def test_public_examples_with_labels_give_the_mean_of_each_class(digits, ground_truths, reconstruction):
    """Who has both answers each digit by the mean of its class, in whatever order the labels of a message are known."""
    order = torch.randperm(len(digits.train), generator=torch.Generator().manual_seed(0))[:48]
    inputs, labels = digits.train.inputs[order].split(4), digits.train.labels[order].split(4)
    means = torch.stack([digits.test.inputs[digits.test.labels == digit].mean(0) for digit in range(10)]).double()
    truth = ground_truths(list(inputs), labels=list(labels))
    unlabelled, _ = PSNR().grade(reconstruction(inputs), truth, stream(0), digits.test)
    labelled, _ = PSNR().grade(reconstruction(inputs, [each.flip(0) for each in labels]), truth, stream(0), digits.test)
    expected = [
        psnr(arrange(means[each], images), images.double()) for images, each in zip(inputs, labels, strict=True)
    ]
    assert labelled.chance == pytest.approx(torch.cat(expected).mean().item(), abs=1e-4)
    assert labelled.chance > unlabelled.chance + 1


def test_labels_alone_are_no_picture_of_a_class(digits, ground_truths, reconstruction):
    truth = ground_truths(batches(digits, 4))
    guess = [ground_truth.raw.inputs for ground_truth in truth]
    labels = [ground_truth.raw.labels for ground_truth in truth]
    with_labels, without = (PSNR().grade(reconstruction(guess, given), truth, stream(0))[0] for given in (labels, None))
    assert with_labels.chance == without.chance


@pytest.mark.parametrize("labels", ["read", "auto", "given"])
def test_whoever_reads_labels_is_held_to_the_mean_of_each_class(digits, labels):
    """From the attack to the reading: public examples are granted, and labels come off the message or are given."""
    scenario = Federated(data=Digits(), model=MLP(hidden=(16,)), rounds=0, participants=2)
    training = scenario.train(Undefended(), seed=0)
    run = scenario.observe(training, Undefended(), Observation("initial", batch_size=1, victims=8, seed=0))
    knows = frozenset({Knows.AUXILIARY, *({Knows.LABELS} if labels == "given" else ())})
    attack = preset("dlg2019", iterations=1, labels=labels)
    found = Attempt(attack=attack, threat=ThreatModel(knows=knows), metrics=(PSNR(),)).read(run, stream(0))
    images = torch.cat([ground_truth.raw.inputs for ground_truth in found.truth]).double()
    true = torch.cat([ground_truth.raw.labels for ground_truth in found.truth])
    means = torch.stack([digits.test.inputs[digits.test.labels == digit].mean(0) for digit in range(10)]).double()
    assert found.readings[0].chance == pytest.approx(psnr(means[true], images).mean().item(), abs=1e-3)
