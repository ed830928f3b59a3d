from __future__ import annotations

import logging
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.defence import Undefended
from leaktight.core.errors import LeaktightError
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.record import Cell
from leaktight.core.scenario import Snapshot, Training, flatten
from leaktight.running.fingerprint import Fingerprint
from leaktight.running.training_cache import TrainingCache, TrainingSpec, decode, encode


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(same(one[n], other[n]) for n in one)
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other) and one.dtype == other.dtype
    return type(one) is type(other) and one == other


@pytest.fixture
def spec(toys: ModuleType, tmp_path: Path) -> TrainingSpec:
    return TrainingSpec(scenario=toys.ToyScenario(log=str(tmp_path / "log")), defence=Undefended(), seed=3)


def count(tmp_path: Path) -> int:
    return len((tmp_path / "log").read_text().splitlines())


def test_a_training_comes_back_from_bytes_as_it_was() -> None:
    memory = {
        "defence": {"steps": 3, "clipped": 0.1, "0-top_k": {"residual": {"body.0.weight": torch.randn(3, 2).double()}}}
    }
    snapshot = Snapshot({"body.0.weight": torch.randn(2, 3).t(), "scale": torch.tensor(2.5)}, {"client-0": memory})
    reading = Reading(name="accuracy", value=1 / 3, low=0.1, high=0.5, n=7)
    back = decode(encode(Training({"initial": snapshot, "end": snapshot}, (reading,), {"epsilon": 2 / 3})))
    assert list(back.snapshots) == ["initial", "end"]
    for found in back.snapshots.values():
        assert all(torch.equal(found.parameters[name], tensor) for name, tensor in snapshot.parameters.items())
        assert flatten(found.memories["client-0"]).keys() == flatten(memory).keys()
        assert all(same(value, flatten(memory)[name]) for name, value in flatten(found.memories["client-0"]).items())
    assert back.utility == (reading,)
    assert back.notes == {"epsilon": 2 / 3}


def test_tensors_that_share_storage_are_kept_apart() -> None:
    tensor = torch.arange(6.0)
    back = decode(encode(Training({"end": Snapshot({"a": tensor, "b": tensor, "c": tensor[2:4]})})))
    assert back.snapshots["end"].parameters["c"].tolist() == [2, 3]
    assert back.snapshots["end"].parameters["b"].tolist() == tensor.tolist()


def test_names_keep_their_order() -> None:
    names = [f"layer-{number * 7919 % 100}" for number in range(100)]
    snapshot = Snapshot(
        {name: torch.ones(1) for name in names}, {"b": {name: torch.ones(1) for name in names}, "a": {"x": 1.0}}
    )
    back = decode(encode(Training({"end": snapshot}))).snapshots["end"]
    assert list(back.parameters) == list(back.memories["b"]) == names
    assert list(back.memories) == ["b", "a"]


def test_an_infinite_note_survives() -> None:
    assert math.isinf(decode(encode(Training({}, notes={"epsilon": math.inf}))).notes["epsilon"])


def test_done_once_then_kept_for_everyone(spec: TrainingSpec, tmp_path: Path) -> None:
    training_cache = TrainingCache(tmp_path / "training")
    first = training_cache.get(spec)
    again, elsewhere = training_cache.get(spec), TrainingCache(tmp_path / "training").get(spec)
    assert count(tmp_path) == 1
    assert again is first
    assert torch.equal(
        elsewhere.snapshots["end"].parameters["body.1.weight"], first.snapshots["end"].parameters["body.1.weight"]
    )
    assert elsewhere.utility == first.utility
    assert (tmp_path / "training" / spec.file_name).stat().st_mode & 0o777 == 0o600


def test_a_training_made_from_something_else_is_not_taken_and_makes_room(spec: TrainingSpec, tmp_path: Path) -> None:
    training_cache = TrainingCache(tmp_path / "training")
    other = spec.model_copy(update={"seed": 4})
    for one in (spec, other):
        training_cache.get(one)
    edited = spec.model_copy(update={"fingerprint": "edited"})
    assert not training_cache.has(edited)
    training_cache.get(edited)
    assert count(tmp_path) == 3
    assert training_cache.files.names() == {edited.file_name, other.file_name}


def test_a_cells_training_carries_what_it_is_made_from(
    spec: TrainingSpec, toys: ModuleType, tmp_path: Path, monkeypatch: Any
) -> None:
    cell = Cell(scenario=spec.scenario, defence=spec.defence, probe=Attempt(attack=toys.ToyAttack()), seed=3)
    found = TrainingCache(tmp_path).spec(cell)
    assert found.model_copy(update={"fingerprint": ""}) == spec
    monkeypatch.setattr(torch, "__version__", "99.0")
    assert TrainingCache(tmp_path).spec(cell).fingerprint != found.fingerprint


def test_the_key_follows_everything_that_decides(spec: TrainingSpec, toys: ModuleType) -> None:
    others = [
        spec.model_copy(update={"fingerprint": "edited"}),
        spec.model_copy(update={"seed": 4}),
        spec.model_copy(update={"defence": toys.ToyNoise()}),
        spec.model_copy(update={"defence": toys.ToyNoise(std=0.2)}),
        spec.model_copy(update={"scenario": toys.ToyScenario(log="elsewhere")}),
    ]
    assert len({spec.key, *(other.key for other in others)}) == 6
    assert TrainingSpec.model_validate(spec.to_dict()).key == spec.key


@pytest.mark.parametrize("keep", [0, 7, 8, 100, -1])
def test_a_truncated_file_is_trained_again_with_a_warning(
    spec: TrainingSpec, tmp_path: Path, keep: int, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "training"
    whole = TrainingCache(folder).get(spec)
    path = folder / spec.file_name
    path.write_bytes(path.read_bytes()[:keep])
    with caplog.at_level(logging.WARNING):
        mended = TrainingCache(folder).get(spec)
    assert count(tmp_path) == 2
    assert "is damaged and is computed again" in caplog.text
    assert mended.utility == whole.utility
    TrainingCache(folder).get(spec)
    assert count(tmp_path) == 2


def test_an_unreadable_file_is_trained_again(
    spec: TrainingSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training_cache = TrainingCache(tmp_path / "training")
    training_cache.get(spec)

    def refused(*_: Any) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("leaktight.running.file_cache.read_input", refused)
    TrainingCache(tmp_path / "training").get(spec)
    assert count(tmp_path) == 2


@given(st.binary(max_size=200), st.integers(0, 600))
@settings(deadline=None, max_examples=60)
def test_no_bytes_crash_the_reader(noise: bytes, at: int) -> None:
    whole = encode(Training({"end": Snapshot({"w": torch.ones(2)})}, (Reading(name="a", value=1),)))
    damaged = whole[:at] + noise + whole[at + len(noise) :]
    for content in (noise, damaged):
        try:
            decode(content)
        except LeaktightError:
            continue


def test_any_flipped_byte_is_noticed(tmp_path: Path) -> None:
    whole = encode(
        Training({"end": Snapshot({"w": torch.randn(8)}, {"a": {"steps": 3, "mean": 0.5}})}, notes={"epsilon": 2.0})
    )
    training = decode(whole)
    start = 8 + int.from_bytes(whole[:8], "little")
    for place in range(start, len(whole)):
        with pytest.raises(LeaktightError):
            decode(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    for place in range(start):
        # Spaces between words of JSON may be others.
        try:
            found = decode(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        except LeaktightError:
            continue
        assert same(dict(found.snapshots["end"].parameters), dict(training.snapshots["end"].parameters))
        assert (found.notes, found.snapshots["end"].memories) == (training.notes, training.snapshots["end"].memories)


def test_a_flipped_byte_is_named_and_trained_again(
    spec: TrainingSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    training_cache = TrainingCache(tmp_path / "training")
    whole = training_cache.get(spec)
    path = tmp_path / "training" / spec.file_name
    content = path.read_bytes()
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 64]) + content[-2:])
    assert not TrainingCache(tmp_path / "training").has(spec)
    assert [said.message for said in caplog.records] == [f"The training run `{path}` is damaged and is computed again."]
    assert not path.exists()
    mended = TrainingCache(tmp_path / "training").get(spec)
    assert same(dict(mended.snapshots["end"].parameters), dict(whole.snapshots["end"].parameters))
    assert path.read_bytes() == content
    assert count(tmp_path) == 2


def test_a_training_knows_what_it_was_made_from(spec: TrainingSpec, tmp_path: Path) -> None:
    training_cache = TrainingCache(tmp_path / "training")
    own = spec.model_copy(update={"fingerprint": training_cache.fingerprint(spec).digest})
    training_cache.get(own)
    assert training_cache.find_outdated(own) is None
    edited = spec.model_copy(update={"fingerprint": "edited"})
    assert training_cache.find_outdated(edited) == training_cache.fingerprint(spec)
    path = tmp_path / "training" / own.file_name
    path.write_bytes(b"rubbish")
    assert training_cache.find_outdated(edited) == Fingerprint()
