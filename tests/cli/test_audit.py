from __future__ import annotations

import json
import logging
import re
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaktight import __version__, running
from leaktight.cli.audit import choose_plan
from leaktight.core.errors import InvalidValue
from leaktight.core.record import Status
from leaktight.core.threads import cores
from leaktight.plans import Plan, quick, standard
from leaktight.running import Store

Call = Callable[..., Any]


@pytest.fixture
def plan_file(audited: Path) -> str:
    return str(audited.parent / "small.toml")


def test_an_audit_ends_with_table_verdict_and_report(leaktight: Call, plan_file: str, audited: Path) -> None:
    said = leaktight("audit", plan_file, "--workers", "1", "--out", str(audited))
    assert said.code == 0
    assert said.err.startswith("Small: 4 cells: ")
    for text in (
        "Numbers (batches of 1, before training):",
        "PSNR in dB (95 %)",
        "No defence",
        "Gaussian noise (std 0.5)",
        "analytic",
        "Verdict, images:",
        "accuracy",
    ):
        assert text in said.out
    assert f"Report: {audited / 'report.html'}\nIt shows private images; --redact leaves them out.\n" in said.out
    assert (audited / "report.html").stat().st_mode & 0o777 == 0o600
    with Store.read(audited) as store:
        assert {record.status for record in store.records()} == {Status.DONE}


def test_the_default_folder_is_named_after_the_file(leaktight: Call, plan_file: str, tmp_path: Path) -> None:
    assert leaktight("audit", plan_file, "--workers", "1", "--redact").code == 0
    assert (tmp_path / "leaktight-small" / "report-redacted.html").is_file()
    assert not (tmp_path / "leaktight-small" / "report.html").exists()


def test_failed_cells_give_an_exit_code_and_a_reason(
    leaktight: Call, plan_file: str, monkeypatch: Any, tmp_path: Path
) -> None:
    from leaktight.attacks.analytic import Analytic

    def fail(*_: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(Analytic, "run", fail)
    said = leaktight("audit", plan_file, "--workers", "1")
    assert said.code == 1
    assert "Failed:\n- 4 cells: RuntimeError: no luck (test_audit.py:" in said.out
    assert (tmp_path / "leaktight-small" / "report.html").is_file()


def test_results_made_with_another_version_are_computed_again_and_it_is_said(
    leaktight: Call, plan_file: str, monkeypatch: Any
) -> None:
    # As outside of pytest, where nobody listens to the log.
    monkeypatch.setattr(logging.root, "handlers", [])
    words = ("audit", plan_file, "--workers", "1", "--out", "out")
    assert "changed" not in leaktight(*words).err
    monkeypatch.setattr("leaktight.__version__", "99.0")
    said = leaktight(*words)
    assert said.code == 0
    assert (
        f"The version of leaktight ({__version__}, now 99.0) changed, so 4 of 4 cells are computed again." in said.err
    )


def test_an_interruption_says_how_to_go_on(leaktight: Call, plan_file: str, monkeypatch: Any) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(leaktight_module(), "run", interrupt)
    said = leaktight("audit", plan_file)
    assert said.code == 130
    assert said.err == "Interrupted: finished cells are kept; run the same command to resume.\n"


def leaktight_module() -> Any:
    return running


def test_a_locked_folder_is_one_sentence(leaktight: Call, plan_file: str, audited: Path) -> None:
    lock = sqlite3.connect(audited / "audit.lock", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    said = leaktight("audit", plan_file, "--out", str(audited), "--workers", "1")
    lock.close()
    assert said.code == 2
    assert "Another process is writing to" in said.err


def test_settings_reach_the_run(
    leaktight: Call, plan_file: str, monkeypatch: Any, audited: Path, tmp_path: Path
) -> None:
    seen: dict[str, Any] = {}

    def run(plan: Plan, folder: Path, **settings: Any) -> list[Any]:
        seen.update(settings, plan=plan, folder=folder)
        with Store.read(audited) as store:
            return store.records()

    monkeypatch.setattr(leaktight_module(), "run", run)
    monkeypatch.setattr("leaktight.report.write_report", lambda folder, redact, summary, **_: Path("there"))
    monkeypatch.setattr(
        "leaktight.findings.summary_file.write_summary", lambda folder, redact, summary, **_: Path("there")
    )
    words = (
        "--seed",
        "7",
        "--workers",
        "3",
        "--device",
        "cpu",
        "--out",
        "here",
        "--model",
        "lenet",
        "--data",
        "photos",
    )
    assert leaktight("audit", plan_file, *words).code == 0
    assert (seen["workers"], seen["device"], seen["folder"]) == (3, "cpu", Path("here"))
    assert seen["plan"].grid.seeds == (7,)
    [scenario] = seen["plan"].scenarios.values()
    assert (scenario.model.kind, scenario.data.kind) == ("lenet", "photos")
    assert leaktight("audit", "--preset", "standard").code == 0
    assert (seen["plan"], seen["folder"], seen["workers"]) == (standard(), Path("leaktight-standard"), cores())
    assert leaktight("audit").code == 0
    assert (seen["plan"], seen["folder"], seen["device"]) == (quick(), Path("leaktight-quick"), None)


OWN = """
from torch import nn

def net(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], classes))
"""


def test_an_own_network_has_a_first_answer_and_ten_minutes(
    leaktight: Call, audited: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = leaktight_module().run, dict[str, Any]()

    def run(plan: Plan, folder: Path, **settings: Any) -> list[Any]:
        if plan.scenarios["1"].rounds == 0:
            return real(plan, folder, **settings)
        seen.update(settings)
        with Store.read(audited) as store:
            return store.records()

    (tmp_path / "an_own_net.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(leaktight_module(), "run", run)
    monkeypatch.setattr("leaktight.running.time_budget.read_budget", lambda folder: None)
    monkeypatch.setattr("leaktight.report.write_report", lambda folder, redact, summary, **_: Path("there"))
    monkeypatch.setattr(
        "leaktight.findings.summary_file.write_summary", lambda folder, redact, summary, **_: Path("there")
    )
    words = ("audit", "--model", "an_own_net:net", "--data", "digits", "--device", "cpu")
    said = leaktight(*words)
    assert said.code == 0, said.err
    assert seen["budget"] == 600
    assert "It takes at most 10m" in said.err
    assert re.search(
        "First answer, in the untrained network by analytic.*: No defence: leaks. .* Searches follow.", said.err
    )
    for options, seconds in (
        (("--budget", "none"), None),
        (("--preset", "standard"), None),
        (("--budget", "1h"), 3600),
    ):
        said = leaktight(*words, *options, "--quiet")
        assert (said.code, seen["budget"]) == (0, seconds)
        assert "First answer" not in said.err


def test_the_folder_holds_a_summary_that_report_and_export_agree_with(leaktight: Call, audited: Path) -> None:
    path = audited / "summary.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = path.read_text()
    found = json.loads(written)
    assert [(one["kind"], one["defence"]["kind"], one["verdict"]) for one in found["verdicts"]] == [
        ("images", "none", "leaks"),
        ("images", "gaussian_noise", "useless"),
        ("labels", "none", "leaks"),
        ("labels", "gaussian_noise", "useless"),
    ]
    assert leaktight("export", str(audited), "--format", "summary").out == written
    path.unlink()
    assert leaktight("report", str(audited)).code == 0
    assert path.read_text() == written
    hidden = json.loads(leaktight("export", str(audited), "--format", "summary", "--redact").out)
    assert [one["verdict"] for one in hidden["verdicts"]] == ["leaks", "useless"] * 2
    assert {one["evidence"] for one in hidden["verdicts"]} == {"leaks", "unknown"}
    page = (audited / "report.html").read_text()
    assert all(f'<span class="badge">{one["verdict"]}</span>' in page for one in found["verdicts"])


def test_plans_from_words() -> None:
    [scenario] = choose_plan(None, "quick", "mine.models:net", "mine.data:load", "classifier.2").scenarios.values()
    assert (scenario.model.function, scenario.model.head) == ("mine.models:net", "classifier.2")
    assert scenario.data.function == "mine.data:load"
    with pytest.raises(InvalidValue, match="`--head` names a layer of your own model"):
        choose_plan(None, "quick", "mlp", None, "classifier.2")


def test_settings_of_an_own_model_from_words() -> None:
    words = {"batch_norm": "eval", "output": "logits", "weights": "net.safetensors"}
    [scenario] = choose_plan(None, "quick", "mine.models:net", None, **words).scenarios.values()
    assert {name: dict(scenario.model)[name] for name in words} == words
    [plain] = choose_plan(None, "quick", "mine.models:net", None, batch_norm=None).scenarios.values()
    assert plain.model.batch_norm == "train"
    with pytest.raises(InvalidValue, match=r"`--batch-norm` is a setting of your own model. Give that with `--model"):
        choose_plan(None, "quick", "resnet20", None, batch_norm="train")


@pytest.mark.parametrize("option", ["--batch-norm=eval", "--output=logits", "--weights=net.safetensors"])
def test_recorded_messages_take_no_settings_of_training(leaktight: Call, option: str) -> None:
    said = leaktight("audit", "--captured", "recorded", "--model", "mine.models:net", option)
    assert said.code == 2
    assert f"`{option.partition('=')[0]}` is a setting of a network that is trained here." in said.err


def test_cores() -> None:
    assert cores() >= 1


def test_a_summary_of_one_page_and_an_earlier_report_that_is_kept(leaktight: Call, audited: Path) -> None:
    done = leaktight("report", str(audited), "--format", "pdf")
    assert done.code == 0
    assert (audited / "summary.pdf").read_bytes().startswith(b"%PDF")
    (audited / "report.html").write_text("something else")
    assert "was kept as report-1.html" in leaktight("report", str(audited)).err
    (audited / "report.html").write_text("something else")
    forced = leaktight("report", str(audited), "--force")
    assert (forced.code, forced.err) == (0, "")
    assert not (audited / "report-2.html").exists()
