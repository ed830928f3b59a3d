"""Store integrity: a store may come from someone else, so it is looked over before anything in it is used."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leaktight.core.document import parse_json
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.input_file import GIBIBYTE, MEBIBYTE, open_input
from leaktight.core.private import reason

LARGEST_STORE = 64 * GIBIBYTE
"""How many bytes a store may have."""
LARGEST_VALUE = 256 * MEBIBYTE
"""How many bytes one value in it may have: a record, a plan, or the pictures of a cell."""


def check_file(path: Path) -> None:
    """Raise unless a store is a regular file of a bounded size.

    Raises:
        InvalidValue: it is something else.
    """
    try:
        with open_input(path, LARGEST_STORE):
            pass
    except OSError as error:
        raise InvalidValue(f"The file `{path}` cannot be read: {reason(error)}. Choose another folder.") from error


def check_content(connection: sqlite3.Connection, path: Path, schema: Iterable[str]) -> None:
    """Raise unless a store has the tables that Leaktight makes, nothing else, and pages that belong together.

    A view in place of a table can run for ever, and pages that several trees share repeat their rows without end.

    Args:
        connection: the open store.
        path: its file, for errors.
        schema: the statements that make its tables.

    Raises:
        LeaktightError: it is damaged, or somebody changed it.
        sqlite3.Error: it cannot be read at all.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchmany(1000)
    if {_plain(str(sql)) for (sql,) in rows} != {_plain(statement) for statement in schema if statement.strip()}:
        raise LeaktightError(f"The file `{path}` must have the tables of an audit store and no others. Choose another folder.")
    if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise damaged(path)


def parse_value(text: object, path: Path) -> Any:
    """Return the JSON in a store's value.

    Raises:
        LeaktightError: it is none.
    """
    try:
        return parse_json(str(text).encode())
    except ValueError:
        raise damaged(path) from None


def damaged(path: Path) -> LeaktightError:
    """Return the error for a store whose content is not as it was written."""
    return LeaktightError(f"The file `{path}` is damaged. Move it away, or choose another folder.")


def _plain(statement: str) -> str:
    return " ".join(statement.split())
