"""An earlier report is kept under a number and that is said, unless it says the same or is to be replaced."""

import stat

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.report.earlier import write_beside


def test_an_earlier_file_is_kept_and_that_is_said(tmp_path):
    told, path = [], tmp_path / "report.html"
    for text in (b"one", b"two", b"three"):
        assert write_beside(path, text, tell=told.append) == path
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        "report.html": b"three",
        "report-1.html": b"one",
        "report-2.html": b"two",
    }
    assert told == [
        "The earlier report.html was kept as report-1.html.",
        "The earlier report.html was kept as report-2.html.",
    ]
    assert stat.S_IMODE((tmp_path / "report-1.html").stat().st_mode) == 0o600


@pytest.mark.parametrize(("text", "force"), [(b"one", False), (b"two", True)])
def test_nothing_is_kept_of_the_same_or_by_force(tmp_path, text, force):
    told, path = [], tmp_path / "report.html"
    write_beside(path, b"one")
    write_beside(path, text, force, told.append)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert path.read_bytes() == text
    assert told == []


@pytest.mark.parametrize("step", ["rename", "read_bytes"])
def test_what_cannot_be_kept_is_one_sentence(tmp_path, monkeypatch, step):
    path = tmp_path / "report.html"
    path.write_bytes(b"one")

    def refuse(self, *_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as broken, pytest.raises(InvalidValue, match="cannot be kept"):
        broken.setattr(type(path), step, refuse)
        write_beside(path, b"two")
    assert path.read_bytes() == b"one"
