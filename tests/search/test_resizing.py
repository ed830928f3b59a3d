"""Resizing: as small as the network takes, and one sentence where that is not possible."""

import numpy as np
import pytest

from leaktight.core.errors import InvalidValue
from leaktight.data import Digits, Npz, Photos
from leaktight.data.held_out import HeldOut
from leaktight.models import LeNet
from leaktight.search.resizing import enlarge_for


def test_images_that_fit_stay() -> None:
    data = Photos(size=20)
    assert enlarge_for(data, LeNet()) is data


def test_files_are_enlarged_too(tmp_path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "small.npz", x=rng.random((40, 8, 8, 1), dtype=np.float32), y=np.arange(40) % 4)
    data = enlarge_for(Npz(path=str(tmp_path / "small.npz"), train_limit=20), LeNet())
    assert data.load().shape == (1, 16, 16)
    assert data.train_limit == 20


def test_what_cannot_be_resized_is_one_sentence() -> None:
    with pytest.raises(InvalidValue, match=r"lenet needs images .* The data `held_out` cannot be resized here"):
        enlarge_for(HeldOut(data=Digits()), LeNet())
