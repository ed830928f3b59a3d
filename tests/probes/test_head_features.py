from __future__ import annotations

import pytest

from leaktight.core.random import stream
from leaktight.defences import GaussianNoise, Polarization, Withhold
from leaktight.probes import HeadFeatures
from leaktight.testing.toys import toy_run


def error(defence=None, batch_size=1):
    return [
        reading.value for reading in HeadFeatures().read(toy_run(defence, batch_size=batch_size), stream(0)).readings
    ]


@pytest.mark.parametrize("alpha2", [0.1, 1.0, 100.0])
def test_a_private_loss_leaves_features_of_single_examples_readable(alpha2: float) -> None:
    [found] = error(Polarization(alpha2=alpha2))
    assert found < 1e-3


def test_noise_on_the_head_hides_them() -> None:
    [hardened] = error(Polarization(alpha2=0.1, head_noise=10.0))
    [noisy] = error(GaussianNoise(std=10.0))
    assert min(hardened, noisy) > 0.5


def test_mixtures_and_heads_that_were_not_sent_are_left_out() -> None:
    assert error(batch_size=2) == []
    assert error(Withhold(layers=("head",))) == []
