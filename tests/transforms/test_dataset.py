"""A policy in a plain PyTorch data set: one image in, the same kind out, the same draws for the same seed."""

from __future__ import annotations

import copy
import os
import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from leaktight.core.draws import SeededDraws
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.random import stream
from leaktight.transforms import Policy, PolicyTransform

POLICY = Policy.of("3-1-7+43-18-18")


class Pictures(Dataset[Tensor]):
    """The same picture again and again, so that whatever differs was drawn."""

    def __init__(self, transform: PolicyTransform, count: int) -> None:
        self.transform, self.count = transform, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, place: int) -> Tensor:
        return self.transform(picture())


def picture(channels: int = 3) -> Tensor:
    return (torch.rand(channels, 16, 16, generator=stream(0, "picture")) * 255).round() / 255


def test_a_tensor_is_changed_as_the_policy_does() -> None:
    transform = POLICY.transform(seed=4)
    for call in range(3):
        wanted = POLICY.apply(picture()[None], SeededDraws(stream(4, "policy transform", 0, call)))[0]
        assert torch.equal(transform(picture()), wanted)


def test_without_a_seed_nobody_can_repeat_the_draws() -> None:
    one, other = Policy.of("3-1-7+43-18-18").transform(), Policy.of("3-1-7+43-18-18").transform()
    turns = [[transform(picture()) for _ in range(12)] for transform in (one, other)]
    assert not all(torch.equal(left, right) for left, right in zip(*turns, strict=True))


@pytest.mark.parametrize("way", ["fork", "pickle"])
def test_a_copy_in_another_process_draws_for_itself(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    transform = Policy.of("3-1-7+43-18-18").transform()
    transform(picture())
    copied = copy.copy(transform) if way == "fork" else pickle.loads(pickle.dumps(transform))  # noqa: S301
    if way == "fork":
        pid = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    assert copied(picture()).shape == (3, 16, 16)
    assert copied._secret is not transform._secret
    assert copied._secret[1] is not transform._secret[1]


@pytest.mark.parametrize("channels", [1, 3])
def test_a_pillow_image_is_changed_like_its_tensor(channels: int) -> None:
    tensor = picture(channels)
    array = (tensor * 255).round().to(torch.uint8).numpy()
    image = Image.fromarray(array[0] if channels == 1 else np.ascontiguousarray(array.transpose(1, 2, 0)))
    as_tensors, as_images = POLICY.transform(seed=1), POLICY.transform(seed=1)
    for _ in range(6):
        found, wanted = as_images(image), as_tensors(tensor)
        assert (found.mode, found.size) == (image.mode, image.size)
        pixels = np.asarray(found).reshape(16, 16, channels).transpose(2, 0, 1)
        assert np.array_equal(pixels, (wanted * 255).round().numpy())


def test_calls_and_seeds_draw_anew() -> None:
    transform, other = POLICY.transform(seed=0), POLICY.transform(seed=1)
    first = torch.stack([transform(picture()) for _ in range(12)])
    assert len(first.unique(dim=0)) > 3
    assert not torch.equal(first, torch.stack([other(picture()) for _ in range(12)]))
    again = POLICY.transform(seed=0)
    assert torch.equal(first, torch.stack([again(picture()) for _ in range(12)]))


def test_listed_probabilities_reach_the_policy() -> None:
    never = Policy.of("29")
    assert torch.equal(never.transform(probability="listed")(picture()), picture())
    assert torch.allclose(never.transform()(picture()), 1 - picture(), atol=1e-6)
    assert repr(never.transform(3, "listed")) == "PolicyTransform('29', seed=3, probability='listed')"


def test_a_copy_goes_on_where_the_original_was() -> None:
    transform = POLICY.transform(seed=2)
    transform(picture())
    copy = pickle.loads(pickle.dumps(transform))  # noqa: S301
    for _ in range(4):
        assert torch.equal(copy(picture()), transform(picture()))


# On a machine with one free core torch advises against two workers.
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_workers_draw_from_streams_of_their_own() -> None:
    def loaded(workers: int) -> Tensor:
        found = list(DataLoader(Pictures(POLICY.transform(seed=0), 16), batch_size=8, num_workers=workers))
        return torch.cat(found)

    two = loaded(2)
    assert torch.equal(two, loaded(2))
    assert not torch.equal(two[:8], two[8:])
    assert torch.equal(two[:8], loaded(0)[:8])


def test_other_images_are_refused() -> None:
    with pytest.raises(
        Refusal, match=r"needs a grey \(L\) or colour \(RGB\) image\. Got mode P instead; convert it first\."
    ):
        POLICY.transform()(Image.new("P", (4, 4)))
    with pytest.raises(Refusal, match=r"needs a Pillow image or a tensor\. Got ndarray instead; convert it first\."):
        POLICY.transform()(np.zeros((4, 4, 3)))
    with pytest.raises(Refusal, match=r"Got shape \(1, 2, 4, 4\) instead"):
        POLICY.transform()(torch.zeros(2, 4, 4))
    with pytest.raises(InvalidValue, match="floating point numbers"):
        POLICY.transform()(torch.zeros(1, 4, 4, dtype=torch.uint8))
