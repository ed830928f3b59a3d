from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from leaktight.core.errors import InvalidValue

Call = Callable[..., Any]
PLAN = """
[scenario]
rounds = 2
participants = 2
data = "digits"
model = {kind = "mlp", hidden = [4]}
[[defences]]
kind = "gaussian_noise"
[[defences]]
kind = "top_k"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_a_plan_is_trained_and_its_model_written(leaktight: Call, plan: Path) -> None:
    said = leaktight("train", "plan.toml", "--defence", "top_k", "--seed", "3", "--out", "trained")
    assert said.code == 0
    held = json.loads((plan / "trained" / "training.json").read_text())
    assert (held["training"]["seed"], held["training"]["defence"]["kind"], len(held["rounds"])) == (3, "top_k", 2)
    accuracy = held["utility"][0]["value"]
    assert f"Trained with top_k for 2 rounds: accuracy {accuracy:.3f}." in said.out
    assert set(load_file(plan / "trained" / "model.safetensors")) == {
        f"{part}.{what}" for part in ("body.linear1", "head") for what in ("weight", "bias")
    }


def test_a_budget_is_said_with_all_that_it_rests_on(leaktight: Call, plan: Path) -> None:
    (plan / "private.toml").write_text(PLAN.partition("[[defences]]")[0] + '[[defences]]\nkind = "dp_sgd"\n')
    said = leaktight("train", "private.toml", "--defence", "dp_sgd", "--out", "trained")
    assert said.code == 0
    held = json.loads((plan / "trained" / "training.json").read_text())
    [budget] = held["privacy_budget"]
    assert f"Privacy budget: {budget}." in said.out
    shown = (
        f"epsilon at most {held['notes']['dp_sgd.epsilon']:.3g} at delta 1e-05 (upper bound; Poisson sampling at rate "
    )
    assert budget.startswith(shown)
    assert "privacy" not in leaktight("train", "plan.toml", "--defence", "top_k", "--out", "other").out.lower()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            (),
            "A training run takes one defence, and the plan has several. Choose by `--defence`: `none`, `gaussian_noise`, "
            "`top_k`.",
        ),
        (
            ("--defence", "none", "--deploy", "keys"),
            "`--deploy keys` is for Flower. Add `--backend flower`, or leave it out.",
        ),
        (
            ("--defence", "none", "--trust-local-users"),
            "`--trust-local-users` is for Flower. Add `--backend flower`, or leave it out.",
        ),
        (("--defence", "none", "--workers", "0"), "The number of workers must be at least 1. Got 0 instead."),
        (
            ("--defence", "none", "--workers", "2"),
            "`--workers 2` is for Flower's simulation. Leave it out, or use `--backend flower` without `--deploy`.",
        ),
    ],
)
def test_what_makes_no_sense_is_one_sentence(leaktight: Call, plan: Path, words: tuple[str, ...], message: str) -> None:
    said = leaktight("train", "plan.toml", *words)
    assert (said.code, said.err.strip()) == (2, f"Error: {message}")


def test_without_flower_one_sentence_says_what_to_install(
    leaktight: Call, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("leaktight.flower")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flwr", None)
    said = leaktight("train", "plan.toml", "--defence", "none", "--backend", "flower")
    assert said.code == 2
    assert (
        "The backend `flower` needs the package flwr, which is not installed here. Install `leaktight[flower]`"
        in said.err
    )


def test_class_keys_are_written_beside_the_model_and_make_it_usable(leaktight: Call, plan: Path) -> None:
    with (plan / "plan.toml").open("a") as file:
        file.write('[[defences]]\nkind = "class_keys"\ndimensions = 64\n')
    said = leaktight("train", "plan.toml", "--defence", "class_keys", "--out", "trained")
    assert said.code == 0
    assert "Revealed at the end: trained/reveals.safetensors (`leaktight.learning.read_trained` puts it" in said.out
    # Each of two participants owns all ten classes or fewer, and its keys have 64 numbers.
    revealed = load_file(plan / "trained" / "reveals.safetensors")
    assert {name.split("/")[0] for name in revealed} == {"client-0", "client-1"}
    assert {tuple(key.shape) for key in revealed.values()} == {(64,)}
    assert "reveals" not in leaktight("train", "plan.toml", "--defence", "top_k", "--out", "trained").out
    assert not (plan / "trained" / "reveals.safetensors").exists()


def test_who_may_reach_flower_is_passed_on(leaktight: Call, plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("flwr")
    told = []

    def train(training: object, out: Path, *words: Any, trust: bool | None = None) -> None:
        told.append(words[-1] if trust is None else trust)
        raise InvalidValue("enough")

    monkeypatch.setattr("leaktight.flower.simulation.simulate", train)
    monkeypatch.setattr("leaktight.flower.deployment.deploy", train)
    words = ("train", "plan.toml", "--defence", "none", "--backend", "flower")
    for more in ((), ("--trust-local-users",), ("--deploy", "keys"), ("--deploy", "keys", "--trust-local-users")):
        assert leaktight(*words, *more).code == 2
    assert told == [False, True, False, True]


def test_one_command_makes_certificates_and_keys_for_a_deployment(leaktight: Call, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    said = leaktight("certificates", "keys", "--name", "superlink", "--node", "client-0", "--node", "client-1")
    assert said.code == 0
    assert "Wrote keys/nodes/client-1: give it to client-1." in said.out
    assert (tmp_path / "keys" / "superlink" / "certificate.pem").is_file()
    for name in ("client-0", "client-1"):
        assert (tmp_path / "keys" / "nodes" / name).stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "keys" / "nodes" / f"{name}.pub").read_text().startswith("ecdsa-sha2-nistp384 ")
