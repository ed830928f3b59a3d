"""Definition 2: what measurements say of it, and that they say no more than they can."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.metrics import Claim, PrivacyAware, privacy_aware

CLAIM = Claim(epsilon=10, delta=0.1, gamma=0.05)
VERDICTS = ("holds", "undecided", "does not hold")


def psnr(*each, against="used") -> Reading:
    return Reading(name="psnr", value=sum(each) / len(each), n=len(each), each=each, against=against, leaks="high")


def psnrs(used=(8.0,) * 60, raw=(7.0,) * 60):
    return [psnr(*raw, against="raw"), psnr(*used, against="used")]


def accuracy(value, half=0.01) -> Reading:
    return Reading(name="accuracy", value=value, low=value - half, high=value + half, n=1000)


def judged(claim=CLAIM, images=None, defended=0.70, undefended=0.71, half=0.01, messages=None) -> PrivacyAware:
    return privacy_aware(claim, images or psnrs(), accuracy(defended, half), accuracy(undefended, half), messages)


def test_what_is_hidden_and_cheap_is_privacy_aware():
    found = judged()
    assert (found.verdict, found.as_printed, found.affordable) == ("holds",) * 3
    assert (found.used.value, found.raw.value, found.loss.value) == pytest.approx((1.0, 1.0, 0.01))
    assert (found.used.against, found.raw.against) == ("used", "raw")


@pytest.mark.parametrize("hidden", [0, 6, 54, 60])
def test_the_share_is_of_images_strictly_below_epsilon_with_wilsons_interval(hidden):
    found = judged(images=psnrs(used=(9.999,) * hidden + (10.0,) * (60 - hidden)))
    expected = binomtest(hidden, 60).proportion_ci(method="wilson")
    assert found.used.value == hidden / 60
    assert (found.used.low, found.used.high) == pytest.approx((expected.low, expected.high))
    assert found.hides("used") == (
        "holds" if expected.low >= 0.9 else "does not hold" if expected.high < 0.9 else "undecided"
    )


def test_few_images_leave_it_undecided_and_the_docstring_counts_them_right():
    assert [judged(images=psnrs((8.0,) * n, (8.0,) * n)).verdict for n in (3, 34, 35)] == [
        "undecided",
        "undecided",
        "holds",
    ]


def test_images_of_one_message_are_one_trial():
    assert judged(messages=60).verdict == "holds"
    assert judged(messages=15).verdict == "undecided"
    expected = binomtest(15, 15).proportion_ci(method="wilson")
    assert judged(messages=15).raw.low == pytest.approx(expected.low)
    for wrong in (0, 61):
        with pytest.raises(InvalidValue, match=rf"behind 60 images must be a number in \[1, 60\]. Got {wrong} instead"):
            judged(messages=wrong)


@pytest.mark.parametrize(
    ("defended", "half", "verdict"),
    [
        (0.70, 0.01, "holds"),
        (0.67, 0.01, "undecided"),
        (0.60, 0.01, "does not hold"),
        (0.70, 0.1, "undecided"),
        (0.8, 0.01, "holds"),
    ],
)
def test_the_price_is_judged_by_the_interval_of_the_difference(defended, half, verdict):
    found = judged(defended=defended, half=half)
    assert found.affordable == found.verdict == verdict
    assert found.loss.value == pytest.approx(0.71 - defended)
    assert found.loss.high - found.loss.value == pytest.approx(math.sqrt(2) * half)


def test_a_loss_of_exactly_gamma_is_too_much():
    exact = (
        Reading(name="accuracy", value=0.5, low=0.5, high=0.5),
        Reading(name="accuracy", value=0.75, low=0.75, high=0.75),
    )
    verdicts = [
        privacy_aware(Claim(epsilon=10, delta=0.1, gamma=g), psnrs(), *exact).affordable for g in (0.25, 0.2501)
    ]
    assert verdicts == ["does not hold", "holds"]


def test_an_accuracy_without_an_interval_decides_nothing():
    bare = Reading(name="accuracy", value=0.7)
    found = privacy_aware(CLAIM, psnrs(), bare, accuracy(0.7))
    assert (found.affordable, found.verdict) == ("undecided", "undecided")


def test_who_undoes_the_transformation_breaks_the_verdict_and_not_the_printed_definition():
    found = judged(images=psnrs(raw=(30.0,) * 60))
    assert (found.as_printed, found.verdict) == ("holds", "does not hold")


def test_one_failure_is_enough_and_all_must_hold():
    used = {"holds": (8.0,) * 60, "undecided": (8.0,) * 54 + (30.0,) * 6, "does not hold": (30.0,) * 60}
    lost = {"holds": 0.70, "undecided": 0.67, "does not hold": 0.6}
    for one, other, third in itertools.product(VERDICTS, repeat=3):
        found = judged(images=psnrs(used[one], used[other]), defended=lost[third])
        assert (found.hides("used"), found.hides("raw"), found.affordable) == (one, other, third)
        assert found.verdict == max((one, other, third), key=VERDICTS.index)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=80), st.floats(0.5, 100), st.floats(0, 1))
def test_asking_for_less_never_makes_it_worse(values, epsilon, delta):
    images = psnrs(tuple(values), tuple(values))
    strict = judged(Claim(epsilon=epsilon / 2, delta=delta / 2, gamma=0.05), images).hides("used")
    lax = judged(Claim(epsilon=epsilon, delta=delta, gamma=0.05), images).hides("used")
    assert VERDICTS.index(lax) <= VERDICTS.index(strict)


def test_it_goes_to_json_and_back_and_says_itself_in_words():
    found = judged(defended=0.6)
    assert PrivacyAware.model_validate(found.to_dict()) == found
    assert str(found) == (
        "The defence is not (10 dB, 0.1, 0.05)-privacy-aware. Below 10 dB: 100 % [94, 100] of 60 images as trained on, "
        "100 % [94, 100] as owned; 90 % are asked. Accuracy lost: 11 % [10, 12]; less than 5 % is asked."
    )
    assert str(judged()).startswith("The defence is (10 dB")
    assert str(judged(messages=3)).startswith("The defence may or may not be (10 dB")


def test_readings_that_are_missing_are_named():
    for images, missing in (([psnr(8.0, against="raw")], "used"), ([psnr(8.0)], "raw")):
        with pytest.raises(InvalidValue, match=f"Got none against the {missing} images"):
            judged(images=images)
    summary = Reading(name="psnr", value=8.0, against="raw")
    with pytest.raises(InvalidValue, match="with the value of each image"):
        judged(images=[summary, psnr(8.0)])


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("epsilon", 0, "above 0"),
        ("epsilon", 101, "at most 100"),
        ("delta", -0.1, "at least 0"),
        ("gamma", 2, "at most 1"),
    ],
)
def test_an_impossible_claim_is_an_error_in_words(field, value, text):
    with pytest.raises(InvalidValue, match=f"The `{field}` of Claim must be {text}"):
        Claim(**{"epsilon": 10, "delta": 0.1, "gamma": 0.05, field: value})
