"""One word for each defence and kind of leak, never stronger than the evidence."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.defence import Undefended, is_undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Status
from leaktight.core.threat import Knows
from leaktight.defences import DPSGD, GaussianNoise, LocalDP, TopK
from leaktight.findings.images import Images
from leaktight.findings.kind import LUCK, first_kind, leak_kinds
from leaktight.findings.rows import Row, rows_of
from leaktight.findings.strongest import strongest
from leaktight.findings.verdict import PRECEDENCE, judge

DP = {"dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}


def judged(records, defence=None, kind="images"):
    [found] = [j for j in judge(rows_of(records)) if j.defence == (defence or TopK()) and j.kind.kind == kind]
    return found


def share(made, defence, hits, **more):
    """Eight images of which these are recognised, and a PSNR that says nothing."""
    each = tuple(float(place in hits) for place in range(8))
    reading = made.share("reconstruction_statement", sum(each), 8, chance=0.0, leaks="high", against="raw", each=each)
    return made.record(defence, psnr=None, extra=(reading,), **more)


def test_the_words_have_an_order():
    assert PRECEDENCE == ("refuted", "leaks", "reduced", "bounded", "not broken", "unknown")


@pytest.mark.parametrize(
    ("psnr", "verdict"), [(38, "leaks"), (20, "leaks"), (13, "leaks"), (11.5, "unknown"), (9, "unknown")]
)
def test_without_a_defence_anything_beyond_chance_leaks(made, psnr, verdict):
    """Also a PSNR that no blind answer reaches; but not one that lies above it by a trifle."""
    [found] = judge(rows_of([made.record(psnr=psnr)]))
    assert found.verdict == verdict
    assert (found.missing == "") is (verdict == "leaks")


@pytest.mark.parametrize(
    ("hits", "verdict"),
    [
        (range(8), "leaks"),
        (range(3), "leaks"),
        (range(2), "reduced"),
        ({0}, "reduced"),
        ({6, 7}, "reduced"),
        ((), "unknown"),
    ],
)
def test_half_of_the_victims_that_are_read_without_a_defence_decide(made, hits, verdict):
    """Six are read without it. Two others are not half of them, though they are as many as a third."""
    assert judged([share(made, None, range(6)), share(made, TopK(), hits)]).verdict == verdict


@pytest.mark.parametrize(("hits", "verdict"), [({5, 6, 7}, "leaks"), ({6, 7}, "reduced")])
def test_without_values_of_single_victims_shares_decide(made, hits, verdict):
    def counted(record):
        return record.model_copy(update={"readings": tuple(r.model_copy(update={"each": ()}) for r in record.readings)})

    records = [share(made, None, range(6)), share(made, TopK(), hits)]
    assert judged([counted(record) for record in records]).verdict == verdict


def test_victims_of_other_seeds_are_not_the_same(made):
    records = [share(made, None, range(6), seed=0), share(made, TopK(), {5, 6, 7}, seed=1)]
    assert judged(records).verdict == "leaks"
    assert judged([share(made, None, range(6)), share(made, TopK(), {5, 6, 7})]).verdict == "reduced"


def test_redaction_changes_no_word(made):
    records = [share(made, None, range(6)), share(made, TopK(), {5, 6, 7})]
    shown = [
        r.model_copy(update={"readings": tuple(x.model_copy(update={"each": ()}) for x in r.readings)}) for r in records
    ]
    rows = rows_of(shown)
    assert [j.verdict for j in judge(rows)] == ["leaks", "leaks"]
    assert [j.verdict for j in judge(rows, rows_of(records))] == ["leaks", "reduced"]


def test_recognised_images_must_beat_what_blind_answers_reach(made):
    def blind(defence, hits):
        record = share(made, defence, range(hits))
        return record.model_copy(
            update={"readings": tuple(r.model_copy(update={"chance": 0.3}) for r in record.readings)}
        )

    assert judged([blind(None, 8), blind(TopK(), 4)]).verdict == "unknown"
    assert judged([blind(None, 8), blind(TopK(), 7)]).verdict == "leaks"


@pytest.mark.parametrize(
    ("name", "numbers", "sign"),
    [
        ("psnr", {"value": 14, "low": 13, "high": 15, "chance": 11, "leaks": "high"}, "PSNR of 14.0 dB"),
        ("psnr", {"value": 11.9, "low": 11.5, "high": 12.3, "chance": 11, "leaks": "high"}, ""),
        (
            "tracing_distance",
            {"value": 0.2, "low": 0.1, "high": 0.4, "chance": 0.75, "leaks": "low"},
            "80 % of the images are traced",
        ),
        ("tracing_distance", {"value": 0.6, "low": 0.4, "high": 0.8, "chance": 0.75, "leaks": "low"}, ""),
    ],
)
def test_a_reading_that_contradicts_protection_is_part_of_the_verdict(made, name, numbers, sign):
    extra = (Reading(name=name, against="raw", n=8, **numbers),)
    bare = share(made, None, range(8))
    defended = share(made, TopK(), ())
    defended = defended.model_copy(update={"readings": (*defended.readings, *extra)})
    found = judged([bare, defended])
    assert found.verdict == ("reduced" if sign else "unknown")
    assert sign in " ".join(found.signs)


def test_the_image_that_the_defence_made_counts_too(made):
    found = judged([made.record(psnr=38), made.record(TopK(), psnr=9, used=30)])
    assert found.verdict == "reduced"
    assert found.signs == ("all 8 can be recognised as the defence changed them",)


def test_an_image_leaks_whether_its_search_stopped_short_or_not_but_nothing_else_does(made):
    bare = made.record(psnr=38)
    assert judged([bare, made.record(TopK(), psnr=38, extra=made.searches(8))]).verdict == "leaks"
    assert judged([bare, made.record(TopK(), psnr=14, extra=made.searches(7))]).verdict == "reduced"
    assert judged([bare, made.record(TopK(), psnr=14, extra=made.searches(8))]).verdict == "unknown"


def test_two_principles_that_work_and_know_the_defence_make_not_broken(made):
    found = judged(made.two_principles(TopK()))
    assert (found.verdict, found.missing, found.is_good) == ("not broken", "", False)
    assert found.attacks == ("adaptive", "learned")


def without(records, change):
    return [changed for record in records if (changed := change(record)) is not None]


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (
            lambda r: None if r.cell.label == "learned" else r,
            "Only one principle was tried: search over candidates (adaptive).",
        ),
        (lambda r: None if is_undefended(r.cell.defence) else r, "Nothing was measured without a defence here"),
        (
            lambda r: None if is_undefended(r.cell.defence) and r.cell.label == "learned" else r,
            "Only one principle was tried: search over candidates (adaptive). Of the others, learned was not tried "
            "without a defence.",
        ),
        (
            lambda r: (
                r.model_copy(update={"cell": r.cell.model_copy(update={"batch_size": 9})})
                if is_undefended(r.cell.defence)
                else r
            ),
            "Nothing was measured without a defence here",
        ),
    ],
)
def test_what_is_missing_is_said(made, change, missing):
    found = judged(without(made.two_principles(TopK()), change))
    assert found.verdict == "unknown"
    assert found.missing.startswith(missing)


@pytest.mark.parametrize(("failed", "verdict"), [(0, "not broken"), (1, "not broken"), (2, "unknown"), (8, "unknown")])
def test_of_eight_searches_one_may_fail(made, failed, verdict):
    found = judged(made.two_principles(TopK(), failed=failed))
    assert found.verdict == verdict
    if verdict == "unknown":
        assert "adaptive failed in" in found.missing


def test_an_attack_that_fails_undefended_says_nothing(made):
    weak = [
        r.model_copy(update={"readings": made.record(psnr=9).readings}) if is_undefended(r.cell.defence) else r
        for r in made.two_principles(TopK())
    ]
    found = judged(weak)
    assert (found.verdict, found.missing) == (
        "unknown",
        "Every attack failed even without a defence, so this says nothing.",
    )


def test_a_search_that_fails_undefended_says_nothing_though_it_reads(made):
    records = made.two_principles(TopK())
    records[0] = records[0].model_copy(update={"readings": made.record(psnr=38, extra=made.searches(8)).readings})
    assert judged(records).missing.endswith("adaptive searches in vain even without a defence.")


def test_a_search_of_which_nobody_knows_whether_it_failed_says_nothing(made):
    records = made.two_principles(TopK())
    records[2] = records[2].model_copy(update={"readings": made.record(psnr=9).readings})
    assert "adaptive searches, and nobody could tell whether it failed" in judged(records).missing


def test_attacks_that_do_not_model_the_defence_say_nothing(made):
    plain = [made.record(psnr=38, extra=made.searches(0)), made.record(TopK(), psnr=9, extra=made.searches(0))]
    assert judged(plain).missing == "No attack counts as evidence: dlg2019 does not model this defence."


def test_every_search_failed(made):
    records = [made.record(psnr=38, extra=made.searches(0)), made.record(TopK(), psnr=9, extra=made.searches(8))]
    assert judged(records).missing.startswith("Every search failed, so this says nothing about the defence")


def test_a_setting_without_evidence_is_not_made_up_for_by_another(made):
    strong = made.two_principles(TopK())
    weak = [made.record(psnr=38, batch_size=8), made.record(TopK(), psnr=9, batch_size=8)]
    found = judged([*strong, *weak])
    assert (found.verdict, found.worst.batch_size) == ("unknown", 8)
    unread = [made.record(psnr=9, batch_size=8), made.record(TopK(), psnr=9, batch_size=8)]
    assert judged([*strong, *unread]).verdict == "not broken"


def test_a_leak_anywhere_counts_also_where_no_defence_was_not_measured(made):
    found = judged([*made.two_principles(TopK()), made.record(TopK(), psnr=30, batch_size=8)])
    assert (found.verdict, found.worst.batch_size, found.base) == ("leaks", 8, None)


@pytest.mark.parametrize(
    ("epsilon", "psnr", "verdict", "good"),
    [
        (1.0, 9, "bounded", True),
        (2.3, 9, "bounded", True),
        (2.5, 9, "bounded", False),
        (50.0, 9, "bounded", False),
        (float("inf"), 9, "unknown", False),
        (1.0, 38, "leaks", False),
        (1.0, 14, "reduced", False),
    ],
)
def test_an_accounted_epsilon_bounds_unless_an_attack_reads(made, epsilon, psnr, verdict, good):
    notes = {"dp_sgd.epsilon": epsilon, **DP}
    found = judged([made.record(psnr=38), made.record(DPSGD(), psnr=psnr, notes=notes)], DPSGD())
    assert (found.verdict, found.is_good) == (verdict, good)


@pytest.mark.parametrize("left_out", list(DP))
def test_an_epsilon_without_delta_or_assumption_bounds_nothing(made, left_out):
    notes = {name: value for name, value in {"dp_sgd.epsilon": 1.0, **DP}.items() if name != left_out}
    assert judged([made.record(psnr=38), made.record(DPSGD(), psnr=9, notes=notes)], DPSGD()).verdict == "unknown"


def test_a_bound_must_hold_for_every_attack_that_was_tried(made):
    notes = {"dp_sgd.epsilon": 1.0, **DP}
    rows = [
        made.record(DPSGD(), psnr=9, notes=notes, label="a"),
        made.record(DPSGD(), psnr=9, notes={**notes, "dp_sgd.epsilon": 3.0}, label="b"),
    ]
    assert judged([made.record(psnr=38), *rows], DPSGD()).bound.budget.epsilon == 3.0
    inside = made.record(DPSGD(), psnr=9, label="c")
    assert judged([made.record(psnr=38), *rows, inside], DPSGD()).verdict == "unknown"


@pytest.mark.parametrize(
    ("epsilon", "verdict", "good"),
    [(50.0, "bounded", False), (None, "unknown", False), (2.0, "bounded", True)],
)
def test_a_bound_in_one_setting_covers_no_other(made, epsilon, verdict, good):
    notes = {"dp_sgd.epsilon": 1.0, **DP}
    other = {} if epsilon is None else {**notes, "dp_sgd.epsilon": epsilon}
    records = [made.record(psnr=38), made.record(DPSGD(), psnr=9, notes=notes)]
    records += [made.record(psnr=34, batch_size=8), made.record(DPSGD(), psnr=9, batch_size=8, notes=other)]
    found = judged(records, DPSGD())
    assert (found.verdict, found.is_good, found.worst.batch_size) == (verdict, good, 8)
    assert (found.bound.budget.epsilon if found.bound else None) == epsilon


def test_a_bound_comes_before_what_attacks_did_not_find(made):
    records = made.two_principles(DPSGD(), notes={"dp_sgd.epsilon": 1.0, **DP})
    assert judged(records, DPSGD()).verdict == "bounded"


def auc(name, value):
    return Reading(name=name, value=value, low=value - 0.02, high=value + 0.02, chance=0.5, leaks="high", n=40)


def test_an_epsilon_for_examples_bounds_no_property_but_one_for_messages_does(made):
    def records(defence, notes):
        told = [
            made.record(d, psnr=None, extra=(auc("property_auc", value),), notes=n)
            for d, value, n in ((None, 0.9, {}), (defence, 0.5, notes))
        ]
        return judged(told, defence, "property")

    assert records(DPSGD(), {"dp_sgd.epsilon": 1.0, **DP}).verdict == "unknown"
    whole = {"local_dp.epsilon": 1.0, "local_dp.delta": 1e-5, "local_dp.messages": 3.0}
    assert records(LocalDP(), whole).verdict == "bounded"


@pytest.mark.parametrize(("value", "verdict"), [(0.51, "unknown"), (0.6, "reduced"), (0.73, "leaks"), (0.94, "leaks")])
def test_numbers_that_are_no_images_are_judged_by_half_of_what_lies_beyond_chance(made, value, verdict):
    records = [made.record(d, psnr=None, extra=(auc("other_auc", v),)) for d, v in ((None, 0.95), (TopK(), value))]
    assert judged(records).verdict == verdict


@pytest.mark.parametrize(
    ("one", "whichever", "verdict"),
    [(0.0, 0.3, "unknown"), (0.0, 0.97, "leaks"), (0.0, 0.6, "reduced"), (0.3, 0.4, "reduced"), (0.99, 0.8, "leaks")],
)
def test_samples_of_another_class_of_the_attacked_are_a_leak_too(made, one, whichever, verdict):
    def samples(defence, *values):
        readings = [
            auc(name, value).model_copy(update={"chance": chance})
            for name, value, chance in zip(("recognised", "recognised_any"), values, (0.1, 0.5), strict=True)
        ]
        return made.record(defence, psnr=None, extra=tuple(readings))

    assert judged([samples(None, 0.99, 0.99), samples(TopK(), one, whichever)], kind="samples").verdict == verdict


def test_luck_does_not_overrule_an_epsilon(made):
    """Of four images three are traced where guessing gets one: five in a hundred such numbers come about by luck."""

    def traced(high):
        reading = Reading(
            name="tracing_distance", value=0.25, low=0.05, high=high, chance=0.75, leaks="low", against="raw", n=4
        )
        record = made.record(DPSGD(), psnr=9, notes={"dp_sgd.epsilon": 1.0, **DP}, extra=(reading,))
        return judged([made.record(psnr=38), record], DPSGD()).verdict

    assert traced(0.7) == "bounded"
    assert traced(0.5) == "reduced"


def test_labels_that_come_with_an_update_are_judged_apart(made):
    def records(missed):
        return [made.record(labels=0.0, extra=made.searches(0)), made.record(TopK(), psnr=9, labels=missed)]

    assert judged(records(0.0), kind="labels").verdict == "leaks"
    assert (
        judged(records(0.9), kind="labels").missing
        == "No attack counts as evidence: dlg2019 does not model this defence."
    )
    assert judged(records(0.0)).verdict == "unknown"
    assert [(j.beside, j.charted) for j in judge(rows_of(records(0.0)))] == [
        (False, True),
        (False, True),
        (True, False),
        (True, False),
    ]
    alone = [made.record(defence, psnr=None, labels=0.0, label="labels only") for defence in (None, TopK())]
    assert [(j.kind.kind, j.beside, j.charted) for j in judge(rows_of(alone))] == [("labels", False, True)] * 2


@pytest.mark.parametrize("iterations_failed", [0, 8])
def test_labels_and_epsilons_do_not_depend_on_searches(made, iterations_failed):
    """However few searches end, labels are read off the message and an account stays an account."""
    notes = {"dp_sgd.epsilon": 1.0, **DP}
    extra = made.searches(iterations_failed)
    records = [
        made.record(psnr=9 if iterations_failed else 38, labels=0.0, extra=extra),
        made.record(TopK(), psnr=9, labels=0.1, extra=extra),
        made.record(DPSGD(), psnr=9, labels=0.8, extra=extra, notes=notes),
    ]
    assert judged(records, TopK(), "labels").verdict == "leaks"
    assert {judged(records, DPSGD(), kind).verdict for kind in ("images", "labels")} == {"bounded"}
    assert judged(records, TopK()).verdict == "unknown"


def test_each_member_of_a_team_counts_by_itself_and_the_answer_is_judged(made):
    team = {"attack": made.TEAM, "label": "team", "knows": (Knows.DEFENCE,)}
    bare = made.record(psnr=38, extra=made.members({"search": 38, "learned": 30, "simple": 9}), **team)
    safe = made.record(TopK(), psnr=9, extra=made.members({"search": 9, "learned": 8, "simple": 8}), **team)
    found = judged([bare, safe])
    assert (found.verdict, found.attacks) == ("not broken", ("search", "learned", "simple"))
    assert [(one.counts, one.flaw) for one in found.tried] == [
        (True, ""),
        (True, ""),
        (False, "failed even without a defence"),
    ]
    lucky = judged([bare, made.record(TopK(), psnr=9, extra=made.members({"search": 9, "simple": 20}), **team)])
    assert (lucky.verdict, lucky.worst.attack, lucky.suite.attack, lucky.reading.value) == (
        "leaks",
        "simple",
        "team",
        5 / 8,
    )
    assert judged([bare, made.record(TopK(), psnr=9, extra=made.members({"search": 9}), **team)]).luckiest is None


def in_team(made, defence, answer, **members):
    return made.record(
        defence, psnr=answer, extra=made.members(members), attack=made.TEAM, label="team", knows=(Knows.DEFENCE,)
    )


def test_what_one_of_several_attacks_reads_leaks_whatever_they_answer(made):
    bare = in_team(made, None, 38, search=38, learned=38)
    found = judged([bare, in_team(made, TopK(), 9, search=9, learned=38)])
    assert (found.verdict, found.worst.attack, found.reading.value) == ("leaks", "learned", 1.0)
    assert (found.worst.suite, found.suite.attack, found.may_be_advised) == ("team", "team", False)
    assert found.worst.utility == found.suite.utility is not None
    answered = judged([bare, in_team(made, TopK(), 38, search=9, learned=38)])
    assert (answered.worst.attack, answered.suite) == ("team", None)


def test_what_one_of_several_attacks_makes_clearer_than_chance_is_a_sign(made):
    """Nothing is recognised, but the copies of one attack lie far above what blind answers reach."""
    bare = in_team(made, None, 38, search=38, learned=38)
    found = judged([bare, in_team(made, TopK(), 9, search=9, learned=16)])
    assert found.verdict == "reduced"
    assert found.signs == ("by learned alone, the copies have a PSNR of 16.0 dB, where blind guessing gets 11.0 dB",)
    failed = [
        r.model_copy(update={"value": 1.0, "low": 0.6, "high": 1.0}) if r.name == "search_failed" else r
        for r in made.members({"search": 16, "learned": 9})
    ]
    vain = made.record(TopK(), psnr=9, extra=tuple(failed), attack=made.TEAM, label="team", knows=(Knows.DEFENCE,))
    assert (judged([bare, vain]).verdict, judged([bare, vain]).signs) == ("unknown", ())


def test_a_member_that_met_a_part_of_the_victims_is_no_evidence_about_the_rest(made):
    team = {"attack": made.TEAM, "label": "team", "knows": (Knows.DEFENCE,)}
    bare = made.record(psnr=38, extra=made.members({"search": 38, "learned": 30}), **team)
    some = [
        r.model_copy(update={"n": 3, "each": r.each[:3]}) if r.by == "learned" else r
        for r in made.members({"search": 9, "learned": 8})
    ]
    found = judged([bare, made.record(TopK(), psnr=9, extra=tuple(some), **team)])
    assert (found.verdict, found.luckiest) == ("unknown", None)
    read = [
        r.model_copy(update={"value": 1.0, "n": 3, "each": (1.0,) * 3}) if r.name == "reconstruction_statement" else r
        for r in some
    ]
    part = judged([bare, made.record(TopK(), psnr=9, extra=tuple(read), **team)])
    assert (part.verdict, part.worst.suite, part.luckiest) == ("reduced", "team", None)
    assert found.missing.endswith("Of the others, learned met 3 of 8 victims only.")
    apart = made.record(psnr=38, extra=made.members({"search": 38}), **team)
    whole = made.record(TopK(), psnr=9, extra=made.members({"search": 9, "learned": 8}), **team)
    assert judged([apart, whole]).missing.endswith("Of the others, learned was not tried without a defence.")


def test_a_luckier_attacker_takes_the_best_of_all_for_each_victim(made):
    found = judged(
        [share(made, None, range(8)), share(made, TopK(), {0}, label="a"), share(made, TopK(), {1, 2}, label="b")]
    )
    assert (found.verdict, found.luckiest.value) == ("reduced", 3 / 8)


def test_nobody_is_judged_who_was_never_measured(made):
    rows = rows_of([made.record(psnr=None), made.record(GaussianNoise(), status=Status.REFUSED, reason="no")])
    assert len(rows) == 2
    assert judge(rows) == ()
    row = Row(1, Undefended(), "dlg2019", False, 1, "initial", (), {})
    assert (first_kind(row), row.budgets, row.utility, row.attacks) == (None, (), None, (row,))
    assert all(kind.reading(row) is None for kind in leak_kinds())


def test_the_strongest_of_equals_by_count_is_the_clearer_one(made):
    rows = rows_of([made.record(psnr=30, label="a"), made.record(psnr=40, label="b")])
    assert strongest(Images(), rows).attack == "b"
    assert strongest(Images(), []) is None
    low, lower = rows_of([made.record(psnr=9, label="a"), made.record(psnr=4, label="b")])
    assert Images().severity(low) == Images().severity(lower)


def test_messages_that_nobody_graded_are_unknown(made):
    left = (Reading(name="objective", value=1e-9, n=4), Reading(name="diverged", value=0.0, n=4))
    [found] = judge(rows_of([made.record(psnr=None, accuracy=None, extra=left)]))
    assert (found.kind.kind, found.verdict) == ("ungraded", "unknown")
    assert "--truth" in found.missing


CELLS = st.fixed_dictionaries(
    {
        "psnr": st.floats(0, 60),
        "labels": st.none() | st.floats(0, 1),
        "failed": st.integers(0, 8),
        "who": st.sampled_from(["dlg2019", "adaptive", "learned"]),
        "batch_size": st.sampled_from([1, 8]),
        "epsilon": st.none() | st.floats(0, 20),
        "used": st.none() | st.floats(0, 60),
    }
)


def cell(made, defence, psnr, labels, failed, who, batch_size, epsilon, used):
    attack = {"dlg2019": made.DLG, "adaptive": made.ADAPTIVE, "learned": made.LEARNED}[who]
    extra = made.searches(failed) if who != "learned" else ()
    notes = {} if epsilon is None or defence is None else {"dp_sgd.epsilon": epsilon, **DP}
    more = {"attack": attack, "label": who, "batch_size": batch_size, "knows": (Knows.DEFENCE,)}
    return made.record(defence, psnr, labels=labels, used=used, extra=extra, notes=notes, **more)


def once(records):
    return list({record.cell.key: record for record in records}.values())


@settings(deadline=None, max_examples=80)
@given(bare=st.lists(CELLS, max_size=4), defended=st.lists(CELLS, min_size=1, max_size=4), new=CELLS)
def test_a_row_that_reads_every_image_never_improves_a_verdict(made, bare, defended, new):
    open_rows = [cell(made, None, **one) for one in bare]
    rows = [cell(made, TopK(), **one) for one in defended]
    before = judged(once([*open_rows, *rows]))
    leaky = cell(made, TopK(), **{**new, "psnr": 60.0}).model_copy(deep=True)
    leaky = leaky.model_copy(update={"cell": leaky.cell.model_copy(update={"label": "new"})})
    after = judged(once([*open_rows, *rows, leaky]))
    assert after.verdict == "leaks"
    assert PRECEDENCE.index(after.verdict) <= PRECEDENCE.index(before.verdict)


@settings(deadline=None, max_examples=80)
@given(bare=st.lists(CELLS, max_size=4), defended=st.lists(CELLS, min_size=1, max_size=4), new=CELLS)
def test_a_row_that_is_beyond_chance_never_improves_a_verdict(made, bare, defended, new):
    open_rows = [cell(made, None, **one) for one in bare]
    rows = [cell(made, TopK(), **one) for one in defended]
    more = cell(made, TopK(), **new)
    more = more.model_copy(update={"cell": more.cell.model_copy(update={"label": "new"})})
    before, after = judged(once([*open_rows, *rows])), judged(once([*open_rows, *rows, more]))
    if Images().is_read(rows_of([more])[0]):
        assert PRECEDENCE.index(after.verdict) <= PRECEDENCE.index(before.verdict)
        assert after.verdict in ("leaks", "reduced")
    assert not (before.verdict in ("leaks", "reduced") and after.verdict not in ("leaks", "reduced"))


@settings(deadline=None, max_examples=80)
@given(bare=st.lists(CELLS, max_size=5), defended=st.lists(CELLS, min_size=1, max_size=5))
def test_no_word_is_stronger_than_its_evidence(made, bare, defended):
    records = once([*(cell(made, None, **one) for one in bare), *(cell(made, TopK(), **one) for one in defended)])
    for found in judge(rows_of(records)):
        if found.verdict == "not broken":
            assert len({one.principle for one in found.tried if one.counts}) > 1
            assert found.kind.is_read(found.base)
        if found.verdict in ("not broken", "bounded", "unknown"):
            assert not found.kind.is_read(found.worst, LUCK if found.verdict == "bounded" else 1.0)
        assert found.is_good <= (found.verdict == "bounded")
        assert (found.verdict == "unknown") == bool(found.missing)


@settings(deadline=None, max_examples=40)
@given(bare=st.lists(CELLS, max_size=4), defended=st.lists(CELLS, min_size=1, max_size=4))
def test_searches_that_fail_never_make_a_verdict_on_images_better(made, bare, defended):
    """With every search cut short, nothing on images is `not broken`, and what rests on searches alone is unknown or leaks."""

    def cut(one):
        return {**one, "failed": 8, "who": "adaptive", "epsilon": None, "psnr": min(one["psnr"], 15.0)}

    records = once(
        [*(cell(made, None, **cut(one)) for one in bare), *(cell(made, TopK(), **cut(one)) for one in defended)]
    )
    assert {found.verdict for found in judge(rows_of(records)) if found.kind.kind == "images"} <= {"unknown"}


def test_member_rows_take_their_own_attack(made):
    [row] = rows_of(
        [
            made.record(
                TopK(),
                extra=made.members({"search": 9, "simple": 8}),
                attack=made.TEAM,
                label="team",
                knows=(Knows.DEFENCE,),
            )
        ]
    )
    assert [(part.attack, part.adaptive, part.principle, part.simple) for part in row.attacks] == [
        ("search", True, "search", False),
        ("simple", False, "search", False),
    ]
    assert dataclasses.replace(row, alone=()).attacks == (dataclasses.replace(row, alone=()),)
