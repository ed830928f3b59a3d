"""No epsilon is shown anywhere without its delta, what it rests on, and what kind of number it is."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console

from leaktight.cli.export import as_csv, as_lines
from leaktight.cli.outcome import show
from leaktight.core.record import Record
from leaktight.defences import DPSGD, LocalDP
from leaktight.report import render

# Numbers that nothing else in an audit shows.
MEANS = {
    "3.17": "epsilon at most 3.17 at delta 1e-05 (upper bound; Poisson sampling at rate 0.0891)",
    "5.29": "for the attacked messages alone, epsilon at most 5.29 at delta 1e-05 (upper bound; "
    "no amplification is claimed for batches that an audit fixed: an example counts 2 times)",
    "7.47": "epsilon at most 7.47 at delta 1e-06 (upper bound; whole messages, 40 of one participant, so that no "
    "sampling is assumed)",
}
OF_EXAMPLES = {
    "dp_sgd.epsilon": 3.1717,
    "dp_sgd.delta": 1e-5,
    "dp_sgd.sample_rate": 0.08913,
    "dp_sgd.attacked.epsilon": 5.2929,
    "dp_sgd.attacked.delta": 1e-5,
    "dp_sgd.attacked.participations": 2.0,
    "dp_sgd.clipped": 0.5,
}
OF_MESSAGES = {"local_dp.epsilon": 7.4747, "local_dp.delta": 1e-6, "local_dp.messages": 40.0}


@pytest.fixture
def records(made: Any) -> list[Record]:
    return [
        made.record(psnr=38),
        made.record(DPSGD(), psnr=9, notes=OF_EXAMPLES),
        made.record(LocalDP(), psnr=9, notes=OF_MESSAGES),
    ]


def alone(text: str) -> list[str]:
    """Return where an epsilon stands without all that belongs to it."""
    rest = text
    for said in MEANS.values():
        rest = rest.replace(said, "")
    return [rest[max(0, at.start() - 60) : at.end() + 60] for at in re.finditer(r"(?<![\d.])(3\.17|5\.29|7\.47)", rest)]


def test_on_the_terminal(records: Sequence[Record]) -> None:
    out = io.StringIO()
    show(records, console=Console(file=out))
    assert all(out.getvalue().count(said) == 1 for said in MEANS.values())
    assert not alone(out.getvalue())


def test_in_the_report(records: Sequence[Record], made: Any) -> None:
    text = html.unescape(render(records, made.plan(), made.VERSIONS, made.gallery(records)))
    scripts = re.findall(r"<script.*?</script>", text, flags=re.DOTALL)
    text = text.replace(max(scripts, key=len), "")  # the library that draws has numbers of its own
    # In the verdict, in the table of all numbers, and beside the cell.
    assert all(text.count(said) >= 3 for said in MEANS.values())
    assert not alone(text)
    assert "clipped 0.5" in text


def test_in_the_export(records: Sequence[Record]) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(records))))
    shown = {row["defence"]: row["privacy_budget"] for row in rows}
    assert list(shown.values()) == ["", f"{MEANS['3.17']}; {MEANS['5.29']}", MEANS["7.47"]]
    assert not alone(as_csv(records))
    for redact in (False, True):
        bare, examples, messages = map(json.loads, as_lines(records, redact).splitlines())
        assert "privacy_budget" not in bare
        assert examples["privacy_budget"] == [MEANS["3.17"], MEANS["5.29"]]
        assert messages["privacy_budget"] == [MEANS["7.47"]]
        # The rest of the line is the record.
        assert examples["notes"] == OF_EXAMPLES
        assert examples.keys() - bare.keys() == {"privacy_budget"}
