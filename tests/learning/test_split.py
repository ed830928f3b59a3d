"""The split scenario on bundled data: it learns, keeps its stages, and an observation is the training run itself."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.core.draws import PublicSeed
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.scenario import Observation, Scenario
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Criteo, Digits, RareDigit
from leaktight.defences import DPSGD, GaussianNoise, SumKL
from leaktight.learning import Split, layer_gradients
from leaktight.learning.exchange import play
from leaktight.learning.split import FEATURE_PARTY, LABEL_PARTY
from leaktight.models import MLP, DLNet, WideDeep
from leaktight.statistics.auc import auc

SEAT = ThreatModel(seat=FEATURE_PARTY)


def scenario(**settings) -> Split:
    return Split(**{"data": RareDigit(), "model": MLP(hidden=(16, 8)), "rounds": 40, "batch_size": 64, **settings})


@pytest.fixture(scope="module")
def training():
    return scenario().train(Undefended(), seed=0)


def reading(training, name):
    return next(reading for reading in training.utility if reading.name == name)


def leaks_of(made: Split, training, defence, victims: int) -> dict[str, torch.Tensor]:
    """Return the norm attack's AUC at each layer for each observed step of the training run."""
    run = made.observe(training, defence, Observation("training", made.batch_size, victims, 0))
    view = SEAT.view(run)
    found: dict[str, list[float]] = {}
    for message in view.of(Kind.CUT_GRADIENT):
        seen = view.memory["seen"][str(message.round)]
        rows = layer_gradients(view.task.model.body, seen["parameters"], seen["inputs"], message.tensors["gradient"])
        for name, each in rows.items():
            found.setdefault(name, []).append(auc(each.flatten(1).norm(dim=1), run.truths[message.key].used.labels))
    return {name: torch.tensor(values) for name, values in found.items()}


@pytest.mark.parametrize(
    "made",
    [
        scenario(rounds=150),
        scenario(label_party=("r0*", "r1*", "r2*"), cut="relu1", rounds=150),
        scenario(
            data=RareDigit(form="levels"), model=WideDeep(hidden=(16, 16)), label_party=("r3*", "r4*"), rounds=150
        ),
        scenario(
            data=RareDigit(form="levels"),
            model=WideDeep(hidden=(16, 16)),
            label_party=("*",),
            feature_party=("*",),
            rounds=150,
        ),
        scenario(
            data=RareDigit(form="image", digit=3),
            model=DLNet(activation="tanh", initial="default"),
            cut="tanh2",
            optimiser={"kind": "adam", "learning_rate": 0.003},
            rounds=150,
        ),
    ],
    ids=["numbers", "wide part", "wide and deep", "columns at both", "image"],
)
def test_two_parties_learn_what_neither_could_alone(made):
    """The story: rare positives, features here, labels there, and a test AUC clearly above 0.5."""
    training = made.train(Undefended(), seed=0)
    found = reading(training, "auc")
    assert found.chance == 0.5
    assert found.low > 0.8
    assert found.low <= found.value <= found.high <= 1
    assert reading(training, "accuracy").n == found.n == 359


def test_several_classes_have_an_accuracy_and_no_auc():
    several = Split(data=Digits(), model=MLP(hidden=(32,)), rounds=100, batch_size=64).train(Undefended(), seed=0)
    assert [found.name for found in several.utility] == ["accuracy", "training_loss"]
    assert several.utility[0].value > 0.7


def test_the_stages_and_moments_are_kept_with_nothing_public(training):
    assert set(training.snapshots) == {"initial", "early", "end", *(f"moment-{number}" for number in range(20))}
    assert all(not snapshot.parameters for snapshot in training.snapshots.values())
    steps = {stage: snapshot.memories[LABEL_PARTY]["step"] for stage, snapshot in training.snapshots.items()}
    assert (steps["initial"], steps["early"], steps["end"]) == (0, 4, 40)
    assert [steps[f"moment-{number}"] for number in range(20)] == list(range(0, 40, 2))
    assert steps == {stage: snapshot.memories[FEATURE_PARTY]["step"] for stage, snapshot in training.snapshots.items()}


def test_each_party_s_memory_holds_its_own_half(training):
    end = training.snapshots["end"].memories
    assert {name.split(".")[0] for name in end[FEATURE_PARTY]["model"]} == {"linear1", "linear2"}
    assert {name.split(".")[0] for name in end[LABEL_PARTY]["model"]} == {"deep"}


def test_the_same_seed_trains_the_same_model(training):
    again, other = scenario().train(Undefended(), seed=0), scenario().train(Undefended(), seed=1)
    for party in (FEATURE_PARTY, LABEL_PARTY):
        end = training.snapshots["end"].memories[party]["model"]
        assert all(torch.equal(end[name], again.snapshots["end"].memories[party]["model"][name]) for name in end)
        assert not any(torch.equal(end[name], other.snapshots["end"].memories[party]["model"][name]) for name in end)
    assert again.utility == training.utility


def test_the_halves_start_from_streams_of_their_own():
    data = RareDigit().load()
    early, late = scenario(cut="relu1").halves(data, PublicSeed(0)), scenario(cut="relu2").halves(data, PublicSeed(0))
    assert torch.equal(early.bottom.linear1.weight, late.bottom.linear1.weight)
    assert torch.equal(early.top.deep.head.weight, late.top.deep.head.weight)
    assert not torch.equal(early.top.deep.body.linear2.weight, late.bottom.linear2.weight)


def test_what_both_parties_know_does_not_give_the_label_party_s_noise_away(training):
    """The order's seed is public, and the feature party knows its own: the noise follows from neither."""
    seats = {}

    def enter(seat):
        seats[seat.name] = seat
        return seat.honest

    defence = GaussianNoise(std=1.0)
    run = scenario().observe(training, defence, Observation("end", 64, 1, 0), enter)
    feature, label = seats[FEATURE_PARTY], seats[LABEL_PARTY]
    ground_truth = run.truths[LABEL_PARTY, 40]
    noise = ground_truth.sent.tensors["gradient"] - ground_truth.clean.tensors["gradient"]

    def drawn_from(seed):
        return torch.randn(noise.shape, generator=stream(seed, LABEL_PARTY, 40, "defence"))

    assert torch.allclose(noise, drawn_from(label.local.seed), atol=1e-5)
    known = {feature.honest.order.seed, feature.local.seed, 0}
    assert len({*known, label.local.seed}) == 4
    assert label.honest.order.seed == feature.honest.order.seed
    for seed in known:
        assert abs(torch.corrcoef(torch.stack([noise.flatten(), drawn_from(seed).flatten()]))[0, 1]) < 0.2


@pytest.mark.parametrize("defence", [Undefended(), GaussianNoise(std=0.001)], ids=str)
@pytest.mark.parametrize("stage", ["initial", "early", "training"])
def test_an_observation_replays_the_training_s_own_messages(stage, defence):
    made = scenario(moments=4)
    feature, label = made.parties(RareDigit().load(), defence, seed=0)
    transcript = {}
    play(feature, label, label.opening(), 40, lambda _, pair: transcript.update({m.key: m for m in pair}))
    run = made.observe(made.train(defence, 0), defence, Observation(stage, 64, 8, 0))
    assert len(run.transcript) == 16
    for message in run.transcript:
        [own] = message.tensors.values()
        [other] = transcript[message.key].tensors.values()
        assert torch.equal(own, other)


@pytest.mark.parametrize("victims", [1, 3, 4, 6, 40])
def test_the_stage_training_is_spread_over_the_whole_training(victims):
    made = scenario(moments=4)
    run = made.observe(made.train(Undefended(), 0), Undefended(), Observation("training", 32, victims, 0))
    rounds = [message.round for message in run.transcript if message.kind is Kind.CUT_GRADIENT]
    assert len(set(rounds)) == len(rounds) == victims
    assert rounds[0] == 0
    assert max(rounds) >= 40 - 2 * 40 / min(victims, 4)


def test_the_end_goes_on_where_the_training_ended(training):
    run = scenario().observe(training, Undefended(), Observation("end", 64, 3, 0))
    assert [message.key for message in run.transcript] == [
        (party, step) for step in (40, 41, 42) for party in (FEATURE_PARTY, LABEL_PARTY)
    ]


def test_the_observer_s_batch_size_is_that_of_the_observation(training):
    run = scenario().observe(training, Undefended(), Observation("end", 10, 2, 0))
    assert all(len(next(iter(message.tensors.values()))) == 10 for message in run.transcript)


@pytest.mark.parametrize(
    ("observation", "sentence"),
    [
        (Observation("training", 64, 41, 0), "at most 40 rounds, for 40 rounds and 20 moments. Asked were 41"),
        (Observation("late", 64, 1, 0), "There is no stage `late` in split learning"),
        (Observation("end", 2000, 1, 0), "The batch size must be from 1 to the 1438 rows"),
    ],
    ids=["victims", "stage", "batch"],
)
def test_what_cannot_be_observed_is_said(training, observation, sentence):
    with pytest.raises(InvalidValue, match=sentence):
        scenario().observe(training, Undefended(), observation)


def test_without_rounds_the_model_stays_untrained():
    idle = scenario(rounds=0)
    training = idle.train(Undefended(), seed=0)
    assert training.snapshots["initial"].memories[LABEL_PARTY]["step"] == 0
    assert len(idle.observe(training, Undefended(), Observation("end", 8, 2, 0)).transcript) == 4
    with pytest.raises(InvalidValue, match="at most 0 rounds"):
        idle.observe(training, Undefended(), Observation("training", 8, 1, 0))


def test_progress_is_told():
    told = []
    scenario(rounds=5).train(Undefended(), 0, lambda done, total: told.append((done, total)))
    assert told == [(step, 5) for step in range(1, 6)]


def test_the_feature_party_sees_gradients_and_its_own_half_and_no_label(training):
    made = scenario()
    run = made.observe(training, Undefended(), Observation("early", 64, 3, 0))
    view = SEAT.view(run)
    assert {message.kind for message in view.messages} == {Kind.ACTIVATION, Kind.CUT_GRADIENT}
    assert (view.labels, view.auxiliary, view.defence) == ({}, None, None)
    assert list(view.memory["seen"]) == ["4", "5", "6"]
    first = view.memory["seen"]["4"]
    assert set(first["parameters"]) == set(training.snapshots["early"].memories[FEATURE_PARTY]["model"])
    early = training.snapshots["early"].memories[FEATURE_PARTY]["model"]
    assert all(torch.equal(first["parameters"][name], early[name]) for name in early)
    later = view.memory["seen"]["5"]["parameters"]
    assert not torch.equal(later["linear1.weight"], early["linear1.weight"])
    assert all(not parameter.any() for parameter in view.task.model.parameters())
    secret = list(training.snapshots["early"].memories[LABEL_PARTY]["model"].values())
    mine = [*first["parameters"].values(), first["inputs"], *view.task.model.parameters()]
    assert not any(one.shape == other.shape and torch.equal(one, other) for one in mine for other in secret)


def test_what_the_feature_party_remembers_gives_its_activations_back(training):
    view = SEAT.view(scenario().observe(training, Undefended(), Observation("end", 16, 2, 0)))
    for message in view.of(Kind.ACTIVATION):
        seen = view.memory["seen"][str(message.round)]
        made = torch.func.functional_call(view.task.model.body, seen["parameters"], (seen["inputs"],))
        assert torch.equal(made, message.tensors["activations"])


def test_labels_come_to_whoever_is_granted_them_and_auxiliary_rows_are_the_seat_s_columns():
    made = scenario(label_party=("r0*",))
    run = made.observe(made.train(Undefended(), 0), Undefended(), Observation("end", 16, 2, 0))
    view = ThreatModel(seat=FEATURE_PARTY, knows=frozenset({Knows.LABELS, Knows.AUXILIARY})).view(run)
    assert set(view.labels) == {(LABEL_PARTY, 40), (LABEL_PARTY, 41)}
    assert view.auxiliary.inputs.shape == (359, 56)
    assert run.truths[LABEL_PARTY, 40].raw.inputs.shape == (16, 8)
    assert run.truths[LABEL_PARTY, 40].owned.inputs.shape == (1438, 8)


def test_the_ground_truth_has_both_sides_of_each_gradient(training):
    defence = GaussianNoise(std=1.0)
    run = scenario().observe(training, defence, Observation("end", 32, 2, 0))
    data = RareDigit().load().train
    assert set(run.truths) == {(LABEL_PARTY, 40), (LABEL_PARTY, 41)}
    for key, ground_truth in run.truths.items():
        noise = ground_truth.sent.tensors["gradient"] - ground_truth.clean.tensors["gradient"]
        assert 0.7 < noise.std() < 1.3
        assert ground_truth.plain is ground_truth.clean
        assert next(message for message in run.transcript if message.key == key) is ground_truth.sent
        positions = scenario().parties(RareDigit().load(), defence, 0, 32)[1].order.at(key[1])
        assert torch.equal(ground_truth.used.labels, data.labels[positions])


def test_undefended_the_norm_gives_labels_away_at_every_layer_through_training():
    """Fig. 2a and 2b: without protection the leak AUC is high at the cut layer and at the first."""
    made = scenario(rounds=200, batch_size=128, model=MLP(hidden=(32, 16)))
    leaks = leaks_of(made, made.train(Undefended(), 0), Undefended(), 20)
    medians = {name: values.median().item() for name, values in leaks.items()}
    assert list(medians) == ["linear1", "relu1", "linear2", "relu2"]
    assert min(medians["linear1"], medians["relu2"]) > 0.8


def test_an_active_attacker_may_take_the_feature_party_s_seat(training):
    class Dishonest:
        """Sends zeros."""

        def __init__(self, seat):
            self.seat, self.name, self.seen = seat, seat.name, 0

        def respond(self, message):
            self.seen += bool(message.tensors)
            return self.seat.honest.respond(message).map(torch.zeros_like)

        def close(self):
            return None

    taken = []

    def enter(seat):
        if seat.name != FEATURE_PARTY:
            return seat.honest
        taken.append(Dishonest(seat))
        return taken[0]

    run = scenario().observe(training, Undefended(), Observation("end", 16, 3, 0), enter)
    assert taken[0].seen == 3
    assert (taken[0].seat.data.labels == -1).all()
    assert not any(
        message.tensors["activations"].any() for message in run.transcript if message.kind is Kind.ACTIVATION
    )
    assert len(run.truths) == 3


def test_an_honest_seat_is_watched(training):
    run = scenario().observe(training, Undefended(), Observation("end", 16, 1, 0), lambda seat: seat.honest)
    assert len(run.truths) == 1


def test_observing_does_not_change_the_training(training):
    before = copy.deepcopy(training.snapshots["end"].memories)
    scenario().observe(training, Undefended(), Observation("end", 64, 3, 0))
    after = training.snapshots["end"].memories
    for party in before:
        assert all(
            torch.equal(before[party]["model"][name], after[party]["model"][name]) for name in before[party]["model"]
        )
    assert "seen" not in after[FEATURE_PARTY].get("memory", {})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"label_party": ("r9*",)},
            "There is no column `r9\\*` for the label party. There are 64, from `r0c0` to `r7c7`",
        ),
        ({"feature_party": ("age",)}, "There is no column `age` for the feature party"),
        ({"label_party": ("*",)}, "must leave the feature party a column"),
        ({"cut": "relu7"}, "The `cut` must be a layer of mlp's body. Got 'relu7' instead. Known are"),
        (
            {"cut": "flatten"},
            "must leave the feature party something to learn. Got 'flatten' instead; cut after `linear1`",
        ),
        ({"model": MLP(hidden=())}, "mlp must have a layer before its head that learns"),
        (
            {"data": RareDigit(form="levels")},
            "mlp takes numbers. Got ids in the column `r0c0` instead; use `wide_deep`",
        ),
        ({"data": RareDigit(form="image"), "label_party": ("r0*",)}, "must be left out for images"),
    ],
    ids=["label column", "feature column", "all columns", "cut", "cut too early", "no body", "ids", "image"],
)
def test_settings_that_do_not_fit_are_said(settings, sentence):
    with pytest.raises(InvalidValue, match=sentence):
        scenario(**settings).train(Undefended(), 0)


def test_a_defence_without_a_place_is_refused():
    with pytest.raises(Refusal, match="dp_sgd changes gradients of parameters"):
        scenario().train(DPSGD(), 0)


def test_the_scenario_survives_json():
    made = scenario(
        label_party=("r0*",), feature_defence=GaussianNoise(std=0.1), optimiser={"kind": "sgd", "momentum": 0.5}
    )
    assert Scenario.model_validate(made.to_dict()) == made
    assert made.key == Scenario.model_validate(made.to_dict()).key


def test_a_noisy_feature_party_still_trains():
    noisy = scenario(feature_defence=GaussianNoise(std=0.1), rounds=100).train(Undefended(), 0)
    assert reading(noisy, "auc").value > 0.8


def test_the_utility_is_that_of_activations_as_they_are_sent():
    """Noise that drowns the activations leaves the label party with nothing to score by."""
    made = scenario(rounds=100)
    data = RareDigit().load()
    feature, label = made.parties(data, Undefended(), 0)
    play(feature, label, label.opening(), 100, lambda *_: None)
    plain = made.utility(feature, label, data)[0]
    feature.defence = GaussianNoise(std=1e4)
    drowned = made.utility(feature, label, data)[0]
    assert plain.value > 0.8
    assert drowned.low < 0.5 < drowned.high


def test_the_paper_s_setting_on_a_real_sample():
    """Section 4 at the smallest scale: Wide & Deep on Criteo leaks undefended, and sumKL stops it at little cost."""
    folder = Path(__file__).parents[2].parent / "shared" / "data" / "ctr"
    if not folder.exists():
        pytest.skip("needs the Criteo sample, which is not beside the repository")
    source = Criteo(
        path=folder / "criteo_encoded_train_10000.csv.gz", test_path=folder / "criteo_encoded_test_10000.csv.gz"
    )
    made = Split(data=source, model=WideDeep(), label_party=("I*",), batch_size=1000, rounds=40)
    plain, guarded = made.train(Undefended(), 0), made.train(SumKL(bound=0.4), 0)
    open_, closed = leaks_of(made, plain, Undefended(), 20), leaks_of(made, guarded, SumKL(bound=0.4), 20)
    for layer in ("relu4", "encoded"):
        assert open_[layer].median() > 0.8
        assert closed[layer].quantile(0.95) < 0.6
    assert reading(plain, "auc").low > 0.65
    assert reading(guarded, "auc").value > reading(plain, "auc").value - 0.02


def test_a_training_is_counted_in_steps_or_in_passes():
    steps, passes = scenario(rounds=66, batch_size=64), scenario(rounds=0, passes=3, batch_size=64)
    # 1,438 rows make 22 full batches of 64.
    assert (steps.length, passes.length, passes.messages, passes.rounds) == (66, 66, 66, 0)
    assert not passes.untrained
    one, other = (made.train(Undefended(), 0) for made in (steps, passes))
    assert one.utility == other.utility
    assert one.notes["split.passes_trained"] == other.notes["split.passes_trained"] == 3
    assert scenario(rounds=33, batch_size=64).train(Undefended(), 0).notes["split.passes_trained"] == 1.5
    assert Scenario.model_validate(passes.to_dict()) == passes
    assert "passes" not in steps.to_dict()
    with pytest.raises(InvalidValue, match=r"must have `rounds` or `passes`. Got 40 and 3 instead; leave one out"):
        scenario(passes=3)


@pytest.mark.parametrize("moments", [1, 4, 7])
def test_all_messages_of_a_training_are_shown_once_whatever_the_moments(moments):
    made = scenario(moments=moments)
    defence = GaussianNoise(std=0.001)
    feature, label = made.parties(RareDigit().load(), defence, seed=0)
    transcript = {}
    play(feature, label, label.opening(), 40, lambda _, pair: transcript.update({m.key: m for m in pair}))
    run = made.observe(made.train(defence, 0), defence, Observation("training", 64, 40, 0))
    assert [message.key for message in run.transcript] == list(transcript)
    for message in run.transcript:
        [own], [other] = message.tensors.values(), transcript[message.key].tensors.values()
        assert torch.equal(own, other)
    assert run.notes["split.passes_seen"] == pytest.approx(40 / 22)


def test_the_feature_party_knows_its_rows_and_its_first_parameters():
    made = scenario(rounds=0, passes=2)
    run = made.observe(made.train(Undefended(), 0), Undefended(), Observation("training", 64, made.messages, 0))
    memory = SEAT.view(run).memory
    data = RareDigit().load().train
    for step, seen in memory["seen"].items():
        assert torch.equal(data.inputs[seen["rows"]], seen["inputs"])
        assert torch.equal(data.labels[seen["rows"]], run.truths[LABEL_PARTY, int(step)].raw.labels)
        assert seen["pass"] == int(step) // 22
    for number in (0, 1):
        rows = torch.cat([seen["rows"] for seen in memory["seen"].values() if seen["pass"] == number])
        assert len(rows.unique()) == len(rows) == 22 * 64
    first = memory["seen"]["0"]["parameters"]
    assert all(torch.equal(memory["initial"][name], first[name]) for name in first)
    assert "labels" not in str(memory.keys())
    wire = ThreatModel(seat="wire").view(run)
    assert not wire.memory


def test_an_observation_that_would_not_fit_into_memory_is_refused(training, monkeypatch):
    monkeypatch.setattr("leaktight.learning.split.MOST_NUMBERS", 100_000)
    with pytest.raises(
        Refusal, match=r"at most 100,000 numbers. 40 messages of 64 examples hold [\d,]+; take fewer `victims`"
    ):
        scenario().observe(training, Undefended(), Observation("training", 64, 40, 0))
    assert scenario().observe(training, Undefended(), Observation("training", 64, 4, 0)).transcript
