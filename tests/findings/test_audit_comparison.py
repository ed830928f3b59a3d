"""Comparisons of audits: what changed, paired where the same victims were attacked, and what cannot be compared."""

import dataclasses

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.defences import GaussianNoise, TopK
from leaktight.findings.audit_comparison import Audit, compare, compare_audits
from leaktight.findings.comparison_words import say_got, say_price, say_read, say_use, say_words
from leaktight.findings.summary import summarise

TOP = TopK(share=0.3)


@pytest.fixture
def audit(made):
    def make(letter, records, plan=None, **more):
        settings = {"versions": made.VERSIONS, "contents": {}, **more}
        return Audit(
            letter, f"folder-{letter}", plan or made.plan(), tuple(records), summary=summarise(records), **settings
        )

    return make


@pytest.fixture
def hits(made):
    """A record whose images are recognised one by one as asked."""

    def make(defence, recognised, outcomes="", accuracy=0.8, **more):
        shares = made.share(
            "reconstruction_statement", sum(recognised), len(recognised), leaks="high", chance=0.0, against="raw"
        )
        use = made.share("accuracy", round(8 * accuracy), 8, chance=0.1).model_copy(update={"outcomes": outcomes})
        extra = (shares.model_copy(update={"each": tuple(map(float, recognised))}), use)
        return made.record(defence, psnr=None, accuracy=None, extra=extra, **more)

    return make


def test_a_changed_verdict_is_told_first_with_attack_and_price(made, audit):
    before = [made.record(psnr=38), made.record(TOP, 31, 0.8), made.record(GaussianNoise(std=1.0), 31)]
    after = [*made.two_principles(TOP, accuracy=0.75), made.record(GaussianNoise(std=1.0), 31)]
    found = compare([audit("A", before), audit("B", after)])
    changed = found.shared_lines[0]
    assert (changed.defence, changed.words, changed.changed) == ("top-k (share 0.3)", ("leaks", "not broken"), True)
    assert say_words(found, changed) == "A leaks, B not broken"
    assert [say_got(changed, one) for one in changed.judgements] == ["all 8 by dlg2019", "none of 8 by adaptive"]
    assert [say_price(one) for one in changed.judgements] == ["none seen", "5.0 points of accuracy"]
    assert found.headline == "1 of 3 shared verdicts changed between A and B."
    assert [line.changed for line in found.shared_lines] == [True, False, False]
    assert "not tried in A: adaptive and learned" in found.settings


def test_a_model_that_learned_nothing_is_useless_here_too(made, audit):
    learned, not_learned = (made.two_principles(TOP, accuracy=accuracy) for accuracy in (0.75, 0.1))
    line = compare([audit("A", learned), audit("B", not_learned)]).shared_lines[0]
    assert (line.words, line.changed) == (("not broken", "useless"), True)


def test_the_same_victims_are_paired(hits, audit):
    first = [hits(None, [1] * 8), hits(TOP, [1] * 8)]
    second = [hits(None, [1] * 8), hits(TOP, [1, 1, 0, 0, 0, 0, 0, 0])]
    [_, line] = compare([audit("A", first), audit("B", second)]).lines
    difference = line.differences[1]
    assert (difference.victims, difference.read.value) == (8, -0.75)
    assert difference.read.high < 0
    assert say_read(difference).startswith("reads 75.0 points less (95 % interval ")
    assert say_read(difference).endswith("), on the same 8 victims")
    assert line.differences[0] is None


@pytest.mark.parametrize("what", ["seed", "batch", "rounds", "contents", "seeds of the plan"])
def test_other_victims_are_not_paired(made, hits, audit, what):
    other = {"seed": {"seed": 1}, "batch": {"batch_size": 2}}.get(what, {})
    if what == "rounds":
        other = {"scenario": made.SCENARIO.model_copy(update={"rounds": 50})}
    plan = made.plan(seeds=(0, 1)) if what == "seeds of the plan" else made.plan()
    key = made.SCENARIO.key
    contents = {key: "other" if what == "contents" else "same"}
    first = audit("A", [hits(None, [1] * 8), hits(TOP, [1] * 8)], contents={key: "same"})
    second = audit("B", [hits(None, [1] * 8, **other), hits(TOP, [0] * 8, **other)], plan=plan, contents=contents)
    line = compare([first, second]).lines[1]
    assert line.differences[1].victims == 0
    assert say_read(line.differences[1]).endswith("), as two independent samples")


def test_another_network_is_attacked_on_the_same_victims(made, hits, audit):
    other = {"scenario": made.SCENARIO.model_copy(update={"model": {"kind": "mlp"}})}
    found = compare(
        [audit("A", [hits(None, [1] * 8)]), audit("B", [hits(None, [1, 0] * 4, **other)])],
    )
    assert found.lines[0].differences[1].victims == 8
    assert any(setting == "scenario.model.kind: A dlnet, B mlp" for setting in found.settings)


def test_models_are_compared_on_the_same_test_rows(hits, audit):
    first = [hits(None, [1] * 8, "hits:8:/w==", 1.0)]
    second = [hits(None, [1] * 8, "hits:8:Pw==", 0.75)]
    [line] = compare([audit("A", first), audit("B", second)]).lines
    assert line.differences[1].use.paired
    assert say_use(line.differences[1]).startswith("accuracy is 25.0 points lower (")
    assert say_use(line.differences[1]).endswith("), on the same test rows")
    moved = audit("B", second, contents={second[0].cell.scenario.key: "other"})
    loose = compare([audit("A", first), moved]).lines[0].differences[1]
    assert not loose.use.paired
    assert say_use(loose).endswith("as two independent samples")


def test_less_of_a_distance_is_more_read(made, audit):
    first, second = (
        [made.record(psnr=None, labels=missed), made.record(TOP, psnr=None, labels=missed)] for missed in (0.5, 0.0)
    )
    line = compare([audit("A", first), audit("B", second)]).lines[0]
    assert line.kind.kind == "labels"
    assert line.differences[1].read.value == 0.5


def test_messages_of_several_examples_count_once(made, audit):
    def record(each):
        shares = made.share("reconstruction_statement", sum(each), len(each), leaks="high", chance=0.0, against="raw")
        return made.record(None, psnr=None, extra=(shares.model_copy(update={"each": each}),), victims=4, batch_size=2)

    line = compare([audit("A", [record((1.0,) * 8)]), audit("B", [record((1.0, 0.0) * 4)])]).lines[0]
    assert (line.differences[1].victims, line.differences[1].read.value) == (4, -0.5)


def test_three_audits_and_what_one_alone_has(made, audit):
    bare = made.record(psnr=38)
    found = compare(
        [
            audit("A", [bare, made.record(TOP, 31)]),
            audit("B", [bare, made.record(GaussianNoise(std=1.0), 31)]),
            audit("C", [bare, *made.two_principles(TOP, accuracy=0.79)]),
        ]
    )
    top = next(line for line in found.lines if line.defence.startswith("top-k"))
    assert top.words == ("leaks", None, "not broken")
    assert (top.differences[1], top.differences[2] is not None) == (None, True)
    assert found.alone() == {"B": ["Gaussian noise (std 1), images (leaks)"]}
    assert found.headline == "1 of 2 shared verdicts changed between A, B and C."
    [alone] = compare([audit("A", [bare]), audit("B", [bare, made.record(TOP, 31)])]).alone()["B"]
    assert alone.startswith("Top-k")


def test_scenarios_are_matched_by_settings_then_by_name(made, audit):
    small, large = made.SCENARIO, made.SCENARIO.model_copy(update={"rounds": 500})
    plan = made.plan().model_copy(update={"scenarios": {"small": small, "large": large}})
    records = [made.record(psnr=38, scenario=small), made.record(psnr=9, scenario=large)]
    turned = made.plan().model_copy(update={"scenarios": {"large": large, "small": small}})
    found = compare([audit("A", records, plan), audit("B", records[::-1], turned)])
    assert [(line.scenario, line.shared, line.changed) for line in found.lines] == [
        ("small", True, False),
        ("large", True, False),
    ]


def test_audits_with_nothing_in_common_get_one_sentence(made, audit):
    found = compare([audit("A", [made.record(TOP, 31)]), audit("B", [made.record(GaussianNoise(std=1.0), 31)])])
    assert found.shared_lines == ()
    assert (
        found.headline
        == "A and B have nothing in common: no defence and kind of leak was measured in more than one of them."
    )


def test_readings_of_other_names_are_not_subtracted(made, audit):
    odd = (Reading(name="odd", value=0.5, low=0.4, high=0.6, n=8, chance=0.1, leaks="high"),)
    line = compare([audit("A", [made.record(psnr=38)]), audit("B", [made.record(psnr=None, extra=odd)])]).lines[0]
    assert line.differences[1].read is None
    assert say_read(line.differences[1]) == ""
    assert say_use(dataclasses.replace(line.differences[1], use=None)) == ""


@pytest.mark.parametrize("count", [0, 1, 27])
def test_a_comparison_takes_two_to_twenty_six(tmp_path, count):
    with pytest.raises(InvalidValue, match=f"A comparison takes 2 to 26 audits. Got {count} instead."):
        compare_audits([tmp_path] * count)
