import pytest

from leaktight.audit.rows import rows_of
from leaktight.audit.summary import summarise
from leaktight.core.defence import Chain, Undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Status
from leaktight.defences import DPSGD, GaussianNoise, TopK


def judged(records, defence):
    return next(j for j in summarise(records).judgements if j.defence == defence)


def test_seeds_become_one_row(made):
    records = [made.record(psnr=30 + seed, seed=seed) for seed in range(3)]
    (row,) = rows_of(records)
    assert row.seeds == (0, 1, 2)
    assert row.reading("psnr", "raw").value == 31
    assert row.reading("psnr", "raw").n == 24
    assert len(row.cells) == 3


def test_rows_are_apart_by_defence_attack_batch_and_stage(made):
    records = [
        made.record(),
        made.record(GaussianNoise()),
        made.record(label="other"),
        made.record(batch_size=8),
        made.record(stage="end"),
    ]
    assert len(rows_of(records)) == 5


def test_control_and_null_cells_are_no_rows(made):
    assert rows_of([made.control(), made.null()]) == ()


def test_rows_run_from_undefended_and_from_weak_to_strong(made):
    defences = [TopK(share=0.01), GaussianNoise(std=0.1), TopK(share=0.5), Undefended(), GaussianNoise(std=0.01)]
    rows = rows_of([made.record(defence) for defence in defences])
    assert [row.defence for row in rows] == [defences[3], defences[4], defences[1], defences[2], defences[0]]


def test_two_metrics_of_one_name_are_not_pooled_with_each_other(made):
    extra = tuple(Reading(name="bound", value=value) for value in (1.0, 5.0))
    (row,) = rows_of([made.record(extra=extra, seed=seed) for seed in (0, 1)])
    assert [reading.value for reading in row.readings if reading.name == "bound"] == [1.0, 5.0]


def test_a_reading_of_one_layer_does_not_pass_for_the_whole(made):
    (row,) = rows_of([made.record(psnr=None, extra=(Reading(name="leak_auc", value=0.9, layer="fc1", leaks="high"),))])
    assert row.reading("leak_auc") is None


def test_unfinished_cells_are_counted(made):
    (row,) = rows_of([made.record(seed=0), made.record(seed=1, status=Status.FAILED, reason="no")])
    assert row.counts == {Status.DONE: 1, Status.FAILED: 1}
    assert row.seeds == (0,)


def test_loss_compares_with_the_undefended_training_of_the_same_seed(made):
    accuracies = {0: (0.8, 0.7), 1: (0.6, 0.5)}
    records = [
        made.record(defence, seed=seed, accuracy=value)
        for seed, pair in accuracies.items()
        for defence, value in zip((None, GaussianNoise()), pair, strict=True)
    ]
    bare, noisy = rows_of(records)
    assert bare.loss is None
    assert noisy.loss.value == pytest.approx(0.1)
    lone = [record for record in records if record.cell.seed == 0 or not isinstance(record.cell.defence, Undefended)]
    assert rows_of(lone)[1].loss.value == pytest.approx(0.1)


def test_without_undefended_training_there_is_no_loss(made):
    (row,) = rows_of([made.record(GaussianNoise())])
    assert row.loss is None
    assert "not measured" in summarise([made.record(GaussianNoise())]).verdict[0]


def test_the_verdict_on_no_defence_names_count_quality_and_setting(made):
    (sentence,) = summarise([made.record(psnr=38)]).verdict
    assert sentence == (
        "Without defence, all 8 images can be recognised from one shared message "
        "(median PSNR 38 dB; dlg2019; batches of 1, before training)."
    )
    (sentence,) = summarise([made.record(psnr=20, batch_size=4)]).verdict
    assert sentence.startswith("Without defence, 5 of 8 images can be recognised from shared messages of 4 images each")


def test_an_attack_that_finds_nothing_promises_nothing(made):
    summary = summarise([made.record(psnr=9)])
    assert "none of 8 images was recognised" in summary.verdict[0]
    assert "does not show that none can be" in summary.verdict[0]
    assert summary.judgements[0].tone == "unknown"


def test_a_defence_is_judged_by_the_strongest_attack(made):
    records = [
        made.record(psnr=38),
        made.record(TopK(), psnr=9, attack=made.GEIPING, label="geiping2020"),
        made.record(TopK(), psnr=31, label="dlg2019"),
    ]
    found = judged(records, TopK())
    assert found.worst.attack == "dlg2019"
    assert found.tone == "leaks"


def test_a_defence_is_compared_only_where_no_defence_was_measured_too(made):
    records = [made.record(psnr=38, batch_size=1), made.record(TopK(), psnr=30, batch_size=8), made.record(TopK(), psnr=9)]
    found = judged(records, TopK())
    assert found.worst.batch_size == 1
    assert found.tone == "unbroken"


def test_tones(made):
    bare = made.record(psnr=38)
    tone = {psnr: judged([bare, made.record(TopK(), psnr=psnr)], TopK()).tone for psnr in (9, 19, 31, 38)}
    assert tone == {9: "unbroken", 19: "reduces", 31: "leaks", 38: "leaks"}
    assert judged([made.record(psnr=9), made.record(TopK(), psnr=8)], TopK()).tone == "unknown"
    assert judged([made.record(TopK(), psnr=8)], TopK()).tone == "unknown"
    assert judged([made.record(TopK(), psnr=30)], TopK()).tone == "leaks"


def test_a_defence_that_was_not_broken_names_the_attacks_and_what_the_interval_allows(made):
    sentence = judged([made.record(psnr=38), made.record(TopK(share=0.05), psnr=9, accuracy=0.7)], TopK(share=0.05)).sentence
    assert "Top-k (share 0.05) was not broken by the attack tried (dlg2019): none of 8 images was recognised" in sentence
    assert "up to 32 % may still be" in sentence
    assert "The price: 10.0 points of accuracy (95 % interval 6.2 to 13.7)." in sentence


def test_a_loss_within_chance_is_said_to_be_perhaps_nothing(made):
    sentence = judged([made.record(), made.record(TopK(), accuracy=0.79)], TopK()).sentence
    assert "so perhaps nothing" in sentence


def test_images_that_only_the_transformed_copy_gives_away_are_named(made):
    found = judged([made.record(psnr=38), made.record(TopK(), psnr=9, used=30)], TopK())
    assert "Of the images as the defence changed them, all 8 could be recognised." in found.sentence


def test_epsilon_is_named_and_an_infinite_one_is_no_guarantee(made):
    bare = made.record()
    assumed = {"dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}
    attacked = {"dp_sgd.attacked.epsilon": 4.38, "dp_sgd.attacked.delta": 1e-5, "dp_sgd.attacked.participations": 1.0}
    finite = made.record(DPSGD(), psnr=9, notes={"dp_sgd.epsilon": 2.5, **assumed, **attacked})
    endless = made.record(DPSGD(), psnr=9, notes={"dp_sgd.epsilon": float("inf"), **assumed})
    assert judged([bare, finite], DPSGD()).sentence.endswith(
        "Its privacy budget: epsilon at most 2.5 at delta 1e-05 (upper bound; Poisson sampling at rate 0.1); "
        "for the attacked messages alone, epsilon at most 4.38 at delta 1e-05 "
        "(upper bound; no amplification is claimed for batches that an audit fixed: an example counts once)."
    )
    sentence = judged([bare, endless], DPSGD()).sentence
    assert "epsilon is infinite at delta 1e-05 (Poisson sampling at rate 0.1): no guarantee." in sentence


def test_labels_have_a_sentence_of_their_own(made):
    records = [
        made.record(labels=0.0),
        made.record(GaussianNoise(), labels=0.25),
        made.record(TopK(), labels=0.9),
    ]
    sentence = summarise(records).verdict[-1]
    assert "without defence 100 % of the labels behind a message are read correctly (guessing gets 10 %)" in sentence
    assert "under Gaussian noise (std 0.01) (75 %)." in sentence
    assert "top-k" not in sentence


def test_any_reading_about_leakage_can_carry_a_verdict(made):
    def auc(value):
        return (Reading(name="other_auc", value=value, low=value - 0.02, high=value + 0.02, chance=0.5, leaks="high"),)

    records = [made.record(psnr=None, extra=auc(0.95)), made.record(TopK(), psnr=None, extra=auc(0.51))]
    summary = summarise(records)
    assert "reached other auc 0.95, chance 0.5" in summary.verdict[0]
    assert summary.judgements[1].tone == "unbroken"
    assert (
        "Top-k (share 0.1) was not broken by the attack tried (dlg2019): the strongest reached other auc 0.51"
        in summary.verdict[1]
    )
    assert "no better than chance" in summary.verdict[1]


def test_all_attacks_that_a_verdict_rests_on_are_named(made):
    other = {"attack": made.GEIPING, "label": "geiping2020"}
    elsewhere = made.record(TopK(), psnr=9, batch_size=8, label="not compared")
    records = [made.record(psnr=38), made.record(TopK(), psnr=9), made.record(TopK(), psnr=8, **other), elsewhere]
    found = judged(records, TopK())
    assert found.attacks == ("dlg2019", "geiping2020")
    assert "was not broken by the attacks tried (dlg2019 and geiping2020)" in found.sentence


def test_an_attack_on_labels_alone_does_not_decide_about_images(made):
    records = [
        made.record(psnr=38),
        made.record(TopK(), psnr=9),
        made.record(TopK(), psnr=None, labels=0.0, label="labels only"),
    ]
    assert judged(records, TopK()).worst.attack == "dlg2019"


def test_several_scenarios_are_kept_apart_and_numbered(made):
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    records = [made.record(psnr=38), made.record(psnr=9, scenario=other), made.record(TopK(), psnr=9, scenario=other)]
    summary = summarise(records)
    assert [row.scenario for row in summary.rows] == [1, 2, 2]
    assert summary.judgements[2].tone == "unknown"
    assert all(sentence.startswith("Scenario ") for sentence in summary.verdict)


def test_the_threshold_comes_from_the_statement_that_was_measured(made):
    assert summarise([made.record()]).threshold == made.EPSILON
    assert summarise([]).threshold is None


def test_a_chain_is_named_by_its_links(made):
    chain = Chain(links=(TopK(share=0.1), GaussianNoise(std=0.1)))
    assert judged([made.record(), made.record(chain)], chain).sentence.startswith(
        "Top-k (share 0.1) + Gaussian noise (std 0.1)"
    )


def test_nothing_done_is_nothing_said(made):
    summary = summarise([made.record(status=Status.FAILED, reason="no")])
    assert summary.verdict == ("Nothing was measured, so nothing can be said.",)
    assert summary.counts == {Status.FAILED: 1}


def test_where_nothing_got_through_the_leakiest_setting_speaks(made):
    records = [made.record(psnr=38, batch_size=1), made.record(psnr=25, batch_size=2)]
    records += [made.record(TopK(), psnr=5, batch_size=1), made.record(TopK(), psnr=8, batch_size=2)]
    assert judged(records, TopK()).worst.batch_size == 1
    records += [made.record(GaussianNoise(), psnr=5, batch_size=1), made.record(GaussianNoise(), psnr=15, batch_size=2)]
    assert judged(records, GaussianNoise()).worst.batch_size == 2
