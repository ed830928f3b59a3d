"""The store: one SQLite file that holds an audit. A cell is written whole or not at all, and read by anyone who may."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from leaktight.core.digest import digest
from leaktight.core.display import count
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.private import private_file, private_folder
from leaktight.core.record import Record, Status
from leaktight.plans.plan import Plan
from leaktight.running import gallery
from leaktight.running.fingerprint import Fingerprint, versions
from leaktight.running.store_integrity import (
    PICTURE_COLUMNS,
    RECORD_COLUMNS,
    check_file,
    check_format,
    is_whole,
    make_tables,
    parse_value,
)

STORE_FILE = "audit.sqlite"
LOCK_FILE = "audit.lock"
TRAINING_FOLDER = "training"
PATIENCE = 30.0
"""How many seconds a reader or writer waits for another to finish its transaction."""

_PLANNED = "planned JOIN cells USING (key)"
_log = logging.getLogger(__name__)


class Store:
    """An audit's folder: its plan, its records and its pictures.

    Each record has a checksum, and a damaged one counts as not there.

    `Store.create` opens a folder for the one audit that writes to it, `Store.read` for anyone else. Both are closed by
    `with`. A cell that was measured before an interruption, or under an earlier plan, is found by its key and not
    computed again.

    Args:
        folder: the audit's folder.
        connection: the open database.
        lock: what keeps other audits out; None for a reader.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection, lock: sqlite3.Connection | None = None) -> None:
        self.folder = folder
        self._connection = connection
        self._lock = lock

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Open a folder to write to, and make it if need be; only the owner can read what is in it."""
        private_folder(folder)
        path = folder / STORE_FILE
        if path.exists():
            check_file(path)
        private_file(path)
        lock = lock_file(folder / LOCK_FILE)
        with explain_errors(path):
            store = cls(folder, sqlite3.connect(path, timeout=PATIENCE, isolation_level=None), lock)
            store._or_close(store._prepare)
        return store

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Open a folder to read from, also while an audit writes to it."""
        path = folder / STORE_FILE
        if not path.is_file():
            raise InvalidValue(
                f"There is no audit in `{folder}`. Name the folder that `leaktight audit --out` wrote to."
            )
        check_file(path)
        # A journal that a killed audit left must be rolled back, which a read-only connection cannot do.
        mode = "rw" if os.access(path, os.W_OK) else "ro"
        with explain_errors(path):
            uri = f"{path.absolute().as_uri()}?mode={mode}"
            store = cls(folder, sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None))
            store._connection.execute("PRAGMA query_only = ON")
            store._or_close(store._check_format)
        return store

    def begin(self, plan: Plan) -> None:
        """Write down what is to be measured."""
        with explain_errors(self.folder / STORE_FILE), self._transaction():
            # An index that is damaged would hide records that are not.
            self._connection.execute("REINDEX")
            self._connection.execute("DELETE FROM planned")
            keys = [cell.key for cell in plan.cells()]
            self._connection.executemany("INSERT INTO planned VALUES (?, ?)", enumerate(keys))
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('plan', ?)", (json.dumps(plan.to_dict()),))

    def write(self, record: Record, pictures: bytes = b"", fingerprint: Fingerprint | None = None) -> None:
        """Write one cell, in one transaction, with the versions it was made with.

        Args:
            record: what came of it.
            pictures: its gallery, encoded.
            fingerprint: what it was made from.
        """
        source = fingerprint or Fingerprint()
        row = (record.cell.key, record.status.value, json.dumps(record.to_dict()), source.digest, self._versions)
        with explain_errors(self.folder / STORE_FILE), self._transaction():
            parts = source.digest, json.dumps(dict(source.parts))
            self._connection.execute("INSERT OR REPLACE INTO fingerprints VALUES (?, ?)", parts)
            whole = (*row, digest(*row), pictures, digest(pictures))
            self._connection.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?)", whole)

    def settled_digests(self) -> dict[str, str]:
        """Return the digest of the fingerprint of every cell that was done or refused, by its key."""
        ended = (Status.DONE, Status.REFUSED)
        return {key: settled for key, status, _, settled, _ in self._read_rows("cells") if status in ended}

    def fingerprint(self, wanted: str) -> Fingerprint:
        """Return the fingerprint with a digest; one without parts if it is not known."""
        rows = self._rows("SELECT CAST(parts AS BLOB) FROM fingerprints WHERE digest = ?", wanted)
        try:
            found = Fingerprint(json.loads(rows[0][0]) if rows else {})
        except ValueError:
            return Fingerprint()
        return found if found.digest == wanted else Fingerprint()

    def remove_damaged(self) -> list[str]:
        """Remove every cell whose record or pictures are not what was written, and return their keys."""
        rows = self._rows(f"SELECT rowid, {RECORD_COLUMNS}, {PICTURE_COLUMNS} FROM cells NOT INDEXED")  # noqa: S608
        damaged = {
            rowid: str(key, "utf-8", "replace")
            for rowid, key, *rest, checksum, pictures, of_pictures in rows
            if not (is_whole(checksum, key, *rest) and is_whole(of_pictures, pictures))
        }
        with explain_errors(self.folder / STORE_FILE), self._transaction():
            self._connection.executemany("DELETE FROM cells WHERE rowid = ?", [(rowid,) for rowid in damaged])
        return list(damaged.values())

    def forget(self, keys: Iterable[str]) -> None:
        """Remove cells that must be computed again, so that nobody reads them meanwhile."""
        with explain_errors(self.folder / STORE_FILE), self._transaction():
            self._connection.executemany("DELETE FROM cells WHERE key = ?", [(key,) for key in keys])
            self._connection.execute("DELETE FROM fingerprints WHERE digest NOT IN (SELECT fingerprint FROM cells)")

    def records(self) -> list[Record]:
        """Return the records of the plan's cells, in the plan's order; cells that were not computed yet have none."""
        rows = self._read_rows(f"{_PLANNED} ORDER BY position")
        return [Record.model_validate(parse_value(text, self.folder / STORE_FILE)) for _, _, text, _, _ in rows]

    def missing(self) -> int:
        """Return how many cells of the plan have no record yet, or a damaged one."""
        [(count,)] = self._rows("SELECT count(*) FROM planned")
        return int(count) - len(self._read_rows(_PLANNED, tell=False))

    def gallery(self, key: str) -> gallery.Gallery:
        """Return a cell's pictures: private, and empty for a cell that has none or damaged ones."""
        rows = self._rows(f"SELECT {PICTURE_COLUMNS} FROM cells WHERE key = ?", key)  # noqa: S608
        return gallery.decode(rows[0][0]) if rows and is_whole(rows[0][1], rows[0][0]) else {}

    def plan(self) -> Plan:
        """Return the plan that was last begun."""
        rows = self._rows("SELECT value FROM meta WHERE name = 'plan'")
        if not rows:
            raise InvalidValue(f"The audit in `{self.folder}` was never begun. Run `leaktight audit` first.")
        return Plan.model_validate(parse_value(rows[0][0], self.folder / STORE_FILE))

    def versions(self) -> dict[str, str]:
        """Return what the plan's records were made with: every version, if it was more than one."""
        found: dict[str, dict[str, None]] = {}
        for *_, text in self._read_rows(f"{_PLANNED} ORDER BY cells.rowid", tell=False):
            for name, version in parse_value(text, self.folder / STORE_FILE).items():
                found.setdefault(name, {})[version] = None
        return {name: " and ".join(several) for name, several in found.items()}

    def close(self) -> None:
        """Close the file and let others in."""
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with explain_errors(self.folder / STORE_FILE):
            return self._connection.execute(query, values).fetchall()

    def _read_rows(self, rows: str, tell: bool = True) -> list[tuple[str, str, str, str, str]]:
        """Return key, status, record, fingerprint and versions of every row whose checksum fits.

        Args:
            rows: which rows, as SQL.
            tell: whether to say how many are left out.
        """
        read = self._rows(f"SELECT {RECORD_COLUMNS} FROM {rows}")  # noqa: S608
        sound = [row for *row, checksum in read if is_whole(checksum, *row)]
        if tell and len(sound) < len(read):
            number = len(read) - len(sound)
            what, verb = count(number, "record"), "is" if number == 1 else "are"
            _log.warning(
                "%s in `%s` %s damaged and left out. Run the audit again.", what, self.folder / STORE_FILE, verb
            )
        return [(row[0].decode(), row[1].decode(), row[2].decode(), row[3].decode(), row[4].decode()) for row in sound]

    @cached_property
    def _versions(self) -> str:
        return json.dumps(versions())

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        # Whatever it is, Ctrl-C too: the connection lives on, and half of a transaction must not be written with the
        # next.
        except BaseException:
            # A full disk has already rolled it back by itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _or_close(self, check: Callable[[], None]) -> None:
        try:
            check()
        # Whatever it is, Ctrl-C too: nobody else has the store yet, and could give its lock back.
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Make the tables of a new store, or check the format of an old one."""
        [(tables,)] = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        if tables:
            self._check_format()
            return
        with self._transaction():
            make_tables(self._connection)

    def _check_format(self) -> None:
        check_format(self._connection, self.folder / STORE_FILE)


def lock_file(path: Path) -> sqlite3.Connection:
    """Hold a lock until it is closed or this process ends, however it ends.

    It is an open transaction on an empty database, which nobody else can read.
    """
    private_file(path)
    with explain_errors(path):
        lock = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error:
            lock.close()
            raise
        return lock


_EXPLAINED = {
    sqlite3.SQLITE_FULL: "The disk is full, and a cell could not be written to `{path}`. Finished cells are kept: "
    "free some space and run the same command to resume.",
    sqlite3.SQLITE_BUSY: "Another process is writing to `{path}`. Wait until it has ended, or choose another folder.",
    sqlite3.SQLITE_LOCKED: "Another process is writing to `{path}`. Wait until it has ended, or choose another folder.",
    sqlite3.SQLITE_NOTADB: "The file `{path}` is not a store that can be read. Move it away, or choose another folder.",
    sqlite3.SQLITE_CORRUPT: "The file `{path}` is damaged. Move it away, or choose another folder.",
    sqlite3.SQLITE_READONLY: "The file `{path}` cannot be written. Check its permissions, or choose another folder.",
    sqlite3.SQLITE_CANTOPEN: "The file `{path}` cannot be opened. Check its permissions, or choose another folder.",
    sqlite3.SQLITE_IOERR: "The file `{path}` cannot be read or written: the disk reports an error. Finished cells are "
    "kept.",
}


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite says into one sentence that a person can act on."""
    try:
        yield
    except sqlite3.Error as error:
        # The lower byte is the class of the error, the rest its details.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        text = _EXPLAINED.get(
            code, "The store `{path}` cannot be used: " + str(error).replace("{", "(").replace("}", ")") + "."
        )
        raise LeaktightError(text.format(path=path)) from error
    # What SQLite says of a damaged schema names its damaged parts, which may be no text.
    except UnicodeDecodeError as error:
        raise LeaktightError(_EXPLAINED[sqlite3.SQLITE_CORRUPT].format(path=path)) from error
