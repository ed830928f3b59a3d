import pytest

from leaktight.core.defence import Undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Status
from leaktight.defences import GaussianNoise, TopK
from leaktight.findings.images import threshold_of
from leaktight.findings.rows import rows_of
from leaktight.findings.summary import summarise


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
    assert "Its cost in accuracy was not measured." in summarise([made.record(GaussianNoise())]).verdict[0]


def test_a_defence_is_judged_by_the_strongest_attack(made):
    records = [
        made.record(psnr=38),
        made.record(TopK(), psnr=9, attack=made.GEIPING, label="geiping2020"),
        made.record(TopK(), psnr=31, label="dlg2019"),
    ]
    found = judged(records, TopK())
    assert found.worst.attack == "dlg2019"
    assert found.verdict == "leaks"


def test_an_attack_on_labels_alone_does_not_decide_about_images(made):
    records = [
        made.record(psnr=38),
        made.record(TopK(), psnr=9),
        made.record(TopK(), psnr=None, labels=0.0, label="labels only"),
    ]
    assert judged(records, TopK()).worst.attack == "dlg2019"


def test_all_attacks_that_were_tried_in_the_setting_are_named(made):
    other = {"attack": made.GEIPING, "label": "geiping2020"}
    elsewhere = made.record(TopK(), psnr=9, batch_size=8, label="elsewhere")
    records = [made.record(psnr=38), made.record(TopK(), psnr=9), made.record(TopK(), psnr=8, **other), elsewhere]
    assert judged(records, TopK()).attacks == ("dlg2019", "geiping2020")


def test_kinds_of_leak_are_told_one_after_the_other(made):
    records = [made.record(labels=0.0), made.record(TopK(), labels=0.9)]
    summary = summarise(records)
    assert [(j.kind.kind, j.defence.kind) for j in summary.judgements] == [
        *(("images", "none"), ("images", "top_k")),
        *(("labels", "none"), ("labels", "top_k")),
    ]
    assert len(summary.verdict) == 4


def test_several_scenarios_are_kept_apart_and_numbered(made):
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    records = [made.record(psnr=38), made.record(psnr=9, scenario=other), made.record(TopK(), psnr=9, scenario=other)]
    summary = summarise(records)
    assert [row.scenario for row in summary.rows] == [1, 2, 2]
    assert summary.judgements[2].verdict == "unknown"
    assert all(sentence.startswith("Scenario ") for sentence in summary.verdict)


def test_the_threshold_comes_from_the_statement_that_was_measured(made):
    assert threshold_of([made.record()]) == made.EPSILON
    assert threshold_of([]) is None


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
