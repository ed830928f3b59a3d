"""What a result was made from: whatever changes under the same settings must show in its fingerprint."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import leaktight
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.probe import Attempt
from leaktight.data import Factory as OwnData
from leaktight.data import Npz
from leaktight.defences import GaussianNoise, LaplaceNoise, LayerGuard
from leaktight.learning.federated import Federated
from leaktight.models import MLP, Factory
from leaktight.running import content, fingerprint
from leaktight.running.content import MODEL, RESPONSE
from leaktight.running.dependencies import NUMERIC_PACKAGES, digest_loaded
from leaktight.running.fingerprint import DATA, FORMAT, Fingerprint, Fingerprints, versions
from leaktight.running.live_code import reach

ACTIVATION = """
import os
import torch

def bend(x):
    return {bent}
"""
MODEL_FILE = """
from torch import nn
from own_activation import bend

class Bent(nn.Module):
    def forward(self, x):
        return bend(x)

def net(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 3), Bent(), nn.Linear(3, classes))
"""
Write = Callable[..., None]


def save(path: Path, **changes: Any) -> None:
    inputs, labels = np.linspace(0, 1, 32, dtype=np.float32).reshape(8, 1, 2, 2), np.arange(8) % 2
    np.savez(path, **{"x_train": inputs, "y_train": labels, "x_test": inputs, "y_test": labels, **changes})


@pytest.fixture
def data(tmp_path: Path) -> Npz:
    save(tmp_path / "mine.npz")
    return Npz(path=str(tmp_path / "mine.npz"))


@pytest.fixture
def own(tmp_path: Path, forget_modules: Callable[[str], None]) -> Write:
    """Return how a person writes files of code, and starts anew."""

    def write(**files: str) -> None:
        for name, text in files.items():
            (tmp_path / f"own_{name}.py").write_text(text)
        forget_modules("own_")

    return write


@pytest.fixture
def mine(data: Npz, own: Write) -> Federated:
    own(model=MODEL_FILE, activation=ACTIVATION.format(bent="x.tanh()"))
    return Federated(data=data, model=Factory(function="own_model:net"))


def fingerprint_of(scenario: Any, seed: int = 0, *values: Any) -> Fingerprint:
    return Fingerprints().of(scenario, seed, *values)


def test_the_same_things_have_the_same_fingerprint(data: Npz) -> None:
    scenario = Federated(data=data, model=MLP())
    assert fingerprint_of(scenario).digest == fingerprint_of(scenario).digest
    assert fingerprint_of(scenario).digest != fingerprint_of(scenario, seed=1).digest
    longer = scenario.model_copy(update={"rounds": 3})
    assert fingerprint_of(scenario, 0, Undefended()) == fingerprint_of(longer, 0, Undefended())


@pytest.mark.parametrize("member", ["x_train", "y_train", "x_test", "y_test"])
def test_data_that_were_replaced_show(data: Npz, member: str) -> None:
    scenario = Federated(data=data, model=MLP())
    before = fingerprint_of(scenario)
    with np.load(data.path) as archive:
        changed = archive[member][::-1].copy()
    save(Path(data.path), **{member: changed})
    assert fingerprint_of(scenario).changes(before) == [DATA]
    save(Path(data.path))
    assert fingerprint_of(scenario) == before


def test_each_model_is_looked_at_once_in_a_run_and_each_data_set_once(data: Npz, monkeypatch: Any) -> None:
    hashed: list[list[str]] = []
    plain = content.tensor_parts
    monkeypatch.setattr(content, "tensor_parts", lambda tensors: hashed.append(list(tensors)) or plain(tensors))
    fingerprints = Fingerprints()
    for defence in (Undefended(), GaussianNoise(std=0.1), GaussianNoise(std=0.2)):
        for seed in (0, 1):
            fingerprints.of(Federated(data=data, model=MLP()), seed, defence)
    assert hashed.count(["train x", "train y", "test x", "test y"]) == 1
    assert len(hashed) == 3


def test_each_module_is_looked_at_once_in_a_run_and_what_is_reached_once_for_each_set_of_classes(
    mine: Federated, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    reached: list[frozenset[Any]] = []
    monkeypatch.setattr(fingerprint, "digest_loaded", lambda name: looked.append(name) or digest_loaded(name))
    monkeypatch.setattr(fingerprint, "reach", lambda roots: reached.append(roots) or reach(roots))
    fingerprints = Fingerprints()
    for number in range(200):
        noise = GaussianNoise if number % 2 else LaplaceNoise
        fingerprints.of(mine, 0, Chain(links=(noise(), Undefended())) if number % 3 else noise())
        fingerprints.of(mine.model_copy(update={"rounds": number + 1}), 0, Undefended())
    assert {"own_model", "own_activation", "leaktight.defences.gaussian"} <= set(looked)
    assert len(looked) == len(set(looked))
    assert len(reached) == len(set(reached)) == 5


def test_what_an_own_module_imports_shows(mine: Federated, own: Write) -> None:
    before = fingerprint_of(mine)
    assert {"own_model.py", "own_activation.py"} <= before.parts.keys()
    own(activation=ACTIVATION.format(bent="x.tanh() * 1.5"))
    assert fingerprint_of(mine).changes(before) == ["own_activation.py"]
    own(activation=ACTIVATION.format(bent="x.tanh()"))
    assert fingerprint_of(mine) == before


def test_comments_docstrings_and_layout_do_not_show(mine: Federated, own: Write) -> None:
    before = fingerprint_of(mine)
    own(activation='"""How it bends."""\n# much\n' + ACTIVATION.format(bent="(\n        x.tanh()\n    )"))
    assert fingerprint_of(mine) == before


def test_only_what_a_model_does_changes_with_an_environment_variable(
    mine: Federated, own: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(activation=ACTIVATION.format(bent='x.tanh() * float(os.environ.get("OWN_SLOPE", "1"))'))
    before = fingerprint_of(mine)
    assert fingerprint_of(mine) == before
    monkeypatch.setenv("OWN_SLOPE", "1.01")
    assert fingerprint_of(mine).changes(before) == [RESPONSE]
    monkeypatch.delenv("OWN_SLOPE")
    assert fingerprint_of(mine) == before


def test_other_initial_parameters_show_without_any_source(data: Npz, monkeypatch: Any) -> None:
    scenario = Federated(data=data, model=MLP())
    before = fingerprint_of(scenario)
    plain = torch.nn.Linear.reset_parameters

    def smaller(layer: torch.nn.Linear) -> None:
        plain(layer)
        layer.weight.data.mul_(0.5)

    monkeypatch.setattr(torch.nn.Linear, "reset_parameters", smaller)
    assert fingerprint_of(scenario).changes(before) == [MODEL, RESPONSE]


def test_a_module_that_was_edited_but_not_loaded_again_still_does_what_it_did(mine: Federated, tmp_path: Path) -> None:
    before = fingerprint_of(mine)
    (tmp_path / "own_activation.py").write_text(ACTIVATION.format(bent="x.relu()"))
    assert fingerprint_of(mine) == before


def test_an_own_source_of_data_counts_by_code_and_content(own: Write) -> None:
    text = "import numpy as np\nfrom own_activation import bend\n\ndef load():\n    x = np.linspace(0, 1, 32).reshape(8, 1, 2, 2)\n    y = np.arange(8) % 2\n    return x, y, x, y\n"
    own(data=text, activation=ACTIVATION.format(bent="x"))
    scenario = Federated(data=OwnData(function="own_data:load"), model=MLP())
    before = fingerprint_of(scenario)
    assert {"own_data.py", "own_activation.py"} <= before.parts.keys()
    own(data=text.replace("0, 1, 32", "0, 0.5, 32"))
    assert {"own_data.py", DATA} <= set(fingerprint_of(scenario).changes(before))


def test_a_defence_counts_only_where_it_is_used(data: Npz) -> None:
    scenario = Federated(data=data, model=MLP())
    noise, other = (
        fingerprint_of(scenario, 0, GaussianNoise()),
        fingerprint_of(scenario, 0, Chain(links=(LaplaceNoise(),))),
    )
    assert "leaktight/defences/gaussian.py" in noise.parts
    assert "leaktight/defences/gaussian.py" not in other.parts
    assert "leaktight/defences/laplace.py" in other.parts


def test_an_installed_leaktight_is_known_by_its_version(data: Npz, monkeypatch: Any) -> None:
    monkeypatch.setattr("leaktight.running.dependencies.is_checkout", lambda: False)
    scenario = Federated(data=data, model=MLP())
    found = Fingerprints().of(scenario, 0, GaussianNoise(), alone=("leaktight.running.measure",))
    assert not [name for name in found.parts if name.startswith("leaktight/")]
    assert found.parts["the version of leaktight"] == leaktight.__version__


def test_the_code_of_a_plugin_shows_wherever_it_is_nested(toys: ModuleType, data: Npz) -> None:
    scenario = Federated(data=data, model=MLP())
    assert "leaktight_toys.py" not in fingerprint_of(scenario, 0, Undefended()).parts
    for value in (Chain(links=(toys.ToyNoise(),)), Attempt(attack=toys.ToyAttack())):
        assert "leaktight_toys.py" in fingerprint_of(scenario, 0, value).parts
    assert "leaktight_toys.py" in fingerprint_of(toys.ToyScenario()).parts


def test_code_that_was_typed_into_a_notebook_shows(toys: ModuleType, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "typed", ModuleType("typed"))
    before = []
    for factor in (1, 2):
        scope: dict[str, Any] = {"__name__": "typed", "Base": Defence}
        text = (
            "class Typed(Base):\n    def on_message(self, message, local):\n        return message.map(lambda t: t * "
            "FACTOR)\n"
        )
        exec(text.replace("FACTOR", str(factor)), scope)  # noqa: S102
        before.append(fingerprint_of(toys.ToyScenario(), 0, scope["Typed"].model_construct(kind="typed")))
    assert before[1].changes(before[0]) == ["Typed"]


@pytest.mark.parametrize("package", [leaktight, torch])
def test_an_upgrade_shows(toys: ModuleType, package: ModuleType, monkeypatch: Any) -> None:
    before = fingerprint_of(toys.ToyScenario())
    monkeypatch.setattr(package, "__version__", "99.0")
    [change] = fingerprint_of(toys.ToyScenario()).changes(before)
    assert change.startswith(f"the version of {package.__name__} (")
    assert change.endswith(", now 99.0)")


@pytest.mark.parametrize("package", [name for name in NUMERIC_PACKAGES.values() if name != "torch"])
def test_an_upgrade_of_a_library_shows(toys: ModuleType, package: str, monkeypatch: Any) -> None:
    before, plain = fingerprint_of(toys.ToyScenario()), metadata.version
    monkeypatch.setattr(fingerprint.metadata, "version", lambda name: "99.0" if name == package else plain(name))
    assert fingerprint_of(toys.ToyScenario()).changes(before) == [
        f"the version of {package} ({plain(package)}, now 99.0)"
    ]


def test_how_torch_rounds_shows(toys: ModuleType) -> None:
    before = fingerprint_of(toys.ToyScenario())
    torch.set_float32_matmul_precision("medium")
    try:
        assert fingerprint_of(toys.ToyScenario()).changes(before) == [FORMAT]
    finally:
        torch.set_float32_matmul_precision("highest")


def test_versions_of_everything_a_number_depends_on() -> None:
    found = versions()
    assert (found["leaktight"], found["torch"], found["numpy"]) == (
        leaktight.__version__,
        torch.__version__,
        np.__version__,
    )
    assert {"scipy", "scikit-learn", "opacus", "pillow", "python", "platform"} <= found.keys()


def test_a_property_that_was_corrected_shows(tmp_path: Path) -> None:
    path = tmp_path / "people.npz"
    found = []
    for flags in ([0, 1] * 4, [1, 0] * 4):
        save(path, sex_train=np.array(flags), sex_test=np.array([0, 1] * 4))
        scenario = Federated(data=Npz(path=str(path), private_property="sex"), model=MLP(hidden=(3,)), participants=2)
        found.append(fingerprint_of(scenario, 0, Undefended()))
    assert found[1].changes(found[0]) == [DATA]


def test_a_ranking_that_was_written_anew_shows(data: Npz, tmp_path: Path) -> None:
    path = tmp_path / "layers.json"
    scenario = Federated(data=data, model=MLP(hidden=(3,)), participants=2)
    guard = LayerGuard(ranking=str(path))
    found = []
    for ranked in (["head", "body.linear1"], ["body.linear1", "head"]):
        path.write_text(json.dumps({"format": 1, "layers": [], "ranking": {"property": ranked}}))
        found.append([fingerprint_of(scenario, 0, defence) for defence in (guard, Chain(links=(guard,)))])
    for before, after in zip(*found, strict=True):
        assert after.changes(before) == ["what layer_guard reads"]


def test_public_data_of_a_defence_count_by_content(data: Npz, own: Write, tmp_path: Path) -> None:
    own(
        data="import numpy as np\n\ndef load():\n    with np.load('PUBLIC') as held:\n        return "
        "tuple(held.values())\n".replace("PUBLIC", str(tmp_path / "p.npz"))
    )
    save(tmp_path / "p.npz")
    scenario = Federated(data=data, model=MLP(hidden=(3,)), participants=2)
    guard = LayerGuard(public=OwnData(function="own_data:load", classes=2))
    before = fingerprint_of(scenario, 0, guard)
    own()
    assert fingerprint_of(scenario, 0, guard) == before
    save(tmp_path / "p.npz", x_train=np.zeros((8, 1, 2, 2), dtype=np.float32))
    own()
    assert fingerprint_of(scenario, 0, guard).changes(before) == [DATA]


def test_what_is_not_known_any_more_is_not_made_up() -> None:
    assert Fingerprint({"a": "1"}).changes(Fingerprint()) == ["something that was not written down"]


def test_a_part_that_came_or_went_is_named_if_nothing_else_is_different() -> None:
    one, two = Fingerprint({"a": "1"}), Fingerprint({"a": "1", "b": "2"})
    assert two.changes(one) == one.changes(two) == ["b"]
    assert Fingerprint({"a": "3", "b": "2"}).changes(one) == ["a"]
