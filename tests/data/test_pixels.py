from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from leaktight.data.pixels import as_inputs, fit


@settings(deadline=None, max_examples=30)
@given(
    hnp.arrays(np.uint8, st.tuples(st.integers(1, 3), st.integers(4, 6), st.integers(4, 6), st.sampled_from([1, 3])))
)
def test_bytes_with_channels_last_become_fractions_with_channels_first(array):
    inputs = as_inputs(array, "It")
    assert inputs.dtype == torch.float32
    assert inputs.is_contiguous()
    np.testing.assert_allclose(inputs.permute(0, 2, 3, 1).numpy() * 255, array, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_fractions_with_channels_first_stay_as_they_are(dtype):
    array = np.random.default_rng(0).random((2, 3, 5, 4)).astype(dtype)
    np.testing.assert_array_equal(as_inputs(array, "It").numpy(), array.astype(np.float32))


def test_grey_images_get_a_channel():
    assert as_inputs(np.zeros((2, 5, 4), np.uint8), "It").shape == (2, 1, 5, 4)


def test_ambiguous_shapes_follow_the_type_or_the_setting():
    array = np.arange(2 * 3 * 5 * 3, dtype=np.uint8).reshape(2, 3, 5, 3)
    assert as_inputs(array, "It").shape == (2, 3, 3, 5)
    assert as_inputs(array / 255, "It").shape == (2, 3, 5, 3)
    assert as_inputs(array, "It", "channels_first").shape == (2, 3, 5, 3)
    assert as_inputs(array / 255, "It", "channels_last").shape == (2, 3, 3, 5)


def test_unambiguous_shapes_ignore_the_type():
    assert as_inputs(np.zeros((2, 3, 8, 9), np.uint8), "It").shape == (2, 3, 8, 9)
    assert as_inputs(np.zeros((2, 8, 9, 3)), "It").shape == (2, 3, 8, 9)


def test_rows_of_a_table_keep_their_units():
    assert as_inputs(np.array([[1, 200]]), "It").tolist() == [[1.0, 200.0]]


def test_booleans_are_zero_and_one():
    assert as_inputs(np.array([[[True, False]]]), "It").tolist() == [[[[1.0, 0.0]]]]


def test_scale_overrides():
    assert as_inputs(np.array([[[16.0, 8.0]]]), "It", scale=16).tolist() == [[[[1.0, 0.5]]]]


def test_the_callers_array_is_copied_even_if_read_only():
    array = np.ones((1, 1, 2, 2), np.float32)
    array.setflags(write=False)
    inputs = as_inputs(array, "It")
    inputs.zero_()
    assert array.sum() == 4


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array(["a"]), ("It must be numbers", "<U1")),
        (np.zeros(3), ("2 dimensions for a table", "(3,)")),
        (np.zeros((1, 2, 3, 4, 5)), ("3 or 4 for images",)),
        (np.zeros((2, 8, 8, 4)), ("1 or 3 channels", "(2, 8, 8, 4)")),
    ],
)
def test_other_arrays_are_refused(array, words, says):
    with says(*words):
        as_inputs(array, "It")


@pytest.mark.parametrize(
    ("resize", "method"), [("nearest", Image.Resampling.NEAREST), ("bicubic", Image.Resampling.BICUBIC)]
)
@pytest.mark.parametrize("size", [5, 8, 20, 32])
def test_resizing_agrees_with_pillow(resize, method, size):
    image = np.random.default_rng(0).random((12, 12)).astype(np.float32)
    ours = fit(torch.from_numpy(image)[None, None], size, resize)[0, 0].numpy()
    theirs = np.asarray(Image.fromarray(image).resize((size, size), method)).clip(0, 1)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_only_the_middle_square_is_kept():
    wide = torch.zeros(1, 1, 4, 10)
    wide[..., 3:7] = 1
    assert fit(wide, 4, "nearest").min() == 1
    assert fit(wide.transpose(2, 3), 2, "nearest").min() == 1


def test_bicubic_does_not_overshoot():
    edge = torch.zeros(1, 1, 8, 8)
    edge[..., 4:] = 1
    large = fit(edge, 32)
    assert large.min() >= 0
    assert large.max() <= 1


def test_no_size_and_the_same_size_change_nothing():
    images = torch.rand(2, 3, 6, 4)
    assert fit(images, None) is images
    square = images[:, :, :4]
    assert torch.equal(fit(square, 4), square)
