import pytest

from leaktight.audit.rows import Row, rows_of
from leaktight.audit.verdict import cost_of, judge, strongest, verdict_of
from leaktight.core.defence import Undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Status
from leaktight.core.threat import Knows
from leaktight.defences import GaussianNoise, TopK


def loss(value, *ends):
    low, high = ends or (None, None)
    return Reading(name="accuracy_loss", value=value, low=low, high=high)


@pytest.mark.parametrize(
    ("reading", "text"),
    [
        (None, "its cost in accuracy was not measured"),
        (loss(0.05), "5.0 points of accuracy"),
        (loss(0.05, 0.01, 0.09), "5.0 points of accuracy (95 % interval 1.0 to 9.0)"),
        (loss(0.01, -0.02, 0.04), "1.0 points of accuracy (95 % interval -2.0 to 4.0, so perhaps nothing)"),
        (loss(-0.03, -0.05, -0.01), "-3.0 points of accuracy (95 % interval -5.0 to -1.0)"),
    ],
)
def test_a_cost_is_said_with_its_interval_and_no_more(reading, text):
    assert cost_of(reading) == text


def auc(made, defence, value, **more):
    reading = Reading(name="other_auc", value=value, low=value - 0.02, high=value + 0.02, chance=0.5, leaks="high")
    return made.record(defence, psnr=None, extra=(reading,), **more)


@pytest.mark.parametrize(
    ("value", "tone", "words"),
    [
        (0.51, "unbroken", "no better than chance"),
        (0.7, "reduces", "less than without it"),
        (0.94, "leaks", "no less than without it"),
    ],
)
def test_numbers_that_are_no_images_are_set_beside_chance(made, value, tone, words):
    _, found = judge(rows_of([auc(made, None, 0.95), auc(made, TopK(), value)]))
    assert found.tone == tone
    assert f"reached other auc {value}, chance 0.5, against other auc 0.95, chance 0.5 without it, {words}" in found.sentence


def samples(made, defence, one, whichever, **more):
    readings = [
        Reading(name=name, value=value, low=value - 0.02, high=value + 0.02, chance=chance, leaks="high")
        for name, value, chance in (("recognised", one, 0.1), ("recognised_any", whichever, 0.5))
    ]
    return made.record(defence, psnr=None, extra=tuple(readings), **more)


@pytest.mark.parametrize(
    ("one", "whichever", "tone", "told"),
    [
        *((0.0, 0.3, "unbroken", False), (0.0, 0.97, "leaks", True), (0.0, 0.8, "reduces", True), (0.5, 0.97, "leaks", False)),
        *((0.5, 0.8, "reduces", False), (0.99, 0.8, "leaks", False), (0.99, 0.99, "leaks", False)),
    ],
)
def test_samples_of_another_class_of_the_attacked_are_a_leak_too(made, one, whichever, tone, told):
    _, found = judge(rows_of([samples(made, None, 0.99, 0.99), samples(made, TopK(), one, whichever)]))
    assert found.tone == tone
    assert (
        f"{whichever:.0%}".replace("%", " %") + " of the samples show some class of the attacked (chance 50 %)"
        in found.sentence
    ) is told


def test_neither_another_attack_nor_other_trainings_hide_that_some_class_is_shown(made):
    bare = samples(made, None, 0.99, 0.99)
    leaky, clean = samples(made, TopK(), 0.0, 0.97, label="a"), samples(made, TopK(), 0.01, 0.3, label="b")
    assert judge(rows_of([bare, leaky, clean]))[1].tone == "leaks"
    trainings = [samples(made, TopK(), 0.0, whichever, seed=seed) for seed, whichever in enumerate((0.98, 0.0, 0.0))]
    found = judge(rows_of([bare, *trainings]))[1]
    assert found.tone == "leaks"
    assert "98 % of the samples show some class of the attacked in one of the trainings" in found.sentence


@pytest.mark.parametrize(("used", "said"), [(25.0, True), (12.0, False)])
def test_changed_images_that_are_found_are_told_of_by_psnr_alone_too(made, used, said):
    def copies(defence, value, changed):
        readings = [
            Reading(name="psnr", value=one, low=one - 1, high=one + 1, chance=12.5, leaks="high", against=against)
            for one, against in ((value, "raw"), (changed, "used"))
        ]
        return made.record(defence, psnr=None, extra=tuple(readings))

    _, found = judge(rows_of([copies(None, 21.0, 21.0), copies(TopK(), 9.0, used)]))
    assert found.tone == ("reduces" if said else "unbroken")
    assert ("The images as the defence changed them were found at 25 dB, chance 12.5." in found.sentence) is said


def test_without_anything_to_compare_with_no_effect_is_claimed(made):
    (found,) = judge(rows_of([auc(made, TopK(), 0.7)]))
    assert found.base is None
    assert "without it" not in found.sentence
    (images,) = judge(rows_of([made.record(TopK(), psnr=9)]))
    assert "without defence nothing was measured to compare with" in images.sentence


def test_one_image_is_singular(made):
    one = tuple(
        reading.model_copy(update={"n": 1, "each": (), "low": None, "high": None}) for reading in made.image_readings(40.0)
    )
    (found,) = judge(rows_of([made.record(psnr=None, extra=one)]))
    assert found.sentence.startswith("Without defence, 1 of 1 image can be recognised")
    assert "mean PSNR 40 dB" in found.sentence


def test_rows_without_leakage_are_not_judged(made):
    rows = rows_of([made.record(psnr=None), made.record(GaussianNoise(), status=Status.REFUSED, reason="no")])
    assert len(rows) == 2
    assert judge(rows) == ()
    assert verdict_of(rows, ()) == ("Nothing was measured, so nothing can be said.",)


def test_the_strongest_of_equals_by_count_is_the_clearer_one(made):
    rows = rows_of([made.record(psnr=30, label="a"), made.record(psnr=40, label="b")])
    assert strongest(rows).attack == "b"
    assert strongest([]) is None


def test_below_chance_there_is_no_clearer_one(made):
    low, lower = rows_of([made.record(psnr=9, label="a"), made.record(psnr=4, label="b")])
    assert low.severity == lower.severity


def test_a_row_that_was_never_measured_says_nothing():
    row = Row(1, Undefended(), "dlg2019", False, 1, "initial", (), {})
    assert row.severity == ()
    assert (row.leak, row.median, row.budgets, row.utility) == (None, None, (), None)
    assert not row.useless


def test_labels_are_told_for_each_scenario(made):
    other = {"scenario": made.SCENARIO.model_copy(update={"rounds": 5})}
    rows = rows_of([made.record(labels=0.0), made.record(labels=0.5, **other)])
    first, second = verdict_of(rows, judge(rows))[-2:]
    assert first.startswith("Scenario 1. Labels: without defence 100 % of the labels")
    assert second.startswith("Scenario 2. Labels: without defence 50 % of the labels")


def test_examples_behind_a_message_are_counted_not_assumed(made):
    """Several local steps, or everybody's examples in a secure sum, are behind one message: more than a batch."""
    record = made.record(psnr=38, batch_size=2, victims=2)
    (found,) = judge(rows_of([record]))
    assert "can be recognised from shared messages of 4 images each" in found.sentence
    assert "batches of 2, 4 examples behind each message, before training" in found.sentence
    (row,) = rows_of([made.record(psnr=38, batch_size=2, victims=4, seed=seed) for seed in (0, 1)])
    assert (row.messages, row.behind, row.moment) == (8, 2, "batches of 2, before training")


def test_readings_that_are_not_about_examples_do_not_count_them(made):
    queries = Reading(name="tracing_distance", value=0.5, n=5000, leaks="low", against="raw")
    (row,) = rows_of([made.record(psnr=None, extra=(queries,))])
    assert row.behind == row.batch_size == 1


def informed(made, naive, knowing):
    adaptive = {"attack": made.ADAPTIVE, "label": "adaptive", "knows": (Knows.DEFENCE,)}
    records = [made.record(psnr=40), made.record(TopK(), psnr=naive), made.record(TopK(), psnr=knowing, **adaptive)]
    return judge(rows_of(records))[1]


def test_an_attacker_who_knows_the_defence_is_named_where_it_gets_more(made):
    found = informed(made, naive=9, knowing=38)
    assert found.worst.adaptive
    assert found.tone == "leaks"
    assert found.sentence.endswith(
        " An attacker who knows the defence recovers all 8 images (adaptive), one who ignores it none of 8 images (dlg2019)."
    )
    unsure = informed(made, naive=19, knowing=21)
    assert "one who ignores it 3 of 8 images (dlg2019); the intervals overlap." in unsure.sentence


def test_clearer_copies_count_too_where_as_many_are_recognised(made):
    assert "recovers copies of 16 dB (adaptive), one who ignores it copies of 12 dB" in informed(made, 12, 16).sentence
    assert "knows the defence" not in informed(made, 4, 9).sentence
    assert "knows the defence" not in informed(made, 30, 30).sentence
    assert "knows the defence" not in informed(made, 38, 9).sentence


def test_the_two_are_compared_in_one_setting_only(made):
    adaptive = {"attack": made.ADAPTIVE, "label": "adaptive", "knows": (Knows.DEFENCE,), "batch_size": 8}
    rows = rows_of([made.record(psnr=40), made.record(TopK(), psnr=9), made.record(TopK(), psnr=38, **adaptive)])
    assert "knows the defence" not in judge(rows)[1].sentence


def test_nothing_is_known_of_a_defence_where_every_search_failed(made):
    _, found = judge(rows_of([made.record(psnr=38), made.record(TopK(), psnr=9, extra=made.searches(8))]))
    assert found.tone == "unknown"
    assert found.sentence.startswith(
        "Top-k (share 0.1): unknown, because every search failed: dlg2019 recognised none of 8 images, "
        "against all 8 images without it, but a better search may find more ("
    )
    assert "not broken" not in found.sentence


def test_numbers_that_are_no_images_are_unknown_too_where_every_search_failed(made):
    failed = Reading(name="search_failed", value=1, n=8)
    weak = Reading(name="mse", value=0.9, low=0.8, high=1.0, chance=0.5, leaks="low")
    strong = weak.model_copy(update={"value": 0.01, "low": 0.0, "high": 0.02})
    bare, defended = made.record(psnr=None, extra=(strong,)), made.record(TopK(), psnr=None, extra=(weak, failed))
    _, found = judge(rows_of([bare, defended]))
    assert found.tone == "unknown"
    assert "unknown, because every search failed: dlg2019 reached MSE 0.9, chance 0.5, against" in found.sentence


@pytest.mark.parametrize("failed", [0, 3, 7])
def test_a_search_that_did_not_fail_is_enough_to_say_not_broken(made, failed):
    _, found = judge(rows_of([made.record(psnr=38), made.record(TopK(), psnr=9, extra=made.searches(failed))]))
    assert found.tone == "unbroken"
    assert "was not broken by the attack tried (dlg2019)" in found.sentence


def test_only_attacks_whose_searches_did_not_all_fail_count_as_tried(made):
    records = [
        made.record(psnr=38),
        made.record(TopK(), psnr=9, label="a", extra=made.searches(8)),
        made.record(TopK(), psnr=8, label="b", extra=made.searches(2)),
    ]
    _, found = judge(rows_of(records))
    assert (found.tone, found.attacks, found.worst.attack) == ("unbroken", ("b",), "b")
    assert "was not broken by the attack tried (b)" in found.sentence
    assert "Every search of a failed, which says nothing about the defence." in found.sentence


def test_an_image_that_is_recognised_leaks_whether_its_search_stopped_short_or_not(made):
    _, found = judge(rows_of([made.record(psnr=38), made.record(TopK(), psnr=38, extra=made.searches(8))]))
    assert found.tone == "leaks"
    assert "unknown" not in found.sentence


def test_all_searches_of_all_seeds_must_have_failed(made):
    def tone(*failed):
        bare = [made.record(psnr=38, seed=seed) for seed in range(3)]
        rest = [made.record(TopK(), psnr=9, seed=seed, extra=made.searches(one)) for seed, one in enumerate(failed)]
        return judge(rows_of([*bare, *rest]))[1].tone

    assert tone(8, 8, 8) == "unknown"
    assert tone(8, 7, 8) == "unbroken"


@pytest.mark.parametrize(
    ("readings", "text"),
    [
        ((3,), "3 of 8 (the truth fits better)"),
        ((8,), "all 8 (the truth fits better)"),
        ((0,), "none of 8"),
        ((2, 8, 0.5, 1.0), "2 of 8 (diverged, out of range or worse than blind)"),
    ],
)
def test_how_many_searches_failed_is_said_with_the_reason(made, readings, text):
    [row] = rows_of([made.record(extra=made.searches(*readings))])
    assert row.searches == text
    assert rows_of([made.record()])[0].searches == ""
