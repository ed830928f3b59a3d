"""The three scales: which data sets, how long they are trained, how hard they are attacked."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializeAsAny

from leaktight.core.device import DeviceName
from leaktight.core.value import Value
from leaktight.data import Digits
from leaktight.data.files import ImageSource
from leaktight.data.source import Source
from leaktight.models.alexnet import AlexNet
from leaktight.models.network import Network
from leaktight.models.vgg16 import VGG16
from leaktight.papers.datasets import find_set, need_folder, need_set
from leaktight.papers.paper import Order

NOISE = (0.0001, 0.001, 0.01, 0.1, 0.5)
ALPHA2 = (0.0001, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5)
HEAD_NOISE = (0.001, 0.01, 0.1, 0.5)
PARTICIPANTS = 10
# Their sub-folders, and their names in the paper's tables.
SETS = {"mnist": "MNIST", "cifar10": "CIFAR10", "cifar100": "CIFAR100", "svhn": "SVHN"}


class Sweep(Value):
    """One attack on every mechanism at these strengths, beside the suite `strongest`.

    Args:
        batch_sizes: examples behind one gradient.
        victims: how many gradients are attacked; more gives narrower intervals. With fewer than participants the chance
            level of tracing would be another.
        iterations: L-BFGS iterations of at most 20 evaluations each; more is a stronger attack.
        noise: scales of the noise.
        alpha2: strengths of the polarization.
        effort: how many times its usual effort the suite has, above 0.
        seeds: how often the attacks are repeated; None for as often as everything else. Label reading is repeated as
            often as everything else in any case.
    """

    batch_sizes: tuple[int, ...]
    victims: int
    iterations: int
    noise: tuple[float, ...] = NOISE
    alpha2: tuple[float, ...] = ALPHA2
    effort: float = Field(1.0, gt=0)
    seeds: int | None = Field(None, ge=1)


class Federation(Value):
    """The comparison of standalone, averaged and polarized training (Table 3, Fig. 7, 28, 29).

    Args:
        network: the network, and under which name it is shown.
        clients: numbers of participants.
        rounds: rounds of one local epoch.
        batch_size: examples per local step.
        learning_rate: of stochastic gradient descent with momentum 0.9.
        halved: after which rounds the learning rate is halved.
        sample: how many participants are trained alone; None trains all.
        others: whether PPDL and noise are trained as well (Fig. 28).
        alpha2: the strength of the polarization.
        local_steps: local steps in a round; None for one epoch.
        per_client: how many training images each participant has; None deals out all there are.
        averaged: over how many of the last rounds accuracies are averaged.
        seeds: how many training runs there are of each kind.
    """

    network: SerializeAsAny[Network]
    clients: tuple[int, ...]
    rounds: int
    batch_size: int = 64
    learning_rate: float = 0.01
    halved: tuple[int, ...] = ()
    sample: int | None = None
    others: bool = False
    alpha2: float = 0.1
    local_steps: int | None = None
    per_client: int | None = None
    averaged: int = 5
    seeds: int = 3


class Study(Value):
    """Everything that is done with one data set.

    Args:
        name: the data set in our tables.
        data: where it comes from.
        activation: DLNet's; tanh for SVHN, on which sigmoid does not train.
        rounds: rounds of one local epoch in the training runs behind the accuracies.
        batch_size: examples per local step in those.
        learning_rate: Adam's in those; the paper's is 0.001, a larger one stands in for more rounds.
        noise: scales of the noise that are trained with.
        alpha2: strengths of the polarization that are trained with.
        sweeps: the attacks; the first one, at batch 1, also measures the ablations.
        bits: lengths of the code beside 64 (Fig. 27).
        bits_alpha2: at which strengths.
        laplace: scales of Laplace noise (Fig. 26).
        federations: the federated comparisons.
        hardened_alpha2: the strength of the polarization in the hardened variant.
        head_noise: scales of the noise on its public head.
        local_steps: local steps in a round; None for one epoch.
        seeds: how often all but the federated comparisons is repeated, training runs and attacks.
        seed: what all randomness derives from.
        device: where tensors live.
    """

    name: str
    data: SerializeAsAny[Source]
    activation: Literal["sigmoid", "tanh"] = "sigmoid"
    rounds: int
    batch_size: int = 32
    learning_rate: float = 0.001
    noise: tuple[float, ...] = NOISE
    alpha2: tuple[float, ...] = ALPHA2
    sweeps: tuple[Sweep, ...] = Field(min_length=1)
    bits: tuple[int, ...] = (32, 128)
    bits_alpha2: tuple[float, ...] = ALPHA2
    laplace: tuple[float, ...] = NOISE
    federations: tuple[Federation, ...] = ()
    hardened_alpha2: float = 0.1
    head_noise: tuple[float, ...] = HEAD_NOISE
    local_steps: int | None = None
    seeds: int = Field(1, ge=1)
    seed: int = 0
    device: DeviceName = "cpu"


def studies(order: Order) -> list[Study]:
    """Return what an order asks for, data set by data set; with `steps`, cut to the least that runs every part."""
    whole = {"smoke": _smoke, "small": _small, "paper": _paper}[order.scale](order.data)
    cut = whole if order.steps is None else [_cut(study, order.steps) for study in whole]
    return [study.model_copy(update={"seed": order.seed}) for study in cut]


def describe_cut(order: Order) -> str:
    """Return what `steps` cuts, as the middle of a sentence."""
    smaller = ", 1000 training and 50 test images" if order.scale != "smoke" else ""
    return (
        f"at most {order.steps} rounds, local steps and attack iterations, 2 victims, the weakest and the strongest "
        f"setting, the fewest clients, batches of 2 in their training{smaller}"
    )


def missing_sets(order: Order) -> list[str]:
    """Return the paper's data sets that the full experiment does without because they are not in the folder."""
    return [name for folder, name in SETS.items() if order.scale == "paper" and find_set(order.data, folder) is None]


def _smoke(data: str) -> list[Study]:
    few: dict[str, Any] = {"noise": (0.001, 0.5), "alpha2": (0.001, 0.5)}
    federation = Federation(
        network=AlexNet(width=2),
        clients=(4,),
        rounds=3,
        batch_size=32,
        learning_rate=0.05,
        sample=1,
        averaged=2,
        seeds=2,
    )
    return [
        Study(
            name="digits",
            data=Digits(size=16),
            rounds=5,
            learning_rate=0.003,
            **few,
            sweeps=(
                Sweep(batch_sizes=(1,), victims=PARTICIPANTS, iterations=2, effort=0.02, **few),
                Sweep(batch_sizes=(4,), victims=PARTICIPANTS, iterations=2, effort=0.02, noise=(0.5,), alpha2=(0.5,)),
            ),
            head_noise=(0.5,),
            bits=(128,),
            bits_alpha2=(0.5,),
            laplace=(0.001,),
            federations=(federation,),
        )
    ]


def _small(data: str) -> list[Study]:
    need_folder(data, "small")
    few_noise, few_alpha2 = (0.0001, 0.01, 0.5), (0.0001, 0.1, 0.5)
    few: dict[str, Any] = {"noise": few_noise, "alpha2": few_alpha2}
    most: dict[str, Any] = {"noise": few_noise[-1:], "alpha2": few_alpha2[-1:]}
    ends: dict[str, Any] = {"noise": few_noise[1:], "alpha2": few_alpha2[1:]}
    network = AlexNet(width=8)
    common: dict[str, Any] = {"network": network, "batch_size": 32, "learning_rate": 0.01, "rounds": 40, "sample": 2}
    return [
        # All checks but those of federations are of this set, so it has three seeds. Of batches they ask for labels
        # alone, which are read without a search: the searches, slow there, have the strongest settings and one seed.
        Study(
            name="CIFAR10",
            data=need_set(data, "cifar10", train_limit=10_000, test_limit=2_000),
            rounds=9,
            **few,
            sweeps=(
                Sweep(batch_sizes=(1,), victims=PARTICIPANTS, iterations=35, effort=0.15, **few),
                Sweep(batch_sizes=(4, 8), victims=PARTICIPANTS, iterations=35, effort=0.1, seeds=1, **most),
            ),
            bits_alpha2=few_alpha2[1:],
            laplace=few_noise,
            head_noise=HEAD_NOISE[-2:],
            federations=(Federation(clients=(4, 10), per_client=300, **common),),
            seeds=3,
        ),
        # Nothing is checked here but the federation, which has three seeds of its own; all else is there to be seen
        # beside the paper's numbers.
        Study(
            name="MNIST",
            data=need_set(data, "mnist", train_limit=5_000, test_limit=2_000),
            rounds=10,
            **ends,
            sweeps=(Sweep(batch_sizes=(1,), victims=PARTICIPANTS, iterations=35, effort=0.05, **ends),),
            bits_alpha2=few_alpha2[-1:],
            laplace=few_noise[1:],
            head_noise=HEAD_NOISE[-1:],
            federations=(Federation(clients=(4,), per_client=300, **common),),
        ),
    ]


def _paper(data: str) -> list[Study]:
    need_folder(data, "paper")
    need_set(data, "cifar10")
    sources = {folder: source for folder in SETS if (source := find_set(data, folder))}
    full: dict[str, Any] = {"clients": (8, 20, 50, 100), "rounds": 300, "halved": (100, 200), "others": True}
    return [
        Study(
            name=SETS[folder],
            data=source,
            activation="tanh" if folder == "svhn" else "sigmoid",
            rounds=300,
            sweeps=tuple(Sweep(batch_sizes=sizes, victims=1000, iterations=300) for sizes in ((1,), (4, 8))),
            federations=(Federation(network=AlexNet(), **full), Federation(network=VGG16(), **full)),
            device="auto",
        )
        for folder, source in sources.items()
    ]


def _cut(study: Study, steps: int) -> Study:
    """Return a study in which every part is kept, and of what is counted or swept only the least."""
    ends = {"noise": _ends(study.noise), "alpha2": _ends(study.alpha2)}
    few = {**ends, "victims": 2}
    sweeps = [
        sweep.model_copy(
            update={**few, "iterations": min(steps, sweep.iterations), "effort": min(sweep.effort, steps / 300)}
        )
        for sweep in study.sweeps
    ]
    least = {"sample": 1, "batch_size": 2, "averaged": 1, "seeds": 1}
    federations = [
        each.model_copy(
            update={**least, "clients": each.clients[:1], "rounds": min(steps, each.rounds), "local_steps": steps}
        )
        for each in study.federations
    ]
    return study.model_copy(
        update={
            **ends,
            "bits_alpha2": study.bits_alpha2[-1:],
            "laplace": study.laplace[-1:],
            "head_noise": study.head_noise[-1:],
            "data": _limit(study.data),
            "rounds": min(steps, study.rounds),
            "local_steps": steps,
            "sweeps": tuple(sweeps),
            "federations": tuple(federations),
            "seeds": 1,
        }
    )


def _ends(strengths: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(dict.fromkeys((strengths[0], strengths[-1])))


def _limit(data: Source) -> Source:
    return data.model_copy(update={"train_limit": 1000, "test_limit": 50}) if isinstance(data, ImageSource) else data
