from leaktight.audit.advice import advise
from leaktight.audit.summary import summarise
from leaktight.defences import GaussianNoise, TopK

KNOWN = ("psnr", "ssim", "reconstruction_statement", "label_distance", "accuracy")


def advice(records, budgets=(0.02,)):
    return advise(summarise(records), budgets)


def test_the_best_protection_within_the_budget_is_chosen(made):
    records = [
        made.record(psnr=38, accuracy=0.8),
        made.record(TopK(share=0.3), psnr=22, accuracy=0.795),
        made.record(TopK(share=0.1), psnr=18, accuracy=0.79),
        made.record(TopK(share=0.01), psnr=9, accuracy=0.6),
    ]
    unbroken, within, limits = advice(records)
    assert within.question == "At most 2 points of accuracy?"
    assert within.defence == TopK(share=0.1)
    assert "The best protection measured is top-k (share 0.1): 2 of 8 images recognised" in within.sentence
    assert "1.0 points of accuracy (95 % interval" in within.sentence
    assert "reaches beyond this budget" in within.sentence
    assert unbroken.question == "What was not broken by the attacks tried, at the lowest price?"
    assert unbroken.defence == TopK(share=0.01)
    assert limits.question == "How far does this advice go?"
    assert limits.sentence == "As far as the attacks that were tried, dlg2019. Stronger attacks exist, and may get through."


def test_of_two_that_nothing_broke_the_cheaper_is_named(made):
    records = [
        made.record(psnr=38, accuracy=0.8),
        made.record(GaussianNoise(), psnr=9, accuracy=0.7),
        made.record(TopK(), psnr=9, accuracy=0.75),
    ]
    unbroken, within, _ = advice(records, budgets=(0.2,))
    assert unbroken.defence == within.defence == TopK()


def test_an_interval_inside_the_budget_needs_no_warning(made):
    records = [made.record(psnr=38, accuracy=0.9), made.record(TopK(), psnr=9, accuracy=0.9)]
    assert "beyond" not in advice(records, budgets=(0.1,))[1].sentence


def test_a_budget_that_nothing_meets_says_so_and_names_the_cheapest(made):
    records = [
        made.record(psnr=38, accuracy=0.8),
        made.record(TopK(share=0.1), psnr=9, accuracy=0.7),
        made.record(TopK(share=0.01), psnr=9, accuracy=0.5),
    ]
    _, within, _ = advice(records)
    assert within.defence is None
    assert within.sentence.startswith(
        "None of the defences measured is that cheap; the cheapest is top-k (share 0.1), at 10.0 points"
    )


def test_a_cheap_defence_that_does_not_help_is_not_recommended(made):
    unbroken, within = advice([made.record(psnr=38), made.record(TopK(), psnr=38)])
    assert within.defence is None
    assert within.sentence == "No defence measured was shown to lower the leak at that price."
    assert unbroken.defence is None
    assert unbroken.sentence.startswith("None of the defences measured")


def test_without_accuracy_no_price_is_invented(made):
    _, within = advice([made.record(psnr=38, accuracy=None), made.record(TopK(), psnr=9, accuracy=None)])
    assert "cannot be said" in within.sentence


def test_no_defence_no_advice(made):
    assert advice([made.record()]) == ()


def test_one_point_is_singular_and_scenarios_are_named(made):
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    records = [made.record(scenario=scenario, defence=d) for scenario in (made.SCENARIO, other) for d in (None, TopK())]
    questions = [item.question for item in advice(records, budgets=(0.01,))]
    assert questions[1] == "Scenario 1: At most 1 point of accuracy?"
    assert questions[2].startswith("Scenario 2: What was not broken")


def test_a_model_that_learned_nothing_has_no_price(made):
    (only,) = advice([made.record(accuracy=0.1), made.record(TopK(), psnr=9, accuracy=0.1)])
    assert only.defence is None
    assert only.sentence.startswith("This cannot be said: even without defence the model is no better")
    (only,) = advice([made.record(accuracy=0.8), made.record(TopK(), psnr=9, accuracy=0.1)])
    assert only.sentence == "None of those measured: under each of them the model learned nothing."


def test_a_defence_that_leaves_no_model_is_not_recommended(made):
    records = [
        made.record(psnr=38, accuracy=0.8),
        made.record(TopK(), psnr=9, accuracy=0.1),
        made.record(GaussianNoise(), psnr=9, accuracy=0.3),
    ]
    assert {item.defence for item in advice(records, budgets=(0.9,)) if item.defence} == {GaussianNoise()}


def test_readings_of_a_characteristic_change_no_advice(made):
    told = advice(made.sweep(), budgets=(0.05,))
    plain = [r.model_copy(update={"readings": tuple(x for x in r.readings if x.name in KNOWN)}) for r in made.sweep()]
    assert told == advice(plain, budgets=(0.05,))
    assert told[0].defence == GaussianNoise(std=0.01)


def test_a_defence_that_an_adaptive_attack_gets_through_is_not_recommended(made):
    adaptive = {"attack": made.ADAPTIVE, "label": "adaptive"}
    records = [
        made.record(psnr=38, accuracy=0.8),
        made.record(TopK(), psnr=9, accuracy=0.8),
        made.record(TopK(), psnr=38, accuracy=0.8, **adaptive),
        made.record(GaussianNoise(), psnr=9, accuracy=0.75),
    ]
    unbroken, _, limits = advice(records)
    assert unbroken.defence == GaussianNoise()
    assert "adaptive" not in limits.sentence


def test_a_defence_that_only_failed_searches_met_is_not_recommended(made):
    records = [
        made.record(psnr=38),
        made.record(TopK(share=0.1), psnr=9, extra=made.searches(8)),
        made.record(TopK(share=0.3), psnr=19),
    ]
    unbroken, within, *_ = advice(records)
    assert unbroken.defence is None
    assert "met only searches that failed" in unbroken.sentence
    assert within.defence == TopK(share=0.3)
