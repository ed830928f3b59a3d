"""Criteo's display advertisements: the original form, the encoded form, and what is wrong with neither."""

from __future__ import annotations

import gzip
import math
import zlib

import pytest
import torch

from leaktight.data import Criteo, from_text

COUNTS = ["1", "-2", "", *["7"] * 10]
WORDS = ["68fd1e64", "", *["abc"] * 24]


def lines(count=20, separator="\t", counts=COUNTS, words=WORDS):
    return "\n".join(separator.join([str(int(row % 4 == 0)), *counts, *words]) for row in range(count)) + "\n"


def write(folder, text, name="criteo.txt"):
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return file


@pytest.mark.parametrize("name", ["criteo.txt", "train.txt.gz"])
def test_counts_become_logarithms_and_words_hashed_ids(tmp_path, name):
    data = Criteo(path=write(tmp_path, lines(), name), buckets=50).load()
    assert data.columns.names[:2] == ("I1", "I2")
    assert data.columns.names[13:15] == ("C1", "C2")
    assert data.columns.ids == (0,) * 13 + (51,) * 26
    row = data.train.inputs[0]
    assert torch.allclose(row[:4], torch.tensor([math.log(2), -math.log(3), 0.0, math.log(8)]))
    assert row[13:16].tolist() == [1 + zlib.crc32(b"68fd1e64") % 50, 0, 1 + zlib.crc32(b"abc") % 50]


def test_the_encoded_form_is_all_ids(tmp_path):
    text = lines(separator=",", counts=[str(at) for at in range(13)], words=["5"] * 26)
    data = Criteo(path=write(tmp_path, text, "criteo.csv"), buckets=1000).load()
    assert data.columns.ids == (1001,) * 39
    assert len(data.train.inputs[0, :13].unique()) == 13


def test_a_tenth_is_held_out_with_its_share_of_clicks(tmp_path):
    data = Criteo(path=write(tmp_path, lines(400))).load()
    assert (len(data.train), len(data.test)) == (360, 40)
    assert data.test.labels.float().mean() == pytest.approx(0.25)


def test_nothing_is_learned_from_the_training_rows(tmp_path):
    """The same row is encoded alike beside any other rows, so no statistic of the others is in it."""
    one = Criteo(path=write(tmp_path, lines(20))).load().train.inputs[0]
    mixed = lines(20) + lines(40, counts=["1000"] * 13, words=["other"] * 26)
    other = Criteo(path=write(tmp_path, mixed, "criteo2.txt")).load().train.inputs
    assert (other == one).all(1).any()


def test_a_test_file_of_its_own(tmp_path):
    test = write(tmp_path, lines(8), "test.txt")
    data = Criteo(path=write(tmp_path, lines(12)), test_path=test).load()
    assert (len(data.train), len(data.test)) == (12, 8)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0\t1\t2\n" * 9, ["must have 40 cells in each line", "Got 3 in line 1"]),
        (lines(counts=["x", *COUNTS[1:]]), ["The column `I1` must hold numbers", "Got 'x' instead"]),
        (
            "".join(lines(20).replace("\n1\t", "\n0\t").splitlines(keepends=True)[1:]),
            ["must name at least 2 classes", "Got 1"],
        ),
        (
            "label\t" + "\t".join(["I"] * 39) + "\n" + lines(),
            ["must be 0 and 1. Got `label` in line 1", "there is no header"],
        ),
        (lines(8) + lines(20).replace("0\t", "-1\t"), ["must be 0 and 1. Got `-1` too", "whether there was a click"]),
    ],
    ids=["cells", "count", "one class", "header", "labels of -1 and 1"],
)
def test_what_is_not_criteo_is_said(tmp_path, text, words, says):
    with says(*words):
        Criteo(path=write(tmp_path, text)).load()


@pytest.mark.parametrize("header", ["label", '"clicked"', "\ufefflabel"])
def test_a_header_is_said_in_the_encoded_form_and_in_the_test_file_too(tmp_path, says, header):
    whole = lines(separator=",", counts=["3"] * 13, words=["5"] * 26)
    headed = ",".join([header, *["I"] * 39]) + "\n" + whole
    with says("must be 0 and 1. Got `" + header.strip('"\ufeff') + "` in line 1"):
        Criteo(path=write(tmp_path, headed, "criteo.csv")).load()
    good, test = write(tmp_path, whole, "criteo.csv"), write(tmp_path, headed, "test.csv")
    with says("test.csv", "must be 0 and 1"):
        Criteo(path=good, test_path=test).load()


def test_it_is_recognised_by_its_name(tmp_path):
    assert from_text(str(write(tmp_path, lines(), "criteo_raw.txt.gz"))).kind == "criteo"
    assert from_text(str(write(tmp_path, "v,label\n1,2\n", "clicks.csv"))).kind == "csv"


def test_the_real_sample(real):
    data = Criteo(path=real("ctr/criteo_raw_8000.txt.gz")).load()
    assert (len(data.train), len(data.test), data.shape) == (7200, 800, (39,))
    assert data.train.labels.float().mean() == pytest.approx(0.22, abs=0.01)


def test_the_real_encoded_sample(real):
    data = Criteo(
        path=real("ctr/criteo_encoded_train_10000.csv.gz"), test_path=real("ctr/criteo_encoded_test_10000.csv.gz")
    ).load()
    assert (len(data.train), len(data.test)) == (10_000, 10_000)
    assert data.train.labels.float().mean() == pytest.approx(0.25, abs=0.01)
