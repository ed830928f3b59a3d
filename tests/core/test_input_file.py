"""Input files: regular ones within bounds, and nothing that a small file expands to."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.core.input_file import (
    EXPANSION_FREE,
    EXPANSION_LIMIT,
    GIBIBYTE,
    MEBIBYTE,
    digest_input,
    open_input,
    open_unpacked,
    read_input,
)


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc" * 1000)
    (tmp_path / "link").symlink_to(path)
    assert read_input(path, 3000) == read_input(tmp_path / "link", 3000) == b"abc" * 1000
    assert digest_input(path, 3000) == digest_input(tmp_path / "link", 3000)
    assert read_input(Path(os.devnull).parent.parent / "proc/self/status", MEBIBYTE).startswith(b"Name:")


def test_a_byte_too_many_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(11))
    with pytest.raises(InvalidValue, match=r"must have at most 10 bytes\. Got 11 bytes instead"):
        read_input(path, 10)


def test_a_pipe_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidValue, match=r"must be a regular file\. Got a named pipe instead"):
        read_input(tmp_path / "pipe", 10)


def test_a_file_that_becomes_a_pipe_meanwhile_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    looked = os.stat(tmp_path / "file")
    monkeypatch.setattr(Path, "stat", lambda *_, **__: looked)
    with pytest.raises(InvalidValue, match="Got a named pipe"):
        read_input(tmp_path / "pipe", 10)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to(path), lambda path: None])
def test_what_the_system_refuses_is_left_to_it(tmp_path: Path, make) -> None:
    make(tmp_path / "a")
    with pytest.raises(OSError):
        read_input(tmp_path / "a", 10)


def written(path: Path, pieces: dict[int, bytes], size: int) -> Path:
    with path.open("wb") as file:
        for at, piece in pieces.items():
            file.seek(at)
            file.write(piece)
        file.truncate(size)
    return path


def test_holes_count_as_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "a", {0: b"x"}, EXPANSION_FREE + 1)
    with pytest.raises(InvalidValue, match="nearly all of it holes"), open_input(path, GIBIBYTE):
        pass
    with open_input(written(tmp_path / "b", {0: b"x"}, EXPANSION_FREE), GIBIBYTE) as file:
        assert file.read(2) == b"x\x00"


def test_a_file_with_some_holes_is_as_good_as_any(tmp_path: Path) -> None:
    size = 2 * EXPANSION_FREE
    path = written(tmp_path / "a", {at: bytes(range(256)) * 4096 for at in range(0, size, size // 4)}, size)
    with open_input(path, GIBIBYTE) as file:
        assert file.tell() == 0
        assert file.read(3) == b"\x00\x01\x02"


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"abc" * 1000) + gzip.compress(b"d"))
    with open_unpacked(path, 3001) as file:
        assert file.read() == b"abc" * 1000 + b"d"
    with pytest.raises(InvalidValue, match=r"must unpack to at most 2\.93 KiB"), open_unpacked(path, 3000):
        pass


def test_gzip_ends_where_it_expands_too_much(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(MEBIBYTE)) * (EXPANSION_FREE // MEBIBYTE))
    with open_unpacked(path, GIBIBYTE) as file:
        assert file.seek(0, os.SEEK_END) == EXPANSION_FREE
    path.write_bytes(path.read_bytes() + gzip.compress(b"one more"))
    with pytest.raises(InvalidValue, match=f"and to {EXPANSION_LIMIT} times its size"), open_unpacked(path, GIBIBYTE):
        pass


def test_gzip_that_expands_as_files_do_may_be_large(tmp_path: Path) -> None:
    dense = b"".join(os.urandom(1 << 15) + bytes(1 << 20) for _ in range(2))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(dense, 1) * 40)
    with open_unpacked(path, GIBIBYTE) as file:
        assert file.seek(0, os.SEEK_END) == len(dense) * 40 > EXPANSION_FREE
