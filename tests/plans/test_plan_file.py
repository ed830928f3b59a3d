from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.attacks.presets import preset
from leaktight.core.attack import Attack
from leaktight.core.defence import Chain, Defence
from leaktight.core.errors import InvalidValue
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import Transformation
from leaktight.metrics import standard
from leaktight.plans.build import Faults, build_value, sweep
from leaktight.plans.plan_file import parse_plan, read_plan
from leaktight.transforms import Policy

WHOLE = """
title = "Ours"
[scenario]
participants = 4
rounds = 30
[scenario.data]
kind = "digits"
[scenario.model]
kind = "dlnet"
[scenario.protocol]
kind = "fedavg"
local_steps = 2
optimiser = { kind = "sgd", learning_rate = 0.5 }
[[defences]]
kind = "gaussian_noise"
std = [0.001, 0.02]
[[defences]]
kind = "chain"
links = [{ kind = "top_k", share = [0.1, 0.5] }, { kind = "gaussian_noise", std = 0.1 }]
[[attacks]]
preset = "dlg2019"
iterations = 100
[[attacks]]
preset = "geiping2020"
[[attacks]]
kind = "analytic"
name = "by hand"
[threat]
seat = "wire"
knows = ["labels", "local_steps"]
[grid]
batch_sizes = [1, 4]
stages = ["initial", "early", "end"]
seeds = [3, 4]
victims = 2
"""


def faults(document: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidValue) as caught:
        parse_plan(document)
    first, *rest = str(caught.value).splitlines()
    assert first == f"The plan has {len(rest)} fault{'s' if len(rest) > 1 else ''}:"
    return [line.strip() for line in rest]


def small(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {"scenario": {"data": "digits", "model": "mlp"}, "attacks": ["analytic"]}
    return {**document, **changes}


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(WHOLE)
    plan = read_plan(path)
    assert plan.title == "Ours"
    [scenario] = plan.scenarios.values()
    assert (scenario.kind, scenario.data.kind, scenario.model.kind) == ("federated", "digits", "dlnet")
    assert (scenario.rounds, scenario.protocol.local_steps) == (30, 2)
    assert scenario.protocol.optimiser.learning_rate == 0.5
    assert [str(defence) for defence in plan.defences] == [
        "gaussian_noise(std=0.001)",
        "gaussian_noise(std=0.02)",
        "top_k + gaussian_noise(std=0.1)",
        "top_k(share=0.5) + gaussian_noise(std=0.1)",
    ]
    assert list(plan.probes) == ["dlg2019, changed", "geiping2020", "by hand"]
    attempt = plan.probes["dlg2019, changed"]
    assert attempt.attack == preset("dlg2019", iterations=100)
    assert (attempt.threat.seat, attempt.threat.knows) == ("wire", frozenset({Knows.LABELS, Knows.LOCAL_STEPS}))
    assert attempt.metrics == standard()
    assert plan.grid.model_dump() == {
        "batch_sizes": (1, 4),
        "stages": ("initial", "early", "end"),
        "seeds": (3, 4),
        "victims": 2,
    }


def test_words_stand_for_tables_without_settings() -> None:
    plan = parse_plan(
        small(defences=["top_k", {"kind": "pruning"}], metrics=["psnr"], scenario={"data": "digits", "model": "mlp"})
    )
    assert [defence.kind for defence in plan.defences] == ["top_k", "pruning"]
    assert [metric.kind for metric in plan.probes["analytic"].metrics] == ["psnr", "search_gap"]


def test_words_for_data_and_models_mean_what_they_mean_on_the_command_line() -> None:
    [scenario] = parse_plan(small(scenario={"data": "mine.data:load", "model": "mine.models:small"})).scenarios.values()
    assert (scenario.data.kind, scenario.data.function) == ("factory", "mine.data:load")
    assert (scenario.model.kind, scenario.model.function) == ("factory", "mine.models:small")
    found = faults(small(scenario={"data": "digit", "model": "mpl"}))
    assert found[0].startswith(
        "scenario.data: There is no data named `digit`, and no such file or folder. Did you mean `digits`?"
    )
    assert found[1].startswith("scenario.model: There is no model named `mpl`. Did you mean `mlp`?")


def test_a_word_is_a_preset_or_a_kind_of_attack() -> None:
    plan = parse_plan(small(attacks=["dlg2019", "analytic", "gradient_matching"]))
    assert list(plan.probes) == ["dlg2019", "analytic", "gradient_matching"]
    assert plan.probes["dlg2019"].attack == preset("dlg2019")
    assert plan.probes["gradient_matching"].attack == build_value(Attack, "gradient_matching", "", Faults())
    assert faults(small(attacks=["dlg2091", "analytc"])) == [
        "attacks[0]: There is no preset or kind named `dlg2091`. Did you mean `dlg2019`?",
        "attacks[1]: There is no preset or kind named `analytc`. Did you mean `analytic`?",
    ]


def test_an_attack_may_know_more_than_the_others() -> None:
    document = small(
        threat={"seat": "wire", "knows": ["local_steps"]},
        attacks=["analytic", {"preset": "dlg2019", "threat": {"knows": ["labels", "defence"]}}],
    )
    plan = parse_plan(document)
    assert plan.probes["analytic"].threat == ThreatModel(seat="wire")
    # Of the threat model nothing belongs to the attack: it stays the preset, without a star.
    assert plan.probes["dlg2019"].threat == ThreatModel(seat="wire", knows=frozenset({Knows.LABELS, Knows.DEFENCE}))
    assert plan.probes["dlg2019"].attack == preset("dlg2019")
    [fault] = faults(small(attacks=[{"preset": "dlg2019", "threat": {"knows": ["everything"]}}]))
    assert fault.startswith("attacks[0].threat: The `knows.0` of ThreatModel must be one of")
    assert faults(small(attacks=[{"kind": "analytic", "threat": "server"}])) == [
        "attacks[0].threat: It must be a table of settings. Got 'server' instead."
    ]


def test_several_scenarios_by_name_or_number() -> None:
    one, two = {"data": "digits", "model": "mlp"}, {"data": "digits", "model": "mlp", "rounds": 5, "name": "short"}
    assert list(parse_plan(small()).scenarios) == ["1"]
    document = small(scenarios=[one, two])
    del document["scenario"]
    plan = parse_plan(document)
    assert {name: scenario.rounds for name, scenario in plan.scenarios.items()} == {"1": 100, "short": 5}
    assert faults(small(scenarios=[one])) == ["scenarios: There is a `[scenario]` too. Give one or the other."]
    for scenarios, sentence in (
        ([one, {**two, "name": "1"}], "scenarios[1]: There is another `1`. Give one of them another `name`."),
        ([one, {**one, "round": 3}], "scenarios[1]: federated has no setting `round`. Did you mean `rounds`?"),
        (one, "scenarios: It must be a list: write `[[scenarios]]`, not `[scenarios]`."),
    ):
        assert faults({**document, "scenarios": scenarios}) == [sentence]
    with pytest.raises(
        InvalidValue, match=r"must differ from each other. Got the same settings as `1` and as `2` instead."
    ):
        parse_plan({**document, "scenarios": [one, one]})


def test_all_faults_are_shown_at_once_each_with_its_place() -> None:
    found = faults(
        {
            "titel": "x",
            "scenario": {
                "participants": 0,
                "round": 3,
                "data": {"kind": "digit"},
                "model": {"kind": "dlnet", "colour": 1},
                "protocol": {"kind": "fedavg", "optimiser": {"kind": "sgd", "learning_rate": -1}},
            },
            "defences": [
                {"kind": "gaussian_noise", "std": [0.1, -0.1]},
                {"kind": "gausian_noise"},
                {"kind": "chain", "links": ["top_k", {"kind": "top_k", "share": 2}]},
                {"std": 1},
                3,
            ],
            "attacks": [
                {"preset": "dlg2091"},
                {"preset": "dlg2019", "iteration": 3},
                {"kind": "gradient_matching", "restarts": 0},
            ],
            "threat": {"seat": "server", "knows": ["everything"]},
            "grid": {"victims": 0, "batch_sizes": [0]},
            "metrics": [{"kind": "psnrr"}],
        }
    )
    expected = [
        "There is no section `titel`. Did you mean `title`?",
        "scenario.data: There is no data named `digit`. Did you mean `digits`?",
        "scenario.model: dlnet has no setting `colour`.",
        "scenario.protocol.optimiser: The `learning_rate` of sgd must be",
        "scenario: The `participants` of federated must be at least 1. Got 0 instead.",
        "scenario: federated has no setting `round`. Did you mean `rounds`?",
        "threat: The `knows.0` of ThreatModel must be one of",
        "metrics[0]: There is no metric named `psnrr`. Did you mean `psnr`?",
        "attacks[0]: There is no preset named `dlg2091`. Did you mean `dlg2019`?",
        "attacks[1]: gradient_matching has no setting `iteration`. Did you mean `iterations`?",
        "attacks[2]: The `restarts` of gradient_matching must be at least 1. Got 0 instead.",
        "defences[0]: The `std` of gaussian_noise must be at least 0",
        "defences[1]: There is no defence named `gausian_noise`. Did you mean `gaussian_noise`?",
        "defences[2].links[1]: The `share` of top_k must be at most 1",
        "defences[3]: A defence needs a `kind`.",
        "defences[4]: It must be a table of settings. Got 3 instead.",
        "grid: The `victims` of Grid must be at least 1. Got 0 instead.",
        "grid: The `batch_sizes` of Grid must be whole numbers of at least 1. Got 0 instead.",
    ]
    for sentence in expected:
        assert any(line.startswith(sentence) for line in found), sentence
    assert len(found) == len(expected), found


def test_what_is_missing_is_said() -> None:
    assert faults({}) == [
        "scenario: It is missing. Add `[scenario.data]` and `[scenario.model]`, each with a `kind`.",
        'attacks: There is none. Add one, as in `[[attacks]]` with `preset = "dlg2019"`.',
    ]
    assert faults({"scenario": {"model": "mlp"}, "attacks": ["analytic"]}) == [
        "scenario: The `data` of federated is missing. Add it."
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"defences": {"kind": "top_k"}}, "defences: It must be a list: write `[[defences]]`, not `[defences]`."),
        ({"attacks": ["analytic", "analytic"]}, "attacks[1]: There is another `analytic`. Give one of them a `name`."),
        ({"attacks": [7]}, "attacks[0]: It must be a table of settings. Got 7 instead."),
        ({"scenario": 7}, "scenario: It must be a table of settings. Got 7 instead."),
        ({"scenario": "splitt"}, "scenario: There is no scenario named `splitt`."),
        ({"title": 7}, "title: It must be a text. Got 7 instead."),
        ({"grid": 7}, "grid: It must be a table of settings. Got 7 instead."),
        (
            {"defences": [{"kind": "gaussian_noise", "std": float("nan")}]},
            "defences[0]: The `std` of gaussian_noise must be a finite",
        ),
        (
            {"defences": [{"kind": "gaussian_noise", "std": []}]},
            "defences[0]: The `std` of gaussian_noise must be a valid number",
        ),
        (
            {"defences": [{"kind": "top_k", "noise": [0, 1]}]},
            "defences[0]: The `noise` of top_k must be a valid number",
        ),
    ],
)
def test_single_faults(changes: dict[str, Any], sentence: str) -> None:
    [found] = faults(small(**changes))
    assert found.startswith(sentence)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing, broken, binary = (tmp_path / name for name in ("missing.toml", "broken.toml", "binary.toml"))
    with pytest.raises(
        InvalidValue, match=r"There is no file `.*missing.toml`. Write one with `leaktight init .*missing.toml`."
    ):
        read_plan(missing)
    broken.write_text("title = 'x'\n[grid\n")
    with pytest.raises(InvalidValue, match=r"is not valid TOML: .*\(at line 2, column 6\)"):
        read_plan(broken)
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidValue, match="is not text in UTF-8"):
        read_plan(binary)
    with pytest.raises(InvalidValue, match="cannot be read: is a directory"):
        read_plan(tmp_path)


def test_a_sweep_reaches_into_chains() -> None:
    link = {"kind": "gaussian_noise", "std": [1, 2]}
    tables = sweep({"kind": "chain", "links": [link, link]})
    assert [[inner["std"] for inner in table["links"]] for table in tables] == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert sweep({"kind": "unknown", "std": [1, 2]}) == [{"kind": "unknown", "std": [1, 2]}]
    assert sweep("none") == ["none"]


def test_a_policy_is_written_as_a_text() -> None:
    faults = Faults()
    found = build_value(Defence, {"kind": "transformation", "policy": "3-1-7"}, "defences[0]", faults)
    assert found == Transformation(policy=Policy.of("3-1-7"))
    assert build_value(Defence, {"kind": "transformation", "policy": "3-1-77"}, "defences[0]", faults) is None
    assert "indices in 0..49. Got 77 instead" in faults.sentences[0]


def test_made_takes_apart_what_is_nested() -> None:
    noted = Faults()
    chain = build_value(Defence, {"kind": "chain", "links": [{"kind": "top_k", "share": 0.5}]}, "here", noted)
    assert isinstance(chain, Chain)
    assert chain.links[0].share == 0.5
    assert noted.sentences == []
    noted.check("Nothing")


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.floats(-1, 1)
    | st.sampled_from(["digits", "mlp", "top_k", "analytic", "x", ""])
)
keys = st.sampled_from(
    ["kind", "preset", "data", "model", "std", "links", "name", "seeds", "victims", "knows", "threat", "protocol"]
)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
sections = st.sampled_from(
    ["title", "scenario", "scenarios", "defences", "attacks", "probes", "metrics", "threat", "grid", "else"]
)


@given(st.dictionaries(sections, documents, max_size=6))
@settings(deadline=None, max_examples=150)
def test_any_document_is_a_plan_or_an_error_with_sentences(document: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidValue):
        parse_plan(document)
