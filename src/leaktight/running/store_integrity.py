"""Store integrity: the tables of a store, and how one is looked over before anything in it is used.

A store may come from someone else.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from leaktight.core.digest import digest
from leaktight.core.document import parse_json
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.input_file import GIBIBYTE, MEBIBYTE, open_input
from leaktight.core.private import reason

LARGEST_STORE = 64 * GIBIBYTE
"""How many bytes a store may have."""
LARGEST_VALUE = 256 * MEBIBYTE
"""How many bytes one value in it may have: a record, a plan, or the pictures of a cell."""

STORE_FORMAT = 3
_APPLICATION = 0x1EAC7161
_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE cells (
    key TEXT PRIMARY KEY, status TEXT NOT NULL, record TEXT NOT NULL, fingerprint TEXT NOT NULL, versions TEXT NOT NULL,
    checksum TEXT NOT NULL, gallery BLOB NOT NULL, gallery_checksum TEXT NOT NULL
);
CREATE TABLE fingerprints (digest TEXT PRIMARY KEY, parts TEXT NOT NULL);
CREATE TABLE planned (position INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
"""


def _bytes(*columns: str) -> str:
    """Return columns in SQL, each as bytes whatever it has become: a damaged text may be none."""
    return ", ".join(f"coalesce(CAST(cells.{column} AS BLOB), x'')" for column in columns)


RECORD_COLUMNS = _bytes("key", "status", "record", "fingerprint", "versions", "checksum")
"""A cell without its pictures in SQL, its checksum last."""
PICTURE_COLUMNS = _bytes("gallery", "gallery_checksum")


def is_whole(checksum: bytes, *columns: bytes) -> bool:
    """Return whether columns are what was written."""
    return digest(*columns).encode() == checksum


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of a new store."""
    for statement in filter(str.strip, _SCHEMA.split(";")):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {STORE_FORMAT}")


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


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless a store is one that this release wrote and can read.

    Args:
        connection: the open store.
        path: its file, for errors.

    Raises:
        InvalidValue: it is something else, or of another release.
        LeaktightError: it is damaged, or somebody changed it.
        sqlite3.Error: it cannot be read at all.
    """
    [(application,)] = connection.execute("PRAGMA application_id").fetchall()
    if application != _APPLICATION:
        raise InvalidValue(f"The file `{path}` is not an audit store. Choose another folder.")
    [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    if version != STORE_FORMAT:
        raise InvalidValue(
            f"The store `{path}` has format {version}, and this release reads format {STORE_FORMAT}. "
            "Use the release that wrote it, or choose another folder."
        )
    _check_content(connection, path)


def _check_content(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless a store has the tables that Leaktight makes, nothing else, and pages that belong together.

    A view in place of a table can run for ever, and pages that several trees share repeat their rows without end.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchmany(1000)
    if {_plain(str(sql)) for (sql,) in rows} != {
        _plain(statement) for statement in _SCHEMA.split(";") if statement.strip()
    }:
        raise LeaktightError(
            f"The file `{path}` must have the tables of an audit store and no others. Choose another folder."
        )
    if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise damage_error(path)


def parse_value(text: object, path: Path) -> Any:
    """Return the JSON in a store's value.

    Raises:
        LeaktightError: it is none.
    """
    try:
        return parse_json(str(text).encode())
    except ValueError:
        raise damage_error(path) from None


def damage_error(path: Path) -> LeaktightError:
    """Return the error for a store whose content is not as it was written."""
    return LeaktightError(f"The file `{path}` is damaged. Move it away, or choose another folder.")


def _plain(statement: str) -> str:
    return " ".join(statement.split())
