"""With every search cut to one iteration, nothing on images looks better than before, and labels and epsilons stay as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.attacks import preset
from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import scale, whole_suite
from leaktight.core.attack import Attack
from leaktight.core.defence import Defence
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.findings.summary import summarise
from leaktight.findings.verdict import Judgement
from leaktight.learning import Federated
from leaktight.metrics import standard
from leaktight.models import MLP, LeNet
from leaktight.models.network import Network
from leaktight.plans.plan import Grid, Plan
from leaktight.running import run

pytestmark = pytest.mark.long

KNOWS = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.LOCAL_STEPS}))
DEFENCES = (GaussianNoise(std=0.1), TopK(share=0.01))
PRIVATE = DPSGD(multiplier=2.0)
Found = dict[tuple[str, str], Judgement]


def judged(folder: Path, model: Network, attacks: dict[str, Attack], *more: Defence, size: int = 8) -> Found:
    """Audit two defences and others, and return what was found by kind of leak and defence."""
    plan = Plan(
        scenarios={"1": Federated(data=Digits(size=size), model=model, rounds=2, participants=2)},
        defences=(*DEFENCES, *more),
        probes={name: Attempt(attack=attack, threat=KNOWS, metrics=standard()) for name, attack in attacks.items()},
        grid=Grid(victims=8),
    )
    return {(one.kind.kind, str(one.defence)): one for one in summarise(run(plan, folder)).judgements}


def searches(iterations: int) -> dict[str, Attack]:
    """Return searches of which one iteration is one evaluation, from a start that knows nothing of the message."""
    names = ("ats2021-adam-cosine", "ats2021-adam-l2")
    return {name: preset(name, iterations=iterations) for name in names}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Found, Found]:
    usual, cut = (
        judged(tmp_path_factory.mktemp("searches"), MLP(), searches(iterations), PRIVATE) for iterations in (150, 1)
    )
    return usual, cut


def test_what_rests_on_searches_alone_is_unknown(both: tuple[Found, Found]) -> None:
    usual, cut = both
    assert usual["images", "none"].verdict == "leaks"
    images = {defence: one for (kind, defence), one in cut.items() if kind == "images"}
    assert {images[name].verdict for name in ("none", *map(str, DEFENCES))} == {"unknown"}
    assert not any(images[name].is_good for name in ("none", *map(str, DEFENCES)))


def test_labels_and_epsilons_stay_as_they_were(both: tuple[Found, Found]) -> None:
    usual, cut = both
    assert {place: one.verdict for place, one in cut.items() if place[0] == "labels"} == {
        place: one.verdict for place, one in usual.items() if place[0] == "labels"
    }
    private = "images", str(PRIVATE)
    assert cut[private].bound == usual[private].bound is not None
    assert cut[private].verdict == usual[private].verdict == "bounded"


@pytest.mark.long
def test_a_suite_of_short_searches_calls_nothing_unbroken(tmp_path: Path) -> None:
    found = judged(tmp_path, LeNet(), {"strongest": Strongest(members=scale(whole_suite(), 1e-9))}, size=16)
    assert {found["images", str(defence)].verdict for defence in DEFENCES} == {"unknown"}
