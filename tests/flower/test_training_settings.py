"""What an app's configuration and objects say of its training; what cannot be true is not believed."""

import pytest
import torch
from flwr.app import ConfigRecord

from leaktight.core.errors import InvalidValue
from leaktight.flower import describe_training
from leaktight.flower.training_settings import read_settings

WEIGHTS = [torch.nn.Parameter(torch.zeros(2))]


def test_what_is_described_is_read_back():
    optimizer = torch.optim.Adam(WEIGHTS, lr=0.01, weight_decay=0.1)
    record = describe_training(optimizer, local_steps=3, shape=(3, 32, 32), mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2))
    assert isinstance(record, ConfigRecord)
    assert read_settings(record) == {
        "optimiser": "adam",
        "learning_rate": 0.01,
        "weight_decay": 0.1,
        "local_steps": 3,
        "shape": (3, 32, 32),
        "mean": (0.5, 0.4, 0.3),
        "std": (0.2, 0.2, 0.2),
    }


def test_no_normalisation_is_described_too():
    assert read_settings(describe_training(torch.optim.SGD(WEIGHTS, lr=0.1), mean=()))["mean"] == ()


def test_a_field_that_is_none_is_refused_where_it_is_described():
    with pytest.raises(InvalidValue, match="Did you mean `local_steps`"):
        describe_training(torch.optim.SGD(WEIGHTS, lr=0.1), local_step=3)


@pytest.mark.parametrize(
    "config",
    [
        {"lr": 0.0},
        {"lr": float("nan")},
        {"momentum": True},
        {"batch-size": b"8"},
        {"batch-size": 0},
        {"local-epochs": 1.5},
        {"optimizer": "my own one"},
        {"mean": [0.5]},
        {"mean": [0.5], "std": [0.0]},
        {"mean": [0.5], "std": [1.0, 1.0]},
    ],
)
def test_what_cannot_be_true_stays_unknown(config):
    assert read_settings(config) == {}


def test_a_value_that_cannot_be_true_hides_no_other():
    assert read_settings({"lr": -1.0}, {"learning-rate": 0.5}) == {"learning_rate": 0.5}
