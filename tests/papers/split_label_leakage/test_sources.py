from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.papers.split_label_leakage.sources import find_credit, find_criteo, need_criteo


def test_a_training_file_and_its_test_file_belong_together(sets: str) -> None:
    found = need_criteo(sets)
    assert Path(found.path).name == "criteo_train.csv.gz"
    assert found.test_path is not None
    assert Path(found.test_path).name == "criteo_test.csv.gz"
    data = found.load()
    assert (len(data.train), len(data.test), len(data.columns or ())) == (120, 120, 39)


def test_without_a_pair_a_tenth_is_held_out(sets: str) -> None:
    (Path(sets) / "ctr" / "criteo_test.csv.gz").unlink()
    found = need_criteo(sets)
    assert (found.test_path, found.test_share) == (None, 0.1)


def test_any_criteo_file_will_do(sets: str) -> None:
    place = Path(sets) / "ctr"
    (place / "criteo_test.csv.gz").unlink()
    (place / "criteo_train.csv.gz").rename(place / "criteo_raw.csv.gz")
    assert Path(need_criteo(sets).path).name == "criteo_raw.csv.gz"


def test_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    assert find_criteo(str(tmp_path)) is None
    assert find_credit(str(tmp_path)) is None
    with pytest.raises(InvalidValue, match="must have a sub-folder `ctr` with a Criteo file"):
        need_criteo(str(tmp_path))


def test_codes_of_credit_card_clients_are_categories(sets: str) -> None:
    found = find_credit(sets)
    assert found is not None
    data = found.load()
    assert data.columns is not None
    ids = dict(zip(data.columns.names, data.columns.ids, strict=True))
    assert "ID" not in ids
    assert [name for name, count in ids.items() if not count] == ["LIMIT_BAL", "AGE", "BILL_AMT1", "PAY_AMT1"]
    assert data.train.labels.float().mean().item() == pytest.approx(0.2, abs=0.01)
