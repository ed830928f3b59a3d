"""No defence makes a generator of its own: it asks its Local, or says that a draw is public."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import leaktight.defences

FOLDER = Path(leaktight.defences.__file__).parent
FORBIDDEN = {
    "Generator", "manual_seed", "stream", "seed_of", "global_seed", "default_rng", "RandomState", "urandom", "SecretKey",
    "randn", "rand", "randint", "randperm", "randn_like", "rand_like", "normal_", "uniform_", "random_", "bernoulli", "bernoulli_",
    "multinomial", "normal", "exponential_", "laplace", "poisson", "Dropout", "dropout",
}  # fmt: skip
ALLOWED = {("polarization.py", "uniform_")}
"""A private head's initial weights, inside `initialise`."""


def names(path: Path) -> set[str]:
    """Return every name that a file imports or takes from something."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in ("random", "secrets", "numpy.random")}
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_a_defence_makes_no_generator(path: Path) -> None:
    drawn = {name for name in names(path) & (FORBIDDEN | {"random", "secrets"}) if (path.name, name) not in ALLOWED}
    assert not drawn


def test_the_check_finds_one(tmp_path: Path) -> None:
    cheat = tmp_path / "cheat.py"
    cheat.write_text("import torch\nnoise = torch.randn(3, generator=torch.Generator().manual_seed(0))\n")
    assert {"randn", "Generator", "manual_seed"} <= names(cheat)
