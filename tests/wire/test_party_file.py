"""Party files: every fault at once, and what two templates agree on."""

import copy
import tomllib
from pathlib import Path

import pytest

import leaktight.cli
from leaktight.core.errors import InvalidValue
from leaktight.wire.handshake import digests
from leaktight.wire.party_file import parse_party_file, read_party_file

TEMPLATES = Path(leaktight.cli.__file__).parent
WIRE = {"listen": "127.0.0.1:7443", "insecure": True, "checkpoint": "a.safetensors"}
GOOD = {"scenario": {"data": "rare_digit", "model": "mlp"}, "wire": WIRE}


def changed(section, **settings):
    document = copy.deepcopy(GOOD)
    for name, value in settings.items():
        if value is None:
            document[section].pop(name)
        else:
            document[section][name] = value
    return document


def test_both_templates_agree_and_only_one_listens():
    files = {role: read_party_file(TEMPLATES / f"{role}_party.toml") for role in ("label", "feature")}
    assert digests(files["label"].shared_settings()) == digests(files["feature"].shared_settings())
    assert files["label"].wire.listen == files["feature"].wire.connect
    assert str(files["label"].defence) == "sumkl(bound=0.3)"
    assert (
        len(files["label"].load_data("label-party").columns) + len(files["feature"].load_data("feature-party").columns)
        == 64
    )


def test_the_feature_party_of_a_whole_data_set_is_handed_no_label():
    settings = parse_party_file(GOOD)
    feature, label = (settings.load_data(role) for role in ("feature-party", "label-party"))
    assert feature.train.labels.unique().tolist() == feature.test.labels.unique().tolist() == [-1]
    assert (feature.classes, label.classes) == (0, 2)
    assert label.train.inputs.shape == (len(feature.train), 0)


def test_images_stay_whole_with_the_feature_party():
    settings = parse_party_file(changed("scenario", data={"kind": "rare_digit", "form": "image"}))
    feature = settings.load_data("feature-party")
    assert feature.columns is None
    assert feature.train.inputs.shape[1:] == (1, 8, 8)
    assert len(feature.statistics()[0]) == 1


def test_a_plan_that_was_audited_can_be_taken_over():
    settings = parse_party_file(changed("scenario", moments=20, kind="split", label_party=["r0*"]))
    assert settings.agreement.label_party == ("r0*",)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({**GOOD, "atacks": []}, "There is no section `atacks`"),
        ({"wire": WIRE}, "scenario: The `data` is missing"),
        ({**GOOD, "scenario": 3}, "scenario: It must be a table of settings. Got 3"),
        (changed("scenario", rounds=0), "scenario: The `rounds` of split must be at least 1. Got 0"),
        (changed("scenario", round=3), "split has no setting `round`. Did you mean `rounds`?"),
        (changed("scenario", data={"kind": "party_table"}), "scenario.data: The `path` of party_table is missing"),
        (changed("scenario", data={"kind": "rare_digits"}), "Did you mean `rare_digit`?"),
        ({**GOOD, "defence": {"kind": "sum_kl"}}, "defence: There is no defence named `sum_kl`"),
        (changed("wire", checkpoint=None), "wire: The `checkpoint` of Wire is missing"),
        (changed("wire", connect="127.0.0.1:1"), "one of `listen` and `connect`"),
        (changed("wire", listen=""), "one of `listen` and `connect`"),
        (changed("wire", listen="7443"), "An address must be `host:port`, such as `127.0.0.1:7443`. Got '7443'"),
        (changed("wire", listen="localhost:99999"), "An address must be `host:port`"),
        (changed("wire", listen="0.0.0.0:7443"), "`insecure` on a loopback address only. Got '0.0.0.0'"),
        (changed("wire", listen="example.org:7443"), "`insecure` on a loopback address only"),
        (changed("wire", insecure=False), "must have `certificates`"),
        (
            changed("wire", certificates="here"),
            "must have `certificates`, the folder that `leaktight certificates` makes, or be `insecure`",
        ),
        (changed("wire", timeout=1), "The `timeout` of Wire must be above its `heartbeat`, 5. Got 1"),
        (changed("wire", every=0), "The `every` of Wire must be at least 1. Got 0"),
        (changed("wire", compression="zip"), "The `compression` of Wire must be one of 'none', 'float16' or 'int8'"),
    ],
)
def test_faults_say_where_they_are(document, sentence):
    with pytest.raises(InvalidValue) as fault:
        parse_party_file(document)
    assert sentence in str(fault.value)


def test_all_faults_are_shown_at_once():
    with pytest.raises(InvalidValue, match="The party's file has 3 faults"):
        parse_party_file({**changed("scenario", rounds=0), "wire": {**WIRE, "every": 0}, "defence": {"kind": "x"}})


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidValue, match=r"There is no file .*Write one with `leaktight init --scenario label-party"):
        read_party_file(tmp_path / "none.toml")
    for name, content, sentence in (
        ("odd.toml", b"a = [", "is not valid TOML"),
        ("bytes.toml", b"\xff\xfe", "is not text in UTF-8"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidValue, match=sentence):
            read_party_file(tmp_path / name)
    with pytest.raises(InvalidValue, match="cannot be read: is a directory"):
        read_party_file(tmp_path)


def test_templates_comment_out_what_a_party_table_needs():
    text = (TEMPLATES / "label_party.toml").read_text()
    table = text.split('# kind = "party_table"')[1].split("\n\n")[0]
    lines = [line.removeprefix("# ") for line in table.splitlines()[1:]]
    data = tomllib.loads("\n".join(['kind = "party_table"', *lines]))
    assert parse_party_file(changed("scenario", data=data)).data.label == "default"
