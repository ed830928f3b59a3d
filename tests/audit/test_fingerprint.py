"""What a result was made from: whatever changes under the same settings must show in its fingerprint."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import leaktight
from leaktight.audit import origin
from leaktight.audit.origin import Origins, versions
from leaktight.core.defence import Chain, Undefended
from leaktight.data import Npz
from leaktight.defences import LayerGuard
from leaktight.learning.federated import Federated
from leaktight.models import MLP, Factory

MODEL = """
from torch import nn

def net(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.{activation}(), nn.Linear(3, classes))
"""


def save(path: Path, **changes: Any) -> None:
    inputs, labels = np.linspace(0, 1, 32, dtype=np.float32).reshape(8, 1, 2, 2), np.arange(8) % 2
    np.savez(path, **{"x_train": inputs, "y_train": labels, "x_test": inputs, "y_test": labels, **changes})


@pytest.fixture
def data(tmp_path: Path) -> Npz:
    save(tmp_path / "mine.npz")
    return Npz(path=str(tmp_path / "mine.npz"))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return how a person writes a model file, and starts anew."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(content: str) -> None:
        (tmp_path / "own_models.py").write_text(content)
        sys.modules.pop("own_models", None)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop("own_models", None)


def print_of(scenario: Any, seed: int = 0, *parts: Any) -> str:
    return Origins().of(scenario, seed, *parts)


def test_the_same_things_have_the_same_fingerprint(data: Npz) -> None:
    scenario = Federated(data=data, model=MLP())
    assert print_of(scenario) == print_of(scenario)
    assert print_of(scenario) != print_of(scenario, seed=1)
    assert print_of(scenario, 0, Undefended()) == print_of(scenario.model_copy(update={"rounds": 3}), 0, Undefended())


@pytest.mark.parametrize("member", ["x_train", "y_train", "x_test", "y_test"])
def test_data_that_were_replaced_show(data: Npz, member: str) -> None:
    scenario = Federated(data=data, model=MLP())
    before = print_of(scenario)
    with np.load(data.path) as archive:
        changed = archive[member][::-1].copy()
    save(Path(data.path), **{member: changed})
    assert print_of(scenario) != before
    save(Path(data.path))
    assert print_of(scenario) == before


def test_each_scenario_is_looked_at_once_in_a_run_and_each_data_set_once(data: Npz, monkeypatch: Any) -> None:
    hashed = []
    plain = origin._bytes
    monkeypatch.setattr(origin, "_bytes", lambda tensors: hashed.append(list(tensors)) or plain(tensors))
    origins = Origins()
    for _ in range(3):
        for seed in (0, 1):
            origins.of(Federated(data=data, model=MLP()), seed)
    assert hashed.count(["train x", "train y", "test x", "test y"]) == 1
    assert len(hashed) == 3


def test_a_model_that_was_edited_shows(data: Npz, own: Callable[[str], None]) -> None:
    scenario = Federated(data=data, model=Factory(function="own_models:net"))
    prints = []
    for content in (
        MODEL.format(activation="Sigmoid"),
        MODEL.format(activation="Tanh"),
        MODEL.format(activation="Tanh").replace("Linear(4, 3)", "Linear(4, 3, bias=False)"),
        MODEL.format(activation="Tanh") + "# the same network\n",
    ):
        own(content)
        prints.append(print_of(scenario))
    assert len(set(prints)) == 4
    own(MODEL.format(activation="Sigmoid"))
    assert print_of(scenario) == prints[0]


def test_other_initial_parameters_show_without_any_source(data: Npz, monkeypatch: Any) -> None:
    scenario = Federated(data=data, model=MLP())
    before = print_of(scenario)
    plain = torch.nn.Linear.reset_parameters

    def smaller(layer: torch.nn.Linear) -> None:
        plain(layer)
        layer.weight.data.mul_(0.5)

    monkeypatch.setattr(torch.nn.Linear, "reset_parameters", smaller)
    assert print_of(scenario) != before


def test_a_module_that_was_edited_but_not_loaded_again_still_does_what_it_did(
    data: Npz, own: Callable[[str], None], tmp_path: Path
) -> None:
    own(MODEL.format(activation="Sigmoid"))
    scenario = Federated(data=data, model=Factory(function="own_models:net"))
    before = print_of(scenario)
    (tmp_path / "own_models.py").write_text(MODEL.format(activation="Tanh"))
    assert print_of(scenario) == before


def test_the_code_of_a_plugin_shows_wherever_it_is_nested(toys: ModuleType, monkeypatch: Any) -> None:
    from leaktight.core.defence import Chain
    from leaktight.core.probe import Attempt

    seen: list[Any] = []
    monkeypatch.setattr(origin, "_source", lambda made: seen.append(made) or "")
    probe, defence = Attempt(attack=toys.ToyAttack()), Chain(links=(toys.ToyNoise(),))
    print_of(toys.ToyScenario(), 0, defence, probe)
    assert {toys.ToyScenario, toys.ToyAttack, toys.ToyNoise} <= set(seen)


def test_own_files_count_by_content_and_leaktights_by_its_version(toys: ModuleType) -> None:
    origin._source.cache_clear()
    assert origin._source(toys.ToyNoise) == origin._source(toys.ToyAttack) != ""
    assert origin._source(MLP) == origin._source(Undefended) == ""
    assert origin._source(len) == ""


@pytest.mark.parametrize("package", [leaktight, torch])
def test_an_upgrade_shows(toys: ModuleType, package: ModuleType, monkeypatch: Any) -> None:
    before = print_of(toys.ToyScenario())
    monkeypatch.setattr(package, "__version__", "99.0")
    assert print_of(toys.ToyScenario()) != before


def test_versions_of_everything_a_number_depends_on() -> None:
    found = versions()
    assert (found["leaktight"], found["torch"], found["numpy"]) == (leaktight.__version__, torch.__version__, np.__version__)
    assert {"scipy", "scikit-learn", "opacus", "pillow", "python", "platform"} <= found.keys()


def test_a_property_that_was_corrected_shows(tmp_path: Path) -> None:
    path = tmp_path / "people.npz"
    found = []
    for flags in ([0, 1] * 4, [1, 0] * 4):
        save(path, sex_train=np.array(flags), sex_test=np.array([0, 1] * 4))
        scenario = Federated(data=Npz(path=str(path), property="sex"), model=MLP(hidden=(3,)), participants=2)
        found.append(Origins().of(scenario, 0, Undefended()))
    assert found[0] != found[1]


def test_a_ranking_that_was_written_anew_shows(data: Npz, tmp_path: Path) -> None:
    path = tmp_path / "layers.json"
    scenario = Federated(data=data, model=MLP(hidden=(3,)), participants=2)
    guard = LayerGuard(ranking=str(path))
    found = []
    for ranked in (["head", "body.linear1"], ["body.linear1", "head"]):
        path.write_text(json.dumps({"format": 1, "layers": [], "ranking": {"property": ranked}}))
        found += [Origins().of(scenario, 0, defence) for defence in (guard, Chain(links=(guard,)))]
    assert len(set(found)) == 4
