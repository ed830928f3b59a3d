"""The headline: one sentence from the worst undefended and the best useful judgement, never stronger than either."""

import pytest

from leaktight.attacks import preset
from leaktight.captures import AsCaptured
from leaktight.core.metric import Reading
from leaktight.core.threat import Knows
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.findings.headline import headline_of
from leaktight.findings.summary import summarise
from leaktight.plans.control import at_the_message


def headline(records):
    return headline_of(summarise(list({record.cell.key: record for record in records}.values())))


def test_what_leaks_comes_first_then_the_best_defence_with_its_price(made):
    said = headline([*made.two_principles(TopK(), accuracy=0.75), made.record(GaussianNoise(), psnr=35)])
    assert said == (
        "Without a defence, all 8 images can be recognised from one shared message. "
        "Top-k (share 0.1) was not broken by the attacks tried, for about 5.0 points of accuracy."
    )


def test_settings_of_one_defence_are_counted_as_settings(made):
    records = [
        made.record(psnr=38),
        *(made.record(TopK(share=share), psnr=17, accuracy=0.79) for share in (0.1, 0.2)),
        made.record(GaussianNoise(), psnr=35),
    ]
    said = headline(records)
    assert "None of 3 settings of 2 defences was shown to stop it; under the best of them, top-k" in said
    assert "1 of 8 images is recognised, for about 1.0 points of accuracy, perhaps" in said


def test_a_model_that_learned_nothing_is_counted_and_never_named(made):
    useless = made.two_principles(TopK(), accuracy=0.1)
    assert headline(useless).endswith(
        "Top-k (share 0.1) was not shown to lower it (under it the model learned nothing)."
    )
    found = summarise(useless).judgements[1]
    assert (found.verdict, found.status, found.may_be_advised) == ("not broken", "useless", False)
    assert summarise(useless).verdict[1].startswith("Top-k (share 0.1): useless. None of 8 images is recognised")


def test_an_epsilon_under_a_useless_model_is_not_good(made):
    notes = {"dp_sgd.epsilon": 1.0, "dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}
    bounded = made.record(DPSGD(), psnr=9, accuracy=0.1, notes=notes)
    found = summarise([made.record(psnr=38), bounded]).judgements[1]
    assert (found.verdict, found.status, found.is_good) == ("bounded", "useless", False)


def test_labels_that_are_still_read_are_said(made):
    records = made.two_principles(TopK(), accuracy=0.75, labels=0.0)
    assert "was not broken by the attacks tried" in headline(records)
    assert headline(records).endswith("But under it, 100 % of the labels are read (a blind answer gets 10 %).")


def test_an_attack_that_fails_undefended_says_nothing_of_defences(made):
    said = headline([made.record(psnr=9), made.record(TopK(), psnr=9)])
    assert said == "No attack tried read images even without a defence, so this audit says nothing of any defence."


def test_labels_that_are_read_where_no_image_is_are_said(made):
    labels = "100 % of the labels are read (a blind answer gets 10 %)."
    said = headline([made.record(psnr=9, labels=0.0), made.record(TopK(), psnr=9, labels=0.0)])
    assert "this audit says nothing of what a defence does for images. " in said
    assert said.endswith(f"But without a defence, {labels}")
    sent = headline([made.record(psnr=38, labels=0.0), made.record(AsCaptured(), psnr=9, labels=0.0)])
    assert sent.startswith("Whether these messages leak is not known")
    assert sent.endswith(f"But {labels}")


def test_what_is_read_under_a_defence_alone_is_said(made):
    said = headline([made.record(psnr=9), made.record(TopK(), psnr=38)])
    assert said.startswith("No attack tried read images even without a defence, so that attacks fail says nothing")
    assert said.endswith("But under top-k (share 0.1), all 8 images are recognised.")


def test_a_bound_says_something_where_attacks_fail(made):
    notes = {"dp_sgd.epsilon": 1.0, "dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}
    said = headline([made.record(psnr=9), made.record(DPSGD(), psnr=9, notes=notes)])
    assert "this audit says nothing" not in said
    assert said.endswith(" is bounded by its epsilon.")


def test_help_at_an_unknown_price_is_not_denied(made):
    records = [made.record(psnr=38), made.record(TopK(), psnr=17, accuracy=None), made.record(GaussianNoise(), psnr=38)]
    assert headline(records).endswith("1 of 2 defences was shown to lower the leak. What that costs was not measured.")


def test_without_a_bare_run_nothing_is_compared(made):
    assert headline([made.record(TopK(), psnr=9)]).startswith("Nothing was measured without a defence")


def test_no_defence_tried_is_said(made):
    assert headline([made.record(psnr=38)]).endswith("one shared message. No defence was tried.")


def test_prices_that_mean_nothing_are_not_given(made):
    said = headline([made.record(psnr=38, accuracy=0.1), made.record(TopK(), psnr=17, accuracy=0.1)])
    assert said.endswith(
        "What that costs cannot be said: even without defence the model is no better than always "
        "naming the commonest class."
    )
    assert "points" not in said


@pytest.mark.parametrize(
    ("bare", "sent", "start"),
    [
        (38, 38, "These messages are as open as undefended ones: all 8 images can be recognised"),
        (38, 17, "These messages leak less than undefended ones: 1 of 8 images"),
        (38, 9, "Whether these messages leak is not known: none of 8 images is recognised, against all 8 where"),
    ],
)
def test_captured_messages_are_told_beside_undefended_ones(made, bare, sent, start):
    assert headline([made.record(psnr=bare), made.record(AsCaptured(), psnr=sent)]).startswith(start)


def ungraded(made, left, on_noise, label="posterior", attack=None):
    readings = [
        (Reading(name="objective", value=sum(each) / len(each), n=4, each=each), Reading(name="diverged", value=0, n=4))
        for each in (left, on_noise)
    ]
    settings = {} if attack is None else {"attack": attack}
    common = {"psnr": None, "accuracy": None, "label": label, "knows": (Knows.DEFENCE,), **settings}
    measured = made.record(AsCaptured(), extra=readings[0], **common)
    # As in a plan: some attacks of a suite look at less of noise.
    common |= {"attack": at_the_message(measured.cell.probe).attack}
    return [measured, made.record(AsCaptured(), extra=readings[1], purpose="null", **common)]


def test_blind_captures_lead_with_what_the_suite_found(made):
    said = headline(ungraded(made, (1e-9,) * 4, (200.0,) * 4, "strongest", preset("strongest")))
    assert said.startswith("The attack strongest found examples that explain 4 of 4 messages (misfit 1e-09; 200 on")


def test_blind_captures_lead_with_what_was_found(made):
    said = headline(ungraded(made, (1e-9, 1e-9, 2e-9, 300.0), (200.0, 200.0, 250.0, 250.0)))
    assert said == (
        "The attack posterior found examples that explain 3 of 4 messages (misfit 75; 225 on noise of the same size). "
        "Nobody compared them with the originals; treat these messages as leaked."
    )
    assert "explains the messages only in part (misfit 90" in headline(ungraded(made, (90.0,) * 4, (225.0,) * 4))
    assert headline(ungraded(made, (200.0,) * 4, (225.0,) * 4)).endswith(
        "explains the messages hardly better than noise (misfit 200; 225 on noise of the same size). "
        "That shows neither a leak nor protection."
    )


def test_the_attack_that_explains_most_speaks_first(made):
    strong = ungraded(made, (1e-3,) * 4, (225.0,) * 4, label="strong")
    weak = ungraded(made, (1e-4,) * 4, (2e-4,) * 4, label="weak")
    weak = [one.model_copy(update={"cell": one.cell.model_copy(update={"probe": _other(made, one)})}) for one in weak]
    assert headline([*weak, *strong]).startswith("The attack strong found")


def _other(made, record):
    return record.cell.probe.model_copy(update={"attack": made.GEIPING})


def test_several_scenarios_are_counted(made):
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    said = headline([made.record(psnr=9), made.record(psnr=38, scenario=other)])
    assert said.startswith("Undefended messages leak in 1 of 2 scenarios. Scenario 2: Without a defence, all 8")
    unread = headline([made.record(psnr=9), made.record(psnr=9, scenario=other)])
    assert unread.startswith("In none of 2 scenarios did any attack tried read undefended messages. Scenario 1: ")


def test_of_captured_scenarios_the_first_that_leaks_as_it_was_sent_is_told(made):
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    records = [
        made.record(psnr=psnr, defence=defence, scenario=scenario)
        for scenario, sent in ((made.SCENARIO, 9), (other, 38))
        for defence, psnr in ((None, 38), (AsCaptured(), sent))
    ]
    assert headline(records).startswith("Captured messages leak in 1 of 2 scenarios. Scenario 2: These messages are")


def test_captured_scenarios_that_nobody_graded_are_not_called_unread(made):
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    blind = ungraded(made, (1e-9,) * 4, (200.0,) * 4)
    again = [one.model_copy(update={"cell": one.cell.model_copy(update={"scenario": other})}) for one in blind]
    assert headline([*blind, *again]).startswith("Scenario 1 of 2: The attack posterior found examples")
