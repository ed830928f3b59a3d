"""A store of someone else's is looked over before it is read."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from leaktight.core.errors import LeaktightError
from leaktight.running import Store
from leaktight.running.store import STORE_FILE
from leaktight.running.store_integrity import LARGEST_VALUE

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n AS position, n AS key FROM c"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with Store.create(tmp_path / "audit") as made:
        assert made.records() == []
    return tmp_path / "audit"


def change(folder: Path, *statements: str) -> None:
    with sqlite3.connect(folder / STORE_FILE) as store:
        for statement in statements:
            store.execute(statement)
    store.close()


def both(folder: Path, says: str) -> None:
    for open_store in (Store.read, Store.create):
        with pytest.raises(LeaktightError, match=says), open_store(folder):
            pass


def test_its_own_store_is_as_it_must_be(store: Path) -> None:
    with Store.read(store) as reader:
        assert reader.records() == []


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TABLE planned", f"CREATE VIEW planned AS {ENDLESS}"),
        ("CREATE TRIGGER t AFTER INSERT ON cells BEGIN DELETE FROM meta; END",),
        ("CREATE TABLE more (a)",),
        ("DROP TABLE meta",),
    ],
)
def test_other_tables_are_refused(store: Path, statements: tuple[str, ...]) -> None:
    change(store, *statements)
    both(store, "must have the tables of an audit store and no others")


def test_a_tree_whose_branches_meet_is_refused(store: Path) -> None:
    """Let every branch of a table lead to the same page, so that its rows come again and again."""
    change(store, *(f"INSERT INTO planned VALUES ({n}, '{n:0200}')" for n in range(2000)))  # noqa: S608
    path = store / STORE_FILE
    content = bytearray(path.read_bytes())
    page = int.from_bytes(content[16:18], "big")
    with sqlite3.connect(path) as reader:
        [(root,)] = reader.execute("SELECT rootpage FROM sqlite_master WHERE name = 'planned'").fetchall()
    reader.close()
    start = (root - 1) * page
    assert content[start] == 5
    count = int.from_bytes(content[start + 3 : start + 5], "big")
    places = [int.from_bytes(content[at : at + 2], "big") for at in range(start + 12, start + 12 + 2 * count, 2)]
    first = content[start + places[0] : start + places[0] + 4]
    for place in places:
        content[start + place : start + place + 4] = first
    path.write_bytes(content)
    both(store, "is damaged")


def test_a_value_that_is_too_long_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LARGEST_VALUE > 1 << 20
    change(store, "INSERT INTO meta VALUES ('plan', printf('%.*c', 3000000, 'x'))")
    monkeypatch.setattr("leaktight.running.store_integrity.LARGEST_VALUE", 1 << 20)
    with Store.read(store) as reader, pytest.raises(LeaktightError, match="too big"):
        reader.plan()


@pytest.mark.parametrize("value", ["[" * 100_000, "{", "9" * 5000])
def test_values_that_cannot_be_parsed_are_damage(store: Path, value: Any) -> None:
    change(store, f"INSERT INTO meta VALUES ('plan', '{value}')")  # noqa: S608
    with Store.read(store) as reader, pytest.raises(LeaktightError, match="is damaged"):
        reader.plan()
