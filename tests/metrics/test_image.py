import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.metrics import mean_squared_error, peak_signal_noise_ratio, structural_similarity

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.metrics.image import PSNR_CAP, RelativeRMSE, mse, psnr, rmse_relative, ssim
from leaktight.metrics.pairing import on_screen, pair


def pairs(*shape, seed=0, count=4):
    rng = torch.Generator().manual_seed(seed)
    truth = torch.rand(count, *shape, generator=rng, dtype=torch.float64)
    noise = torch.randn(count, *shape, generator=rng, dtype=torch.float64)
    return (truth + 0.2 * noise).clamp(0, 1), truth


SHAPES = st.tuples(st.sampled_from([1, 3]), st.integers(3, 24), st.integers(3, 24))


@settings(deadline=None, max_examples=20)
@given(SHAPES, st.integers(0, 1000))
def test_psnr_and_mse_agree_with_scikit_image(shape, seed):
    guess, truth = pairs(*shape, seed=seed)
    ours = zip(psnr(guess, truth).tolist(), mse(guess, truth).tolist(), guess.numpy(), truth.numpy(), strict=True)
    for ratio, error, one, other in ours:
        assert ratio == pytest.approx(peak_signal_noise_ratio(other, one, data_range=1))
        assert error == pytest.approx(mean_squared_error(other, one))


@settings(deadline=None, max_examples=20)
@given(SHAPES, st.integers(0, 1000))
def test_ssim_agrees_with_scikit_image_at_every_size(shape, seed):
    guess, truth = pairs(*shape, seed=seed)
    radius = min(5, (min(shape[1:]) - 1) // 2)
    for ours, one, other in zip(ssim(guess, truth).tolist(), guess.numpy(), truth.numpy(), strict=True):
        theirs = structural_similarity(
            one,
            other,
            channel_axis=0,
            data_range=1,
            gaussian_weights=True,
            sigma=0.3 * radius,
            use_sample_covariance=False,
        )
        assert ours == pytest.approx(theirs, abs=1e-9)


def test_ssim_of_many_images_is_that_of_each():
    guess, truth = pairs(1, 8, 8, count=150)
    alone = torch.cat([ssim(guess[i : i + 1], truth[i : i + 1]) for i in (0, 63, 64, 149)])
    assert torch.allclose(ssim(guess, truth)[[0, 63, 64, 149]], alone, atol=1e-12)


def test_identical_images_score_the_documented_best():
    _, truth = pairs(3, 12, 12)
    assert psnr(truth, truth).tolist() == [PSNR_CAP] * 4 == [100.0] * 4
    assert torch.allclose(ssim(truth, truth), torch.ones(4, dtype=torch.float64))
    assert mse(truth, truth).tolist() == rmse_relative(truth, truth).tolist() == [0.0] * 4
    assert psnr(truth + 1e-7, truth).tolist() == [PSNR_CAP] * 4
    assert psnr(truth + 1e-3, truth).tolist() == pytest.approx([60.0] * 4)


def test_relative_error_is_the_norm_of_the_error_by_the_norm_of_the_truth():
    guess, truth = pairs(3, 5, 7)
    for ours, one, other in zip(rmse_relative(guess, truth), guess, truth, strict=True):
        assert ours.item() == pytest.approx(((one - other).pow(2).sum() / other.pow(2).sum()).sqrt().item())
    assert rmse_relative(3 * truth, truth).tolist() == pytest.approx([2.0] * 4)


def test_relative_error_of_a_black_image_is_finite_and_grows_with_the_error():
    black = torch.zeros(3, 1, 4, 4)
    guess = torch.stack([torch.zeros(1, 4, 4), torch.full((1, 4, 4), 1 / 255), torch.ones(1, 4, 4)])
    assert rmse_relative(guess, black).tolist() == pytest.approx([0.0, 1.0, 255.0])


def test_ssim_of_an_image_without_a_window_is_an_error_in_words():
    with pytest.raises(InvalidValue, match=r"at least 3 pixels. Got the shape \(1, 2, 9\) instead"):
        ssim(torch.zeros(1, 1, 2, 9), torch.zeros(1, 1, 2, 9))


def relative(guess, truth, ground_truths, reconstruction, clip):
    return RelativeRMSE(clip=clip).grade(reconstruction([guess]), ground_truths([truth]), stream(0))[0].each


def test_a_clipped_relative_error_is_that_of_the_image_on_a_screen(ground_truths, reconstruction) -> None:
    graded = {"ground_truths": ground_truths, "reconstruction": reconstruction}
    truth, wild = torch.full((1, 3, 4, 4), 0.5), torch.full((1, 3, 4, 4), 1000.0)
    assert relative(wild, truth, **graded, clip=True) == pytest.approx([1.0])
    assert relative(wild, truth, **graded, clip=False) == pytest.approx([1999.0], rel=1e-4)
    inside, other = torch.rand(2, 2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    assert relative(inside, other, **graded, clip=True) == relative(inside, other, **graded, clip=False)


def test_numbers_that_are_no_images_are_not_clipped(ground_truths, reconstruction) -> None:
    found = relative(torch.full((1, 4), 3.0), torch.ones(1, 4), ground_truths, reconstruction, clip=True)
    assert found == pytest.approx([2.0])


def test_what_is_clipped_is_clipped_before_it_is_paired(ground_truths, reconstruction) -> None:
    """One pixel that ran away makes a dark guess stand for the white image; on a screen it is a dark one with a white dot."""
    truth = torch.stack([torch.ones(1, 2, 2), torch.full((1, 2, 2), 0.2)])
    guess = torch.stack([torch.full((1, 2, 2), 0.5), torch.tensor([[[9.0, 0.0], [0.0, 0.0]]])])
    assert (pair(guess, truth).tolist(), pair(on_screen(guess), truth).tolist()) == ([1, 0], [0, 1])
    clipped = relative(guess, truth, ground_truths, reconstruction, clip=True)
    assert clipped == pytest.approx(rmse_relative(on_screen(guess), truth).tolist())
    raw = relative(guess, truth, ground_truths, reconstruction, clip=False)
    assert raw == pytest.approx(rmse_relative(guess.flip(0), truth).tolist())


def test_the_two_errors_have_names_of_their_own(ground_truths, reconstruction) -> None:
    guess, truth = reconstruction([torch.full((1, 3, 4, 4), 2.0)]), ground_truths([torch.ones(1, 3, 4, 4)])
    names = [RelativeRMSE(clip=clip).grade(guess, truth, stream(0))[0].name for clip in (True, False)]
    assert names == ["rmse_relative", "rmse_unclipped"]
    assert set(names) == set(RelativeRMSE.quantities())
