"""The suite as one attack: what it tries on which message, and by what it answers."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import pytest
import torch

from leaktight.attacks import Analytic, Clustering, GradientMatching, LearnedInverter
from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import POSTERIOR, SCALE_FREE, scale, whole_suite
from leaktight.core.attack import Attack, LabelScores, Principle, Reconstruction
from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.probe import LUCKIEST, Attempt
from leaktight.core.random import Stream, stream
from leaktight.core.scenario import Observation
from leaktight.core.task import Batch
from leaktight.core.threat import Knows, ThreatModel, View
from leaktight.data import Digits, RareDigit
from leaktight.defences import GaussianNoise, TopK
from leaktight.learning import Adam, FedAvg, Federated, Split
from leaktight.metrics import PSNR, LabelDistance, LeakAUC
from leaktight.models import MLP
from leaktight.testing import check_attack, toy_run

KNOWS = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.AUXILIARY, Knows.LOCAL_STEPS}))
SHORT = {**scale(whole_suite(), 0.05), "learned_inverter": LearnedInverter(messages=60)}
FEATURE_PARTY = ThreatModel(seat="feature-party", knows=frozenset({Knows.DEFENCE}))


SPLIT = Split(
    data=RareDigit(),
    model=MLP(hidden=(16, 8, 8), activation="relu"),
    cut="relu2",
    passes=1,
    batch_size=128,
    optimiser=Adam(),
)


class Dreamer(Attack):
    """Guesses the same grey for every message it is shown, and may say that it is sure."""

    kind: Literal["test_dreamer"] = "test_dreamer"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs"})
    principle: ClassVar[Principle] = "statistic"
    grey: float = 0.5
    sure: bool = False
    share: float = 1.0

    def run(self, view: View, rng: Stream) -> Reconstruction:
        exchanges = view.exchanges()
        counts = [int(exchange.sent.facts["examples"]) for exchange in exchanges]
        inputs = tuple(torch.full((count, *view.task.shape), self.grey) for count in counts)
        labels = tuple(torch.zeros(count).long() for count in counts)
        proofs = tuple(torch.arange(count) < self.share * count for count in counts) if self.sure else None
        return Reconstruction(tuple(exchange.sent.key for exchange in exchanges), inputs, labels, certified=proofs)


class Knower(Attack):
    """Guesses what it was told, without labels."""

    kind: Literal["test_knower"] = "test_knower"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs"})
    known: tuple[tuple[float, ...], ...]
    examples: int = 1

    def run(self, view: View, rng: Stream) -> Reconstruction:
        keys = tuple(exchange.sent.key for exchange in view.exchanges())
        return Reconstruction(
            keys, tuple(torch.tensor(one).view(self.examples, *view.task.shape) for one in self.known)
        )


def answer(attack: Strongest, defence: Defence | None = None, rounds: int = 3):
    run = toy_run(defence, rounds=rounds, batch_size=1)
    return run, attack(KNOWS.view(run), stream(0))


def test_every_member_runs_on_every_message_without_a_defence():
    _, guess = answer(Strongest(members=SHORT))
    assert set(guess.members) == {"analytic", "learned_inverter", POSTERIOR}
    assert guess.untried == {}
    assert {len(member.keys) for member in guess.members.values()} == {3}


def test_expensive_members_skip_messages_that_are_read():
    _, guess = answer(Strongest(members=SHORT), TopK(share=0.9))
    assert list(guess.members) == ["analytic"]
    assert guess.untried == dict.fromkeys(("learned_inverter", POSTERIOR), "every message was read before")
    _, guess = answer(Strongest(members=SHORT), GaussianNoise(std=0.1))
    assert list(guess.members) == ["analytic", "learned_inverter", POSTERIOR]


def test_a_guess_that_explains_a_message_is_preferred_to_one_that_does_not():
    members = {"before": Dreamer(), "analytic": Analytic(), "after": Dreamer(grey=0.4)}
    run, guess = answer(Strongest(members=members))
    for key, inputs, objective in zip(guess.answer.keys, guess.answer.inputs, guess.answer.objective, strict=True):
        assert torch.allclose(inputs, run.truth(key).raw.inputs, atol=1e-3)
        assert torch.isfinite(objective)


def test_a_certified_guess_wins_whatever_the_model_says():
    _, guess = answer(Strongest(members={POSTERIOR: SHORT[POSTERIOR], "sure": Dreamer(sure=True)}))
    assert all((inputs == 0.5).all() for inputs in guess.answer.inputs)
    assert all(proof.all() for proof in guess.answer.certified)


class Brighter(Defence):
    """Trains on brighter examples than it has."""

    kind: Literal["test_brighter"] = "test_brighter"

    def on_batch(self, batch: Batch, local: Local) -> Batch:
        return dataclasses.replace(batch, inputs=batch.inputs + 0.1)


def test_a_proof_of_a_changed_example_ends_nothing():
    members = {"sure": Dreamer(sure=True), "other": Dreamer(grey=0.25)}
    assert "other" not in answer(Strongest(members=members), GaussianNoise())[1].members
    assert "other" in answer(Strongest(members=members), Brighter())[1].members


def test_a_proof_of_some_examples_does_not_outweigh_the_rest():
    run = toy_run(rounds=1, batch_size=2)
    truth = tuple(tuple(ground_truth.raw.inputs.flatten().tolist()) for ground_truth in run.truths.values())
    half = Dreamer(sure=True, share=0.5)
    found = Strongest(members={"half": half, "knows": Knower(known=truth, examples=2)})(KNOWS.view(run), stream(0))
    assert torch.allclose(found.answer.inputs[0].flatten(), torch.tensor(truth[0]))


def test_labels_that_another_attack_read_come_with_the_answer():
    run = toy_run(rounds=2, batch_size=1)
    truth = tuple(tuple(ground_truth.raw.inputs.flatten().tolist()) for ground_truth in run.truths.values())
    found = Strongest(members={"knows": Knower(known=truth), "labels": Dreamer()})(KNOWS.view(run), stream(0))
    assert torch.allclose(found.answer.inputs[0].flatten(), torch.tensor(truth[0]))
    assert [labels.tolist() for labels in found.answer.labels] == [[0], [0]]


def test_an_answer_depends_on_its_own_message_and_not_on_the_order_of_victims():
    run = toy_run(GaussianNoise(std=0.01), rounds=3, batch_size=1)
    view, attack = KNOWS.view(run), Strongest(members={"analytic": Analytic(), "dreamer": Dreamer()})
    pairs = [view.messages[place : place + 2] for place in range(0, len(view.messages), 2)]
    turned = dataclasses.replace(view, messages=tuple(message for pair in reversed(pairs) for message in pair))
    whole, other = attack(view, stream(0)).answer, attack(turned, stream(0)).answer
    alone = attack(view.only([whole.keys[1]]), stream(0)).answer
    guessed = dict(zip(other.keys, other.inputs, strict=True))
    assert all(torch.equal(inputs, guessed[key]) for key, inputs in zip(whole.keys, whole.inputs, strict=True))
    assert torch.equal(alone.inputs[0], whole.inputs[1])


class Unsaid(Defence):
    """Changes every message, and states nothing."""

    kind: Literal["test_unsaid"] = "test_unsaid"
    noise: float = 0.0

    def on_message(self, message: Message, local: Local) -> Message:
        return message.map(lambda tensor: -2 * tensor.flip(0) + self.noise * local.draws.normal_like(tensor))


@pytest.mark.parametrize("defence", [Unsaid(), Unsaid(noise=0.1), TopK(residual=True)], ids=str)
def test_a_defence_that_is_not_stated_in_full_is_attacked_all_the_same(defence):
    members = {"analytic": Analytic(), SCALE_FREE: SHORT[SCALE_FREE], "learned_inverter": SHORT["learned_inverter"]}
    guess = Strongest(members=members)(KNOWS.view(toy_run(defence, batch_size=2)), stream(0))
    assert {*guess.members, *guess.untried} == set(members)
    assert guess.answer.objective.isfinite().all()


def test_what_turns_into_the_message_when_it_is_played_is_believed():
    run = toy_run(Unsaid(), batch_size=1)
    truth = [run.truth(key).raw for key in run.truths]
    members = {
        "dreamer": Dreamer(),
        "knower": Knower(known=tuple(tuple(one.inputs.flatten().tolist()) for one in truth)),
    }
    guess = Strongest(members=members)(KNOWS.view(run), stream(0))
    assert all(torch.allclose(guessed, one.inputs) for guessed, one in zip(guess.answer.inputs, truth, strict=True))


def test_updates_of_several_steps_are_not_played():
    members = {SCALE_FREE: SHORT[SCALE_FREE]}
    scenario = Federated(data=Digits(), model=MLP(hidden=(8,)), rounds=0, protocol=FedAvg(local_steps=2))
    run = scenario.observe(scenario.train(Unsaid(), 0), Unsaid(), Observation("initial", 1, 2, 0))
    guess = Strongest(members=members)(KNOWS.view(run), stream(0))
    assert list(guess.members) == [SCALE_FREE]


def test_it_says_what_was_not_tried_and_why():
    attack = Strongest(
        members={"analytic": Analytic(), "learned_inverter": LearnedInverter()}, left_out={"dear": "no time"}
    )
    view = ThreatModel(knows=frozenset({Knows.DEFENCE})).view(toy_run(batch_size=1))
    guess = attack(view, stream(0))
    assert guess.untried == {"learned_inverter": "the threat model does not grant auxiliary", "dear": "no time"}
    crowd = attack(KNOWS.view(toy_run(rounds=1, batch_size=17)), stream(0))
    assert "at most 16 examples behind them" in crowd.untried["learned_inverter"]


def test_it_refuses_if_nothing_fits():
    with pytest.raises(Refusal, match=r"No attack of the suite fits. the threat model does not grant auxiliary"):
        Strongest(members={"learned_inverter": LearnedInverter()})(ThreatModel().view(toy_run()), stream(0))


def test_the_luckiest_guess_is_told_beside_the_answer():
    attempt = Attempt(
        attack=Strongest(members={"analytic": Analytic(), "dreamer": Dreamer()}), threat=KNOWS, metrics=(PSNR(),)
    )
    found = attempt.read(toy_run(GaussianNoise(std=0.3), batch_size=1), stream(0)).readings
    values = {reading.by: reading.value for reading in found if reading.against == "raw"}
    assert set(values) == {"", "analytic", "dreamer", LUCKIEST}
    assert values[LUCKIEST] >= max(values["analytic"], values["dreamer"]) - 1e-6


@pytest.fixture(scope="module")
def split_run():
    return SPLIT.observe(SPLIT.train(Undefended(), 0), Undefended(), Observation("training", 128, 6, 0))


def test_cut_gradients_are_answered_by_scores(split_run):
    guess = Strongest()(FEATURE_PARTY.view(split_run), stream(0))
    assert {"label_posterior", "gradient_norm", "clustering", "spectral"} <= set(guess.members)
    assert isinstance(guess.answer, LabelScores)
    assert guess.answer is guess.members["label_posterior"]
    assert guess.untried == dict.fromkeys(("direction", "completion"), "the threat model does not grant hints")
    with pytest.raises(Refusal, match="No attack of the suite fits"):
        Strongest(members={"analytic": Analytic()})(FEATURE_PARTY.view(split_run), stream(0))


def test_it_conforms():
    check_attack(
        Strongest(members={"analytic": Analytic(), POSTERIOR: SHORT[POSTERIOR]}), metrics=(PSNR(), LabelDistance())
    )


def test_it_conforms_on_cut_gradients(split_run):
    check_attack(Strongest(members={"clustering": Clustering()}), split_run, (LeakAUC(),), seat="feature-party")


def test_it_models_what_a_member_models_and_knows_its_members_by_name():
    attack = Strongest()
    assert attack.adapts_to(TopK())
    assert not attack.adapts_to(Undefended())
    assert not Strongest(members={"dreamer": Dreamer()}).adapts_to(TopK())
    assert isinstance(attack.member(SCALE_FREE), GradientMatching)
    with pytest.raises(InvalidValue, match="`posterior`"):
        attack.member("postrior")


def test_it_can_stand_in_sets():
    one, same, other = (Strongest(members=members) for members in ({}, {}, {"analytic": Analytic()}))
    assert {one, same, other} == {one, other}


def test_settings_survive_a_round_trip():
    attack = Strongest(members=SHORT, left_out={"surrogate": "no time"})
    assert Attack.model_validate(attack.to_dict()) == attack
