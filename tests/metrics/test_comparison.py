"""What every metric of guessed inputs promises, whatever it measures."""

import copy

import pytest
import torch

from leaktight.core.attack import Scores
from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Metric
from leaktight.core.random import stream
from leaktight.metrics import MSE, PSNR, SSIM, ReconstructionStatement, RelativeRMSE, standard
from leaktight.metrics.image import psnr
from leaktight.priors.generic import GREY

INPUTS = [PSNR(), SSIM(), MSE(), RelativeRMSE(), ReconstructionStatement()]
PERFECT = {"psnr": 100.0, "ssim": 1.0, "mse": 0.0, "rmse_relative": 0.0, "reconstruction_statement": 1.0}
everywhere = pytest.mark.parametrize("metric", INPUTS, ids=str)


@everywhere
def test_a_shuffled_perfect_batch_scores_perfect(metric, ground_truths, reconstruction, photos):
    readings = metric.grade(reconstruction([images.flip(0) for images in photos]), ground_truths(photos), stream(0))
    assert [reading.against for reading in readings] == ["raw", "used"]
    for reading in readings:
        assert reading.value == pytest.approx(PERFECT[metric.kind], abs=1e-6)
        assert (reading.name, reading.n, reading.leaks) == (metric.kind, 8, metric.leaks)
        assert reading.beats_chance()


@everywhere
def test_the_blank_answer_scores_at_most_the_chance_level(metric, ground_truths, reconstruction, photos):
    grey = reconstruction([torch.full_like(images, 0.5) for images in photos])
    silent = reconstruction([images[:0] for images in photos])
    for guess in (grey, silent):
        for reading in metric.grade(guess, ground_truths(photos), stream(0)):
            gain = reading.value - reading.chance
            assert (gain if reading.leaks == "high" else -gain) <= 1e-9
            assert not reading.beats_chance()
            if metric.kind != "ssim":  # Noise has structure, and some of it fits.
                assert reading.value == pytest.approx(reading.chance)


@everywhere
def test_raw_and_used_examples_are_scored_apart(metric, ground_truths, reconstruction, photos):
    used = [1 - images for images in photos]
    raw_reading, used_reading = metric.grade(reconstruction(used), ground_truths(photos, used), stream(0))
    assert used_reading.value == pytest.approx(PERFECT[metric.kind], abs=1e-6)
    assert raw_reading.value != pytest.approx(PERFECT[metric.kind], abs=1e-2)
    raw_reading, used_reading = metric.grade(reconstruction(photos), ground_truths(photos, used), stream(0))
    assert raw_reading.value == pytest.approx(PERFECT[metric.kind], abs=1e-6)
    assert used_reading.value != pytest.approx(PERFECT[metric.kind], abs=1e-2)


@everywhere
def test_each_holds_one_value_per_true_example_in_order(metric, ground_truths, reconstruction, photos):
    guess = [photos[0].flip(0), torch.zeros_like(photos[1])]
    reading, _ = metric.grade(reconstruction(guess), ground_truths(photos), stream(0))
    assert len(reading.each) == reading.n == 8
    assert reading.value == pytest.approx(sum(reading.each) / 8)
    assert reading.each[:4] == pytest.approx([PERFECT[metric.kind]] * 4, abs=1e-6)
    assert all(value != pytest.approx(PERFECT[metric.kind], abs=1e-2) for value in reading.each[4:])


@everywhere
def test_grading_changes_neither_guess_nor_truth(metric, ground_truths, reconstruction, photos):
    guess, truth = reconstruction([2 * images.double() - 0.5 for images in photos]), ground_truths(photos)
    inputs, raw = copy.deepcopy(guess.inputs), [ground_truth.raw.inputs.clone() for ground_truth in truth]
    metric.grade(guess, truth, stream(0))
    assert all(torch.equal(now, then) for now, then in zip(guess.inputs, inputs, strict=True))
    assert all(torch.equal(ground_truth.raw.inputs, then) for ground_truth, then in zip(truth, raw, strict=True))


@everywhere
def test_the_interval_is_the_same_alone_or_after_other_metrics(metric, ground_truths, reconstruction, photos):
    singles = [image[None] for images in photos for image in images]
    guess, truth = reconstruction([images * 0.9 for images in singles]), ground_truths(singles)
    alone = metric.grade(guess, truth, stream(5))
    rng, state = stream(5), torch.random.get_rng_state()
    for other in INPUTS:
        other.grade(guess, truth, rng)
    assert metric.grade(guess, truth, rng) == alone
    assert alone[0].low < alone[0].value <= alone[0].high
    assert torch.equal(torch.random.get_rng_state(), state)


@everywhere
def test_a_guess_without_examples_is_not_graded(metric, ground_truths, photos):
    scores = Scores((("client-0", 0),), (torch.zeros(4),))
    assert metric.grade(scores, ground_truths(photos[:1]), stream(0)) == ()


@pytest.mark.parametrize("metric", [PSNR(), SSIM(), ReconstructionStatement()], ids=str)
@pytest.mark.parametrize("shape", [(5,), (4, 6)])
def test_image_metrics_are_silent_on_other_data(metric, shape, ground_truths, reconstruction):
    rows = [torch.ones(2, *shape)]
    assert metric.grade(reconstruction(rows), ground_truths(rows), stream(0)) == ()


def test_ssim_is_silent_on_images_without_a_window(ground_truths, reconstruction):
    tiny = [torch.rand(1, 1, 2, 2)]
    assert SSIM().grade(reconstruction(tiny), ground_truths(tiny), stream(0)) == ()
    assert len(PSNR().grade(reconstruction(tiny), ground_truths(tiny), stream(0))) == 2


@pytest.mark.parametrize("metric", [MSE(), RelativeRMSE()], ids=str)
def test_tabular_chance_is_the_answer_zero(metric, ground_truths, reconstruction):
    rows = [torch.tensor([[3.0, 4.0], [0.0, 2.0]])]
    reading, _ = metric.grade(reconstruction(rows), ground_truths(rows), stream(0))
    assert reading.chance == pytest.approx({"mse": (12.5 + 2) / 2, "rmse_relative": 1.0}[metric.kind])
    assert reading.value == 0


def test_only_what_a_person_sees_is_cut_to_the_pixel_range(ground_truths, reconstruction):
    white, beyond = [torch.ones(1, 1, 8, 8)], [torch.full((1, 1, 8, 8), 3.0)]
    graded = {m.kind: m.grade(reconstruction(beyond), ground_truths(white), stream(0))[0].value for m in INPUTS}
    assert graded["psnr"] == 100
    assert graded["ssim"] == pytest.approx(1)
    assert graded["reconstruction_statement"] == 1
    assert graded["mse"] == pytest.approx(4)
    assert graded["rmse_relative"] == 0
    [as_it_is, _] = RelativeRMSE(clip=False).grade(reconstruction(beyond), ground_truths(white), stream(0))
    assert as_it_is.value == pytest.approx(2)


def test_psnr_is_the_mean_of_each_image_not_of_the_pooled_error(ground_truths, reconstruction):
    truth = [torch.zeros(2, 1, 8, 8)]
    guess = torch.zeros(2, 1, 8, 8)
    guess[0], guess[1] = 0.1, 0.01
    reading, _ = PSNR().grade(reconstruction([guess]), ground_truths(truth), stream(0))
    assert sorted(reading.each) == pytest.approx([20, 40])
    assert reading.value == pytest.approx(30)
    assert reading.chance == pytest.approx(psnr(torch.full((1, 1, 8, 8), GREY.mean), torch.zeros(1, 1, 8, 8)).item())


def test_the_interval_resamples_messages_not_examples(ground_truths, reconstruction):
    """Two messages of fifty like examples are two observations: the interval spans both."""
    truth = [torch.zeros(50, 4), torch.zeros(50, 4)]
    guess = [torch.zeros(50, 4), torch.ones(50, 4)]
    reading, _ = MSE().grade(reconstruction(guess), ground_truths(truth), stream(0))
    assert (reading.low, reading.value, reading.high) == (0, 0.5, 1)
    reading, _ = MSE().grade(reconstruction(guess[:1]), ground_truths(truth[:1]), stream(0))
    assert (reading.low, reading.high) == (None, None)


def test_a_truth_without_examples_gives_no_reading(ground_truths, reconstruction):
    empty = [torch.zeros(0, 3, 8, 8)]
    guess = reconstruction(empty, labels=[torch.zeros(0, dtype=torch.long)])
    assert all(metric.grade(guess, ground_truths(empty), stream(0)) == () for metric in standard())


def test_the_standard_set_goes_to_json_and_back():
    assert [Metric.model_validate(metric.to_dict()) for metric in standard()] == list(standard())
    with pytest.raises(InvalidValue, match="Did you mean `rmse_relative`"):
        Metric.model_validate({"kind": "rmse_relativ"})
