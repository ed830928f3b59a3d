"""The three scales: which data sets, how long they are trained, what the attacker does and how often."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializeAsAny

from leaktight.attacks.gan import GanAttack
from leaktight.core.device import DeviceName
from leaktight.core.value import Value
from leaktight.data import Digits
from leaktight.data.files import ImageSource
from leaktight.data.npz import Npz
from leaktight.data.source import Source
from leaktight.defences.class_keys import ClassKeys
from leaktight.learning.optimiser import Adam, Optimiser, Sgd
from leaktight.models.generator import Generator
from leaktight.models.lenet import LeNet
from leaktight.models.mlp import MLP
from leaktight.models.network import Network
from leaktight.models.resnet10 import ResNet10
from leaktight.papers.datasets import find_set, need_folder, need_set
from leaktight.papers.paper import Order, Scale

MNIST, OLIVETTI, CIFAR10, CIFAR100 = "MNIST", "Olivetti Faces", "CIFAR-10", "CIFAR-100"
DIMENSIONS = (128, 1024, 4096, 16_384)
DISTANCES = (0.1, 0.5, 1.0, 1.1, 1.2, 1.3)
"""Those of Fig. 5."""
FACES: dict[str, Any] = {
    "network": LeNet(activation="relu", norm="instance", linear=(512, 512)),
    "rounds": 150,
    "looks": (150,),
    "batch_size": 32,
    "local_epochs": 1,
    "optimiser": Adam(),
    "attack": GanAttack(
        generator=Generator(width=16), generator_steps=10, batch_size=32, fakes=10, kept_rounds=5, optimiser=Adam()
    ),
    "participants": (2,),
    "fixed": (4096,),
    "learned": (),
    # A generator of 64x64 takes most of the time, so that faces have the shortest key and the one that is checked, the
    # distances that checks are about, and neither estimated keys nor other defences.
    "guessed": (128, 4096),
    "estimated": (),
    "distances": (1.0, 1.3),
    "noises": (),
    "shares": (),
    "crowd": 2,
}
"""How faces of 64x64 are trained and attacked at the scale `small`, where this differs from digits."""
SETS = {"olivetti": OLIVETTI, "cifar10": CIFAR10, "cifar100": CIFAR100}
"""What the full experiment has beside MNIST, by the sub-folder."""


class Study(Value):
    """Everything that is done with one data set by several participants.

    Args:
        name: the data set in our tables.
        data: where it comes from.
        network: what is trained.
        classes: how many classes there are: the first half is the victim's, the second the attacker's.
        rounds: how many rounds a training takes.
        looks: after how many rounds accuracies are compared (Fig. 3); the last is the whole training.
        local_steps: steps of a turn.
        local_epochs: in place of steps, passes over a participant's data; 0 takes the steps.
        batch_size: examples per step.
        optimiser: takes the local steps.
        moments: whether each participant's moments last from turn to turn, as those of the public code's one optimiser
            do.
        attack: the settings of the GAN attack, without what it knows.
        victims: the classes that are attacked, one after the other with the seeds.
        fixed: lengths of keys on a fixed layer, for accuracies.
        learned: lengths of keys on a learned layer, for accuracies.
        guessed: lengths of keys that an attacker tries to guess (experiment III, Fig. 6 and 7).
        estimated: lengths of keys that an attacker estimates from updates, which the paper does not try; may be none.
        dimensions: the length of keys of which something is known (experiments I and II) and of shared classes; one of
            those guessed.
        longest: the length of keys that several attackers meet.
        distances: how far the attacker's key is from the victim's in experiment II.
        noises: standard deviations of noise, to compare with.
        shares: of top-k sharing, to compare with.
        crowd: how many participants there are where several attack at once: all but the victim. 2 for no such attack.
        participants: numbers of participants for accuracies.
        seeds: how often everything is repeated; 3 or more give intervals.
        device: where tensors live.
    """

    name: str
    data: SerializeAsAny[Source]
    network: SerializeAsAny[Network]
    classes: int = 10
    rounds: int = Field(ge=1)
    looks: tuple[int, ...] = ()
    local_steps: int = 2
    local_epochs: int = 0
    batch_size: int = 64
    optimiser: SerializeAsAny[Optimiser] = Sgd(learning_rate=0.1)
    moments: Literal["anew", "kept"] = "kept"
    attack: GanAttack
    victims: tuple[int, ...] = (0,)
    fixed: tuple[int, ...] = DIMENSIONS
    learned: tuple[int, ...] = DIMENSIONS
    guessed: tuple[int, ...] = DIMENSIONS
    estimated: tuple[int, ...] = (4096, 16_384)
    dimensions: int = 4096
    longest: int = 16_384
    distances: tuple[float, ...] = DISTANCES
    noises: tuple[float, ...] = (0.001, 0.01)
    shares: tuple[float, ...] = (0.1,)
    crowd: int = Field(3, ge=2)
    participants: tuple[int, ...] = (2,)
    seeds: int = 3
    device: DeviceName = "cpu"


class Central(Value):
    """One data set of Table 1, trained in one place.

    Args:
        name: the data set in our tables.
        data: where it comes from.
        network: what is trained.
        steps: how many steps.
        batch_size: examples per step.
        learning_rate: of SGD with momentum 0.9, at the start; a tenth of it after three quarters of the steps.
        seeds: how often it is repeated.
        device: where tensors live.
    """

    name: str
    data: SerializeAsAny[Source]
    network: ResNet10
    steps: int = Field(ge=1)
    batch_size: int = 64
    learning_rate: float = 0.02
    seeds: int = 3
    device: DeviceName = "cpu"

    @property
    def keys(self) -> ClassKeys:
        """Keys at right angles, as many dimensions as the network has features, and nothing between them."""
        return ClassKeys(dimensions=8 * self.network.width, direct=True, orthonormal=True)


class Scope(Value):
    """All that an order asks for.

    Args:
        studies: data sets with several participants.
        central: data sets of Table 1.
        powers: keys have 2 to each of these dimensions in Fig. 2.
        shared: the dimensions of Fig. 8.
        repeats: how often keys are drawn for Fig. 2 and Fig. 8.
        seed: what all randomness derives from.
        scale: which of the three this is.
    """

    studies: tuple[Study, ...]
    central: tuple[Central, ...]
    powers: tuple[int, ...] = tuple(range(1, 15))
    shared: tuple[int, ...] = (64, 128, 1024, 4096, 16_384)
    repeats: int = Field(1000, ge=1)
    seed: int = 0
    scale: Scale = "smoke"


def scope_of(order: Order) -> Scope:
    """Return what an order asks for; with `steps`, cut to the least that still runs every part."""
    whole = {"smoke": _smoke, "small": _small, "paper": _paper}[order.scale](order.data)
    cut = whole if order.steps is None else _cut(whole, order.steps)
    return cut.model_copy(update={"seed": order.seed, "scale": order.scale})


def describe_cut(order: Order) -> str:
    """Return what `steps` cuts, as the middle of a sentence."""
    smaller = ", 400 training and 200 test images" if order.scale != "smoke" else ""
    return (
        f"at most {order.steps} rounds, local steps and generator steps, one seed, the least of what is swept, "
        f"20 samples{smaller}"
    )


def missing_sets(order: Order) -> list[str]:
    """Return the data sets that an order does without: those that are not in the folder."""
    wanted = {"smoke": (), "small": ("olivetti", "cifar10"), "paper": tuple(SETS)}[order.scale]
    return [SETS[folder] for folder in wanted if find_set(order.data, folder) is None]


def _smoke(data: str) -> Scope:
    attack = GanAttack(
        generator=Generator(noise=32, width=8), generator_steps=3, batch_size=32, fakes=32, kept_rounds=5, samples=200
    )
    digits = Study(
        name="digits",
        data=Digits(),
        network=MLP(),
        rounds=120,
        looks=(40, 120),
        batch_size=32,
        attack=attack,
        fixed=(128, 4096),
        learned=(128,),
        guessed=(128, 4096),
        estimated=(4096,),
        longest=4096,
        distances=(0.5, 1.3),
        noises=(0.01,),
        seeds=1,
    )
    central = Central(
        name="digits", data=Digits(), network=_table_1(width=4), steps=150, batch_size=32, learning_rate=0.1, seeds=1
    )
    return Scope(studies=(digits,), central=(central,), repeats=10)


def _small(data: str) -> Scope:
    need_folder(data, "small")
    attack = GanAttack(
        generator=Generator(width=16), generator_steps=3, batch_size=32, fakes=64, kept_rounds=5, optimiser=Adam()
    )
    digits = Study(
        name=MNIST,
        data=need_set(data, "mnist", train_limit=6_000, test_limit=2_000),
        network=LeNet(norm="instance", linear=(256, 256)),
        rounds=400,
        looks=(100, 400),
        attack=attack,
        victims=(0, 1, 2),
        fixed=(128, 4096, 16_384),
        learned=(128,),
        guessed=(128, 4096, 16_384),
        # Behind 256 features longer keys hide hardly more (table `key_images`), and take up to four times as long: keys
        # of 16,384 are met by one attacker with a random key, and not by several or by who estimates them.
        estimated=(4096,),
        longest=4096,
        # The key, one nearer than the paper's threshold of 0.5, the threshold, and what lies far beyond.
        distances=(0.1, 0.5, 1.3),
        # No check is about other defences.
        noises=(0.01,),
        shares=(),
        participants=(2, 5),
        crowd=5,
    )
    return Scope(
        studies=(digits, *_faces(data, digits, FACES)),
        central=_central(data, (CIFAR10,), width=16, steps=500, seeds=3),
        repeats=100,
    )


def _paper(data: str) -> Scope:
    need_folder(data, "paper")
    attack = GanAttack(
        generator=Generator(width=64),
        generator_steps=200,
        batch_size=256,
        early_stop=0.75,
        fakes=2000,
        kept_rounds=5,
        optimiser=Sgd(learning_rate=0.001),
    )
    digits = Study(
        name=MNIST,
        data=need_set(data, "mnist"),
        network=LeNet(activation="relu", norm="instance", channels=(32, 64), linear=(256, 256)),
        rounds=250,
        looks=(25, 50, 100, 250),
        local_epochs=1,
        batch_size=128,
        optimiser=Sgd(learning_rate=0.01, momentum=0.9),
        attack=attack,
        victims=(0, 1, 2, 3, 4),
        noises=(0.0001, 0.001, 0.01),
        shares=(0.01, 0.1),
        crowd=5,
        participants=(2, 3, 5),
        seeds=5,
        device="auto",
    )
    faces = _faces(
        data,
        digits,
        {
            "network": LeNet(activation="relu", norm="instance", channels=(32, 64), linear=(512, 512)),
            "rounds": 1000,
            "looks": (100, 250, 500, 1000),
            "batch_size": 50,
            "local_epochs": 10,
            "optimiser": Adam(learning_rate=0.0003),
            "attack": attack.model_copy(
                update={"generator_steps": 50, "fakes": 10, "optimiser": Adam(learning_rate=0.0001)}
            ),
        },
    )
    central = _central(data, (CIFAR10, CIFAR100), width=64, steps=78_000, seeds=3, device="auto")
    return Scope(studies=(digits, *faces), central=central)


def _faces(data: str, digits: Study, settings: dict[str, Any]) -> tuple[Study, ...]:
    """Return the study of faces as one of digits with other settings; nothing if they are not there."""
    faces = find_set(data, "olivetti")
    if faces is None:
        return ()
    # Three of a person's ten pictures are for testing.
    own = {"test_share": 0.3} if isinstance(faces, Npz) else {}
    return (
        digits.model_copy(update={"name": OLIVETTI, "data": faces.model_copy(update=own), "classes": 40, **settings}),
    )


def _central(
    data: str, names: tuple[str, ...], width: int, steps: int, seeds: int, device: DeviceName = "cpu"
) -> tuple[Central, ...]:
    sources = {name: find_set(data, folder) for folder, name in SETS.items() if name in names}
    return tuple(
        Central(name=name, data=source, network=_table_1(width), steps=steps, seeds=seeds, device=device)
        for name, source in sources.items()
        if source is not None
    )


def _table_1(width: int) -> ResNet10:
    """Return the network of both arms of Table 1."""
    return ResNet10(width=width, end="tanh", head="cosine")


def _cut(scope: Scope, steps: int) -> Scope:
    """Return a scope in which every part is kept, and of what is counted or swept only the least."""
    studies = [
        study.model_copy(
            update={
                "data": _limit(study.data),
                "rounds": min(steps, study.rounds),
                "looks": (min(steps, study.rounds),),
                "local_steps": min(steps, study.local_steps),
                "local_epochs": 0,
                "attack": study.attack.model_copy(
                    update={
                        "generator_steps": min(steps, study.attack.generator_steps),
                        "fakes": 8,
                        "samples": 20,
                    }
                ),
                "fixed": _ends(study.fixed),
                "learned": study.learned[:1],
                "guessed": tuple(dict.fromkeys((study.dimensions, study.guessed[-1]))),
                "estimated": study.estimated[:1],
                "distances": study.distances[:1],
                "noises": study.noises[:1],
                "shares": study.shares[:1],
                "crowd": min(3, study.crowd),
                "participants": study.participants[:2],
                "seeds": 1,
            }
        )
        for study in scope.studies
    ]
    central = [
        each.model_copy(update={"data": _limit(each.data), "steps": min(steps, each.steps), "seeds": 1})
        for each in scope.central
    ]
    return scope.model_copy(update={"studies": tuple(studies), "central": tuple(central), "repeats": 2})


def _ends(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys((values[0], values[-1])))


def _limit(data: Source) -> Source:
    return data.model_copy(update={"train_limit": 400, "test_limit": 200}) if isinstance(data, ImageSource) else data
