"""With every search cut to one iteration, no word on images gets better; labels and epsilons stay as they were."""

import pytest

from leaktight.attacks import LabelReading
from leaktight.attacks.presets import preset
from leaktight.audit import run
from leaktight.audit.plan import Grid, Plan
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.findings.summary import summarise
from leaktight.learning import Federated
from leaktight.metrics import standard
from leaktight.models import MLP

DEFENCES = (GaussianNoise(std=1.0), TopK(share=0.05), DPSGD(multiplier=6.0))


def audit(folder, iterations):
    # The search of `posterior` alone, without what algebra tells it of its start.
    search = preset("posterior", iterations=iterations, initial="prior", restarts=1, phases=1)
    attacks = {"label_reading": LabelReading(), "posterior": search}
    knows = frozenset({Knows.LOCAL_STEPS})
    plan = Plan(
        scenarios={"1": Federated(data=Digits(), model=MLP(hidden=(32,)), rounds=2)},
        defences=DEFENCES,
        probes={
            name: Attempt(attack=attack, threat=ThreatModel(knows=knows | attack.needs), metrics=standard())
            for name, attack in attacks.items()
        },
        grid=Grid(victims=6),
    )
    return summarise(run(plan, folder)).judgements


def words(judgements, kind):
    return {str(judgement.defence): judgement.verdict for judgement in judgements if judgement.kind.name == kind}


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    return audit(tmp_path_factory.mktemp("cut"), 1)


def test_searches_of_one_iteration_show_nothing(cut):
    images = words(cut, "images")
    bounded = images.pop("dp_sgd(multiplier=6.0)")
    assert set(images.values()) == {"unknown"}
    assert bounded == "bounded"
    assert all(judgement.missing for judgement in cut if judgement.verdict == "unknown")


def test_labels_and_epsilons_stay_as_they_were(cut, tmp_path):
    whole = audit(tmp_path, 2)
    assert words(cut, "labels") == words(whole, "labels")
    assert set(words(cut, "labels").values()) > {"leaks"}
    assert [j.bound for j in cut if j.bound] == [j.bound for j in whole if j.bound]
