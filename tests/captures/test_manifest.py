"""A manifest says what is known of a message, and what is wrong with it in one sentence."""

import json

import pytest

from leaktight.captures.manifest import Manifest, parse_manifest, read_manifest
from leaktight.core.errors import InvalidValue
from leaktight.core.input_file import LARGEST_SETTINGS

GOOD = {"kind": "update", "sender": "node-1", "round": 2, "tensors": "a.safetensors", "parameters": "b.safetensors"}


def test_it_goes_to_json_and_back():
    manifest = Manifest(
        **GOOD, shape=(1, 8, 8), mean=(0.5,), std=(0.25,), examples=8, batch_size=4, local_steps=2, learning_rate=0.1
    )
    assert parse_manifest(json.dumps(manifest.to_dict()).encode(), "x") == manifest
    assert manifest.name == "node-1/2"


def test_facts_of_a_known_update():
    manifest = Manifest(**GOOD, examples=8, batch_size=4, local_steps=2, learning_rate=0.1, momentum=0.9)
    assert manifest.facts() == {"examples": 8, "local_steps": 2, "batch_size": 4, "learning_rate": 0.1, "momentum": 0.9}
    assert not manifest.unknown_steps
    assert Manifest(**GOOD, optimiser="Adam").facts()["adaptive"] == 1


def test_weight_decay_is_a_fact_where_the_steps_are_known():
    known = {"local_steps": 1, "learning_rate": 0.1, "weight_decay": 0.01}
    assert Manifest(**GOOD, **known).facts()["weight_decay"] == 0.01
    assert "weight_decay" not in Manifest(**GOOD, weight_decay=0.01).facts()


def test_what_nobody_told_is_written_as_unknown_and_never_as_zero():
    written = Manifest(**GOOD).to_dict()
    unknown = ("optimiser", "learning_rate", "momentum", "weight_decay", "epochs", "local_steps", "batch_size", "mean")
    assert {written[name] for name in unknown} == {None}


def test_without_the_number_of_epochs_one_pass_over_what_a_sender_reports_is_supposed():
    manifest = Manifest(**GOOD, dataset_size=12, local_steps=3)
    assert (manifest.facts()["examples"], manifest.step_size) == (12, 4)
    assert manifest.examples is None


def test_what_nobody_told_is_taken_as_small_as_it_can_be():
    manifest = Manifest(**GOOD)
    assert manifest.unknown_steps
    assert manifest.step_size == 1
    assert manifest.facts() == {"examples": 1, "local_steps": 1, "batch_size": 1, "learning_rate": 1, "momentum": 0}
    assert Manifest(**GOOD, examples=12, local_steps=3).step_size == 4
    assert Manifest(**{**GOOD, "kind": "gradient"}, examples=6).facts() == {"examples": 6}


def test_steps_of_unknown_size_are_of_size_one():
    assert Manifest(**GOOD, learning_rate=0.1).facts()["learning_rate"] == 1
    assert Manifest(**GOOD, local_steps=3).facts()["local_steps"] == 3


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "activation"}, "one of 'gradient' or 'update'"),
        ({"round": -1}, "at least 0"),
        ({"round": "soon"}, "`round` of Manifest"),
        ({"sender": "a/b"}, "`sender` of Manifest"),
        ({"sender": "server"}, "other than its `sender`"),
        ({"tensors": "../../etc/passwd"}, "`tensors` of Manifest"),
        ({"parameters": "/b.safetensors"}, "`parameters` of Manifest"),
        ({"parameters": ".hidden"}, "`parameters` of Manifest"),
        ({"examples": 0}, "at least 1"),
        ({"examples": 10**8, "shape": [3, 224, 224]}, "at most 134217728 numbers"),
        ({"shape": [10**6, 10**6]}, "at most 134217728 numbers"),
        ({"learning_rate": float("nan")}, "finite"),
        ({"momentum": 1.0}, "below 1"),
        ({"weight_decay": -0.1}, "at least 0"),
        ({"optimiser": "a b"}, "`optimiser` of Manifest"),
        ({"mean": [0.5]}, "as many `mean` as `std`"),
        ({"std": [0.0], "mean": [0.5]}, "above 0"),
        ({"format": 2}, "`format` of Manifest"),
        ({"exmples": 3}, "Did you mean `examples`?"),
        ({"model": "not a reference"}, "`package.module:function`"),
    ],
)
def test_what_is_wrong_is_one_sentence(change, why):
    with pytest.raises(InvalidValue) as caught:
        parse_manifest(json.dumps({**GOOD, **change}).encode(), "one.capture.json")
    assert why in str(caught.value)
    assert "one.capture.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 10_000, b"null", b"[]", b'"text"'])
def test_what_is_not_a_table_is_one_sentence(content):
    with pytest.raises(InvalidValue, match=r"The manifest `one` (is not JSON|must hold one table)") as caught:
        parse_manifest(content, "one")
    assert len(str(caught.value)) < 500


def test_a_huge_file_is_not_read(tmp_path):
    path = tmp_path / "one.capture.json"
    with path.open("wb") as file:
        file.truncate(LARGEST_SETTINGS + 1)
    with pytest.raises(InvalidValue, match=r"at most 1 MiB\. Got 1048577 bytes instead"):
        read_manifest(path)


def test_a_huge_fault_is_cut_short():
    with pytest.raises(InvalidValue) as caught:
        parse_manifest(json.dumps({**GOOD, "sender": "x" * 100_000}).encode(), "one")
    assert len(str(caught.value)) < 500


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InvalidValue, match="no such file"):
        read_manifest(tmp_path / "none.json")
