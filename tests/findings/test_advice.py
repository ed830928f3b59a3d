from leaktight.captures import AsCaptured
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.findings.advice import advise
from leaktight.findings.summary import summarise

KNOWN = ("psnr", "ssim", "reconstruction_statement", "label_distance", "accuracy")


def advice(records, budgets=(0.02,)):
    return advise(summarise(records), budgets)


def test_the_best_protection_within_the_budget_is_chosen(made):
    records = [
        *made.two_principles(TopK(share=0.01), accuracy=0.6),
        made.record(TopK(share=0.3), psnr=18, accuracy=0.795, label="adaptive", attack=made.ADAPTIVE),
        made.record(TopK(share=0.1), psnr=17, accuracy=0.79, label="adaptive", attack=made.ADAPTIVE),
    ]
    protects, within, limits = advice(records)
    assert within.question == "At most 2 points of accuracy?"
    assert within.defence == TopK(share=0.1)
    assert (
        "The best protection measured is top-k (share 0.1): reduced; 1 of 8 images can be recognised" in within.sentence
    )
    assert "1.0 points of accuracy (95 % interval" in within.sentence
    assert "reaches beyond the budget" in within.sentence
    assert protects.question == "What was tightly bounded or not broken, at the lowest price?"
    assert protects.defence == TopK(share=0.01)
    assert limits.question == "How far does this advice go?"
    assert (
        limits.sentence
        == "As far as the attacks that were tried, adaptive and learned. Stronger attacks exist, and may get through."
    )


def test_of_two_that_nothing_broke_the_cheaper_is_named(made):
    records = once([*made.two_principles(GaussianNoise(), accuracy=0.7), *made.two_principles(TopK(), accuracy=0.75)])
    protects, within, _ = advice(records, budgets=(0.2,))
    assert protects.defence == within.defence == TopK()


def test_a_bound_comes_before_what_was_not_broken(made):
    notes = {"dp_sgd.epsilon": 1.0, "dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}
    bounded = made.record(DPSGD(), psnr=9, accuracy=0.7, notes=notes, label="adaptive", attack=made.ADAPTIVE)
    _, within, _ = advice([*made.two_principles(TopK(), accuracy=0.75), bounded], budgets=(0.2,))
    assert within.defence == DPSGD()
    assert "bounded; epsilon at most 1 at delta 1e-05 (upper bound; Poisson sampling at rate 0.1)" in within.sentence
    assert "true positives at most 2.72 % at 1 % false alarms" in within.sentence
    empty = bounded.model_copy(update={"notes": {**notes, "dp_sgd.epsilon": 9.0}})
    _, within, _ = advice([*made.two_principles(TopK(), accuracy=0.75), empty], budgets=(0.2,))
    assert within.defence == TopK()


def once(records):
    return list({record.cell.key: record for record in records}.values())


def test_an_interval_inside_the_budget_needs_no_warning(made):
    assert "beyond" not in advice(made.two_principles(TopK(), accuracy=0.8), budgets=(0.1,))[1].sentence


def test_a_budget_that_nothing_meets_says_so_and_names_the_cheapest(made):
    records = once(
        [*made.two_principles(TopK(share=0.1), accuracy=0.7), *made.two_principles(TopK(share=0.01), accuracy=0.5)]
    )
    _, within, _ = advice(records)
    assert within.defence is None
    assert within.sentence.startswith(
        "None of the defences that were shown to help is that cheap; the cheapest is top-k (share 0.1), at 10.0 points"
    )


def test_budgets_with_the_same_answer_are_asked_about_together(made):
    found = advice(made.two_principles(TopK(), accuracy=0.7), budgets=(0.01, 0.02, 0.05, 0.2))
    assert [item.question for item in found[1:3]] == [
        "At most 1, 2 or 5 points of accuracy?",
        "At most 20 points of accuracy?",
    ]


def test_a_cheap_defence_that_does_not_help_is_not_recommended(made):
    protects, within = advice([made.record(psnr=38), made.record(TopK(), psnr=38)])
    assert within.defence is None
    assert within.sentence == "No defence measured was shown to lower the leak."
    assert protects.defence is None
    assert protects.sentence == "None of the defences measured: 1 let something through."


def test_nothing_that_is_unknown_is_named(made):
    records = [
        made.record(psnr=38),
        made.record(TopK(), psnr=9),
        made.record(GaussianNoise(), psnr=9, extra=made.searches(8)),
    ]
    found = advice(records)
    assert {item.defence for item in found} == {None}
    assert not any("top-k" in item.sentence.lower() or "noise" in item.sentence.lower() for item in found)
    assert found[0].sentence == "None of the defences measured: of 2 too little is known."


def test_without_accuracy_no_price_is_invented(made):
    _, within = advice([made.record(psnr=38, accuracy=None), made.record(TopK(), psnr=9, accuracy=None)])
    assert "cannot be said" in within.sentence


def test_help_at_an_unknown_price_is_not_denied(made):
    records = [made.record(psnr=38), made.record(TopK(), psnr=17, accuracy=None), made.record(GaussianNoise(), psnr=38)]
    within = advice(records)[1]
    assert within.defence is None
    assert within.sentence == "This cannot be said: what those cost that were shown to help was not measured."


def test_no_defence_no_advice(made):
    assert advice([made.record()]) == ()


def test_what_the_senders_of_captured_messages_did_is_not_recommended(made):
    assert advice([made.record(psnr=38), made.record(AsCaptured(), psnr=17)]) == ()


def test_one_point_is_singular_and_scenarios_are_named(made):
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    records = [made.record(scenario=scenario, defence=d) for scenario in (made.SCENARIO, other) for d in (None, TopK())]
    questions = [item.question for item in advice(records, budgets=(0.01,))]
    assert questions[1] == "Scenario 1: At most 1 point of accuracy?"
    assert questions[2].startswith("Scenario 2: What was tightly bounded or not broken")


def test_a_model_that_learned_nothing_has_no_price(made):
    (only,) = advice([made.record(accuracy=0.1), made.record(TopK(), psnr=9, accuracy=0.1)])
    assert only.defence is None
    assert only.sentence.startswith("This cannot be said: even without defence the model is no better")
    (only,) = advice([made.record(accuracy=0.8), made.record(TopK(), psnr=9, accuracy=0.1)])
    assert only.sentence == "None of those measured: under each of them the model learned nothing."


def test_a_defence_that_leaves_no_model_is_not_recommended(made):
    records = once([*made.two_principles(TopK(), accuracy=0.1), *made.two_principles(GaussianNoise(), accuracy=0.3)])
    assert {item.defence for item in advice(records, budgets=(0.9,)) if item.defence} == {GaussianNoise()}


def test_readings_of_a_characteristic_change_no_advice(made):
    told = advice(made.sweep(untraced=None), budgets=(0.05,))
    plain = [r.model_copy(update={"readings": tuple(x for x in r.readings if x.name in KNOWN)}) for r in made.sweep()]
    assert told == advice(plain, budgets=(0.05,))


def test_a_defence_that_an_adaptive_attack_gets_through_is_not_recommended(made):
    broken = made.record(TopK(), psnr=38, accuracy=0.8, attack=made.ADAPTIVE, label="stronger")
    records = once([*made.two_principles(TopK()), broken, *made.two_principles(GaussianNoise(), accuracy=0.75)])
    protects, _, limits = advice(records)
    assert protects.defence == GaussianNoise()
    assert "stronger" not in limits.sentence.split(".")[0]
