"""Small networks that tests name as their own code."""

from torch import nn


def linear(shape=(1, 4, 4)):
    """Return a network that begins with a linear layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 3))


def normed():
    """Return a network with batch norm and dropout."""
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 3))


def no_module():
    """Return something else."""
    return 3
