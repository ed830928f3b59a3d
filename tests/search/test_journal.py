from __future__ import annotations

import stat
from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.running.fingerprint import Fingerprint
from leaktight.search.journal import Journal
from leaktight.search.score_task import ScoreTask

ONE, TWO = ScoreTask("privacy", 0, 8, (3, 1)), ScoreTask("accuracy", 0, 100, ())
MADE = Fingerprint({"the data": "5a", "models.py": "7c"})
BOTH = {ONE: (0.1, 1 / 3, 1e-300), TWO: (-1.25,)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Journal(tmp_path / "sub" / "journal.jsonl", "settings", MADE) as journal:
        for task, answer in BOTH.items():
            journal.add(task, answer)
    return tmp_path / "sub" / "journal.jsonl"


def known(path: Path, settings: str = "settings", made: Fingerprint = MADE) -> dict[ScoreTask, tuple[float, ...]]:
    with Journal(path, settings, made) as journal:
        return dict(journal.known)


def test_scores_come_back_to_the_last_bit(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert known(path) == BOTH
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert caplog.text == ""


def test_it_goes_on_where_it_was(path: Path) -> None:
    before = path.read_bytes()
    with Journal(path, "settings", MADE) as journal:
        journal.add(ScoreTask("privacy", 8, 16, (3,)), (0.5,))
    assert path.read_bytes().startswith(before)
    assert len(known(path)) == 3


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_line_that_was_cut_off_is_not_there_and_the_next_is_whole(
    path: Path, cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(path.read_bytes()[:-cut])
    with Journal(path, "settings", MADE) as journal:
        assert list(journal.known) == [ONE]
        journal.add(TWO, (-2.0,))
    assert known(path) == {**BOTH, TWO: (-2.0,)}
    assert caplog.text == ""


@pytest.mark.parametrize("rubbish", [b"\x00\x00\n", b"{}\n", b"[1]\n", b'{"what":"privacy"}\n', b"null\n", b"\xff\n"])
def test_a_damaged_line_is_named_and_costs_no_other(
    path: Path, rubbish: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + rubbish + second + third)
    assert known(path) == BOTH
    assert [record.message for record in caplog.records] == [
        f"The journal `{path}` is damaged in 1 line, which is computed again."
    ]
    assert path.read_bytes() == first + second + third


def test_any_flipped_byte_costs_the_lines_it_touches_and_never_gives_another_score(path: Path) -> None:
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        found = known(path)
        # Without the end of a line, two lines are one.
        assert len(found) >= (0 if whole[place : place + 1] == b"\n" else 1)
        assert found.items() <= BOTH.items()


def test_scores_of_other_settings_are_left_behind(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert known(path, "another") == {}
    assert known(path) == {}
    assert caplog.text == ""


def test_scores_of_other_code_are_left_behind_and_it_is_said(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    edited = Fingerprint({**MADE.parts, "models.py": "8d"})
    assert known(path, made=edited) == {}
    assert [record.message for record in caplog.records] == ["models.py changed, so 2 scores are computed again."]
    caplog.clear()
    assert known(path, made=edited) == {}
    assert caplog.text == ""


def test_an_empty_file_is_a_new_journal(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    assert known(tmp_path / "journal.jsonl") == {}
    assert (tmp_path / "journal.jsonl").read_bytes().count(b"\n") == 1


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidValue, match="cannot be made"):
        Journal(tmp_path / "file" / "journal.jsonl", "settings", MADE)
    with pytest.raises(LeaktightError, match="cannot be written: is a directory"):
        Journal(tmp_path, "settings", MADE)
