"""Party tables: one party's file alone, aligned by ids, encoded as the whole table would be."""

import pytest
import torch

from leaktight.core.errors import InvalidValue
from leaktight.data import Csv
from leaktight.wire.party_data import PartyTable


def table(folder, name, text):
    (folder / name).write_text(text)
    return str(folder / name)


def test_each_half_is_what_the_whole_table_holds_in_its_columns(tables):
    whole = Csv(
        path=tables / "whole-train.csv", test_path=tables / "whole-test.csv", label="bought", ignore=("person",)
    ).load()
    common = {"id": "person"}
    features = PartyTable(path=tables / "features-train.csv", test_path=tables / "features-test.csv", **common).load(
        False
    )
    labels = PartyTable(
        path=tables / "labels-train.csv", test_path=tables / "labels-test.csv", label="bought", **common
    ).load(True)
    at = whole.columns.find(("x*", "job"))
    assert torch.equal(features.train.inputs, whole.train.inputs[:, at])
    assert torch.equal(features.test.inputs, whole.test.inputs[:, at])
    assert torch.equal(labels.train.inputs, whole.train.inputs[:, whole.columns.find(("w*",))])
    assert torch.equal(labels.train.labels, whole.train.labels)
    assert torch.equal(labels.test.labels, whole.test.labels)
    assert features.people == labels.people != ""
    assert features.columns.names == ("x1", "x2", "x3", "job", "job", "job")
    assert (features.classes, labels.classes) == (0, 2)


def test_the_digest_of_people_depends_on_who_and_not_on_their_order_or_cells(tmp_path):
    def people(text):
        return PartyTable(path=table(tmp_path, "a.csv", text), id="id").load(False).people

    one = people("id,x\na,1\nb,2\n")
    assert one == people("x,id\n5,b\n6,a\n")
    assert one != people("id,x\na,1\nc,2\n")
    assert one != people("id,x\nab,1\nc,2\n")


def test_labels_alone_are_enough_for_the_label_party(tmp_path):
    data = PartyTable(path=table(tmp_path, "a.csv", "id,y\nb,no\na,yes\n"), id="id", label="y", positive="no").load(
        True
    )
    assert data.train.inputs.shape == (2, 0)
    assert data.train.labels.tolist() == [0, 1]
    assert data.test is None
    assert data.statistics() is None


@pytest.mark.parametrize(
    ("text", "settings", "labelled", "sentence"),
    [
        ("id,x\na,1\n", {}, True, "must name the column with the labels. Got ''"),
        ("id,x\na,1\n", {"label": "x"}, False, "must name no label: the feature party has none. Got 'x'"),
        ("id,x\na,1\n", {"id": "ids"}, False, r"has no column `ids`. Did you mean `id`\?"),
        ("id,x\na,1\na,2\n", {"id": "id"}, False, "must name each row once"),
        ("id,x\na,1\n?,2\n", {"id": "id"}, False, "column `id` of .* must have a value in each row. Got none in row 2"),
        ("id,x\na,1\n", {"ignore": ["x"], "id": "id"}, False, "must have a column for the feature party to learn from"),
        ("id,x\na,1\nb,\n", {"id": "id"}, False, "column `x` must have a value in each row. Got 1 missing"),
        ("id,x\na,1\n", {"test_path": "other"}, False, "must have the columns of"),
    ],
)
def test_what_is_wrong_with_a_table(tmp_path, text, settings, labelled, sentence):
    settings = {
        name: table(tmp_path, "b.csv", "x,id\n1,a\n") if value == "other" else value for name, value in settings.items()
    }
    with pytest.raises(InvalidValue, match=sentence):
        PartyTable(path=table(tmp_path, "a.csv", text), **settings).load(labelled)


def test_test_rows_of_a_label_that_never_trained_are_refused(tmp_path):
    train, test = table(tmp_path, "a.csv", "x,y\n1,a\n2,b\n"), table(tmp_path, "b.csv", "x,y\n1,c\n")
    with pytest.raises(InvalidValue, match=r"test labels that occur in training. Got `c`"):
        PartyTable(path=train, test_path=test, label="y").load(True)
