"""Which attacks say something by failing."""

from leaktight.core.defence import is_undefended
from leaktight.core.threat import Knows
from leaktight.defences import TopK
from leaktight.findings.evidence import Tried, attacks_behind, say_missing
from leaktight.findings.images import Images
from leaktight.findings.rows import rows_of
from leaktight.findings.verdict import judge


def tried(records):
    rows = rows_of(records)
    return attacks_behind(
        Images(),
        [row for row in rows if not is_undefended(row.defence)],
        [row for row in rows if is_undefended(row.defence)],
    )


def in_team(made, label, defence, answer, **members):
    extra = made.members(members)
    return made.record(defence, psnr=answer, extra=extra, attack=made.TEAM, label=label, knows=(Knows.DEFENCE,))


def test_an_attack_of_a_suite_is_compared_with_itself_in_the_same_suite(made):
    """The search of a short suite reads nothing without a defence, that of a long one everything."""
    short = [in_team(made, "short", d, psnr, search=9, learned=psnr) for d, psnr in ((None, 38), (TopK(), 9))]
    long = [in_team(made, "long", d, psnr, search=psnr, learned=psnr) for d, psnr in ((None, 38), (TopK(), 9))]
    for records in ([*short, *long], [*long, *short]):
        found = tried(records)
        assert {(one.row.suite, one.name): one.reads_undefended for one in found} == {
            ("short", "search"): False,
            ("short", "learned"): True,
            ("long", "search"): True,
            ("long", "learned"): True,
        }


def test_an_attack_that_is_lucky_once_without_a_defence_is_no_evidence(made):
    """With a PSNR of 17.5 dB around which images spread, one of eight is recognised; with 20 dB, five are."""
    for weak, counts in ((17.5, False), (20, True)):
        records = made.two_principles(TopK())
        records[1] = records[1].model_copy(update={"readings": made.record(psnr=weak).readings})
        [learned] = [one for one in tried(records) if one.name == "learned"]
        assert learned.kind.is_read(learned.twin)
        assert (learned.reads_undefended, learned.counts) == (counts, counts)
        [found] = [one for one in judge(rows_of(records)) if one.defence == TopK()]
        assert found.verdict == ("not broken" if counts else "unknown")
    assert learned.flaw == ""


def test_it_is_said_that_an_attack_reads_too_little_without_a_defence(made):
    strong, weak = rows_of([made.record(psnr=38, label="strong"), made.record(psnr=17.5, label="weak")])
    [row] = rows_of([made.record(TopK(), psnr=9, label="weak")])
    one = Tried(Images(), row, weak, strong, 8)
    assert say_missing([one]) == (
        "No attack counts as evidence: weak reads less than half of what others read without a defence."
    )
