"""A report of attacks on a model that was never trained: errors are drawn, usefulness and CAP are not."""

import pytest

from leaktight.data import Digits
from leaktight.findings.summary import summarise
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.report.curve import chart_of
from leaktight.report.palette import Palette


@pytest.fixture
def untrained(made):
    return made.sweep(scenario=Federated(data=Digits(), model=MLP(), rounds=0))


def test_the_figure_shows_distances_alone(untrained, made):
    charts = [chart_of(summarise(records).curves[0], Palette.of([])) for records in (untrained, made.sweep())]
    titles = [[panel.y.title for panel in chart.panels] for chart in charts]
    assert "accuracy" not in titles[0]
    assert titles[1] == ["accuracy", *titles[0]]
    tips = [point.tip for panel in charts[0].panels for one in panel.series for point in one.points]
    assert not any("accuracy" in text for text in tips)


def test_the_page_says_why_there_is_no_cap_and_no_price(untrained, report):
    page = report(untrained)
    assert "No usefulness and no CAP are shown: the model was not trained (0 rounds)." in page
    assert "CAP, " not in page
    assert "The price" not in page
    assert "No price can be given: the model was not trained (0 rounds)." in page
    assert "What the attack dlg2019 rebuilt in each region" in page


def test_a_useful_model_has_no_such_note(made, report):
    assert "No usefulness and no CAP" not in report(made.sweep())
