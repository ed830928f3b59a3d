"""An audit of captures: planned from what is there, graded if the owner helps, and honest about what keeps attacks from working."""

import dataclasses
from pathlib import Path

import pytest
import torch

from leaktight.attacks.presets import preset
from leaktight.attacks.replay import Replay
from leaktight.attacks.suite import fitting_attacks, whole_suite
from leaktight.captures import read_captures
from leaktight.captures.capture import pack_tensors
from leaktight.channels import deviations
from leaktight.cli.main import main
from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.core.probe import DIVERGED, OBJECTIVE
from leaktight.core.record import Cell, Record, Status
from leaktight.core.scenario import Observation
from leaktight.findings.flags import raise_flags
from leaktight.findings.headline import headline_of
from leaktight.findings.summary import summarise
from leaktight.models import Factory
from leaktight.plans import Plan, capture_plan
from leaktight.plans.captured import cheapest
from leaktight.report import write_report
from leaktight.running import run

SEEN = ("--captured", "seen", "--model", "networks:linear")


def brief(plan: Plan) -> Plan:
    """Return the plan with an attack by algebra, and one search of a few steps, in place of the suite."""
    suite = plan.probes["strongest"]
    attacks = {"analytic": preset("analytic"), "idlg2020*": preset("idlg2020", iterations=3)}
    others = {name: probe for name, probe in plan.probes.items() if name != "strongest"}
    probes = {name: suite.model_copy(update={"attack": attack}) for name, attack in attacks.items()}
    return plan.model_copy(update={"probes": {**others, **probes}})


def audited(folder: Path, truth: bool = False, **settings) -> list[Record]:
    plan = capture_plan(folder, truth=folder.parent / "truth.safetensors" if truth else None, **settings)
    return run(brief(plan), folder.parent / f"audit-{truth}")


def noted(folder: Path) -> list[Record]:
    """Return what is noted of captures, without an attack on them."""
    cells = [cell for cell in capture_plan(folder).cells() if cell.purpose == "measure"]
    runs = [
        cell.scenario.observe(cell.scenario.train(cell.defence, 0), cell.defence, observation_of(cell))
        for cell in cells
    ]
    return [Record(cell=cell, status=Status.DONE, notes=dict(run.notes)) for cell, run in zip(cells, runs, strict=True)]


def observation_of(cell: Cell) -> Observation:
    return Observation(cell.stage, cell.batch_size, cell.victims, cell.seed)


def flags(records) -> dict[str, str]:
    return {flag.name: flag.sentence for flag in raise_flags(records)}


def test_a_plan_follows_from_what_was_captured(recorded):
    folder = recorded(messages=3)
    plan = capture_plan(folder)
    assert plan.grid.batch_sizes == (1,)
    assert plan.grid.victims == 3
    assert list(plan.probes) == ["analytic", "strongest"]
    assert [cell.purpose for cell in plan.cells()].count("null") == 2
    assert {cell.defence.kind for cell in plan.cells() if cell.purpose != "control"} == {"as_captured"}
    graded = capture_plan(folder, truth=folder.parent / "truth.safetensors")
    assert list(graded.probes) == ["label_reading", "analytic", "strongest"]
    assert {cell.defence.kind for cell in graded.cells()} == {"none", "as_captured"}
    assert Plan.model_validate(graded.to_dict()) == graded
    assert capture_plan(folder, thorough=True).probes["strongest"].attack.member("posterior").iterations == 1200


def test_entries_that_were_left_out_are_bounded_and_not_matched(recorded):
    """Half of the entries are zero: taken for zeros the true example is impossible, taken for left out it fits to rounding."""
    folder = recorded(change=lambda tensor: torch.where(tensor.abs() > tensor.abs().median(), tensor, 0))
    plan = capture_plan(folder, truth=folder.parent / "truth.safetensors")
    suite = plan.probes["strongest"]
    suite.attack.member("posterior").check(suite.threat.knows)
    [cell] = [
        c for c in plan.cells() if c.purpose == "measure" and c.defence.kind == "as_captured" and c.label == "strongest"
    ]
    run = cell.scenario.observe(cell.scenario.train(cell.defence, 0), cell.defence, observation_of(cell))
    view = suite.threat.view(run)
    [exchange, *_] = view.exchanges()
    raw = run.truths[exchange.sent.key].raw
    targets = torch.nn.functional.one_hot(raw.labels, view.task.classes).float()
    replay = dataclasses.replace(Replay.of(view.task, exchange.sent), channel=view.defence.channel(view.task))
    belief = replay(exchange.parameters, raw.inputs, targets)
    assert max(float(one.max()) for one in deviations(belief, exchange.sent.tensors).values()) < 1e-6
    plain = deviations(dataclasses.replace(belief, masks={}), exchange.sent.tensors)
    assert max(float(one.max()) for one in plain.values()) > 1e-3
    assert not view.defence.states_channel


def test_more_numbers_than_memory_can_hold_are_not_searched_for(recorded):
    folder = recorded()

    def fit(examples):
        for path in folder.glob("*.capture.json"):
            lines = path.read_text().splitlines()
            path.write_text("\n".join(f' "examples": {examples},' if '"examples"' in line else line for line in lines))
        plan = capture_plan(folder)
        cell = next(cell for cell in plan.cells() if cell.purpose == "measure")
        run = cell.scenario.observe(cell.scenario.train(cell.defence, 0), cell.defence, observation_of(cell))
        return fitting_attacks(whole_suite(), plan.probes["strongest"].threat.view(run))

    chosen, untried = fit(40_000)
    assert list(chosen) == ["analytic", "scale-free"]
    assert "too many for a search" in untried["posterior"]
    assert list(fit(400_000)[0]) == ["analytic"]


def test_buffers_that_change_make_a_scenario_of_each_round(recorded):
    assert list(capture_plan(recorded("normed", messages=2, examples=4)).scenarios) == ["round 0", "round 1"]


def test_a_model_that_nobody_names_is_asked_for(recorded):
    folder = recorded()
    for path in folder.glob("*.capture.json"):
        path.write_text(path.read_text().replace("networks:linear", ""))
    with pytest.raises(InvalidValue, match=r"Give it with `--model package.module:function`"):
        capture_plan(folder)
    assert capture_plan(folder, Factory(function="networks:linear")).grid.victims == 2


def test_without_the_truth_only_the_attackers_objective_is_known(recorded):
    folder = recorded()
    records = audited(folder)
    done = [record for record in records if record.cell.purpose == "measure" and record.reading(OBJECTIVE)]
    assert {record.status for record in records} == {Status.DONE}
    assert done
    assert not any(record.reading("psnr") for record in records if record.cell.purpose != "control")
    raised = flags(records)
    assert "no reconstruction or label is graded" in raised["not_graded"]
    said = headline_of(summarise(records))
    assert "on noise of the same size" in said
    assert summarise(records).verdict[0].startswith("As captured: unknown. The attack ")
    page = write_report(folder.parent / "audit-False").read_text()
    assert page.count("data:image/png") == 2
    assert "so that no picture below is graded" in page
    redacted = write_report(folder.parent / "audit-False", redact=True).read_text()
    assert "data:image/png" not in redacted
    assert str(folder) not in redacted


def test_with_the_truth_a_leak_is_graded_and_nothing_is_diagnosed(recorded):
    records = audited(recorded(), truth=True)
    psnr = {
        (record.cell.defence.kind, record.cell.label): record.reading("psnr", "raw").value
        for record in records
        if record.cell.purpose == "measure" and record.reading("psnr")
    }
    assert psnr["none", "analytic"] > 60
    assert psnr["as_captured", "analytic"] > 60
    raised = flags(records)
    assert "Chance levels are those of grey and noise" in raised["blank_chance"]
    assert not raised.keys() & {"not_graded", "captured_not_broken", "vanishing_gradients", "label_counts_unknown"}


def test_a_defence_that_works_is_named(recorded):
    folder = recorded(
        change=lambda tensor: tensor + 3 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(1))
    )
    raised = flags(audited(folder, truth=True))
    assert raised["captured_not_broken"].startswith("What the senders did was not broken by analytic")


def test_vanishing_gradients_are_named(recorded):
    raised = flags(noted(recorded(change=lambda tensor: tensor * 1e-8)))
    assert raised["vanishing_gradients"].startswith("2 of 2 captured messages are faint")


def test_train_mode_batch_norm_and_dropout_are_named(recorded, forget_training):
    folder = recorded("normed", messages=1, examples=4)
    # A gradient alone does not say in which mode batch norm was.
    forget_training(folder)
    raised = flags(noted(folder))
    assert raised["batch_norm_in_training"].startswith("Batch norm (layers: 1) normalised by the private batch")
    assert raised["dropout_in_training"].startswith("Dropout (layers: 1) drew at random")
    assert "labels were only estimated" in raised["label_counts_unknown"]


def test_unknown_steps_are_named(recorded):
    raised = flags(noted(recorded(steps=2, batch_size=1)))
    assert raised["local_steps_unknown"].startswith(
        "How many local steps of what size made 2 of 2 captured updates is unknown"
    )


def test_what_was_assumed_is_said_with_how_to_state_it(recorded):
    raised = flags(noted(recorded(steps=2, batch_size=1, local_steps=2, learning_rate=0.1, optimiser="sgd")))
    assert raised["settings_assumed"] == (
        "Nobody recorded how the captured messages were made, so attacks assumed no momentum, no weight decay and inputs "
        "that are not normalised. If that is wrong, an attack that fails shows nothing. State what is true, such as "
        "`--known momentum=0.0 --known weight_decay=0.0 --known mean=none --known std=none`."
    )
    assert "optimiser_not_replayed" not in raised


def test_an_optimiser_that_attacks_do_not_replay_is_named(recorded):
    raised = flags(noted(recorded(steps=2, batch_size=1, local_steps=2, learning_rate=0.1, optimiser="adamw")))
    assert raised["optimiser_not_replayed"].startswith("The steps of 2 of 2 captured updates were made by an optimiser")


def test_the_cheapest_attacks_are_a_part_of_the_plan(recorded):
    folder = recorded()
    plan = capture_plan(folder, truth=folder.parent / "truth.safetensors")
    first = cheapest(plan)
    assert list(first.probes) == ["label_reading", "analytic"]
    assert {cell.key for cell in first.cells()} < {cell.key for cell in plan.cells()}
    assert cheapest(plan.model_copy(update={"probes": {"strongest": plan.probes["strongest"]}})) is None


def test_an_unknown_number_of_examples_is_named(recorded):
    folder = recorded()
    for path in folder.glob("*.capture.json"):
        path.write_text(path.read_text().replace('"examples": 1', '"examples": null'))
    assert "Nobody told how many examples are behind 2 of 2" in flags(noted(folder))["label_counts_unknown"]


def test_messages_without_a_truth_are_counted(recorded):
    [record, *_] = noted(recorded())
    assert "without_truth" not in flags([record])
    left = record.model_copy(update={"notes": {**record.notes, "captures.left_out": 3.0}})
    assert flags([left])["without_truth"].startswith("3 captured messages were left out")


def test_a_search_that_diverged_is_named(recorded):
    [*_, record] = noted(recorded())
    lost = record.model_copy(update={"readings": (Reading(name=DIVERGED, value=1, n=2),)})
    assert flags([lost])["diverged"].startswith("1 of 2 searches of strongest diverged")


def test_the_command_line_audits_captures(recorded, monkeypatch, capsys):
    folder = recorded(messages=1)
    monkeypatch.chdir(folder.parent)
    monkeypatch.setattr(
        "leaktight.cli.captured.capture_plan", lambda *words, **more: brief(capture_plan(*words, **more))
    )
    words = ["audit", *SEEN, "--truth", "truth.safetensors", "--workers", "1", "--out", "out"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "As captured" in said.out
    assert "Report: out/report.html" in said.out
    assert "First answer, by label_reading and analytic: As captured: leaks." in said.err
    assert said.err.index("Audit of captured messages, the cheapest attacks first: ") < said.err.index("First answer")


def test_without_the_truth_there_may_be_nothing_to_say_first(recorded, monkeypatch, capsys):
    monkeypatch.chdir(recorded(messages=1).parent)
    monkeypatch.setattr(
        "leaktight.cli.captured.capture_plan", lambda *words, **more: brief(capture_plan(*words, **more))
    )
    assert main(["audit", *SEEN, "--workers", "1", "--out", "out"]) == 0
    said = capsys.readouterr()
    assert "First answer, by analytic" not in said.err
    assert "Report: out/report.html" in said.out


def test_what_is_known_is_stated_on_the_command_line(recorded, monkeypatch, capsys):
    monkeypatch.chdir(recorded(messages=1, steps=1, batch_size=1).parent)
    monkeypatch.setattr(
        "leaktight.cli.captured.capture_plan", lambda *words, **more: brief(capture_plan(*words, **more))
    )
    known = ["local_steps=1", "learning-rate=0.1", "optimiser=sgd", "weight_decay=0", "mean=none", "momentum=0"]
    words = [word for each in known for word in ("--known", each)]
    assert main(["audit", *SEEN, "--truth", "truth.safetensors", "--workers", "1", *words]) == 0
    said = capsys.readouterr().out
    assert "attacks assumed" not in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--truth", "truth.safetensors"], "Name their folder with `--captured`"),
        (["--captured", "none"], "There is no folder `none` with captures"),
        (["--captured", "seen", "--model", "mlp"], "must be given as `package.module:function`"),
        (["--captured", "seen", "--shape", "1,a"], "must be positive whole numbers between commas"),
        (["--captured", "seen"], "Got none instead; they name `networks:linear`, so give that if you trust its code."),
        (["--captured", "seen", "--head", "fc"], "Give that with `--model"),
        (["plan.toml", "--captured", "seen"], "or a plan, not both"),
        ([*SEEN, "--truth", "none.safetensors"], "cannot be read: no such file"),
        ([*SEEN, "--head", "9"], "no linear layer named `9`"),
        (["--known", "momentum=0.9"], "Name their folder with `--captured`"),
        ([*SEEN, "--known", "momentum"], "must be given as `NAME=VALUE`"),
        ([*SEEN, "--known", "momentun=0.9"], "Did you mean `momentum`?"),
        ([*SEEN, "--known", "momentum=much"], "The `momentum` of Known must be"),
        ([*SEEN, "--known", "examples=7"], "Got `examples` 7 where 1 was recorded"),
    ],
)
def test_words_that_do_not_fit_are_one_sentence(recorded, monkeypatch, capsys, words, why):
    monkeypatch.chdir(recorded(messages=1).parent)
    assert main(["audit", *words]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert "Traceback" not in said


def test_a_message_without_a_number_of_the_model_is_named(recorded, monkeypatch, capsys):
    folder = recorded(messages=1)
    monkeypatch.chdir(folder.parent)
    path = folder / read_captures(folder)[0].manifest.tensors
    path.write_bytes(pack_tensors({"1.weight": torch.ones(8, 16, dtype=torch.int64)}))
    assert main(["audit", *SEEN, "--workers", "1"]) == 2
    assert "holds no tensor of the model's parameters" in capsys.readouterr().err


def test_a_damaged_capture_is_named_before_the_audit_starts(recorded, monkeypatch, capsys):
    folder = recorded()
    monkeypatch.chdir(folder.parent)
    path = folder / read_captures(folder)[1].manifest.tensors
    path.write_bytes(path.read_bytes()[:-3])
    assert main(["audit", *SEEN, "--workers", "1"]) == 2
    assert f"`{path.name}` must hold as many bytes as its header says" in capsys.readouterr().err
