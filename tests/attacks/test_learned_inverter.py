"""Learned inverter: sketches keep inner products of directions, and examples are read in spite of defences."""

import dataclasses

import pytest
import torch

from leaktight.attacks import LearnedInverter
from leaktight.attacks.learned_inverter import Sketch
from leaktight.core.defence import Chain
from leaktight.core.errors import Refusal
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.defences import (
    DPSGD,
    ClassKeys,
    GaussianNoise,
    LaplaceNoise,
    LayerGuard,
    LocalDP,
    Polarization,
    Pruning,
    TopK,
    Transformation,
    Withhold,
)
from leaktight.learning import FedAvg, Federated
from leaktight.metrics import PSNR
from leaktight.models import MLP
from leaktight.plans.control import nullify
from leaktight.testing import toy_batch, toy_run, toy_task


def messages(rows=6, entries=5000):
    return {
        "weight": torch.randn(rows, entries // 100, 100, generator=stream(1)),
        "bias": torch.randn(rows, generator=stream(2)),
    }


def test_inner_products_of_short_sketches_are_about_those_of_the_messages():
    sent = messages()
    exact, rough = (Sketch(("weight", "bias"), 0, width)(sent).chunk(2, 1)[0] for width in (10_000, 2000))
    assert (exact.shape[1], rough.shape[1]) == (5001, 2000)
    assert (exact @ exact.T - rough @ rough.T).abs().max() < 5 / 2000**0.5


def test_a_sketch_does_not_depend_on_the_size_of_a_message_or_on_which_others_are_made_with_it():
    sent = messages()
    sketch = Sketch(("weight", "bias"), 7, 64)
    torch.testing.assert_close(sketch({name: 1e-25 * tensor for name, tensor in sent.items()}), sketch(sent))
    torch.testing.assert_close(sketch({name: tensor[2:3] for name, tensor in sent.items()}), sketch(sent)[2:3])


def test_the_second_half_tells_which_entries_came():
    sparse = {"weight": torch.tensor([[0.0, 5.0, 0.0, 1.0], [0.0, -1.0, 0.0, 9.0]])}
    values, places = Sketch(("weight",), 0)(sparse).chunk(2, 1)
    assert torch.equal(places[0], places[1])
    assert not torch.equal(values[0], values[1])


def test_a_message_of_zeros_or_of_no_numbers_is_a_sketch_of_zeros():
    found = Sketch(("weight",), 0)({"weight": torch.tensor([[0.0, 0.0], [torch.nan, torch.inf]])})
    assert torch.equal(found, torch.zeros(2, 4))


THREAT = ThreatModel(knows=frozenset({Knows.AUXILIARY, Knows.DEFENCE, Knows.LOCAL_STEPS}))
QUICK = LearnedInverter(messages=100)
DIGITS = Federated(data=Digits(), model=MLP(), rounds=0)


def observe(scenario, defence, victims, stage="initial", batch_size=1, seed=0):
    return scenario.observe(scenario.train(defence, seed), defence, Observation(stage, batch_size, victims, seed))


def psnr(run, attack):
    [reading] = [
        reading
        for reading in Attempt(attack=attack, threat=THREAT, metrics=(PSNR(),)).read(run, stream(0)).readings
        if reading.against != "used"
    ]
    return reading


def test_one_entry_of_a_hundred_is_enough_to_read_a_digit():
    read = psnr(observe(DIGITS, TopK(share=0.01), victims=16), LearnedInverter(messages=600))
    assert read.value > 18
    assert read.beats_chance()


@pytest.mark.long
def test_it_reads_more_by_knowing_the_defence_and_nothing_from_noise():
    run = observe(DIGITS, TopK(share=0.01), victims=50)
    read, unaware = (psnr(run, LearnedInverter(models_defence=aware)) for aware in (True, False))
    assert read.value > unaware.value + 1
    assert not psnr(nullify(run, stream(0)), LearnedInverter()).beats_chance()


DEFENCES = [
    GaussianNoise(),
    LaplaceNoise(),
    TopK(residual=True),
    Pruning(),
    DPSGD(multiplier=1.0),
    LocalDP(),
    Polarization(),
    ClassKeys(dimensions=64),
    Transformation(policy="3-1-7"),
    LayerGuard(layers=("head",)),
    Withhold(layers=("head",)),
    Chain(links=(TopK(), GaussianNoise())),
]


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
@pytest.mark.parametrize("aware", [True, False])
def test_every_defence_can_be_learned_from(defence, aware):
    run = toy_run(defence, batch_size=1, task=toy_task(shape=(3, 16, 16)))
    guess = QUICK.model_copy(update={"models_defence": aware})(THREAT.view(run), stream(0))
    assert [tuple(inputs.shape) for inputs in guess.inputs] == [(1, 3, 16, 16)] * 3
    assert all(((inputs >= 0) & (inputs <= 1)).all() for inputs in guess.inputs)


def test_of_several_examples_each_is_answered_under_its_label():
    run = observe(DIGITS, TopK(share=0.1), victims=12, batch_size=2)
    attack = LearnedInverter(messages=600)
    guess = attack(THREAT.view(run), stream(0))
    truth = [run.truth(key).raw.labels.sort().values for key in guess.keys]
    assert torch.stack([*guess.labels]).eq(torch.stack(truth)).float().mean() > 0.8
    assert psnr(run, attack).beats_chance()


def test_updates_of_several_steps_and_parameters_of_several_rounds_are_learned_each_by_itself():
    scenario = Federated(
        data=Digits(), model=MLP(hidden=(16,)), rounds=4, moments=2, participants=2, protocol=FedAvg(local_steps=2)
    )
    run = observe(scenario, GaussianNoise(std=0.001), victims=4, stage="training")
    guess = QUICK(THREAT.view(run), stream(0))
    assert [len(inputs) for inputs in guess.inputs] == [2] * len(guess.keys)
    other = dataclasses.replace(run, transcript=run.transcript[: len(run.transcript) // 2])
    first = QUICK(THREAT.view(other), stream(0))
    assert torch.equal(first.inputs[0], guess.inputs[0])


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (lambda: toy_run(batch_size=17), "at most 16 examples behind them. Got 17"),
        (lambda: toy_run(auxiliary=toy_batch(9)), "at least 10 public examples. Got 9"),
        (lambda: toy_run(Withhold(layers=("body.1", "head"))), "or one without a tensor"),
    ],
    ids=["batch", "public", "nothing"],
)
def test_what_cannot_be_inverted_is_refused(run, problem):
    with pytest.raises(Refusal, match=problem):
        QUICK(THREAT.view(run()), stream(0))


def test_a_message_that_is_not_finite_is_answered_like_any_other():
    run = toy_run(batch_size=1)
    broken = dataclasses.replace(
        run,
        transcript=tuple(
            m.map(lambda t: t * torch.nan) if m.round == 1 and m.kind == "gradient" else m for m in run.transcript
        ),
    )
    found, whole = (QUICK(THREAT.view(each), stream(0)) for each in (broken, run))
    assert torch.equal(found.inputs[0], whole.inputs[0])
    assert torch.isfinite(found.inputs[1]).all()
