"""One sentence names the layer that gives most away by itself, others say what goes along with what; neither says more than was measured."""

import pytest

from leaktight.core.metric import Reading
from leaktight.data import Digits, Parity
from leaktight.findings.layer_risk import LayerCorrelation, LayerRow
from leaktight.findings.layer_words import layer_sentences, most_telling, setup_sentences, together
from leaktight.models import MLP
from leaktight.plans.layer_study import LayerStudy


def row(layer, name="property_auc", value=0.7, spread=0.05, chance=0.5):
    ends = {} if spread is None else {"low": value - spread, "high": value + spread}
    return LayerRow(layer, {name: Reading(name=name, value=value, leaks="high", layer=layer, chance=chance, **ends)})


def test_one_layer_that_tells_most():
    rows = [row("conv1", value=0.6), row("linear1", value=0.9), row("head", value=0.7)]
    assert most_telling(rows, "have the property `Hat`") == (
        "By itself linear1 best tells whether the examples behind a message have the property `Hat` "
        "(property AUC 0.90, 0.85 to 0.95)."
    )


def test_several_whose_intervals_overlap():
    said = most_telling([row("conv1", value=0.6), row("linear1", value=0.9), row("head", value=0.85)])
    assert said.startswith("By itself linear1 best tells whether")
    assert said.endswith("; the interval of head overlaps with it.")
    said = most_telling(
        [row("conv1", value=0.6), row("conv2", value=0.9), row("linear1", value=0.88), row("head", value=0.85)]
    )
    assert said.endswith("; the intervals of linear1 and head overlap with it.")


def test_all_alike():
    said = most_telling([row("conv1", value=0.86), row("linear1", value=0.9)])
    assert said == (
        "Every layer by itself tells whether the examples behind a message have the private property, and none stands out: "
        "the intervals of all overlap with that of linear1, the highest (property AUC 0.90, 0.85 to 0.95)."
    )


def test_none_better_than_guessing():
    said = most_telling([row("conv1", value=0.51), row("linear1", value=0.53)])
    assert said == (
        "No layer by itself tells whether the examples behind a message have the private property measurably better "
        "than guessing: the highest is linear1 (property AUC 0.53, 0.48 to 0.58)."
    )


@pytest.mark.parametrize(
    ("name", "chance", "words"),
    [
        ("v_information", 0.0, "By itself head has the highest V-information (9.00, 8.95 to 9.05)."),
        ("sensitivity_f", None, "Nothing was measured of single layers that ranks them."),
        ("psnr", 1.0, "By itself head has the highest PSNR (9.0 dB, 8.9 to 9.1)."),
        (
            "label_auc",
            0.5,
            "By itself head best tells whether the examples behind a message are of class 3",
        ),
    ],
)
def test_without_an_attack_on_the_property_the_next_best_measure_counts(name, chance, words):
    rows = [row("conv1", name, 2.0, chance=chance), row("head", name, 9.0, chance=chance)]
    assert most_telling(rows, "are of class 3").startswith(words)


def test_small_numbers_keep_their_digits_and_may_lack_an_interval():
    rows = [row("conv1", "v_information", 0.00012, None, None), row("head", "v_information", 0.0034, None, None)]
    assert most_telling(rows).endswith("has the highest V-information (0.0034).")


def test_what_an_attack_rebuilds_counts_before_what_needs_none():
    sensitive, rebuilt = row("head", "sensitivity_f", 9.0, chance=None), row("conv1", "psnr", 20.0, chance=11.0)
    assert most_telling([rebuilt, sensitive]).startswith("By itself conv1 has")


def paired(layer: str, value: float, behind: float | None) -> LayerRow:
    """Return a layer with its AUC, and the lower end of how far it lies behind the one that tells most."""
    found = dict(row(layer, value=value).readings)
    if behind is not None:
        found["property_auc_behind"] = Reading(name="property_auc_behind", value=behind + 0.1, low=behind, high=1.0)
    return LayerRow(layer, found)


def test_layers_stand_out_by_a_paired_test_though_their_intervals_overlap():
    near = [paired("conv1", 0.86, 0.01), paired("head", 0.9, None)]
    assert most_telling(near).endswith("(property AUC 0.90, 0.85 to 0.95).")
    tied = [paired("conv1", 0.70, -0.01), paired("conv2", 0.6, 0.2), paired("head", 0.9, None)]
    assert most_telling(tied).endswith("; in a paired test conv1 does not tell measurably less.")
    assert "none stands out: in a paired test none tells measurably less than head" in most_telling(
        [paired("conv1", 0.70, -0.01), paired("head", 0.9, None)]
    )


def test_what_remains_is_said_where_it_was_measured():
    rows = [
        LayerRow(
            layer,
            {
                "property_auc": Reading(name="property_auc", value=0.9, chance=0.5, leaks="high"),
                "remaining_auc": Reading(
                    name="remaining_auc", value=auc, low=auc - 0.1, high=auc + 0.05, chance=0.5, leaks="high"
                ),
                "sealed_layers": Reading(name="sealed_layers", value=count),
                "sealed_bytes": Reading(name="sealed_bytes", value=size),
            },
        )
        for layer, auc, count, size in (("conv1", 0.55, 2, 300), ("head", 0.95, 1, 100), ("conv2", 0.5, 3, 400))
    ]
    said = " ".join(layer_sentences(rows))
    assert "If head alone is sealed (25 % of the parameters), what the other layers tell of the property is" in said
    assert "Once 2 of 3 layers are sealed (75 % of the parameters), this attack is not measurably better" in said
    assert "hiding one layer may hide nothing" not in said


def test_information_that_may_be_none_names_no_layer():
    rows = [row("conv1", "v_information", 0.01, chance=0.0), row("head", "v_information", 0.02, chance=0.0)]
    assert most_telling(rows).startswith(
        "No layer by itself has a V-information above chance in all repetitions: the highest is head"
    )


@pytest.mark.parametrize(
    ("r", "p", "n", "words"),
    [
        (0.951, 0.0004, 9, "Over 9 layers, V-information goes along with property AUC (Pearson r = 0.95, p < 0.001)."),
        (-0.9, 0.03, 5, "Over 5 layers, V-information runs against property AUC (Pearson r = -0.90, p = 0.03)."),
        (
            0.7,
            0.19,
            5,
            "Over 5 layers, V-information does not measurably go along with property AUC (Pearson r = 0.70, p = 0.19).",
        ),
        (None, None, 3, "There are too few layers (3) to say whether V-information goes along with property AUC."),
        (
            None,
            None,
            5,
            "Over 5 layers V-information or property AUC does not vary, so neither says anything of the other.",
        ),
    ],
)
def test_a_correlation_in_words(r, p, n, words):
    assert together([LayerCorrelation("v_information", "property_auc", r, p, n)]) == [words]


def test_other_norms_are_left_to_the_numbers():
    found = [LayerCorrelation(f"sensitivity_{norm}", "property_auc", 0.9, 0.01, 5) for norm in ("f", "1", "inf")]
    assert together(found) == [
        "Over 5 layers, sensitivity (F) goes along with property AUC (Pearson r = 0.90, p = 0.01)."
    ]


def test_no_layer_is_named_as_the_one_to_hide():
    rows = [row("conv1", value=0.6), row("linear1", value=0.9)]
    said = layer_sentences(rows)
    assert said[-1] == "All layers are computed from the same examples, so hiding one layer may hide nothing."
    assert not any("protect" in sentence.lower() for sentence in said)


@pytest.mark.parametrize(
    ("data", "matched", "asked"),
    [
        (Parity(), False, "have the property `6 or more`, and, apart, whether they are of the commonest class"),
        (Parity(), True, "have the property `6 or more`"),
        (Digits(), False, "are of the commonest class"),
    ],
)
def test_a_study_says_what_it_asks_and_no_more(data, matched, asked):
    sentences = setup_sentences(LayerStudy(data=data, model=MLP(), matched=matched))
    assert sentences[0] == f"Asked is whether the examples behind a message {asked}."
    assert ("labels alike" in sentences[1]) is matched
    assert ("which of them have the property" in sentences[2]) is isinstance(data, Parity)
