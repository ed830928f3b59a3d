from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.running.file_cache import FileCache, Folder, MemoryCache


@pytest.mark.parametrize("kind", ["folder", "held"])
def test_files_come_back_and_go(kind: str, tmp_path: Path) -> None:
    cache: FileCache = Folder(tmp_path / "new") if kind == "folder" else MemoryCache()
    assert cache.names() == set()
    assert cache.read("one") is None
    cache.write("one", b"1")
    cache.write("one", b"2")
    cache.write("two", b"")
    assert (cache.read("one"), cache.read("two"), cache.names()) == (b"2", b"", {"one", "two"})
    cache.drop("one")
    cache.drop("one")
    assert cache.names() == {"two"}


def test_files_on_disk_are_their_owners(tmp_path: Path) -> None:
    Folder(tmp_path).write("one", b"1")
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o600
    assert str(Folder(tmp_path)) == str(tmp_path)
