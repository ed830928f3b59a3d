from __future__ import annotations

import stat
from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.search.job import Job
from leaktight.search.journal import Journal

ONE, TWO = Job("privacy", 0, 8, (3, 1)), Job("accuracy", 0, 100, ())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Journal(tmp_path / "sub" / "journal.jsonl", "origin") as journal:
        journal.add(ONE, (0.1, 1 / 3, 1e-300))
        journal.add(TWO, (-1.25,))
    return tmp_path / "sub" / "journal.jsonl"


def known(path: Path, origin: str = "origin") -> dict[Job, tuple[float, ...]]:
    with Journal(path, origin) as journal:
        return dict(journal.known)


def test_scores_come_back_to_the_last_bit(path: Path) -> None:
    assert known(path) == {ONE: (0.1, 1 / 3, 1e-300), TWO: (-1.25,)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_goes_on_where_it_was(path: Path) -> None:
    before = path.read_bytes()
    with Journal(path, "origin") as journal:
        journal.add(Job("privacy", 8, 16, (3,)), (0.5,))
    assert path.read_bytes().startswith(before)
    assert len(known(path)) == 3


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_line_that_was_cut_off_is_not_there_and_the_next_is_whole(path: Path, cut: int) -> None:
    path.write_bytes(path.read_bytes()[:-cut])
    with Journal(path, "origin") as journal:
        assert list(journal.known) == [ONE]
        journal.add(TWO, (-2.0,))
    assert known(path) == {ONE: (0.1, 1 / 3, 1e-300), TWO: (-2.0,)}


@pytest.mark.parametrize("rubbish", [b"\x00\x00\n", b"{}\n", b"[1]\n", b'{"what":"privacy"}\n', b"null\n"])
def test_what_follows_on_a_damaged_line_is_not_trusted(path: Path, rubbish: bytes) -> None:
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second + rubbish + third)
    assert list(known(path)) == [ONE]


def test_scores_of_something_else_are_left_behind(path: Path) -> None:
    assert known(path, "another") == {}
    assert known(path, "origin") == {}


def test_an_empty_file_is_a_new_journal(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    assert known(tmp_path / "journal.jsonl") == {}
    assert (tmp_path / "journal.jsonl").read_bytes().count(b"\n") == 1


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidValue, match="cannot be made"):
        Journal(tmp_path / "file" / "journal.jsonl", "origin")
    with pytest.raises(LeaktightError, match="cannot be written: is a directory"):
        Journal(tmp_path, "origin")
