from __future__ import annotations

import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from leaktight.core.errors import InvalidValue
from leaktight.data import matlab_file
from leaktight.data.matlab_file import read_matlab


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Return a small file with numbers of several kinds, and with things that are no numbers."""
    path = tmp_path / "set.mat"
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "note": "words",
        "parts": {"a": np.ones(2)},
        "X": rng.integers(0, 256, (2, 3, 4, 5), dtype=np.uint8),
        "y": np.array([[1.0], [2.0], [10.0]]),
        "signed": np.array([[-3, 7]], dtype=np.int16),
        "complex": np.array([[1 + 2j]]),
        "empty": np.zeros((0, 3)),
    }
    savemat(path, arrays, do_compression=True)
    return path


@pytest.mark.parametrize("compressed", [True, False])
def test_numbers_are_those_that_scipy_reads(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "set.mat"
    rng = np.random.default_rng(1)
    arrays = {
        "X": rng.integers(0, 256, (4, 4, 3, 6), dtype=np.uint8),
        "y": rng.integers(1, 11, (6, 1)).astype(np.uint8),
        "f": rng.standard_normal((2, 3)).astype(np.float32),
        "single": np.array([[5]], dtype=np.int8),
    }
    savemat(path, arrays, do_compression=compressed)
    found, other = read_matlab(path, tuple(arrays)), loadmat(path)
    for name in arrays:
        assert found[name].dtype == other[name].dtype
        np.testing.assert_array_equal(found[name], other[name])


def test_what_is_not_asked_for_is_passed_over(written: Path) -> None:
    found = read_matlab(written, ("y", "signed", "empty"))
    assert found["y"].reshape(-1).tolist() == [1, 2, 10]
    assert found["signed"].tolist() == [[-3, 7]]
    assert found["empty"].shape == (0, 3)


def test_the_other_byte_order_is_read() -> None:
    flags = struct.pack(">IIII", 6, 8, 6, 0)
    body = flags + struct.pack(">IIii", 5, 8, 1, 2) + struct.pack(">II", 1, 1) + b"y" + bytes(7)
    body += struct.pack(">II", 9, 16) + struct.pack(">dd", 1.5, 2.5)
    matrix = matlab_file._Matrix.of(struct.pack(">II", 14, len(body)) + body, ">")
    assert matrix.name == "y"
    assert matrix.numbers().tolist() == [[1.5, 2.5]]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("absent", "must have an array `absent`"),
        ("note", "`note` does not hold real numbers"),
        ("parts", "`parts` does not hold real numbers"),
        ("complex", "`complex` does not hold real numbers"),
    ],
)
def test_what_is_no_array_of_real_numbers_is_refused(written: Path, name: str, sentence: str) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        read_matlab(written, (name,))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:100],
        lambda content: b"MATLAB 7.3 MAT-file" + content[19:124] + b"\x00\x02IM" + content[128:],
        lambda content: content[:126] + b"??" + content[128:],
        lambda content: content[:-20],
        lambda content: content[:132] + struct.pack("<I", 0xFFFFFFFF) + content[136:],
        lambda content: content[:128] + struct.pack("<II", 15, 6) + b"broken",
        lambda content: content + struct.pack("<II", 9, 8) + bytes(8),
    ],
    ids=["short", "version", "order", "cut", "promise", "packed", "other"],
)
def test_a_damaged_file_is_one_sentence(written: Path, spoil: Any) -> None:
    written.write_bytes(spoil(written.read_bytes()))
    with pytest.raises(InvalidValue, match="must be a whole MATLAB file of version 5"):
        read_matlab(written, ("signed",))


@pytest.mark.parametrize("flipped", range(128, 320, 3))
def test_no_damage_raises_anything_else(written: Path, flipped: int) -> None:
    content = bytearray(written.read_bytes())
    content[flipped] ^= 0x5A
    written.write_bytes(bytes(content))
    with suppress(InvalidValue):
        read_matlab(written, ("X", "y"))


def test_a_small_file_never_unpacks_to_a_large_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.mat"
    savemat(path, {"X": np.zeros((1000, 1000), np.uint8)}, do_compression=True)
    monkeypatch.setattr(matlab_file, "expansion_bound", lambda size, largest: 10_000)
    with pytest.raises(InvalidValue, match="must unpack to at most"):
        read_matlab(path, ("X",))


def test_arrays_are_bounded_in_number(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matlab_file, "MOST_ARRAYS", 2)
    with pytest.raises(InvalidValue, match="holds more than 2 arrays"):
        read_matlab(written, ("y",))


def test_a_promised_shape_is_checked_against_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "set.mat"
    savemat(path, {"y": np.ones((1, 3), np.uint8)}, do_compression=False)
    content = path.read_bytes()
    place = content.index(struct.pack("<ii", 1, 3))
    path.write_bytes(content[:place] + struct.pack("<ii", 1, 9) + content[place + 8 :])
    with pytest.raises(InvalidValue, match="`y` has other than 9 numbers"):
        read_matlab(path, ("y",))


def test_zlib_is_what_packs_them(written: Path) -> None:
    """The file of these tests is packed, or they would not test it."""
    content = written.read_bytes()
    kind, size = struct.unpack_from("<II", content, 128)
    assert kind == 15
    assert zlib.decompress(content[136 : 136 + size])[:4] == struct.pack("<I", 14)
