from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.defences import GaussianNoise, TopK
from leaktight.plans.training_plan import read_training

SCENARIO = '[scenario]\nrounds = 2\n[scenario.data]\nkind = "digits"\n[scenario.model]\nkind = "mlp"\n'
ONE = '[[defences]]\nkind = "top_k"\n'
NOISES = '[[defences]]\nkind = "gaussian_noise"\nstd = [0.1, 0.2]\n'


@pytest.fixture
def plan(tmp_path: Path):
    def write(*parts: str) -> Path:
        path = tmp_path / "plan.toml"
        path.write_text("".join(parts))
        return path

    return write


def test_the_only_defence_or_none_is_taken(plan) -> None:
    assert read_training(plan(SCENARIO)).defence == Undefended()
    found = read_training(plan(SCENARIO, ONE), seed=7, device="cpu")
    assert (found.defence, found.seed, found.scenario.rounds) == (TopK(), 7, 2)
    assert read_training(plan(SCENARIO, ONE), "none").defence == Undefended()


def test_a_plan_with_attacks_and_seeds_is_as_good(plan) -> None:
    assert read_training(plan(SCENARIO, '[[attacks]]\nkind = "analytic"\n[grid]\nseeds = [4, 5]\n')).seed == 4


def test_of_several_one_is_named(plan) -> None:
    path = plan(SCENARIO, ONE, NOISES)
    assert read_training(path, "top_k").defence == TopK()
    assert read_training(path, "gaussian_noise(std=0.2)").defence == GaussianNoise(std=0.2)


@pytest.mark.parametrize(
    ("parts", "wanted", "message"),
    [
        (
            (SCENARIO, ONE, NOISES),
            None,
            r"takes one defence, and the plan has several. Choose by `--defence`: `none`, `top_k`",
        ),
        ((SCENARIO, ONE, NOISES), "gaussian_noise", r"takes one defence, and the plan has several"),
        ((SCENARIO, ONE), "topk", r"The plan has no defence `topk`. Did you mean `top_k`\?"),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(plan, parts, wanted, message) -> None:
    with pytest.raises(InvalidValue, match=message):
        read_training(plan(*parts), wanted)


def test_one_federated_scenario_is_needed(plan) -> None:
    one = '[[scenarios]]\nrounds = {}\ndata = {{kind = "digits"}}\nmodel = {{kind = "mlp"}}\n'
    with pytest.raises(InvalidValue, match=r"takes one scenario.*has 2"):
        read_training(plan(one.format(1), one.format(2)))
    alone = '[scenario]\nkind = "standalone"\n[scenario.federation.data]\nkind = "digits"\n[scenario.federation.model]\nkind = "mlp"\n'
    with pytest.raises(InvalidValue, match=r"takes a federated scenario. Got `standalone` instead"):
        read_training(plan(alone))
