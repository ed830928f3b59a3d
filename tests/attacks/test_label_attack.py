"""The label attacks on a real split training: what they see, at which layers, what they leave out, and what they refuse."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.attacks import Clustering, Direction, FewHints, GradientNorm, InnerProduct, LabelAttack
from leaktight.attacks.label_attack import cosines, layers_of, mean_direction
from leaktight.core.attack import LabelScores
from leaktight.core.defence import Undefended
from leaktight.core.errors import LeaktightError, Refusal
from leaktight.core.message import Kind
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.task import Batch
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import RareDigit
from leaktight.defences import IsotropicNoise, SumKL
from leaktight.learning import Adam, Split
from leaktight.metrics import LeakAUC
from leaktight.testing import ConformanceError, check_attack, null_run, toy_run

ATTACKS = [GradientNorm(), Direction(), InnerProduct(), FewHints(), FewHints(hints=5, negatives=5), Clustering()]
ALL = [*ATTACKS, GradientNorm(rare="unknown")]
SEAT = "feature-party"
STEPS = 20
THREAT = ThreatModel(seat=SEAT, knows=frozenset({Knows.HINTS}))


def scenario(**settings):
    chosen = {
        "model": {"kind": "wide_deep", "hidden": (16, 8)},
        "label_party": ("r0*",),
        "rounds": 60,
        "batch_size": 256,
    }
    return Split(data=RareDigit(), optimiser=Adam(learning_rate=0.002), **chosen | settings)


def played(defence=None, stage="training", **settings):
    defence, split = defence or Undefended(), scenario(**settings)
    return split.observe(split.train(defence, 0), defence, Observation(stage, 256, STEPS, 0))


@pytest.fixture(scope="module")
def run():
    return played()


@pytest.fixture(scope="module")
def view(run):
    return THREAT.view(run)


def readings(attack, run):
    return Attempt(attack=attack, threat=THREAT, metrics=(LeakAUC(),)).read(run, stream(0, "attack")).readings


def exchanged(ground_truth):
    return dataclasses.replace(ground_truth, raw=Batch(ground_truth.raw.inputs, 1 - ground_truth.raw.labels))


@pytest.mark.parametrize("attack", ALL, ids=str)
def test_the_attack_conforms(attack, run):
    check_attack(attack, run, (LeakAUC(),), seat=SEAT)


@pytest.mark.parametrize("attack", ALL, ids=str)
def test_noise_is_at_the_chance_level_and_seldom_taken_for_a_leak(attack, run):
    found = [readings(attack, null_run(run, seed)) for seed in range(20)]
    medians = torch.tensor([median.value for median, _ in found])
    assert abs(medians.mean() - found[0][0].chance) < 0.02
    # The lower end of a 95 % interval lies above in one of forty.
    assert sum(reading.beats_chance() for both in found for reading in both) <= 5


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_labels_leak_at_the_cut_and_before_it(attack, run):
    found = {reading.layer: reading.value for reading in readings(attack.model_copy(update={"layer": "all"}), run)[::2]}
    assert list(found) == [None, "linear1", "relu1", "linear2"]
    assert found[None] > 0.85
    assert found["linear1"] > 0.7


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_a_defence_hides_them(attack):
    median, tail = readings(attack, played(SumKL(bound=0.45)))
    assert median.value < 0.65
    # Of some 25 positives in a batch, chance alone reaches 0.6 in one step of twenty.
    assert tail.value < 0.75
    assert tail.chance > 0.59


def test_more_noise_hides_more(run):
    values = [readings(GradientNorm(), played(IsotropicNoise(ratio=ratio)))[0].value for ratio in (0.0, 1.0, 5.0)]
    assert values[0] == readings(GradientNorm(), run)[0].value
    assert values[0] > values[1] > values[2] - 0.05


def test_one_row_of_scores_for_each_layer_and_one_score_for_each_example(view):
    guess = GradientNorm(layer="all")(view, stream(0))
    messages = view.of(Kind.CUT_GRADIENT)
    assert isinstance(guess, LabelScores)
    assert guess.keys == tuple(message.key for message in messages)
    assert guess.layers == (None, "linear1", "relu1", "linear2")
    assert all(scores.shape == (4, 256) for scores in (*guess.values, *guess.blind))
    for message, scores in zip(messages, guess.values, strict=True):
        assert torch.allclose(scores[0], message.tensors["gradient"].norm(dim=1).double())


def test_the_cut_alone_needs_no_blind_guess(view):
    guess = Clustering()(view, stream(0))
    assert (guess.layers, guess.blind, guess.signed) == ((None,), (), False)
    assert GradientNorm()(view, stream(0)).signed


def test_common_positives_leak_as_much_to_whom_the_balance_is_known_or_not(run):
    # The same gradients, with the names of the classes exchanged.
    turned = dataclasses.replace(run, truths={key: exchanged(ground_truth) for key, ground_truth in run.truths.items()})
    rare, wrong, known, unknown = (
        readings(GradientNorm(rare=rare), played)[0]
        for rare, played in (("positive", run), ("positive", turned), ("negative", turned), ("unknown", turned))
    )
    assert wrong.value == pytest.approx(1 - rare.value)
    assert known.value == unknown.value == pytest.approx(rare.value)
    assert [each.beats_chance() for each in (wrong, known, unknown)] == [False, True, True]
    assert unknown.chance > known.chance == 0.5


def test_a_layer_s_rows_are_those_of_the_feature_party_s_own_backward_pass(view):
    message = view.of(Kind.CUT_GRADIENT)[0]
    cut = message.tensors["gradient"]
    seen = view.memory["seen"][str(message.round)]
    weight = seen["parameters"]["linear2.weight"]
    inner = layers_of(view, message.round, cut, "all")
    assert torch.equal(inner[None], cut)
    # The last layer is a ReLU: where it is shut, nothing goes back; before it comes a linear layer.
    shut = inner["linear2"] == 0
    assert torch.equal(inner["linear2"][~shut], cut[~shut])
    assert torch.allclose(inner["relu1"], inner["linear2"] @ weight, atol=1e-8)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [("cut", [None]), ("first", ["linear1"]), ("relu1", ["relu1"]), ("relu2", [None])],
)
def test_a_layer_by_name(view, wanted, names):
    message = view.of(Kind.CUT_GRADIENT)[0]
    assert list(layers_of(view, message.round, message.tensors["gradient"], wanted)) == names
    assert GradientNorm(layer=wanted)(view, stream(0)).layers == tuple(names)


def test_a_layer_that_is_not_there_is_refused(view):
    with pytest.raises(Refusal, match=r"There is no layer `relu9` before the cut. Known are: `"):
        GradientNorm(layer="relu9")(view, stream(0))


def test_the_wire_sees_the_cut_and_nothing_before_it(run):
    wire = ThreatModel(seat="wire", knows=frozenset()).view(run)
    assert len(GradientNorm()(wire, stream(0)).keys) == STEPS
    with pytest.raises(Refusal, match=r"The layer `first` is known to the feature party alone.* The seat is `wire`"):
        GradientNorm(layer="first")(wire, stream(0))


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_a_view_without_cut_gradients_is_refused(attack):
    view = ThreatModel(knows=frozenset({Knows.HINTS})).view(toy_run())
    with pytest.raises(
        Refusal, match=f"{attack.kind} needs cut gradients of somebody else. The view from `server` holds none"
    ):
        attack(view, stream(0))


def test_nobody_attacks_himself(run):
    with pytest.raises(Refusal, match="The view from `label-party` holds none"):
        GradientNorm()(ThreatModel(seat="label-party", knows=frozenset()).view(run), stream(0))


def test_more_than_two_classes_are_refused(view):
    many = dataclasses.replace(view, task=dataclasses.replace(view.task, classes=10))
    with pytest.raises(Refusal, match=r"gradient_norm tells two classes apart. Got 10 classes instead"):
        GradientNorm()(many, stream(0))


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_examples_whose_label_is_used_are_not_scored_and_all_others_are(attack, view):
    for key, scores in zip(view.hints, attack(view, stream(0)).values, strict=True):
        unscored = torch.isnan(scores[0]).nonzero().flatten()
        assert sorted(unscored.tolist()) == sorted(attack.used_positions(view.hints[key]).tolist())
    wanted = {
        "direction": 1,
        "inner_product": 1,
        "few_hints": getattr(attack, "hints", 0) + getattr(attack, "negatives", 0),
    }
    assert len(unscored) == wanted.get(attack.kind, 0)


@pytest.mark.parametrize("attack", [Direction(), InnerProduct(), FewHints()], ids=str)
def test_what_needs_hints_is_refused_without(attack, run):
    with pytest.raises(Refusal, match=f"{attack.kind} needs to know hints, which the threat model withholds"):
        Attempt(attack=attack, threat=ThreatModel(seat=SEAT), metrics=(LeakAUC(),)).read(run, stream(0))


@pytest.mark.parametrize("attack", [Direction(), InnerProduct(), FewHints(negatives=2)], ids=str)
def test_a_step_without_a_known_positive_is_not_scored(attack, view):
    blank = {
        key: dataclasses.replace(hints, labels=torch.zeros_like(hints.labels)) for key, hints in view.hints.items()
    }
    last = list(view.hints)[-1]
    guess = attack(dataclasses.replace(view, hints={**blank, last: view.hints[last]}), stream(0))
    assert all(torch.isnan(scores).all() for scores in guess.values[:-1])
    assert not torch.isnan(guess.values[-1]).all()


def test_before_the_cut_the_inputs_have_a_part_and_the_chance_level_says_so():
    # A deep top trained to the end: the slopes of the ReLUs alone tell a rare digit from the others.
    run = played(stage="end", rounds=150, model={"kind": "wide_deep", "hidden": (32, 16, 16, 16)}, cut="relu2")
    null = [
        reading for attack in ATTACKS for reading in readings(attack.model_copy(update={"layer": "all"}), null_run(run))
    ]
    # Of 48, each lower end of a 95 % interval lies above in one of forty.
    assert sum(reading.beats_chance() for reading in null) <= 3
    own = {reading.layer: reading for reading in readings(GradientNorm(layer="all"), null_run(run))[::2]}
    assert abs(own[None].value - 0.5) < 0.1
    assert abs(own["linear1"].value - 0.5) > 0.2


def test_the_blind_order_comes_from_the_given_stream(view):
    attack = GradientNorm(layer="first")
    one, same, other = (attack(view, stream(seed)).blind[0] for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_the_blind_guess_is_made_of_the_message_s_own_rows(view):
    guess = GradientNorm(layer="all")(view, stream(0))
    for scores, blind in zip(guess.values, guess.blind, strict=True):
        assert not torch.equal(blind[0], scores[0])
        assert torch.equal(blind[0].sort().values, scores[0].sort().values)


@pytest.mark.parametrize("scale", [1e-38, 1e-25, 1e-12, 1e12, 1e25])
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_the_scale_of_a_batch_changes_no_ranking(attack, scale, view):
    messages = tuple(m.map(lambda t: (t / t.abs().max())[:, :4] + 0.01) for m in view.of(Kind.CUT_GRADIENT)[:1])
    small = dataclasses.replace(view, messages=messages)
    scaled = dataclasses.replace(view, messages=tuple(message.map(lambda t: t * scale) for message in messages))
    one, other = (attack(each, stream(0)).values[0][0].nan_to_num(0.0) for each in (small, scaled))
    assert torch.isfinite(other).all()
    # Below the smallest normal number single precision itself loses digits.
    close = 0.999 if scale > 1e-37 else 0.98
    assert torch.corrcoef(torch.stack([one, other]))[0, 1].abs() > close


def test_rows_of_zeros_and_rows_of_several_dimensions_are_scored(view):
    for change in (torch.zeros_like, lambda t: t.view(len(t), 2, 2, 2)):
        changed = dataclasses.replace(view, messages=tuple(m.map(change) for m in view.of(Kind.CUT_GRADIENT)))
        for attack in ATTACKS:
            for key, scores in zip(view.hints, attack(changed, stream(0)).values, strict=True):
                assert torch.isfinite(scores[0]).sum() == 256 - len(attack.used_positions(view.hints[key]))


def test_directions():
    rows = torch.tensor([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    assert cosines(rows, torch.tensor([0.0, 1.0])).tolist() == [1.0, 0.0, 0.0]
    assert mean_direction(rows[:2]).tolist() == [0.5, 0.5]
    assert mean_direction(rows[2:]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        (torch.zeros(256), r"Got shape \(256,\) instead"),
        (torch.full((1, 256), torch.inf), r"Got shape \(1, 256\) with infinities instead"),
    ],
)
def test_scores_of_another_form_are_an_error(scores, told, view, monkeypatch):
    class Odd(LabelAttack):
        def score(self, rows, hints):
            return None

    monkeypatch.setattr(Odd, "_score_layers", lambda self, layers, hints: scores)
    with pytest.raises(LeaktightError, match=f"must score .* one row for each of 1 layers. {told}"):
        Odd.model_construct(kind="odd", layer="cut")(dataclasses.replace(view, memory={}), stream(0))


class Made(LabelAttack):
    @property
    def needs(self):
        return frozenset({Knows.HINTS})

    def score(self, rows, hints):
        return rows[:, 0]


@pytest.fixture
def made():
    return Made.model_construct(kind="made", layer="cut")


def test_who_needs_hints_scores_none_of_them_unless_it_says_which(made, view):
    for hints, scores in zip(view.hints.values(), made(view, stream(0)).values, strict=True):
        assert len(hints.positions)
        assert torch.isnan(scores[0]).nonzero().flatten().tolist() == hints.positions.sort().values.tolist()


@pytest.mark.parametrize("spoilt", ["used", "other"])
def test_an_example_without_a_score_is_not_dropped_unseen(spoilt, made, view, monkeypatch):
    def score(self, rows, hints):
        known = hints.positions
        free = torch.tensor([place for place in range(len(rows)) if place not in known.tolist()][:2])
        return rows[:, 0].index_fill(0, known if spoilt == "used" else free, torch.nan)

    honest = made(view, stream(0)).values[0]
    monkeypatch.setattr(Made, "score", score)
    if spoilt == "used":
        assert torch.equal(made(view, stream(0)).values[0].nan_to_num(9.0), honest.nan_to_num(9.0))
    else:
        with pytest.raises(
            Refusal, match=r"made must score every example but those it was told. 2 of 256 scores are NaN"
        ):
            made(view, stream(0))


@pytest.mark.parametrize("part", ["hints", "memory"])
def test_an_attack_that_changes_what_it_knows_is_found_out(part, run, monkeypatch):
    honest = Direction._score_layers

    def spoil(self, layers, hints):
        found = honest(self, layers, hints)
        for tensor in (hints.positions,) if part == "hints" else seen:
            tensor.zero_()
        return found

    seen = []
    monkeypatch.setattr(Direction, "_score_layers", spoil)
    monkeypatch.setattr(ThreatModel, "view", lambda self, run, view=ThreatModel.view: remember(view(self, run)))

    def remember(view):
        seen[:] = [step["inputs"] for step in view.memory["seen"].values()]
        return view

    with pytest.raises(ConformanceError, match=f"must leave its input unchanged. Its {part} changed in place"):
        check_attack(Direction(), run, (LeakAUC(),), seat=SEAT)
