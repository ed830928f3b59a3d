"""The architecture: imports go upwards only, and importing the package loads little."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    return {name.split(".")[1] for name in names if name.startswith("leaktight.")}


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SOURCE)) for path in FILES])
def test_imports_only_go_upwards(path):
    folder = path.relative_to(SOURCE).parts[0]
    if folder not in FOLDERS:
        return
    below = {name for name in imported(path) if name in FOLDERS and FOLDERS.index(name) > FOLDERS.index(folder)}
    assert not below


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
