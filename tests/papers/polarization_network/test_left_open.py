from __future__ import annotations

from collections.abc import Callable

from leaktight.attacks.analytic import Analytic
from leaktight.core.probe import Attempt
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.models.dlnet import DLNet
from leaktight.papers import Check, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network.mechanisms import spn
from leaktight.papers.row import rows_where


def test_what_is_left_open_is_read_at_strengths_far_beyond_the_papers(plans: Plans) -> None:
    linear, head = plans["digits-open-linear"], plans["digits-open-head"]
    assert linear.defences == head.defences == tuple(spn(alpha2) for alpha2 in (0.1, 1.0, 100.0))
    for plan, model in ((linear, MLP()), (head, DLNet())):
        [scenario] = plan.scenarios.values()
        assert isinstance(scenario, Federated)
        assert (scenario.model, scenario.rounds) == (model, 0)
    probe = linear.probes["analytic"]
    assert isinstance(probe, Attempt)
    assert isinstance(probe.attack, Analytic)
    assert list(head.probes) == ["features", "labels"]


def test_each_is_checked_at_its_worst_strength(tables: Tables, find_check: Callable[..., Check]) -> None:
    start = "Left open by SPN: error of"
    what = ("images behind a linear first layer", "features of single examples", "labels")
    for one in what:
        assert find_check(f"{start} {one}").value == 0
    # That of ten labels none was missed does not end at 0 for others.
    for row in rows_where(tables["left_open"], left_open=what[2]):
        row |= {"error_low": 0.0, "error_high": 0.28}
    assert find_check(f"{start} {what[2]}").word == "holds"
    rows_where(tables["left_open"], left_open=what[1], strength=100.0)[0]["error"] = 0.5
    features = find_check(f"{start} {what[1]}")
    assert (features.value, features.holds) == (0.5, False)
    rows_where(tables["left_open"], left_open=what[2], strength=1.0)[0]["error"] = None
    assert find_check(f"{start} {what[2]}").word == "not measured"
