"""The tables of the documentation that follow from the registry are those of the registry."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
SPEC = importlib.util.spec_from_file_location("registry_tables", DOCS / "registry_tables.py")
TABLES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLES)


@pytest.mark.parametrize("page", TABLES.TABLES)
def test_a_page_has_its_tables_as_they_are(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == TABLES.filled(page), "run `python docs/registry_tables.py`"
