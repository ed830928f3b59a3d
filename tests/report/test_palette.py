"""The palette: one colour for each kind of defence, in the order of the plan, whatever chart asks."""

from leaktight.core.defence import Undefended
from leaktight.defences import GaussianNoise, MaxNorm, SumKL, TopK
from leaktight.report.palette import COLOURS, Palette


def test_strengths_share_a_colour_and_are_told_apart_by_their_strokes():
    palette = Palette.of([SumKL(bound=0.1), MaxNorm(), SumKL(bound=0.4), SumKL(bound=0.2)])
    assert {palette.colour_for(SumKL(bound=bound)) for bound in (0.1, 0.2, 0.4)} == {palette.colour_of("sumKL")}
    assert palette.colour_for(MaxNorm()) != palette.colour_of("sumKL")
    assert [palette.stroke_for(SumKL(bound=bound)) for bound in (0.1, 0.2, 0.4)] == ["dots", "dashes", "solid"]


def test_no_defence_has_a_colour_of_its_own():
    palette = Palette.of([Undefended(), TopK()])
    assert (palette.colour_for(Undefended()), palette.stroke_for(Undefended())) == ("bare", "solid")
    assert palette.symbol_of("no defence") == "star"


def test_the_order_of_the_plan_decides_and_not_that_of_a_chart():
    defences = [GaussianNoise(std=0.1), TopK(share=0.1)]
    assert Palette.of(defences).colour_of("top-k") == "colour1"
    assert Palette.of(reversed(defences)).colour_of("top-k") == "colour0"


def test_more_kinds_than_colours_have_other_symbols():
    palette = Palette.of(TopK(share=0.1, noise=number + 1.0) for number in range(COLOURS + 1))
    grown = Palette({f"kind {number}": number for number in range(COLOURS + 1)}, {})
    assert grown.colour_of("kind 0") == grown.colour_of("kind 8")
    assert grown.symbol_of("kind 0") != grown.symbol_of("kind 8")
    assert len(palette.families) == 1
