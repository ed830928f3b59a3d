from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement

from leaktight.core import torch_private

ROOT = Path(__file__).parents[2]
OWNER = ROOT / "src" / "leaktight" / "core" / "torch_private.py"
UNSTABLE = ("torch.fx.experimental",)
"""Modules without a leading underscore that torch does not promise to keep either."""


def modules(path: Path) -> Iterator[str]:
    """Return the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            if node.module == "torch":
                yield from (f"torch.{alias.name}" for alias in node.names)


def is_private(module: str) -> bool:
    parts = module.split(".")
    hidden = any(part.startswith("_") and not part.startswith("__") for part in parts[1:])
    return parts[0] == "torch" and (hidden or module.startswith(UNSTABLE))


@pytest.mark.parametrize("name", torch_private.__all__)
def test_what_we_use_of_private_torch_is_there(name: str) -> None:
    assert callable(getattr(torch_private, name))


def test_one_file_alone_imports_private_modules_of_torch() -> None:
    files = [path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500
    found = {path for path in files if any(map(is_private, modules(path)))}
    assert found == {OWNER}


def test_torch_has_an_upper_bound_that_the_installed_one_keeps() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        wanted = map(Requirement, tomllib.load(file)["project"]["dependencies"])
    [bound] = [requirement for requirement in wanted if requirement.name == "torch"]
    assert any(part.operator == "<" for part in bound.specifier)
    assert torch.__version__.partition("+")[0] in bound.specifier
