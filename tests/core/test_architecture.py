"""The architecture: imports go upwards only, and importing the package loads little."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import leaktight

SOURCE = Path(__file__).resolve().parents[2] / "src" / "leaktight"
FOLDERS = [
    "core",
    "statistics",
    "data",
    "models",
    "transforms",
    "learning",
    "channels",
    "defences",
    "priors",
    "attacks",
    "metrics",
    "probes",
    "captures",
    "plans",
    "running",
    "findings",
    "search",
    "report",
    "api",
    "flower",
    "wire",
    "papers",
    "cli",
    "testing",
]
"""The import order: a folder imports only from those before it."""
FILES = sorted(SOURCE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {
        f"leaktight.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "leaktight"
        for alias in node.names
    }
    return {name.split(".")[1] for name in names if name.startswith("leaktight.")}


def test_the_order_has_every_folder_and_is_that_of_the_map():
    assert sorted(FOLDERS) == sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    table = page.partition("## Folders")[2].partition("\n## ")[0]
    first_cells = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    assert [name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)] == FOLDERS


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SOURCE)) for path in FILES])
def test_imports_only_go_upwards(path):
    folder = path.relative_to(SOURCE).parts[0]
    if path.parent == SOURCE:
        return
    below = {name for name in imported(path) if name in FOLDERS and FOLDERS.index(name) > FOLDERS.index(folder)}
    assert not below


SAME = {"Factory", "InMemory", "Point"}
"""What does the same for two families, or is drawn and measured: data and model of one's own, a point of a curve."""


def test_one_name_of_a_class_has_one_meaning():
    homes: dict[str, set[str]] = {}
    for path in FILES:
        # Each paper keeps words of its own.
        if "papers" not in path.parts:
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, set()).add(str(path.relative_to(SOURCE)))
    assert {name: files for name, files in homes.items() if len(files) > 1 and name not in SAME} == {}


@pytest.mark.parametrize(("package", "folder"), [("flwr", "flower"), ("grpc", "wire")])
def test_a_foreign_framework_has_one_folder(package, folder):
    importers = {
        path.relative_to(SOURCE).parts[0]
        for path in FILES
        if re.search(rf"^\s*(from|import) {package}\b", path.read_text(), re.M)
    }
    assert importers <= {folder}


def test_importing_leaktight_does_not_import_torch():
    code = "import sys, leaktight, leaktight.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


NAMES = {
    "audit_model": "leaktight.api.audit",
    "Recorder": "leaktight.captures.recorder",
    "protect": "leaktight.flower.protect",
    "record": "leaktight.flower.record",
}


def run_code(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_names_of_the_package_are_imported_when_they_are_used():
    code = "import sys, leaktight; dir(leaktight); print('torch' in sys.modules, end=' '); leaktight.Recorder; print('torch' in sys.modules)"
    assert run_code(code) == "False True"
    assert sorted({*NAMES, "__version__"}) == sorted(leaktight.__all__)
    for name, home in NAMES.items():
        assert getattr(leaktight, name).__module__ == home
        assert name in dir(leaktight)
    with pytest.raises(AttributeError, match="module 'leaktight' has no attribute 'audit_models'"):
        _ = leaktight.audit_models


@pytest.mark.parametrize("name", ["protect", "record"])
def test_without_flower_one_sentence_says_how_to_install_it(name):
    code = f"""
import sys
sys.modules["flwr"] = None
try:
    from leaktight import {name}
except ImportError as error:
    print(error)
"""
    assert run_code(code) == "Flower is not installed. Install it with `pip install leaktight[flower]`."
