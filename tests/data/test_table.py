from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from leaktight.data import Csv

HEADER = "age,job,income\n"
ROWS = ["30,cook,low", "50,clerk,high", "40,cook,low", "20,pilot,high"]


def write(folder: Path, text: str = HEADER + "\n".join(ROWS * 5), name: str = "a.csv") -> Path:
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return file


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_numbers_words_and_label(tmp_path, name):
    data = Csv(path=write(tmp_path, name=name), label="income").load()
    assert data.shape == (4,)
    assert data.names == ("high", "low")
    assert (len(data.train), len(data.test)) == (16, 4)
    assert data.train.inputs[:, 0].mean().abs() < 1e-6
    assert data.train.inputs[:, 0].std(correction=0).item() == pytest.approx(1)
    assert (data.train.inputs[:, 1:].sum(1) == 1).all()


def test_rows_keep_their_labels(tmp_path):
    lines = "\n".join(f"{number},{number % 3}" for number in range(60))
    data = Csv(path=write(tmp_path, "value,label\n" + lines)).load()
    both = torch.cat([data.train.inputs, data.test.inputs])[:, 0].double()
    labels = torch.cat([data.train.labels, data.test.labels])
    order = both.argsort()
    assert labels[order].tolist() == [number % 3 for number in range(60)]


def test_statistics_come_from_the_training_rows_alone(tmp_path):
    train = write(tmp_path, "v,label\n0,a\n10,b\n")
    test = write(tmp_path, "v,label\n20,a\n", "test.csv")
    data = Csv(path=train, test_path=str(test)).load()
    assert data.train.inputs.tolist() == [[-1], [1]]
    assert data.test.inputs.tolist() == [[3]]


def test_statistics_follow_the_limit(tmp_path):
    lines = "\n".join(f"{number},{number % 2}" for number in range(100))
    data = Csv(path=write(tmp_path, "v,label\n" + lines), train_limit=10, test_limit=4).load()
    assert (len(data.train), len(data.test)) == (10, 4)
    assert data.train.inputs.mean().abs() < 1e-6


@pytest.mark.parametrize("label", ["label", "Target", "CLASS", "y"])
def test_a_usual_label_is_found(tmp_path, label):
    file = write(tmp_path, f"v,{label}\n" + "1,0\n2,1\n" * 5)
    assert Csv(path=file).load().classes == 2


def test_numeric_labels_are_ordered_as_numbers(tmp_path):
    file = write(tmp_path, "v,label\n" + "1,10\n2,9\n3,2\n" * 3)
    assert Csv(path=file).load().names == ("2", "9", "10")


def test_the_positive_label_can_be_named(tmp_path):
    file = write(tmp_path)
    usual, turned = (Csv(path=file, label="income", positive=positive).load() for positive in ("", "high"))
    assert turned.names == ("low", "high")
    assert torch.equal(turned.train.inputs, usual.train.inputs)
    assert torch.equal(turned.train.labels, 1 - usual.train.labels)
    assert torch.equal(turned.test.labels, 1 - usual.test.labels)


def test_ignore_and_categorical(tmp_path):
    file = write(tmp_path, "id,code,v,label\n" + "".join(f"{n},{n % 3},{n},{n % 2}\n" for n in range(30)))
    data = Csv(path=file, ignore=("id",), categorical=("code",)).load()
    assert data.shape == (4,)
    assert set(data.train.inputs[:, :3].unique().tolist()) == {0.0, 1.0}


def people(folder: Path, count: int = 60, name: str = "a.csv", start: int = 0) -> Path:
    """Write rows whose number tells everything: the label is its parity, the sex is f for every third."""
    lines = (f"{n},{'f' if n % 3 == 0 else 'm'},{n % 2}" for n in range(start, start + count))
    return write(folder, "v,sex,label\n" + "\n".join(lines), name)


def check_people(data, positive: str) -> None:
    assert data.columns.names == ("v",)
    assert data.property_name == f"sex: {positive}"
    for batch in (data.train, data.test):
        rows = batch.inputs[:, 0].round().long()
        assert torch.equal(batch.properties, ((rows % 3 == 0) == (positive == "f")).long())
        assert torch.equal(batch.labels, rows % 2)


@pytest.mark.parametrize(("positive", "meant"), [("", "f"), ("m", "m"), ("f", "f")])
def test_a_property_is_taken_out_of_the_inputs_and_follows_its_rows(tmp_path, positive, meant):
    source = Csv(path=people(tmp_path), private_property="sex", private_property_positive=positive, standardise=False)
    check_people(source.load(), meant)
    limited = Csv(**{**source.to_dict(), "train_limit": 17, "test_limit": 7}).load()
    assert (len(limited.train), len(limited.test)) == (17, 7)
    check_people(limited, meant)


def test_a_second_file_has_its_own_property(tmp_path):
    test = people(tmp_path, 9, "test.csv", start=60)
    data = Csv(path=people(tmp_path), test_path=test, private_property="sex", standardise=False).load()
    assert data.test.properties.tolist() == [1, 0, 0] * 3
    check_people(data, "f")


def test_without_a_property_nothing_is_taken_out_not_even_a_column_without_a_name(tmp_path):
    data = Csv(path=write(tmp_path, ",v,label\n" + "1,2,a\n3,4,b\n" * 5)).load()
    assert (data.shape, data.property_name, data.train.properties) == ((2,), "", None)


def test_one_of_many_words_can_be_the_property(tmp_path, says):
    file = write(tmp_path)
    data = Csv(
        path=file, label="income", private_property="job", private_property_positive="cook", test_share=0.4
    ).load()
    assert (data.property_name, data.columns.names) == ("job: cook", ("age",))
    assert torch.cat([data.train.properties, data.test.properties]).sum() == 10
    with says("column `job`", "two different values", "Got 3: ", "`private_property_positive`"):
        Csv(path=file, label="income", private_property="job").load()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"private_property": "sexx"}, ("has no column `sexx`", "Did you mean `sex`?")),
        (
            {"private_property": "label"},
            ("`private_property` of csv must be another column than the label", "Got `label` for both"),
        ),
        ({"private_property": "sex", "ignore": ("v",)}, ("a column beside the label",)),
        (
            {"private_property": "sex", "private_property_positive": "F"},
            ("column `sex`", "rows with `F`", "Did you mean `f`?"),
        ),
        ({"private_property": "sex", "logarithm": ("sex",)}, ("no column `sex` for `logarithm`",)),
        (
            {"private_property_positive": "f"},
            ("`private_property_positive` of csv must come with a `private_property`",),
        ),
    ],
)
def test_wrong_properties(tmp_path, settings, words, says):
    with says(*words):
        Csv(path=people(tmp_path), **settings).load()


def test_a_property_must_be_known_of_each_row_whatever_is_filled(tmp_path, says):
    file = write(tmp_path, "v,sex,label\n" + "1,m,0\n2,f,1\n" * 5 + "3,?,0\n")
    with says("must have a property in each row", "Got none in row 11; remove the row"):
        Csv(path=file, private_property="sex", missing="fill").load()


@pytest.mark.parametrize(
    ("name", "separator", "given"),
    [
        *(("a.csv", ";", ";"), ("a.tsv", "\t", None), ("a.tsv.gz", "\t", None), ("a.csv", "|", "|")),
        *(("a.csv", separator, None) for separator in (";", "\t", "|", ",")),
        *(("a.tsv", ",", None), ("a.csv", "^", "^")),
    ],
)
def test_separators(tmp_path, name, separator, given):
    text = (HEADER + "\n".join(ROWS * 3)).replace(",", separator)
    assert Csv(path=write(tmp_path, text, name), label="income", separator=given).load().shape == (4,)


def test_a_file_without_header(tmp_path):
    data = Csv(path=write(tmp_path, "\n".join(ROWS * 5)), columns=("age", "job", "income"), label="income").load()
    assert len(data.train) + len(data.test) == 20


def test_quotes_spaces_marks_and_blank_lines(tmp_path):
    text = '\ufeff"v", "a, b",label\r\n' + '1, "x, ""y""",0\r\n\r\n2 ,z,1\r\n' * 4
    data = Csv(path=write(tmp_path, text)).load()
    assert data.shape == (3,)
    assert len(data.train) + len(data.test) == 8


def test_missing_values(tmp_path, says):
    file = write(tmp_path, HEADER + "\n".join([*ROWS * 3, "?,cook,low", "20,,high"]))
    with says("column `age`", "missing"):
        Csv(path=file, label="income").load()
    data = Csv(path=file, label="income", missing="fill", test_share=0.2).load()
    assert torch.isfinite(data.train.inputs).all()
    assert len(data.train) + len(data.test) == 14


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        (HEADER + "1,a,b\n", {"label": "incom"}, ("has no column `incom`", "Did you mean `income`?")),
        (HEADER + "1,a,b\n", {}, ("`label` of csv must say", "`age`, `job`, `income`")),
        ("y,label\n1,2\n", {}, ("`label` of csv must say",)),
        (HEADER + "1,a,b\n", {"label": "income", "ignore": ("agee",)}, ("has no column `agee`", "`age`")),
        (HEADER + "1,a,b\n", {"label": "income", "ignore": ("age", "job")}, ("a column beside the label",)),
        (HEADER + "1,a,b\n1,a\n", {"label": "income"}, ("3 cells in each line", "Got 2 in line 3", "`separator`")),
        (HEADER, {"label": "income"}, ("a header and at least one row",)),
        ("", {}, ("a header and at least one row",)),
        ("a,a,label\n1,2,3\n", {}, ("different names", "`a`")),
        (HEADER + "1,a,\n", {"label": "income"}, ("a label in each row", "row 1")),
        (HEADER + '1,"a,b\n', {"label": "income"}, ("must be a table of values", "Line 2")),
        (HEADER + "1,a,b\n2,b,c\n", {"label": "income"}, ("two examples of some class",)),
        (HEADER + "\n".join(ROWS * 5), {"label": "income", "positive": "hi"}, ("of which `hi` is the positive one",)),
    ],
)
def test_wrong_tables(tmp_path, text, settings, words, says):
    with says(*words):
        Csv(path=write(tmp_path, text), **settings).load()


def test_infinite_numbers(tmp_path, says):
    with says("column `v`", "finite numbers"):
        Csv(path=write(tmp_path, "v,label\n" + "1,0\ninf,1\n" * 5)).load()


def test_another_encoding(tmp_path, says):
    file = tmp_path / "a.csv"
    file.write_bytes("v,label\né,1\n".encode("latin-1"))
    with says("text in UTF-8", "0xe9 at 8"):
        Csv(path=file).load()


def test_truncated_archive_and_missing_file(tmp_path, says):
    file = write(tmp_path, name="a.csv.gz")
    file.write_bytes(file.read_bytes()[:-8])
    with says("whole gzip file"):
        Csv(path=file, label="income").load()
    with says("There is no file or folder"):
        Csv(path=tmp_path / "none.csv").load()


def test_test_rows_of_another_kind(tmp_path, says):
    train = write(tmp_path)
    other = write(tmp_path, "job,age,income\ncook,1,low\n", "other.csv")
    with says("must have the columns of", "in their order"):
        Csv(path=train, test_path=str(other), label="income").load()
    label = write(tmp_path, HEADER + "1,cook,middle\n", "label.csv")
    with says("occur in training", "`middle`"):
        Csv(path=train, test_path=str(label), label="income").load()
    word = write(tmp_path, HEADER + "old,cook,low\n", "word.csv")
    with says("column `age`", "must hold numbers", "'old'"):
        Csv(path=train, test_path=str(word), label="income").load()


def test_a_changed_test_file_is_read_again(tmp_path):
    train = write(tmp_path)
    test = write(tmp_path, HEADER + "1,cook,low\n", "test.csv")
    source = Csv(path=train, test_path=str(test), label="income")
    assert len(source.load().test) == 1
    write(tmp_path, HEADER + "1,cook,low\n2,cook,high\n", "test.csv")
    assert len(source.load().test) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"separator": ",,"}, ("`separator` of csv",)),
        ({"missing": "drop"}, ("`missing` of csv", "'error' or 'fill'")),
        ({"most_words": 1}, ("`most_words` of csv", "at least 2")),
    ],
)
def test_wrong_settings(changes, words, says):
    with says(*words):
        Csv(path="a.csv", **changes)


def test_credit_default(real):
    file = real("tabular/default_credit_hetero_guest.csv.gz")
    data = Csv(path=file, ignore=("id",), train_limit=3000, test_limit=1000).load()
    assert data.shape == (13,)
    assert data.names == ("0", "1")
    assert data.train.labels.float().mean().item() == pytest.approx(0.221, abs=0.005)
    np.testing.assert_allclose(data.train.inputs.std(0, correction=0).numpy(), 1, rtol=1e-3)


def test_the_columns_say_what_each_position_holds(tmp_path):
    file = write(tmp_path)
    one_hot = Csv(path=file, label="income").load().columns
    assert (one_hot.names, one_hot.ids) == (("age", "job", "job", "job"), (0, 0, 0, 0))
    ids = Csv(path=file, label="income", words="ids").load()
    assert (ids.columns.names, ids.columns.ids, ids.shape) == (("age", "job"), (0, 4), (2,))
    hashed = Csv(path=file, label="income", words="hashed", buckets=7).load()
    assert hashed.columns.ids == (0, 8)


def test_counts_are_taken_as_logarithms_by_name_or_pattern(tmp_path):
    file = write(tmp_path, "paid1,paid2,age,label\n" + "100,0,30,a\n0,10,40,b\n" * 5)
    data = Csv(path=file, logarithm=("paid*",), standardise=False).load()
    logarithms = {tuple(round(value, 3) for value in row) for row in data.train.inputs.tolist()}
    assert logarithms == {(4.615, 0.0, 30.0), (0.0, 2.398, 40.0)}


def test_a_logarithm_of_an_unknown_column_is_said(tmp_path, says):
    with says("There is no column `paid` for `logarithm`"):
        Csv(path=write(tmp_path), label="income", logarithm=("paid",)).load()


def test_real_adult_with_ids(real):
    names = "age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain capital_loss hours country label"
    data = Csv(
        path=real("tabular/adult.data.gz"),
        columns=tuple(names.split()),
        separator=",",
        missing="fill",
        words="ids",
        logarithm=("capital_*",),
        train_limit=2000,
        test_limit=500,
    ).load()
    assert data.shape == (14,)
    assert data.columns.ids[data.columns.find(["sex"])[0]] == 3
    assert data.names == ("<=50K", ">50K")


def test_real_credit_data_with_the_sex_as_a_property(real):
    file = real("tabular/UCI_Credit_Card.csv.gz")
    data = Csv(
        path=file, label="default.payment.next.month", ignore=("ID",), private_property="SEX", train_limit=2000
    ).load()
    assert (data.property_name, "SEX" in data.columns.names, data.shape) == ("SEX: 2", False, (22,))
    assert data.test.properties.float().mean().item() == pytest.approx(0.604, abs=0.02)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_usual_way(tmp_path, end):
    file = tmp_path / "a.csv"
    file.write_bytes(b"\xef\xbb\xbf" + end.join(["v,label", *["1,a", '"2",b'] * 5, ""]).encode())
    data = Csv(path=file).load()
    assert data.names == ("a", "b")
    assert (len(data.train), len(data.test)) == (8, 2)


def test_a_cell_may_have_several_lines(tmp_path):
    data = Csv(path=write(tmp_path, "v,label\n" + '"x\ny",a\n"z\r\nw",b\n' * 5)).load()
    assert data.shape == (2,)


def test_a_far_byte_is_named_by_its_place(tmp_path, says):
    file = tmp_path / "a.csv"
    file.write_bytes(b"v,label\n" + b"1,a\n" * 10_000 + b"\xff,b\n")
    with says("Got byte 0xff at 40008"):
        Csv(path=file).load()


def test_one_long_label_does_not_make_all_of_them_long(tmp_path, says):
    with says("must be about as long as each other. Got one of 100000 characters"):
        Csv(path=write(tmp_path, "v,label\n" + "1,a\n" * 20_000 + f"1,{'b' * 100_000}\n")).load()
    assert Csv(path=write(tmp_path, "v,label\n" + "1,a\n2,b\n" * 100 + f"1,{'b' * 1000}\n")).load().classes == 3


@pytest.mark.parametrize(
    ("bound", "value", "sentence"),
    [
        ("MOST_COLUMNS", 2, "must have at most 2 columns. Got 3"),
        ("MOST_CELLS", 30, "must have at most 30 cells"),
        ("LONGEST_NAME", 5, "names of at most 5 characters. Got 6"),
        ("LONGEST_LINE", 12, "lines of at most 12 bytes"),
        ("LARGEST_TABLE", 100, "must have at most 100 bytes"),
    ],
)
def test_bounds_are_stated(tmp_path, says, monkeypatch, bound, value, sentence):
    monkeypatch.setattr(f"leaktight.data.table.{bound}", value)
    with says(sentence):
        Csv(path=write(tmp_path), label="income").load()
