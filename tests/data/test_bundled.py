from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_sample_image
from sklearn.neighbors import KNeighborsClassifier

from leaktight.data import Digits, Photos
from leaktight.data.photos import SIDE, SUBJECTS, corners


def test_digits_are_those_of_scikit_learn_each_once():
    data = Digits().load()
    found = load_digits()
    ours = torch.cat([data.train.inputs, data.test.inputs]).flatten(1) * 16
    labels = torch.cat([data.train.labels, data.test.labels])
    mine = sorted(map(tuple, torch.cat([ours, labels[:, None]], 1).tolist()))
    theirs = sorted(map(tuple, np.concatenate([found.data, found.target[:, None]], 1).tolist()))
    assert mine == theirs


def test_digits_are_split_by_class():
    data = Digits().load()
    every, test = (torch.bincount(torch.cat([data.train.labels, data.test.labels])), torch.bincount(data.test.labels))
    assert (test - every / 5).abs().max() <= 1
    assert data.names == tuple("0123456789")


def test_digits_can_be_told_apart_across_the_split():
    data = Digits().load()
    judge = KNeighborsClassifier(1).fit(data.train.inputs.flatten(1), data.train.labels)
    assert judge.score(data.test.inputs.flatten(1), data.test.labels) > 0.97


@pytest.mark.parametrize("size", [8, 16, 28, 32])
def test_digits_come_in_every_size(size):
    assert Digits(size=size).load().shape == (1, size, size)


def test_nearest_digits_are_blocks_of_the_small_ones():
    small, large = Digits().load(), Digits(size=32, resize="nearest").load()
    blocks = small.train.inputs.repeat_interleave(4, 2).repeat_interleave(4, 3)
    assert torch.equal(large.train.inputs, blocks)
    assert torch.equal(large.train.labels, small.train.labels)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Digits(size=4), ("`size` of digits", "at least 8", "Got 4")),
        (lambda: Digits(size=100), ("at most 64",)),
        (lambda: Digits(resize="cubic"), ("`resize` of digits", "'nearest' or 'bicubic'")),
        (lambda: Photos(classes=3), ("`classes` of photos must be one of 2, 4 or 8", "Got 3")),
        (lambda: Photos(size=73), ("at most 72",)),
        (lambda: Photos(scale=2), ("photos has no setting `scale`",)),
    ],
)
def test_wrong_settings(made, words, says):
    with says(*words):
        made()


def test_photos_are_crops_of_the_photographs():
    data = Photos(size=SIDE).load()
    for position, subject in enumerate(SUBJECTS):
        photograph = load_sample_image(subject.file)
        for batch, places in zip((data.train, data.test), corners(subject), strict=True):
            crops = {photograph[y : y + SIDE, x : x + SIDE].tobytes() for x, y in places}
            mine = batch.inputs[batch.labels == position]
            assert {(crop.permute(1, 2, 0) * 255).round().byte().numpy().tobytes() for crop in mine} == crops
            assert len(mine) == len(crops)


def covered(places: list[tuple[int, int]]) -> np.ndarray:
    pixels = np.zeros((427, 640), dtype=bool)
    for x, y in places:
        assert 0 <= x <= 640 - SIDE
        assert 0 <= y <= 427 - SIDE
        pixels[y : y + SIDE, x : x + SIDE] = True
    return pixels


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_no_pixel_is_in_training_and_test_crops(subject):
    train, test = map(covered, corners(subject))
    assert train.any()
    assert test.any()
    assert not (train & test).any()


@pytest.mark.parametrize("classes", [2, 4, 8])
def test_photos_have_every_class_in_both_parts(classes):
    data = Photos(classes=classes).load()
    for batch in (data.train, data.test):
        counts = torch.bincount(batch.labels, minlength=classes)
        assert counts.min() > 0
        assert counts.max() <= 2 * counts.min()
    assert len(set(data.names)) == classes


def test_more_classes_only_refine_the_two():
    coarse, fine = Photos().load(), Photos(classes=8).load()
    assert torch.equal(fine.train.labels // 4, coarse.train.labels)
    assert torch.equal(fine.train.inputs, coarse.train.inputs)


def test_photos_show_structure_and_not_plain_ground():
    data = Photos().load()
    contrast = data.train.inputs.mean(1).flatten(1).std(1)
    assert contrast.min() > 0.08


def test_photos_are_mixed_and_can_be_told_apart():
    data = Photos().load()
    assert 4 <= data.train.labels[:20].sum() <= 16
    judge = KNeighborsClassifier(5).fit(data.train.inputs.flatten(1), data.train.labels)
    assert judge.score(data.test.inputs.flatten(1), data.test.labels) > 0.9


@pytest.mark.parametrize("source", [Digits(), Photos()], ids=str)
def test_bundled_data_neither_use_nor_touch_the_global_generator(source):
    torch.manual_seed(1)
    first = source.read()
    state = torch.random.get_rng_state()
    torch.manual_seed(2)
    second = source.read()
    assert torch.equal(first.train.inputs, second.train.inputs)
    assert torch.equal(first.test.labels, second.test.labels)
    torch.manual_seed(1)
    assert torch.equal(state, torch.random.get_rng_state())
