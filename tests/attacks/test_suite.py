"""Which attacks fit follows from what is seen and granted alone."""

import dataclasses

import pytest

from leaktight.attacks import Analytic, LearnedInverter
from leaktight.attacks.label_attack import ALL, CUT
from leaktight.attacks.suite import (
    FREE_LOSS,
    JOINED,
    LEAST_MESSAGES,
    POSTERIOR,
    PUBLIC_HEAD,
    SCALE_FREE,
    fitting_attacks,
    prior_of,
    scale,
    whole_suite,
)
from leaktight.core.defence import Undefended
from leaktight.core.message import Kind
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise, Polarization, TopK
from leaktight.priors import Generic, Public
from leaktight.testing import toy_batch, toy_run
from leaktight.testing.cut import cut_run

ALWAYS = {"analytic", "learned_inverter", POSTERIOR}
EVERYTHING = frozenset({Knows.DEFENCE, Knows.AUXILIARY, Knows.LOCAL_STEPS})


def view_of(run=None, knows=EVERYTHING, seat="server"):
    return ThreatModel(seat=seat, knows=knows).view(run or toy_run(batch_size=1))


@pytest.mark.parametrize(
    ("defence", "more"),
    [
        (Undefended(), set()),
        (GaussianNoise(), set()),
        (Polarization(), {FREE_LOSS, PUBLIC_HEAD}),
        (TopK(residual=True), {SCALE_FREE}),
    ],
    ids=["none", "noise", "private loss", "residual"],
)
def test_the_channel_says_which_searches_are_worth_trying(defence, more):
    chosen, untried = fitting_attacks(whole_suite(), view_of(toy_run(defence, batch_size=1)))
    assert set(chosen) == ALWAYS | more
    assert untried == {}


def test_an_unknown_defence_may_have_changed_the_scale():
    chosen, untried = fitting_attacks(whole_suite(), view_of(knows=frozenset()))
    assert set(chosen) == {"analytic", SCALE_FREE}
    assert untried == {
        "learned_inverter": "the threat model does not grant auxiliary, defence",
        POSTERIOR: "the threat model does not grant defence",
    }


def test_messages_about_the_same_examples_are_searched_jointly():
    view = view_of()
    same = tuple(
        dataclasses.replace(m, facts={**m.facts, "owned": m.facts["examples"]}) if m.kind is Kind.GRADIENT else m
        for m in view.messages
    )
    assert JOINED in fitting_attacks(whole_suite(), dataclasses.replace(view, messages=same))[0]
    assert JOINED not in fitting_attacks(whole_suite(), view)[0]


def test_cheap_attacks_come_first():
    order = list(whole_suite())
    assert order.index("analytic") < order.index("learned_inverter") < order.index(POSTERIOR)
    assert whole_suite()["analytic"].simple


def test_a_search_for_too_many_numbers_is_not_tried(monkeypatch):
    monkeypatch.setattr("leaktight.attacks.suite.MOST_REMEMBERED", 23)
    chosen, untried = fitting_attacks(whole_suite(), view_of(toy_run(batch_size=2)))
    assert POSTERIOR not in chosen
    assert untried == {POSTERIOR: "24 numbers behind one message are too many for a search"}


def test_public_examples_make_the_prior_where_there_are_enough(monkeypatch):
    monkeypatch.setattr("leaktight.attacks.suite.LEAST", 32)
    run = toy_run(batch_size=1, auxiliary=toy_batch(32))
    few = dataclasses.replace(run, auxiliary=toy_batch(31))
    assert [prior_of(view_of(each)) for each in (run, few)] == [Public(), Generic()]
    assert [fitting_attacks(whole_suite(), view_of(each))[0][POSTERIOR].prior for each in (run, few)] == [
        Public(),
        Generic(),
    ]


def test_labels_are_attacked_at_the_cut_by_who_does_not_have_the_model_before_it():
    suite = {name: whole_suite()[name] for name in ("gradient_norm", "clustering", "analytic")}
    assert suite["clustering"].layer == ALL
    chosen, _ = fitting_attacks(suite, view_of(cut_run(batch_size=4), frozenset({Knows.DEFENCE}), "feature-party"))
    assert {name: attack.layer for name, attack in chosen.items()} == {"gradient_norm": CUT, "clustering": CUT}


def test_effort_is_scaled_and_what_has_none_is_left():
    half, more = scale(whole_suite(), 0.5), scale(whole_suite(), 8)
    usual = whole_suite()
    assert half["analytic"] == usual["analytic"] == Analytic()
    assert [suite[POSTERIOR].iterations for suite in (half, usual, more)] == [150, 300, 2400]
    assert [suite["learned_inverter"].messages for suite in (half, usual, more)] == [1000, 2000, 4000]
    least = scale(usual, 1e-6)
    assert (least[POSTERIOR].iterations, least["learned_inverter"]) == (1, LearnedInverter(messages=LEAST_MESSAGES))
