"""No attack ends worse than its own start, nor worse than the same attack without the knowledge: over all channels, on toys."""

import dataclasses

import pytest
import torch

from leaktight.attacks import preset
from leaktight.attacks.hypotheses import guess_hypotheses
from leaktight.attacks.search_engine import SearchEngine
from leaktight.core.defence import Chain, Undefended
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Photos
from leaktight.defences import (
    DPSGD,
    ClassKeys,
    GaussianNoise,
    LaplaceNoise,
    LayerGuard,
    LocalDP,
    Pruning,
    TopK,
    Transformation,
    Withhold,
)
from leaktight.defences.polarization import Polarization

pytestmark = pytest.mark.long

EVERYTHING = ThreatModel(knows=frozenset(Knows))
# One search of few evaluations from the prior's middle: what is compared is the knowledge, not the strength.
ONCE = {"labels": "given", "initial": "prior", "restarts": 1, "phases": 1, "widen": 1.0, "settle": 0.0}
ATTACK = preset("posterior", iterations=60, **ONCE)
VICTIMS, SHAPE = 6, (3, 8, 8)
NOISE, CHANGE = GaussianNoise(std=0.01), Transformation(policy="3-1-7")

# By how many dB the mean PSNR of who knows the channel is above that of who takes the defence for off, at least.
CHANNELS = {
    "none": (Undefended(), 0.0),
    "noise": (NOISE, 2.0),
    "more noise": (GaussianNoise(std=0.05), 5.0),
    "laplace": (LaplaceNoise(scale=0.02), 5.0),
    "top-k": (TopK(share=0.1), 10.0),
    "pruning": (Pruning(rate=0.9), 10.0),
    "clip": (DPSGD(clip=0.1, multiplier=0), 30.0),
    "dp-sgd": (DPSGD(clip=1.0, multiplier=0.03), 7.0),
    "local dp": (LocalDP(clip=1.0, multiplier=0.03), 7.0),
    "transformation": (CHANGE, 4.0),
    "one outcome": (Transformation(policy="0"), 25.0),
    "polarization": (Polarization(bits=8, alpha2=0.3), 5.0),
    "class keys": (ClassKeys(dimensions=16), 0.0),
    "noise on a layer": (LayerGuard(layers=("body.1",), guard=GaussianNoise(std=0.02)), 2.0),
    "withhold": (Withhold(layers=("head",)), 0.0),
    "top-k, noise": (Chain(links=(TopK(share=0.2), NOISE)), 10.0),
    "noise, top-k": (Chain(links=(NOISE, TopK(share=0.2))), 7.0),
    "clip, noise, top-k": (Chain(links=(LocalDP(clip=1.0, multiplier=0.01), TopK(share=0.2))), 7.0),
    "transformation, noise": (Chain(links=(CHANGE, GaussianNoise(std=0.005))), 4.0),
    "transformation, top-k": (Chain(links=(CHANGE, TopK(share=0.3))), 4.0),
}


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    return Photos(size=8, classes=4).load().train.inputs[:VICTIMS]


def psnr(inputs, run, keys) -> torch.Tensor:
    """The mean over victims against the original; pixels are cut to their range."""
    truth = torch.cat([run.truths[key].raw.inputs for key in keys])
    return -10 * (torch.cat(list(inputs)).clamp(0, 1) - truth).square().flatten(1).mean(1).log10().mean()


def begin(attack, view) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the lowest objective among the starts of each victim, and the examples that its first one stands for."""
    rng = stream(0)
    [(_, victims)] = attack.cases(view, view.exchanges(), rng)
    rows, objective = attack._rows(victims), attack.objective(victims, view)
    problem = objective.problem(guess_hypotheses(victims, rows, rng))
    points = attack.starts(objective, rows, rng)
    numbers = torch.arange(len(points))
    values = SearchEngine(problem, attack.search(rows)).values(points, numbers // rows, numbers)
    inputs = torch.func.vmap(objective.unpack)(points, victims.targets.repeat_interleave(rows, 0))[1]
    return values.view(len(victims), rows).amin(1), inputs[::rows]


@pytest.mark.parametrize("name", CHANNELS)
def test_knowing_the_channel_never_hurts(observe, images, name):
    defence, margin = CHANNELS[name]
    # Exact entries beside noisy ones make a narrow valley, which takes more evaluations to follow.
    attack = preset("posterior", iterations=200, **ONCE) if name == "noise on a layer" else ATTACK
    run = observe(victims=VICTIMS, shape=SHAPE, images=images, defence=defence)
    view = EVERYTHING.view(run)
    knowing, without = (attack(each, stream(0)) for each in (view, dataclasses.replace(view, defence=Undefended())))
    start, inputs = begin(attack, view)
    assert (knowing.objective <= start).all()
    quality = psnr(knowing.inputs, run, knowing.keys)
    assert quality >= psnr(without.inputs, run, without.keys) + margin
    assert quality > psnr(inputs, run, knowing.keys)


@pytest.mark.parametrize("name", ["noise", "top-k", "transformation", "polarization"])
@pytest.mark.parametrize(
    "settings", [{"phases": 3, "widen": 100.0, "restarts": 4}, {"settle": 1.0}], ids=["raced", "settled"]
)
def test_other_ways_to_search_end_no_higher_than_they_start(observe, images, name, settings):
    view = EVERYTHING.view(observe(victims=VICTIMS, shape=SHAPE, images=images, defence=CHANNELS[name][0]))
    attack = preset("posterior", iterations=40, **{**ONCE, **settings})
    assert (attack(view, stream(0)).objective <= begin(attack, view)[0]).all()
