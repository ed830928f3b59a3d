"""What is not broken yet is attacked harder, each time again, and nothing else is."""

import pytest

from leaktight.attacks import Analytic
from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import POSTERIOR
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise, TopK
from leaktight.findings.attack_more import plan_more
from leaktight.findings.summary import summarise
from leaktight.metrics import standard
from leaktight.plans.plan import Plan

NOISE, TOP = GaussianNoise(std=0.1), TopK(share=0.05)
OWN = Attempt(attack=Strongest(left_out={"posterior": "no time"}), threat=ThreatModel(knows=frozenset({Knows.DEFENCE})))


@pytest.fixture
def audit(made):
    """Return a function that gives a plan with two defences, and what was found: how clear images are under each."""

    def build(noise, top, probe=None):
        probes = {"probe": probe or Attempt(attack=Analytic(), metrics=standard())}
        plan = made.plan().model_copy(update={"defences": (NOISE, TOP), "probes": probes})
        records = [made.record(defence, psnr) for defence, psnr in ((None, 30), (NOISE, noise), (TOP, top))]
        return plan, summarise(records).judgements

    return build


def test_only_what_is_not_broken_is_attacked_beside_its_twin(audit):
    plan, judgements = audit(noise=30, top=10)
    more = plan_more(plan, judgements)
    assert [one.defence for one in more.further] == [plan.scenarios["1"].baseline, TOP]
    assert {one.scenario for one in more.further} == {"1"}
    assert more.model_copy(update={"further": ()}) == plan
    added = {cell.key for cell in more.cells()} - {cell.key for cell in plan.cells()}
    assert {cell.defence for cell in more.cells() if cell.key in added and cell.purpose == "measure"} == {
        plan.scenarios["1"].baseline,
        TOP,
    }


def test_each_time_it_tries_four_times_as_hard(audit):
    plan, judgements = audit(noise=10, top=10)
    first = plan_more(plan, judgements)
    second = plan_more(first, judgements)
    assert [one.label for one in second.further] == ["strongest, 4 times as long"] * 3 + [
        "strongest, 16 times as long"
    ] * 3
    assert [one.probe.attack.member(POSTERIOR).iterations for one in second.further[::3]] == [1200, 4800]
    assert second.further[:3] == first.further


def test_where_everything_is_broken_nothing_is_left(audit):
    with pytest.raises(
        InvalidValue, match=r"^Every defence of this audit is broken, so there is nothing left to attack\."
    ):
        plan_more(*audit(noise=30, top=30))


def test_the_plans_own_attacker_tries_whatever_it_left_out(audit):
    [_, further, *_] = plan_more(*audit(noise=10, top=10, probe=OWN)).further
    assert further.probe.threat == OWN.threat
    assert further.probe.attack.left_out == {}
    assert set(further.probe.attack.members) == set(Strongest().suite())


def test_without_a_suite_of_its_own_the_server_attacks(audit):
    [_, further, *_] = plan_more(*audit(noise=10, top=10)).further
    assert further.probe.threat == ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.DEFENCE, Knows.AUXILIARY}))


def test_the_plan_survives_its_file(audit):
    from leaktight.data import Digits
    from leaktight.learning import Federated
    from leaktight.models import MLP

    plan, judgements = audit(noise=10, top=10)
    real = plan.model_copy(update={"scenarios": {"1": Federated(data=Digits(), model=MLP())}})
    more = plan_more(real, judgements)
    assert Plan.model_validate(more.to_dict()) == more
