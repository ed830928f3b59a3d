"""What the tests of the interface share: a small network, small data, and a preset that takes a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from leaktight.api import audit
from leaktight.attacks import Analytic
from leaktight.core.probe import Attempt
from leaktight.metrics import standard


class Net(nn.Module):
    """A network as a person writes one."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU())
        self.scores = nn.Linear(8, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.scores(self.layers(inputs))
        return scores


@pytest.fixture(scope="module")
def make_network() -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        torch.manual_seed(0)
        return Net()

    return make


@pytest.fixture
def network(make_network: Callable[[], nn.Module]) -> nn.Module:
    return make_network()


@pytest.fixture(scope="module")
def arrays() -> tuple[torch.Tensor, torch.Tensor]:
    """Images with a bright line where the label says."""
    labels, generator = torch.arange(60) % 3, torch.Generator().manual_seed(0)
    inputs = 0.2 * torch.rand(60, 1, 8, 8, generator=generator)
    inputs[torch.arange(60), 0, 2 * labels] += 0.8
    return inputs, labels


@pytest.fixture(scope="module")
def cheap() -> Iterator[dict[str, Any]]:
    """Let the preset `quick` try one attack that takes no time, and return settings for a short training run."""
    whole = audit.PRESETS["quick"]

    def shortened(**settings: Any) -> Any:
        plan = whole(**settings)
        return plan.model_copy(update={"probes": {"analytic": Attempt(attack=Analytic(), metrics=standard())}})

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(audit.PRESETS, "quick", shortened)
        # A budget is for the suite alone.
        settings = {"rounds": 2, "participants": 2, "batch_size": 8, "grid": {"victims": 2}}
        yield {**settings, "progress": False, "budget": "none"}
