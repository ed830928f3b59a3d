from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaktight.core import registry
from leaktight.findings.kind import LeakKind
from leaktight.running import dependencies
from leaktight.running.dependencies import PRESENTATION, file_of, trace

Write = Callable[[dict[str, str]], None]


@pytest.fixture
def write(tmp_path: Path, forget_modules: Callable[[str], None]) -> Write:
    """Return how files below a folder on Python's path are written."""

    def files(texts: dict[str, str]) -> None:
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        forget_modules("dep_")

    return files


def own(name: str) -> set[str]:
    return {file for file in trace([name]) if file.startswith("dep_")}


@pytest.mark.parametrize("load", [False, True], ids=["before it is loaded", "after"])
def test_every_module_that_was_loaded_is_found(write: Write, load: bool) -> None:
    write(
        {
            "dep_model.py": "from dep_pkg.layers.bend import Bend\nimport dep_plain\n",
            "dep_plain.py": "def late():\n    import dep_late\n",
            "dep_late.py": "import dep_model\n",
            "dep_pkg/__init__.py": "from . import side\n",
            "dep_pkg/side.py": "",
            "dep_pkg/unused.py": "",
            "dep_pkg/layers/__init__.py": "",
            "dep_pkg/layers/bend.py": "from ..shape import *\nBend = 1\n",
            "dep_pkg/shape/__init__.py": "",
            "dep_unused.py": "",
        }
    )
    if load:
        importlib.import_module("dep_model")
    found = own("dep_model")
    parts = {"__init__", "side", "layers/__init__", "layers/bend", "shape/__init__"}
    assert found == {"dep_model.py", "dep_plain.py", "dep_late.py", *(f"dep_pkg/{part}.py" for part in parts)}
    assert ("dep_model" in sys.modules) is load


def test_what_a_module_holds_counts_however_it_got_there(write: Write) -> None:
    text = "import importlib\nbend = importlib.import_module('dep_' + 'bend').bend\nNet = importlib.import_module('dep_' + 'net').Net\n"
    write({"dep_model.py": text, "dep_bend.py": "def bend(): pass\n", "dep_net.py": "class Net: pass\n"})
    importlib.import_module("dep_model")
    assert own("dep_model") == {"dep_model.py", "dep_bend.py", "dep_net.py"}


def test_of_leaktight_an_own_module_needs_what_it_takes(write: Write) -> None:
    text = (
        "from leaktight.defences import GaussianNoise\nfrom leaktight import running\nimport leaktight.report.render\n"
    )
    write({"dep_model.py": f"{text}from leaktight.core.errors import InvalidValue\n"})
    importlib.import_module("dep_model")
    assert trace(["dep_model"]) == {
        **trace(["leaktight.defences.gaussian"]),
        "dep_model.py": trace(["dep_model"])["dep_model.py"],
    }
    write({"dep_model.py": "import leaktight.defences as all_of_them\n"})
    assert {"leaktight/defences/gaussian.py", "leaktight/defences/class_keys.py"} <= trace(["dep_model"]).keys()


def test_of_an_installed_package_its_version_counts(write: Write) -> None:
    write({"dep_model.py": "import rich.table, jinja2, _pytest.config, torch.nn, os, json.decoder, dep_missing, sys\n"})
    from importlib.metadata import version

    assert {name: text for name, text in trace(["dep_model"]).items() if name != "dep_model.py"} == {
        "the version of rich": version("rich"),
        "the version of jinja2": version("jinja2"),
        "the version of pytest": version("pytest"),
    }


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_a_plugin_is_a_persons_own_code_even_where_it_is_installed(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / folder))
    files = {"dep_plug/__init__.py": "from dep_plug.noise import x\n", "dep_plug/noise.py": "x = 1\n"}
    about = {"METADATA": "Metadata-Version: 2.1\nName: dep-plug\nVersion: 4.2\n", "top_level.txt": "dep_plug\n"}
    about["entry_points.txt"] = "[leaktight.plugins]\nmine = dep_plug.noise\n"
    write({f"{folder}/{name}": text for name, text in files.items()})
    write(
        {f"{folder}/dep_plug-4.2.dist-info/{name}": text for name, text in about.items() if name != "entry_points.txt"}
    )
    caches = (dependencies.plugin_packages, dependencies._versions, dependencies._distributions)
    for cached in caches:
        cached.cache_clear()
    assert trace(["dep_plug.noise"]) == {"the version of dep_plug": "4.2"}
    write({f"{folder}/dep_plug-4.2.dist-info/entry_points.txt": about["entry_points.txt"]})
    for cached in caches:
        cached.cache_clear()
    assert trace(["dep_plug.noise"]).keys() == {"dep_plug/__init__.py", "dep_plug/noise.py"}
    for cached in caches:
        cached.cache_clear()


def test_a_file_that_changed_before_it_is_loaded_again_is_read_again(write: Write) -> None:
    write({"dep_model.py": "x = 1\n"})
    before = trace(["dep_model"])
    write({"dep_model.py": "x = 12\n"})
    assert trace(["dep_model"]) != before


def test_a_file_that_was_removed_is_no_error(write: Write, tmp_path: Path) -> None:
    write({"dep_model.py": "x = 1\n"})
    importlib.import_module("dep_model")
    (tmp_path / "dep_model.py").unlink()
    assert trace(["dep_model"]).keys() == {"dep_model.py"}


def classes() -> list[Any]:
    return [made for family in registry.families() for made in registry.classes(family).values()]


@pytest.mark.parametrize("made", classes(), ids=lambda made: made.__name__)
def test_no_part_depends_on_what_tells_results(made: Any) -> None:
    if not made.__module__.startswith("leaktight.") or issubclass(made, LeakKind):
        pytest.skip("not of this package, or itself what tells results")
    found = trace([made.__module__])
    assert f"{made.__module__.replace('.', '/')}.py" in found
    assert not [file for file in found if file.split("/")[1] in PRESENTATION or file == "leaktight/core/errors.py"]


@pytest.mark.parametrize(
    ("part", "others"),
    [
        ("defences.gaussian", ["defences/laplace.py", "defences/class_keys.py", "attacks/", "learning/split.py"]),
        ("attacks.analytic", ["attacks/search_engine.py", "defences/"]),
        ("learning.federated", ["learning/split.py", "defences/", "attacks/", "metrics/"]),
        ("models.mlp", ["models/vgg16.py", "models/factory.py"]),
        ("metrics.image", ["metrics/leak_auc.py"]),
    ],
)
def test_a_part_depends_on_no_more_than_it_uses(part: str, others: list[str]) -> None:
    found = trace([f"leaktight.{part}"])
    assert len(found) > 3
    assert not [file for file in found for other in others if file.startswith(f"leaktight/{other}")]


def test_modules_that_stand_alone_are_not_followed() -> None:
    assert trace([], ("leaktight.running.measure",)).keys() == {"leaktight/running/measure.py"}


def test_every_module_that_is_counted_by_name_is_there() -> None:
    from leaktight.running import training_cache

    for name in (
        *training_cache._MEASURED_BY,
        *training_cache._SEATED_BY,
        "leaktight.search.material",
        "leaktight.search.scorer",
    ):
        assert file_of(name)


def test_processes_agree_on_the_files_whatever_was_loaded_before(write: Write, tmp_path: Path) -> None:
    write({"dep_model.py": "def net():\n    import dep_late\n", "dep_late.py": "import leaktight.models.mlp\n"})
    importlib.import_module("dep_late")
    code = "from leaktight.running.dependencies import trace\nprint(sorted(trace(['dep_model']).items()))"
    words = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"]
    said = subprocess.run(words, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert said.strip() == str(sorted(trace(["dep_model"]).items()))


def test_modules_whose_files_were_removed_differ_by_what_they_do(write: Write, tmp_path: Path) -> None:
    found = []
    for factor in (1, 2):
        write({"dep_model.py": f"def net(x):\n    return x * {factor}\n"})
        importlib.import_module("dep_model")
        (tmp_path / "dep_model.py").unlink()
        found.append(trace(["dep_model"])["dep_model.py"])
    assert found[0] != found[1]
