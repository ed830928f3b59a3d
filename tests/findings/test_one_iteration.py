"""With every search of the suite cut to one iteration, no word on images gets better; labels and epsilons stay as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import whole_suite
from leaktight.core.attack import Attack
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.findings.summary import summarise
from leaktight.findings.verdict import Judgement
from leaktight.learning import Federated
from leaktight.metrics import standard
from leaktight.models import DLNet
from leaktight.plans.plan import Grid, Plan
from leaktight.running import run

pytestmark = pytest.mark.long
DEFENCES = (GaussianNoise(std=1.0), TopK(share=0.05), DPSGD(multiplier=6.0))
BETTER = {"refuted": 0, "leaks": 0, "reduced": 1, "unknown": 2, "not broken": 3, "bounded": 3}
"""How good a word sounds to whoever chooses a defence."""
Judgements = tuple[Judgement, ...]


def short(attack: Attack) -> Attack:
    """Return a search of one iteration; any other attack as it is."""
    once = {"iterations": 1, "restarts": 1}
    return attack.model_copy(update=once) if isinstance(attack, GradientMatching) else attack


def audit(folder: Path, attack: Strongest) -> Judgements:
    threat = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.DEFENCE}))
    plan = Plan(
        scenarios={"1": Federated(data=Digits(size=8), model=DLNet(), rounds=2, participants=2)},
        defences=DEFENCES,
        probes={"strongest": Attempt(attack=attack, threat=threat, metrics=standard())},
        grid=Grid(victims=4),
    )
    return tuple(summarise(run(plan, folder)).judgements)


def words(judgements: Judgements, kind: str) -> dict[str, str]:
    return {str(judgement.defence): judgement.verdict for judgement in judgements if judgement.kind.kind == kind}


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Judgements:
    members = {name: short(attack) for name, attack in whole_suite().items()}
    return audit(tmp_path_factory.mktemp("cut"), Strongest(members=members))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Judgements:
    return audit(tmp_path_factory.mktemp("whole"), Strongest())


def test_searches_of_one_iteration_show_nothing(cut: Judgements) -> None:
    images = words(cut, "images")
    bounded = images.pop(str(DEFENCES[2]))
    assert set(images.values()) == {"unknown"}
    assert bounded == "bounded"
    assert all(judgement.missing for judgement in cut if judgement.verdict == "unknown")


def test_no_word_on_images_gets_better_but_that_nothing_is_known(cut: Judgements, whole: Judgements) -> None:
    before, after = words(whole, "images"), words(cut, "images")
    assert before["none"] == "leaks"
    for defence, word in after.items():
        assert word == "unknown" or BETTER[word] <= BETTER[before[defence]]


def test_labels_and_epsilons_stay_as_they_were(cut: Judgements, whole: Judgements) -> None:
    assert words(cut, "labels") == words(whole, "labels")
    assert set(words(cut, "labels").values()) > {"leaks"}
    assert [j.bound for j in cut if j.bound] == [j.bound for j in whole if j.bound]
