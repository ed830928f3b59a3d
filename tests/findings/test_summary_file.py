"""The summary file: the verdicts for other programs, the same as everywhere else, and nothing private."""

import json
import stat

import jsonschema
import pytest

from leaktight.core.metric import Reading
from leaktight.core.record import Status
from leaktight.data import ClassProperty, Digits, Parity
from leaktight.defences import DPSGD, LayerGuard, TopK
from leaktight.findings.redaction import redact_records
from leaktight.findings.summary import summarise
from leaktight.findings.summary_file import SCHEMA_FILE, as_text, read_summary, summary_of, write_summary
from leaktight.findings.summary_form import make_schema
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.plans.plan import Plan
from leaktight.running.store import Store

FIELDS = {
    *("scenario", "defence", "kind", "verdict", "attack", "reading", "value", "low", "high", "chance", "n"),
    *("price", "price_low", "price_high", "attacks"),
}


@pytest.fixture
def summary(made):
    def make(records, redact=False):
        return json.loads(as_text(summary_of(records, made.plan(), made.VERSIONS, redact)))

    return make


def test_it_holds_what_the_verdict_says(made, summary):
    records = made.two_principles(TopK(share=0.05), accuracy=0.75, labels=0.0)
    found = summary(records)
    assert set(found) == {
        *("format", "title", "verdicts", "unmeasured", "cells", "flags", "advice", "versions", "readings")
    }
    assert found["versions"] == made.VERSIONS
    assert all(set(one) >= FIELDS for one in found["verdicts"])
    assert [(one["kind"], one["verdict"]) for one in found["verdicts"]] == [
        ("images", "leaks"),
        ("images", "not broken"),
        ("labels", "leaks"),
        ("labels", "leaks"),
    ]
    calm = found["verdicts"][1]
    assert calm["scenario"] == "1"
    assert calm["defence"] == TopK(share=0.05).to_dict()
    assert (calm["attack"], calm["reading"], calm["value"], calm["chance"], calm["n"]) == (
        *("adaptive", "reconstruction_statement"),
        *(0.0, 0.0, 8),
    )
    assert calm["high"] == pytest.approx(0.32, abs=0.01)
    assert (calm["price"], calm["price_low"] < 0.05 < calm["price_high"]) == (pytest.approx(0.05), True)
    assert calm["attacks"] == [
        {
            "name": name,
            "principle": principle,
            "adapts": True,
            "reads_undefended": True,
            "search_failed": False,
            "failed_searches": failed,
        }
        for name, principle, failed in (("adaptive", "search", 0.0), ("learned", "learned", None))
    ]
    assert [one["sentence"] for one in found["verdicts"]] == list(summarise(records).verdict)
    assert found["advice"][0]["defence"] == TopK(share=0.05).to_dict()


def test_what_is_missing_and_what_an_epsilon_implies_are_fields(made, summary):
    notes = {"dp_sgd.epsilon": 1.0, "dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}
    records = [
        made.record(psnr=38, extra=made.searches(0)),
        made.record(TopK(), psnr=9, extra=made.searches(8), accuracy=0.1),
        made.record(DPSGD(), psnr=9, notes=notes),
    ]
    _, bounded, unknown = summary(records)["verdicts"]
    assert (unknown["verdict"], unknown["evidence"], unknown["learned_nothing"]) == ("useless", "unknown", True)
    assert (bounded["verdict"], bounded["evidence"]) == ("bounded", "bounded")
    assert ": useless. " in unknown["sentence"]
    assert unknown["missing"].startswith("Every search failed")
    assert [(one["name"], one["search_failed"], one["failed_searches"]) for one in unknown["attacks"]] == [
        ("dlg2019", True, 1.0)
    ]
    assert (bounded["epsilon"], bounded["delta"]) == (1.0, 1e-5)
    assert bounded["largest_true_positive_rate"] == pytest.approx(0.0272, abs=1e-3)


@pytest.mark.parametrize("redact", [False, True])
def test_nothing_private_is_in_it(made, summary, redact):
    """No place on the disk, no seed, no cell's key, no text of an error, no value of a single image."""
    guard = LayerGuard(guard=TopK(), count=1, ranking="patients/anna/ranking.json")
    records = [
        made.record(psnr=38, seed=987654321),
        made.record(guard, psnr=23.4567, seed=987654321),
        made.record(
            TopK(), status=Status.FAILED, reason="RuntimeError: image [0.1, 0.7] of anna is odd.", seed=987654321
        ),
    ]
    text = json.dumps(summary(records, redact))
    keys = [record.cell.key for record in records]
    assert not [word for word in ("anna", "patients", "987654321", "[0.1, 0.7]", "20.4567", *keys) if word in text]
    assert "layer_guard" in text


def test_redacted_it_decides_the_same_and_drops_what_rests_on_one_example(made, summary):
    records = made.audit()
    words = [[one["verdict"] for one in summary(records, redact)["verdicts"]] for redact in (False, True)]
    assert words[0] == words[1]
    single = made.record(psnr=None, extra=(Reading(name="odd", value=56.789, n=1, leaks="high"),))
    assert "56.789" in json.dumps(summary([single]))
    assert summary([single], redact=True)["verdicts"] == []
    assert redact_records([single])[0].reading("odd") is None


def test_an_empty_audit_has_an_empty_summary(made, summary):
    found = summary([])
    assert (found["verdicts"], found["advice"]) == ([], [])


def test_it_is_written_for_its_owner_alone(made, tmp_path):
    scenario = Federated(data=Digits(), model=MLP(), rounds=0)
    plan = Plan(scenarios={"my own": scenario}, probes=made.plan().probes)
    records = [made.record(psnr=38, scenario=scenario)]
    with Store.create(tmp_path) as store:
        store.begin(plan)
    path = write_summary(tmp_path)
    assert path.name == "summary.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["verdicts"] == []
    assert summary_of(records, plan, {}).verdicts[0].scenario == "my own"


def test_every_reading_is_in_it(made, summary):
    records = [
        made.record(psnr=38, labels=0.0),
        made.record(
            TopK(share=0.05), 12, attack=made.TEAM, label="team", extra=made.members({"search": 9, "simple": 12})
        ),
    ]
    found = summary(records)["readings"]
    assert len(found) == sum(len(record.readings) for record in records)
    psnr = next(one for one in found if one["reading"] == "psnr" and one["against"] == "raw")
    assert psnr == {
        "scenario": "1",
        "defence": {"kind": "none"},
        "defence_name": "no defence",
        "attack": "dlg2019",
        "by": "",
        "batch_size": 1,
        "stage": "initial",
        "reading": "psnr",
        "against": "raw",
        "layer": None,
        "value": 38.0,
        "low": 36.5,
        "high": 39.5,
        "chance": 11.0,
        "n": 8,
        "unit": "dB",
        "leaks": "high",
    }
    assert {one["by"] for one in found if one["attack"] == "team"} == {"", "search", "simple"}
    assert "each" not in psnr


def test_a_reading_takes_one_line(made):
    summary = summary_of(made.audit(), made.plan(), made.VERSIONS)
    lines = as_text(summary).splitlines()
    assert sum(line.startswith('    {"scenario"') for line in lines) == len(summary.readings)


def test_the_published_schema_is_that_of_the_code():
    """Write it anew with: python -c "import json; from leaktight.findings.summary_form import make_schema; print(json.dumps(make_schema(), indent=2))"."""
    assert json.loads(SCHEMA_FILE.read_text()) == make_schema()
    jsonschema.Draft202012Validator.check_schema(make_schema())


@pytest.mark.parametrize("redact", [False, True])
def test_summaries_fit_the_schema(made, summary, redact):
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))
    for records in ([], made.audit(), made.audit(seeds=(0, 1)), made.sweep(), made.two_principles(TopK())):
        validator.validate(summary(records, redact))
    wrong = summary(made.audit())
    wrong["verdicts"][0]["verdict"] = "fine"
    assert not validator.is_valid(wrong)


def test_it_is_read_back(made, tmp_path):
    whole = summary_of(made.audit(), made.plan(), made.VERSIONS, missing=3)
    (tmp_path / "summary.json").write_text(as_text(whole))
    assert read_summary(tmp_path) == read_summary(tmp_path / "summary.json") == whole
    assert whole.cells.to_dict() == {"done": 16, "refused": 1, "failed": 1, "missing": 3}


def test_what_a_gate_reads_from_records_has_no_names_of_classes(made, tmp_path):
    scenario = Federated(data=ClassProperty(data=Parity(), label=1), model=MLP())
    told = Reading(name="property_auc", value=0.9, low=0.8, high=1.0, chance=0.5, leaks="high", n=20)
    record = made.record(psnr=None, scenario=scenario, extra=(told,))
    record = record.model_copy(update={"class_names": ("bob", "anna")})
    plan = Plan(scenarios={"1": scenario}, probes={"a": record.cell.probe})
    record = record.model_copy(update={"cell": next(cell for cell in plan.cells() if cell.purpose == "measure")})
    with Store.create(tmp_path) as store:
        store.begin(plan)
        store.write(record)
    assert "are of class anna" in as_text(summary_of([record], plan, {}))
    found = as_text(read_summary(tmp_path))
    assert "anna" not in found
    assert "are of class 1" in found


def test_planned_defences_of_which_nothing_is_known_are_named(made):
    plan = made.plan().model_copy(update={"defences": (TopK(share=0.3), DPSGD())})
    found = summary_of([made.record(psnr=38), made.record(TopK(share=0.3), 31)], plan, {})
    assert [name.partition(" ")[0] for name in found.unmeasured] == ["DP-SGD"]


def test_what_a_time_budget_cut_is_a_flag(made):
    caveat = "A time budget of 20 s shortened this audit: training runs have 15 % of their rounds."
    plan = made.plan().model_copy(update={"caveats": (caveat,)})
    found = summary_of([made.record()], plan, made.VERSIONS).to_dict()
    assert {"name": "shortened", "severity": "doubt", "sentence": caveat} in found["flags"]
    assert plan.to_dict()["caveats"] == [caveat]
    assert "caveats" not in made.plan().to_dict()
