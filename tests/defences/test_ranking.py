"""Rankings: a stored one comes back in order; every fault of a file is one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.defences.ranking import read_ranking

RANKING = {
    "property": ["body.linear1", "head", "body.linear2"],
    "reconstruction": ["body.linear1", "body.linear2", "head"],
    "labels": ["head", "body.linear2", "body.linear1"],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file as `leaktight layers` writes it."""
    layers = [{"layer": layer, "risk": {"property": 0.1, "labels": None}} for layer in RANKING["property"]]
    (tmp_path / "layers.json").write_text(json.dumps({"format": 1, "layers": layers, "ranking": RANKING}))
    return tmp_path / "layers.json"


@pytest.mark.parametrize("risk", RANKING)
def test_layers_come_riskiest_first(file: Path, risk: str) -> None:
    assert read_ranking(file, risk) == tuple(RANKING[risk])


def rewritten(file: Path, **changes: object) -> Path:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return file


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"There is no file or folder `.*layers\.json`\. Check the path\."):
        read_ranking(tmp_path / "layers.json", "property")
    with pytest.raises(InvalidValue, match="cannot be read"):
        read_ranking(tmp_path, "property")


@pytest.mark.parametrize(
    "held", [b"", b'{"format": 1, "rank', b"\xff\xfe\x00\xd8", b"[" * 100_000], ids=["", "cut", "bytes", "deep"]
)
def test_a_damaged_file(file: Path, held: bytes) -> None:
    file.write_bytes(held)
    with pytest.raises(
        InvalidValue, match=r"`.*layers\.json` must be a whole result of `leaktight layers`. It is damaged"
    ):
        read_ranking(file, "property")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": 2}, "must be a result of `leaktight layers` of format 1. Got format 2 instead."),
        ({"format": None}, "Got format None instead."),
        ({"ranking": ["head"]}, "must hold a `ranking` of layers. It does not; run `leaktight layers` again."),
        ({"ranking": {"propriety": ["head"]}}, "has no ranking by `property`. Did you mean `propriety`?"),
        ({"ranking": {}}, "has no ranking by `property`. None is known here."),
        ({"ranking": {"property": []}}, "The ranking by `property` in"),
        ({"ranking": {"property": "head"}}, "must be a list of layers, each once."),
        ({"ranking": {"property": ["head", 1]}}, "must be a list of layers, each once."),
        ({"ranking": {"property": ["head", "head"]}}, "must be a list of layers, each once."),
    ],
)
def test_a_file_that_holds_something_else(file: Path, changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidValue) as found:
        read_ranking(rewritten(file, **changes), "property")
    assert sentence in str(found.value)
    assert "\n" not in str(found.value)


def test_a_list_is_no_result(file: Path) -> None:
    file.write_text("[1, 2]")
    with pytest.raises(InvalidValue, match=r"must be a result of `leaktight layers`. Got a list instead"):
        read_ranking(file, "property")
