from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.private import check_writable, private_file, private_folder, write_private


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_only_the_owner_reads_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    folder = private_folder(tmp_path / "a" / "b")
    private_file(folder / "store")
    write_private(folder / "deep" / "training", b"secret")
    assert {mode(place) for place in (folder, folder.parent, folder / "deep")} == {0o700}
    assert mode(folder / "store") == mode(folder / "deep" / "training") == 0o600


def test_an_open_file_is_closed_to_others_and_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.write_bytes(b"kept")
    path.chmod(0o644)
    private_file(path)
    assert mode(path) == 0o600
    assert path.read_bytes() == b"kept"


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert mode(private_folder(tmp_path)) == 0o755


def test_write_replaces_whole_files_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / "training"
    write_private(path, b"first")
    write_private(path, b"second")
    assert path.read_bytes() == b"second"
    assert [found.name for found in tmp_path.iterdir()] == ["training"]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "training"
    write_private(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LeaktightError, match=r"cannot be written: no space left on device. Free some space"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["training"]


def test_a_file_in_the_way_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidValue, match=r"The folder `.*` cannot be made: .*\. Choose another one\."):
        private_folder(tmp_path / "file" / "folder")
    with pytest.raises(InvalidValue, match=r"The file `.*` cannot be written: .*\. Choose another folder\."):
        private_file(tmp_path)


def test_a_file_that_can_be_written_is_not_made_by_asking(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "result.json")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_target_that_cannot_be_written_is_told_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidValue, match=r"cannot be written: it is a folder. Name a file in it."):
        check_writable(tmp_path)

    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(InvalidValue, match=r"cannot be written: permission denied. Choose another folder."):
        check_writable(tmp_path / "result.json")
