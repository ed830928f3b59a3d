"""What the tests of data share: where real data may lie, and how to see an error's sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue

REAL = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def real() -> Callable[[str], Path]:
    """Return a real file or folder by name, or skip the test."""

    def find(name: str) -> Path:
        path = REAL / name
        if not path.exists():
            pytest.skip(f"needs the data set `{name}`, which is not beside the repository")
        return path

    return find


@pytest.fixture
def says() -> Callable[..., AbstractContextManager[object]]:
    """Expect an InvalidValue whose one sentence (or two) holds all of these words."""

    def expect(*words: str) -> AbstractContextManager[object]:
        return pytest.raises(InvalidValue, match="(?s)" + "".join(f"(?=.*{re.escape(word)})" for word in words))

    return expect
