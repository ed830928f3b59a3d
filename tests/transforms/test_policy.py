"""Policies: texts and files, what is drawn, that a batch is what Pillow makes of each image, and the published ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor

from leaktight.core.draws import SeededDraws
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.random import Stream, stream
from leaktight.core.value import Value
from leaktight.transforms import LIBRARY, OPERATIONS, PUBLISHED, Policy, outcomes, read_policy, same_as
from leaktight.transforms.batched import as_image, as_pixels
from leaktight.transforms.policy import Probability

HYBRID = "3-1-7+43-18-18"


class Holder(Value):
    """A value with a policy in it, as a defence is one."""

    policy: Policy | None = None


def images(count: int = 64, channels: int = 3, seed: int = 0) -> Tensor:
    return torch.rand(count, channels, 16, 16, generator=stream(seed, "images"))


def slowly(policy: Policy, batch: Tensor, rng: Stream, probability: Probability = "always") -> Tensor:
    """Apply a policy one image and one Pillow call at a time, with draws in the documented order."""
    branch = torch.randint(len(policy.branches), (len(batch),), generator=rng)
    longest = max(map(len, policy.branches))
    draws = [
        (torch.randint(2, (len(batch),), generator=rng), torch.rand(len(batch), generator=rng)) for _ in range(longest)
    ]
    found = []
    for row, one in enumerate(batch):
        image = as_image((one * 255).round().to(torch.uint8).numpy())
        for (signs, chances), index in zip(draws, policy.branches[branch[row]], strict=False):
            function = LIBRARY[index]
            if probability == "always" or chances[row] < function.probability:
                image = OPERATIONS[function.operation].apply(image, function.value, 1 if signs[row] else -1)
        found.append(torch.from_numpy(as_pixels(image).copy()))
    return torch.stack(found).float() / 255


@pytest.mark.parametrize("text", ["0", "49", "3-1-7", HYBRID, "9-9-9-9+28+1-2"])
def test_a_policy_goes_to_text_and_back(text: str) -> None:
    policy = Policy.of(text)
    assert str(policy) == text
    assert Policy.model_validate(text) == policy == Policy(branches=policy.branches)
    assert eval(repr(policy)) == policy  # noqa: S307
    assert policy.to_dict() == text
    assert hash(policy) == hash(Policy.of(text))


def test_a_policy_in_a_value_is_its_text() -> None:
    holder = Holder.model_validate({"policy": HYBRID})
    assert holder == Holder(policy=Policy.of(HYBRID))
    assert holder.to_dict() == {"policy": HYBRID}
    assert Holder.model_validate(json.loads(json.dumps(holder.to_dict()))) == holder
    assert Holder.model_validate({"policy": {"branches": [[3, 1, 7], [43, 18, 18]]}}) == holder


@pytest.mark.parametrize("text", ["", "3-", "-3", "3+", "3 - 1", "a", "3.5", "1--2", "²", "9" * 5000])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="A policy must be indices joined by `-`, and branches by `\\+`"):
        Policy.of(text)


def test_other_branches_are_refused() -> None:
    with pytest.raises(
        InvalidValue, match=r"The `branches` of Policy must be made of indices in 0\.\.49\. Got 50 instead\."
    ):
        Policy.of("3-50")
    with pytest.raises(InvalidValue, match=r"The `branches` of Policy must each have at least one function"):
        Policy(branches=((3,), ()))
    with pytest.raises(InvalidValue, match="The `branches` of Policy must be a list of at least 1"):
        Policy(branches=())
    with pytest.raises(InvalidValue, match="Policy has no setting `branch`"):
        Policy.model_validate({"branch": [[1]]})


@pytest.mark.parametrize("probability", ["always", "listed"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("text", [HYBRID, "9-8-20", "6-10-2+28", "37-0-11+14", "12"])
def test_a_batch_is_each_image_through_pillow(text: str, channels: int, probability: Probability) -> None:
    # More images than are worked on at once.
    batch, policy = images(300, channels), Policy.of(text)
    found = policy.apply(batch, SeededDraws(stream(5)), probability)
    assert torch.equal(found, slowly(policy, batch, stream(5), probability))


@pytest.mark.parametrize("index", range(50))
def test_each_function_alone(index: int) -> None:
    batch, policy = images(8), Policy(branches=((index,),))
    assert torch.equal(policy.apply(batch, SeededDraws(stream(index))), slowly(policy, batch, stream(index)))


@pytest.mark.parametrize("text", ["28", "39-28", "28-39-28+39"])
def test_identities_only_round_to_eight_bits(text: str) -> None:
    batch = images()
    assert torch.equal(Policy.of(text).apply(batch, SeededDraws(stream(0))), (batch * 255).round() / 255)


def test_rounding_happens_once() -> None:
    batch = Policy.of("28").apply(images(), SeededDraws(stream(0)))
    assert torch.equal(Policy.of("28").apply(batch, SeededDraws(stream(1))), batch)


def test_longer_policies_draw_the_same_at_first() -> None:
    batch = images()
    after = Policy.of("3-1").apply(batch, SeededDraws(stream(2)))
    assert torch.equal(
        Policy.of("0").apply(after, SeededDraws(stream(9))), Policy.of("3-1-0").apply(batch, SeededDraws(stream(2)))
    )


@pytest.mark.parametrize("index", range(50))
def test_functions_that_are_the_same_make_the_same(index: int) -> None:
    batch, twin = images(8), same_as(index)
    assert torch.equal(
        Policy(branches=((3, index),)).apply(batch, SeededDraws(stream(0))),
        Policy(branches=((3, twin),)).apply(batch, SeededDraws(stream(0))),
    )


def test_branches_and_signs_are_drawn_evenly_for_each_image() -> None:
    grey = torch.full((4000, 1, 2, 2), 100 / 255)
    found = (Policy.of("15+0").apply(grey, SeededDraws(stream(0)))[:, 0, 0, 0] * 255).round()
    values, counts = found.unique(return_counts=True)
    assert values.tolist() == [50, 150, 155]
    # Five standard deviations of a binomial draw.
    for share, count in zip((0.25, 0.25, 0.5), counts.tolist(), strict=True):
        assert abs(count - 4000 * share) < 5 * (4000 * share * (1 - share)) ** 0.5


def test_listed_probabilities_are_kept() -> None:
    black = torch.zeros(4000, 1, 1, 1)
    for index, share in ((0, 0.1), (29, 0.0), (47, 0.1)):
        inverted = Policy(branches=((index,),)).apply(black, SeededDraws(stream(index)), "listed").mean().item()
        assert abs(inverted - share) <= 5 * (share * (1 - share) / 4000) ** 0.5
        assert Policy(branches=((index,),)).apply(black, SeededDraws(stream(index)), "always").min() == 1


def test_the_same_stream_makes_the_same_and_another_does_not() -> None:
    policy, batch = Policy.of(HYBRID), images()
    state = torch.random.get_rng_state()
    first = policy.apply(batch, SeededDraws(stream(1)))
    assert torch.equal(first, policy.apply(batch, SeededDraws(stream(1))))
    assert not torch.equal(first, policy.apply(batch, SeededDraws(stream(2))))
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_type_and_range_stay_and_the_input_too(dtype: torch.dtype) -> None:
    batch = images().to(dtype)
    before = batch.clone()
    found = Policy.of(HYBRID).apply(batch, SeededDraws(stream(0)))
    assert found.dtype is dtype
    assert found.shape == batch.shape
    assert found.min() >= 0
    assert found.max() <= 1
    assert torch.equal(batch, before)
    levels = found.double() * 255
    assert (levels - levels.round()).abs().max() < (0.2 if dtype is torch.float16 else 1e-4)


def test_odd_layouts_and_empty_batches() -> None:
    batch, policy = images(), Policy.of("3-1-7")
    wanted = policy.apply(batch, SeededDraws(stream(0)))
    strided = batch.contiguous(memory_format=torch.channels_last)
    assert torch.equal(policy.apply(strided, SeededDraws(stream(0))), wanted)
    assert torch.equal(policy.apply(batch.clone().requires_grad_(True), SeededDraws(stream(0))), wanted)
    assert policy.apply(batch[:0], SeededDraws(stream(0))).shape == (0, 3, 16, 16)


@pytest.mark.parametrize("shape", [(4, 2, 8, 8), (4, 64), (3, 8, 8), (4, 4, 8, 8), (2, 3, 0, 8)], ids=str)
def test_what_is_no_image_is_refused(shape: tuple[int, ...]) -> None:
    sentence = f"A transformation needs images of shape (n, 1 or 3, height, width). Got shape {shape} instead."
    with pytest.raises(Refusal) as caught:
        Policy.of("0").apply(torch.zeros(shape), SeededDraws(stream(0)))
    assert str(caught.value) == sentence


@pytest.mark.parametrize(("bad", "said"), [(float("nan"), "nan"), (-0.1, "-0.1"), (1.5, "1.5"), (float("inf"), "inf")])
def test_pixels_out_of_range_are_refused(bad: float, said: str) -> None:
    batch = images()
    batch[3, 1, 2, 2] = bad
    with pytest.raises(
        InvalidValue, match=rf"The pixels of a transformation must be in \[0, 1\]\. Got .*{said}.* instead\."
    ):
        Policy.of("0").apply(batch, SeededDraws(stream(0)))


def test_whole_numbers_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"must be floating point numbers in \[0, 1\]\. Got torch\.uint8 instead\."):
        Policy.of("0").apply(torch.zeros(1, 1, 4, 4, dtype=torch.uint8), SeededDraws(stream(0)))


def test_another_probability_is_refused_and_does_not_weaken_the_policy() -> None:
    sentence = r"The `probability` of a policy must be `always` or `listed`. Got 'Always' instead."
    policy, wrong = Policy.of("0"), cast("Probability", "Always")
    for refuse in (
        lambda: policy.apply(images(1), SeededDraws(stream(0)), wrong),
        lambda: policy.transform(probability=wrong),
        lambda: outcomes(policy, (3, 16, 16), wrong),
    ):
        with pytest.raises(InvalidValue, match=sentence):
            refuse()


def test_bytes_are_the_nearest() -> None:
    level = torch.tensor([[[[0.0, 0.4999 / 255, 0.5001 / 255, 254.6 / 255, 1.0]]]])
    assert np.rint(Policy.of("28").apply(level, SeededDraws(stream(0))).numpy() * 255).ravel().tolist() == [
        0,
        0,
        1,
        255,
        255,
    ]


def test_published_policies_are_those_of_table_1() -> None:
    assert {name: str(policy) for name, policy in PUBLISHED.items()} == {
        "ats2021-resnet20-cifar100": "3-1-7+43-18-18",
        "ats2021-convnet-cifar100": "21-13-3+7-4-15",
        "ats2021-resnet20-fashion-mnist": "19-15-45+2-43-21",
        "ats2021-convnet-fashion-mnist": "42-28-42+14-48-48",
    }


@pytest.mark.parametrize("policy", PUBLISHED.values(), ids=PUBLISHED)
def test_the_two_branches_of_a_published_policy_share_no_function(policy: Policy) -> None:
    first, second = policy.branches
    assert not set(first) & set(second)


def stored(folder: Path, text: str) -> Path:
    (folder / "policy.toml").write_text(text)
    return folder / "policy.toml"


def test_a_file_is_read_whatever_else_it_holds_and_again_when_it_changes(tmp_path: Path) -> None:
    file = stored(tmp_path, 'policy = "3-1-7+43-18-18"\nseed = 0\n[scores]\n"3-1-7" = 0.2\n')
    assert read_policy(file) == Policy.of("3-1-7+43-18-18")
    assert read_policy(stored(tmp_path, 'policy = "9"')) == Policy.of("9")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("policy = ", "must be a whole result of `leaktight search`. It is damaged"),
        ("seed = 1", "must hold a `policy` like `3-1-7+43-18-18`. It does not; run `leaktight search`."),
        ("policy = 3", "must hold a `policy` like `3-1-7+43-18-18`. It does not; run `leaktight search`."),
        (
            'policy = "3-77"',
            "cannot be read. The `branches` of Policy must be made of indices in 0..49. Got 77 instead.",
        ),
        ('policy = "x"', "cannot be read. A policy must be indices joined by `-`"),
    ],
)
def test_a_file_without_a_policy_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read_policy(stored(tmp_path, text))
    assert sentence in str(caught.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="There is no file or folder"):
        read_policy(tmp_path / "none.toml")
    (tmp_path / "policy.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidValue, match="It is damaged"):
        read_policy(tmp_path / "policy.toml")
