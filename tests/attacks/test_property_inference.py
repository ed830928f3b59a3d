"""Property inference on real federations: what it finds where, from which seat, what it learns from, and what it refuses."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.attacks import Analytic, PropertyInference, property_inference
from leaktight.attacks.property_inference import MIXTURES
from leaktight.attacks.shadow import moments
from leaktight.core.attack import Attack
from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.message import Kind
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.run import all_but
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits, Parity
from leaktight.defences import GaussianNoise, Pruning, TopK
from leaktight.learning import ByProperty, FedAvg, Federated, FedSGD, Sgd
from leaktight.metrics import PropertyAuc, standard
from leaktight.models import MLP, FaceAlexNet
from leaktight.testing import check_attack, mark_property, null_run, property_run, toy_batch, toy_run

LAYERS = ("body.linear1", "body.linear2", "head")
KNOWS = frozenset({Knows.AUXILIARY, Knows.LOCAL_STEPS})
QUICK = PropertyInference(gradients=120, classifier="logistic")


def observed(defence=None, participants=2, victims=80, every=2, share=1.0, **changes):
    settings = {
        "data": Parity(),
        "model": MLP(hidden=(32, 16)),
        "protocol": FedSGD(optimiser=Sgd(learning_rate=0.05)),
        "rounds": 60,
        "moments": 5,
        "schedule": ByProperty(every=every, share=share),
        **changes,
    }
    scenario = Federated(participants=participants, **settings)
    defence = defence or Undefended()
    return scenario.observe(scenario.train(defence, 0), defence, Observation("training", 16, victims, 0))


@pytest.fixture(scope="module")
def run():
    return observed()


@pytest.fixture(scope="module")
def view(run):
    return ThreatModel(knows=KNOWS).view(run)


def readings(attack, run, seat="server", knows=KNOWS):
    threat = ThreatModel(seat=seat, knows=knows | attack.needs)
    return Attempt(attack=attack, threat=threat, metrics=(PropertyAuc(),)).read(run, stream(0, "attack")).readings


def changed(**settings):
    return QUICK.model_copy(update=settings)


@pytest.mark.parametrize(
    "attack",
    [
        QUICK,
        changed(classifier="random_forest", layers="each"),
        changed(entries=48),
        changed(models_defence=True),
        changed(mixed=False),
    ],
    ids=str,
)
def test_the_attack_conforms(attack):
    check_attack(attack)


def test_it_conforms_on_a_real_federation(run):
    check_attack(QUICK, run, (PropertyAuc(),))


@pytest.mark.parametrize("seat", ["server", "wire", "client-0"])
@pytest.mark.parametrize("classifier", ["random_forest", "logistic"])
def test_a_property_that_the_task_does_not_ask_for_is_found(classifier, seat, run):
    [found] = readings(changed(classifier=classifier), run, seat)
    assert found.value > 0.9
    assert found.beats_chance()
    assert found.n == (40 if seat == "client-0" else 80)


def test_noise_is_seldom_taken_for_a_leak(run):
    found = [reading for seed in range(10) for reading in readings(QUICK, null_run(run, seed))]
    assert abs(sum(reading.value for reading in found) / len(found) - 0.5) < 0.06
    # One in forty lies above by chance.
    assert sum(reading.beats_chance() for reading in found) <= 2


def test_convolutions_are_attacked_layer_by_layer():
    found = readings(changed(layers="each"), observed(model=FaceAlexNet(), victims=60))
    aucs = {reading.layer: reading.value for reading in found if reading.name == "property_auc"}
    layers = ["body.conv1", "body.conv2", "body.conv3", "body.linear1", "head"]
    assert list(aucs) == [None, " + ".join(layers), *layers]
    assert aucs[None] > 0.8
    assert aucs["body.linear1"] > 0.8
    behind = [reading for reading in found if reading.name == "property_auc_behind"]
    assert {reading.layer for reading in behind} == {*layers} - {max(layers, key=lambda layer: aucs[layer])}


def test_mixed_batches_are_found_too():
    mixed = observed(share=0.5)
    assert readings(QUICK, mixed)[0].value > 0.7


def test_each_layer_and_all_together(view):
    every = changed(layers="each")(view, stream(0, "attack"))
    assert every.layers == (None, " + ".join(LAYERS), *LAYERS)
    assert every.values.shape == (5, 80)
    assert every.keys == tuple(exchange.sent.key for exchange in view.exchanges())
    together = QUICK(view, stream(0, "attack"))
    assert together.layers == (None,)
    assert torch.equal(together.values[0], every.values[1])
    # What is made of a whole message is one of these, chosen without a look at the messages.
    assert any(torch.equal(every.values[0], row) for row in every.values[1:])


def test_chosen_layers_are_taken_together(view):
    every = changed(layers="each")(view, stream(0, "attack"))
    one = changed(layers=("body.linear2",))(view, stream(0, "attack"))
    assert one.layers == ("body.linear2",)
    assert torch.equal(one.values[0], every.values[3])
    two = changed(layers=("head", "body.linear2"))(view, stream(0, "attack"))
    assert two.layers == ("head + body.linear2",)
    assert two.values.shape == (1, 80)


def test_a_layer_that_was_not_sent_is_refused(view):
    with pytest.raises(
        Refusal, match=r"Layer `body.linear3` cannot be attacked: messages hold no tensor of it. Known are:"
    ):
        changed(layers=("head", "body.linear3"))(view, stream(0))


def test_what_a_defence_withholds_is_not_there(view):
    def without(message):
        kept = {name: tensor for name, tensor in message.tensors.items() if not name.startswith("body.linear1")}
        return dataclasses.replace(message, tensors=kept) if message.kind is Kind.GRADIENT else message

    # Whatever all messages have in common is used; a single one without a layer is enough.
    first = next(place for place, message in enumerate(view.messages) if message.kind is Kind.GRADIENT)
    messages = tuple(without(message) if place == first else message for place, message in enumerate(view.messages))
    guess = changed(layers="each")(dataclasses.replace(view, messages=messages), stream(0))
    assert guess.layers == (None, "body.linear2 + head", "body.linear2", "head")


def test_messages_without_a_common_tensor_are_refused(view):
    gradients = [message for message in view.messages if message.kind is Kind.GRADIENT]
    other = dataclasses.replace(gradients[1], tensors={"head.bias": gradients[1].tensors["head.bias"]})
    first = dataclasses.replace(gradients[0], tensors={"head.weight": gradients[0].tensors["head.weight"]})
    replaced = {id(gradients[0]): first, id(gradients[1]): other}
    messages = tuple(replaced.get(id(message), message) for message in view.messages)
    with pytest.raises(Refusal, match="needs a tensor that all messages hold"):
        QUICK(dataclasses.replace(view, messages=messages), stream(0))


def watch_draws(attack, view, monkeypatch):
    """Return for each moment the examples that the attacker drew, a row for each gradient, and what it was told of the classifier's rows."""
    seen, told = [], []
    own, fit = property_inference.shadow_messages, property_inference.fit

    def shadows(task, moment, pool, members, rng, defence=None):
        seen.append((moment, pool, members))
        return own(task, moment, pool, members, rng, defence)

    def fitted(family, rows, positive, rng):
        told.append((rows, positive))
        return fit(family, rows, positive, rng)

    monkeypatch.setattr(property_inference, "shadow_messages", shadows)
    monkeypatch.setattr(property_inference, "fit", fitted)
    attack(view, stream(0, "attack"))
    return seen, told


def test_gradients_are_spread_over_the_parameters_in_view_half_of_them_with_the_property(view, monkeypatch):
    seen, told = watch_draws(QUICK, view, monkeypatch)
    assert len(seen) == len(moments(view, view.exchanges())) == 40
    assert [len(members) for _, _, members in seen] == [4] * 20 + [2] * 20
    [(rows, positive)] = told
    assert len(rows) == len(positive) == 120
    truth = torch.cat([(pool.properties[members] == 1).any(1) for _, pool, members in seen])
    assert torch.equal(truth, positive)
    assert positive.sum() == 60


def test_a_quarter_of_the_batches_with_the_property_is_pure(monkeypatch):
    view = ThreatModel(knows=KNOWS).view(property_run(batch_size=10))
    seen, _ = watch_draws(changed(gradients=160), view, monkeypatch)
    [(moment, pool, members)] = seen
    shares = (pool.properties[members] == 1).double().mean(1)
    assert (moment.examples, len(members)) == (10, 160)
    assert sorted(shares.tolist()) == sorted([0.0] * 80 + [share for share in MIXTURES for _ in range(20)])
    pure, _ = watch_draws(changed(gradients=160, mixed=False), view, monkeypatch)
    [(_, _, members)] = pure
    assert sorted((pool.properties[members] == 1).double().mean(1).tolist()) == [0.0] * 80 + [1.0] * 80


def test_an_example_is_drawn_twice_only_if_there_are_too_few(monkeypatch):
    view = ThreatModel(knows=KNOWS).view(property_run(batch_size=10))
    _, pool, members = watch_draws(changed(mixed=False), view, monkeypatch)[0][0]
    assert all(len(row.unique()) == 10 for row in members)
    few = pool.take(torch.tensor([0, 1, 2, 3]))
    [(_, _, members)] = watch_draws(changed(mixed=False), dataclasses.replace(view, auxiliary=few), monkeypatch)[0]
    assert members.unique().tolist() == [0, 1, 2, 3]
    assert all(len(set(few.properties[row].tolist())) == 1 for row in members)


def test_in_a_mean_of_several_one_participant_has_the_property(monkeypatch):
    view = ThreatModel(seat="client-0", knows=KNOWS).view(observed(participants=4, victims=80))
    assert {exchange.sent.sender for exchange in view.exchanges()} == {all_but("client-0")}
    seen, _ = watch_draws(changed(mixed=False), view, monkeypatch)
    for moment, pool, members in seen:
        assert (moment.parties, moment.examples, members.shape[1]) == (3, 16, 48)
        held = pool.properties[members].view(-1, 3, 16).sum(2)
        half = len(held) // 2
        assert held[:half].tolist() == [[16, 0, 0]] * half
        assert not held[half:].any()


def test_updates_of_several_steps_leak_it_too():
    run = observed(every=6, protocol=FedAvg(local_steps=2, optimiser=Sgd(learning_rate=0.05)), victims=60)
    assert readings(QUICK, run)[0].value > 0.9
    with pytest.raises(Refusal, match="Add `local_steps` to `knows`"):
        readings(QUICK, run, knows=frozenset({Knows.AUXILIARY}))


def test_who_knows_the_defence_learns_from_what_it_makes():
    # One entry in a hundred is sent: features of whole gradients are hardly those of the messages.
    sparse = observed(TopK(share=0.01), victims=120)
    attack = changed(classifier="random_forest", gradients=200)
    plain, adaptive = (
        readings(each, sparse)[0] for each in (attack, attack.model_copy(update={"models_defence": True}))
    )
    assert adaptive.value > plain.value
    assert adaptive.beats_chance()


def test_noise_hides_the_property_from_both():
    noisy = observed(GaussianNoise(std=0.3))
    for attack in (QUICK, changed(models_defence=True)):
        [found] = readings(attack, noisy)
        assert found.low < 0.5 < found.high


def test_what_the_defence_is_is_asked_for_only_if_it_is_modelled():
    assert QUICK.needs == {Knows.AUXILIARY}
    assert changed(models_defence=True).needs == {Knows.AUXILIARY, Knows.DEFENCE}


@pytest.mark.parametrize("models_defence", [False, True])
def test_the_defence_reaches_the_attacker_s_own_gradients(models_defence, monkeypatch):
    view = ThreatModel(knows=KNOWS | {Knows.DEFENCE}).view(property_run(Pruning(rate=0.9), rounds=10))
    _, [(rows, _)] = watch_draws(changed(models_defence=models_defence, entries=10**6), view, monkeypatch)
    zeros = (rows == 0).double().mean().item()
    assert zeros == pytest.approx(0.9, abs=0.05) if models_defence else zeros < 0.2  # dark pixels have none


def test_few_entries_tell_less_than_all(run):
    few, many = (readings(changed(entries=count, layers=("body.linear1",)), run)[0].value for count in (2, 10**6))
    assert few < many
    assert many > 0.9


@pytest.mark.parametrize(
    ("auxiliary", "sentence"),
    [
        (None, "needs public examples. The view holds none; add `auxiliary` to `knows`"),
        (toy_batch(8), "The data has none; set `private_property` of the data"),
        (mark_property(toy_batch(8)).take(torch.tensor([0, 2, 4])), "None of 3 has it"),
        (mark_property(toy_batch(8)).take(torch.tensor([1, 3])), "All of 2 has it"),
    ],
)
def test_public_examples_that_teach_nothing_are_refused(auxiliary, sentence):
    view = ThreatModel(knows=KNOWS).view(property_run(rounds=4))
    with pytest.raises(Refusal) as found:
        QUICK(dataclasses.replace(view, auxiliary=auxiliary), stream(0))
    assert sentence in str(found.value)


def test_a_view_without_messages_of_others_is_refused():
    view = ThreatModel(seat="client-0", knows=KNOWS).view(property_run(rounds=4))
    with pytest.raises(Refusal, match=r"needs a shared gradient or update. The view from `client-0` holds none"):
        QUICK(view, stream(0))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_messages_that_are_not_numbers_are_refused(value, view):
    spoilt = dataclasses.replace(
        view, messages=tuple(m.map(lambda t: t + value) if m.kind is Kind.GRADIENT else m for m in view.messages)
    )
    with pytest.raises(Refusal, match=r"needs finite messages. There are others: the training run has diverged"):
        QUICK(spoilt, stream(0))


def test_a_run_of_data_without_a_property_says_so_and_other_attacks_go_on():
    run = toy_run(rounds=4, batch_size=1)
    with pytest.raises(Refusal, match="set `private_property` of the data"):
        readings(QUICK, run)
    assert Attempt(attack=Analytic(), metrics=standard()).read(run, stream(0)).readings


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"gradients": 19}, "The `gradients` of property_inference must be at least 20. Got 19 instead"),
        ({"entries": 0}, "The `entries` of property_inference must be at least 1. Got 0 instead"),
        ({"classifier": "forest"}, "The `classifier` of property_inference must be one of"),
        ({"layer": "all"}, "property_inference has no setting `layer`. Did you mean `layers`"),
    ],
)
def test_settings_out_of_range_are_an_error(settings, sentence):
    with pytest.raises(InvalidValue) as found:
        PropertyInference(**settings)
    assert sentence in str(found.value)


@pytest.mark.parametrize("layers", ["all", "each", ("head",), ("head", "body.1")])
def test_it_goes_to_json_and_back(layers):
    attack = PropertyInference(layers=layers, entries=48)
    assert Attack.model_validate(attack.to_dict()) == attack


def test_digits_without_a_property_have_nothing_to_infer():
    scenario = Federated(data=Digits(), model=MLP(hidden=(8,)), rounds=2)
    run = scenario.observe(scenario.train(Undefended(), 0), Undefended(), Observation("end", 4, 4, 0))
    with pytest.raises(Refusal, match="needs public examples with a private property"):
        readings(QUICK, run)


def test_of_a_whole_message_it_uses_what_tells_most_of_gradients_it_has_not_learned_from(view):
    prepared = changed(layers="each").prepare(view, stream(0, "attack"))
    noise = torch.randn(prepared.known["head"].shape, generator=stream(0, "noise"))
    deaf = dataclasses.replace(prepared, known={**prepared.known, "head": noise})
    assert deaf.choose("logistic", {"head": ["head"], "body.linear2": ["body.linear2"]}) == "body.linear2"
    assert abs(deaf.cross_validate("logistic", ["head"], "head")[0] - 0.5) < 0.2
    assert deaf.cross_validate("logistic", ["body.linear2"], "body.linear2")[0] > 0.8


def test_no_example_is_behind_gradients_of_both_halves(view, monkeypatch):
    seen = list(watch_draws(QUICK, view, monkeypatch)[0])
    halves = QUICK.prepare(view, stream(0, "attack")).halves
    members = torch.cat([members for _, _, members in seen])
    one, other = (set(members[halves == half].flatten().tolist()) for half in (0, 1))
    assert one
    assert other
    assert not one & other


def test_own_batches_with_matched_labels_are_alike(view):
    """Where labels go along with the property but for each fifth example."""
    has = view.auxiliary.properties
    labels = torch.where(torch.arange(len(has)) % 5 == 0, 1 - has, has).long()
    view = dataclasses.replace(view, auxiliary=dataclasses.replace(view.auxiliary, labels=labels))
    prepared = changed(matched=True, gradients=400).prepare(view, stream(0, "attack"))
    plain = changed(gradients=400).prepare(view, stream(0, "attack"))
    gaps = [
        (own.labels[own.positive].mean(0) - own.labels[~own.positive].mean(0)).abs().max() for own in (prepared, plain)
    ]
    assert gaps[0] < 0.04 < gaps[1]
