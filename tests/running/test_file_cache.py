from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.running.file_cache import FileCache, Folder, MemoryCache


@pytest.mark.parametrize("kind", ["folder", "held"])
def test_files_come_back_and_go(kind: str, tmp_path: Path) -> None:
    shelf: FileCache = Folder(tmp_path / "new") if kind == "folder" else MemoryCache()
    assert shelf.names() == set()
    assert shelf.read("one") is None
    shelf.write("one", b"1")
    shelf.write("one", b"2")
    shelf.write("two", b"")
    assert (shelf.read("one"), shelf.read("two"), shelf.names()) == (b"2", b"", {"one", "two"})
    shelf.drop("one")
    shelf.drop("one")
    assert shelf.names() == {"two"}


def test_files_on_disk_are_their_owners(tmp_path: Path) -> None:
    Folder(tmp_path).write("one", b"1")
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o600
    assert str(Folder(tmp_path)) == str(tmp_path)
