import pytest
import torch
from scipy.stats import binomtest

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.core.random import stream
from leaktight.metrics import PSNR, ReconstructionStatement, statement


def noisy(photos, scale=0.1):
    rng = torch.Generator().manual_seed(0)
    each = torch.linspace(0.2, 2, 4).view(-1, 1, 1, 1)
    return [images + scale * each * torch.randn(images.shape, generator=rng) for images in photos]


@pytest.mark.parametrize("epsilon", [1.0, 15.0, 20.0, 25.0, 100.0])
def test_the_value_is_the_share_of_images_at_epsilon_or_better(epsilon, ground_truths, reconstruction, photos):
    guess, truth = reconstruction(noisy(photos)), ground_truths(photos)
    reading, _ = ReconstructionStatement(epsilon=epsilon).grade(guess, truth, stream(0))
    each = PSNR().grade(guess, truth, stream(0))[0].each
    assert reading.each == tuple(float(value >= epsilon) for value in each)
    assert reading.value == pytest.approx(sum(value >= epsilon for value in each) / 8)


def test_an_image_at_exactly_epsilon_counts(ground_truths, reconstruction):
    black = [torch.zeros(1, 1, 4, 4)]
    half = [torch.full((1, 1, 4, 4), 0.5)]
    exact = PSNR().grade(reconstruction(half), ground_truths(black), stream(0))[0].value
    assert (
        ReconstructionStatement(epsilon=exact).grade(reconstruction(half), ground_truths(black), stream(0))[0].value
        == 1
    )


def test_the_interval_for_messages_of_one_image_is_wilsons(ground_truths, reconstruction, photos):
    singles = [image[None] for images in photos for image in images]
    guess = [image if position < 6 else 1 - image for position, image in enumerate(singles)]
    reading, _ = ReconstructionStatement().grade(reconstruction(guess), ground_truths(singles), stream(0))
    expected = binomtest(6, 8).proportion_ci(method="wilson")
    assert (reading.value, reading.low, reading.high) == pytest.approx((0.75, expected.low, expected.high))


def test_images_of_one_message_are_not_counted_as_independent(ground_truths, reconstruction, photos):
    reading, _ = ReconstructionStatement().grade(reconstruction(photos), ground_truths(photos), stream(0))
    expected = binomtest(2, 2).proportion_ci(method="wilson")
    assert (reading.low, reading.high) == pytest.approx((expected.low, expected.high))


def test_chance_is_the_share_of_truths_that_are_grey_already(ground_truths, reconstruction):
    truth = [torch.stack([torch.full((1, 4, 4), 0.52), torch.zeros(1, 4, 4)])]
    reading, _ = ReconstructionStatement().grade(reconstruction(truth), ground_truths(truth), stream(0))
    assert reading.chance == 0.5


def test_the_statement_in_words():
    reading = Reading(name="reconstruction_statement", value=0.875, n=16, against="used")
    assert statement(reading, epsilon=25.5) == (
        "The attack is a (25.5 dB, 0.12)-reconstruction attack on the used images: 88 % of 16 came back at 25.5 dB or "
        "better."
    )
    assert "(20 dB, 1)-reconstruction attack: 0 % of 4" in statement(
        Reading(name="reconstruction_statement", value=0.0, low=0.0, high=0.49, n=4)
    )
    with pytest.raises(InvalidValue, match=r"needs a reading of `reconstruction_statement`. Got one of `psnr`"):
        statement(Reading(name="psnr", value=3))


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [
        (0, "must be above 0"),
        (-3, "must be above 0"),
        (101, "must be at most 100"),
        (float("nan"), "must be a finite number"),
    ],
)
def test_an_impossible_epsilon_is_an_error_in_words(epsilon, text):
    with pytest.raises(InvalidValue, match=f"The `epsilon` of reconstruction_statement {text}"):
        ReconstructionStatement(epsilon=epsilon)
