"""The three scales: which faces, what is learned and what is private, how long is trained, how hard is attacked."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SerializeAsAny

from leaktight.core.device import DeviceName
from leaktight.core.value import Value
from leaktight.data import ClassProperty, Digits, Parity
from leaktight.data.files import FileSource
from leaktight.data.source import Source
from leaktight.models import DeepDLNet
from leaktight.papers.datasets import need_folder, need_set
from leaktight.papers.layer_leakage.networks import ALEXNET, NETWORKS, VGG11NET
from leaktight.papers.layer_leakage.sources import CELEBA, LFW, PUBFIG, find_faces, need_faces
from leaktight.papers.paper import Order

BLACK, MALE, FEMALE, SENIOR, BLACK_HAIR = "race: Black", "gender: Male", "gender: Female", "age: Senior", "hair: black"
GENDER, GLASSES, RACE, HAIR, AGE = "gender", "glasses", "race", "hair", "age"
CIFAR = "CIFAR100"
SINGLE = tuple((number,) for number in range(1, 9))
SETS = (*SINGLE, (1, 2), (1, 2, 3, 4), (2, 3, 4), (2, 3, 4, 5, 6, 7, 8), (1, 2, 3, 4, 5, 6, 7, 8))
"""Which layers of the eight are matched: each alone, and sets with and without the first."""

# The paper's classes; of its five ages there are four here.
_LABELS: dict[str, tuple[str, ...]] = {
    GENDER: ("Male",),
    GLASSES: ("No_Eyewear", "Eyeglasses", "Sunglasses"),
    RACE: ("White", "Black", "Asian"),
    HAIR: ("Black_Hair", "Blond_Hair", "Brown_Hair", "Gray_Hair"),
    AGE: ("Child", "Youth", "Middle_Aged", "Senior"),
}
_PRIVATE = {BLACK: "Black", MALE: "Male", FEMALE: "Male", SENIOR: "Senior", BLACK_HAIR: "Black_Hair"}


class Subject(Value):
    """What is learned of which data, and what is private.

    Args:
        data_set: its name in our tables.
        task: what is learned.
        private: the property that nobody meant to share.
        data: where all of it comes from.
    """

    data_set: str
    task: str
    private: str
    data: SerializeAsAny[Source]


class Inversion(Value):
    """The reconstruction of single images from the gradients of some layers (Fig. 10).

    Args:
        data_set: its name in our tables.
        data: where images come from.
        network: whose layers.
        sets: which layers are matched, counted from 1.
        victims: how many gradients are attacked under each seed; more gives narrower intervals.
        iterations: L-BFGS iterations of at most 20 evaluations each; more is a stronger attack.
        seeds: how often it is repeated, with other initial weights and images.
    """

    data_set: str
    data: SerializeAsAny[Source]
    network: DeepDLNet = DeepDLNet()
    sets: tuple[tuple[int, ...], ...] = SETS
    victims: int
    iterations: int
    seeds: int = Field(1, ge=1)


class Guarding(Value):
    """What `layer_guard` is compared with noise on all layers by: a table of our own.

    Args:
        network: by name.
        counts: how many layers are guarded.
        stds: the noise, on all layers and on the guarded ones.
        rounds: rounds of the training run, longer and with larger steps than elsewhere, so that there is something to
            lose.
        learning_rate: the server's.
        messages: how many messages are attacked.
        gradients: how many gradients of its own the attacker learns from, under the defence.
    """

    network: str = ALEXNET
    counts: tuple[int, ...] = (1, 2, 3, 4)
    stds: tuple[float, ...] = (0.003, 0.01, 0.03)
    rounds: int = 288
    learning_rate: float = 0.05
    messages: int = 64
    gradients: int = 128


class Study(Value):
    """Everything that is done at one scale.

    Args:
        subjects: what Fig. 2 to 6 and 9 are about; they are trained on every network.
        networks: names of networks, among `NETWORKS`.
        compared: those of them on which classifiers and random entries are compared (Fig. 5, 6).
        properties: other private properties of a task among the subjects (Fig. 7), trained on `properties_on` alone.
        properties_on: the network of Fig. 7.
        tasks: further tasks (Fig. 8), trained on every network with convolutions.
        inversion: Fig. 10.
        rounds: rounds of federated SGD between two participants.
        batch_size: examples behind each gradient.
        learning_rate: the server's.
        mixed_on: networks on which the attack is made once more with mixed batches; in all others each example of a
            batch has the property or none.
        mixed: which part of a mixed batch has the property; the less, the harder the attack.
        guarding: how a guard of some layers is compared with noise on all.
        participants: how many train together, where it is asked what several of them change.
        local_steps: how many steps are behind an update, where it is asked what federated averaging changes.
        seat: where the attacker sits: the server, or a participant.
        moments: at how many moments the training is looked at.
        messages: how many gradients are sent while it is looked at, by both participants together; half of them have
            the property.
        gradients: how many gradients of its own the attacker learns from.
        repeats: how often V-information is measured on each training.
        entries: how many random entries of each layer (Fig. 6).
        samples: on how many examples sensitivity is measured.
        examples: on how many mutual information is.
        seeds: how often everything is repeated; 2 or more give intervals over training runs.
        few: how often what belongs to `properties`, `tasks` and the table `clients` is.
        seed: what all randomness derives from.
        device: where tensors live.
    """

    subjects: tuple[Subject, ...] = Field(min_length=1)
    networks: tuple[str, ...] = tuple(NETWORKS)
    compared: tuple[str, ...] = tuple(NETWORKS)
    properties: tuple[Subject, ...] = ()
    properties_on: str = VGG11NET
    tasks: tuple[Subject, ...] = ()
    inversion: Inversion
    rounds: int = Field(ge=2)
    batch_size: int = 32
    learning_rate: float = 0.01
    mixed_on: tuple[str, ...] = (ALEXNET,)
    mixed: float = 0.5
    guarding: Guarding = Guarding()
    participants: tuple[int, ...] = (2, 4)
    local_steps: int = 4
    seat: str = "server"
    moments: int
    messages: int
    gradients: int
    repeats: int
    entries: int = 48
    samples: int = 32
    examples: int = 1000
    seeds: int = 1
    few: int = 1
    seed: int = 0
    device: DeviceName = "cpu"


def study_of(order: Order) -> Study:
    """Return what an order asks for; with `steps`, cut to the least that still runs every part."""
    whole = {"smoke": _smoke, "small": _small, "paper": _paper}[order.scale](order.data)
    cut = whole if order.steps is None else _cut(whole, order.steps)
    return cut.model_copy(update={"seed": order.seed})


def describe_cut(order: Order) -> str:
    """Return what `steps` cuts, as the middle of a sentence."""
    study = study_of(order)
    smaller = ", 300 training and 150 test images" if order.scale != "smoke" else ""
    return (
        f"{study.rounds} rounds, {study.messages} messages, {study.gradients} gradients of the attacker's own, one "
        f"seed, one repeat, {study.samples} examples for sensitivity, inversion of 2 images by at most {order.steps} "
        f"of its iterations{smaller}"
    )


def missing_sets(order: Order) -> list[str]:
    """Return the paper's data sets that the full experiment does without because they are not in the folder."""
    asked = (CELEBA, PUBFIG) if order.scale == "paper" else ()
    return [name for name in asked if find_faces(order.data, name, label="Male", private_property="Black") is None]


def _smoke(data: str) -> Study:
    parity, digits = Parity(size=16), Digits(size=16)
    return Study(
        subjects=(Subject(data_set="digits", task="parity", private="6 or more", data=parity),),
        networks=(ALEXNET,),
        compared=(ALEXNET,),
        properties=(
            Subject(data_set="digits", task="parity", private="odd", data=ClassProperty(data=parity, label=1)),
        ),
        properties_on=ALEXNET,
        tasks=(Subject(data_set="digits", task="digit", private="8", data=ClassProperty(data=digits, label=8)),),
        inversion=Inversion(
            data_set="digits",
            data=digits,
            network=DeepDLNet(width=4),
            sets=((1,), (2,), (1, 2, 3, 4), (2, 3, 4)),
            victims=2,
            iterations=1,
        ),
        guarding=Guarding(counts=(1, 2), stds=(0.03,), rounds=32, messages=16, gradients=32),
        rounds=32,
        moments=4,
        messages=16,
        gradients=32,
        repeats=2,
        samples=8,
        examples=100,
    )


def _small(data: str) -> Study:
    need_folder(data, "small")
    # A third of the pixels of 62x47: of all that is done here the eight convolutions of VGG11Net take most of the time.
    size = {"size": 32}
    return Study(
        subjects=(_lfw(data, GENDER, BLACK, **size), _lfw(data, GLASSES, MALE, **size)),
        compared=(ALEXNET,),
        properties=(_lfw(data, GLASSES, SENIOR, **size), _lfw(data, GLASSES, BLACK_HAIR, **size)),
        tasks=tuple(_lfw(data, task, MALE, **size) for task in (RACE, HAIR, AGE)),
        inversion=Inversion(data_set=CIFAR, data=need_set(data, "cifar100"), victims=4, iterations=20, seeds=3),
        rounds=144,
        mixed_on=(ALEXNET, VGG11NET),
        # The fewest by which federated averaging differs; each more is as long a training run again.
        local_steps=2,
        moments=8,
        messages=64,
        gradients=128,
        repeats=2,
        examples=400,
        seeds=3,
        few=3,
    )


def _paper(data: str) -> Study:
    need_folder(data, "paper")
    celeba: dict[str, Any] = {"train_limit": 10_500, "test_limit": 4_500, "size": 64}
    others = (
        _find_subject(data, CELEBA, GLASSES, ("Eyeglasses",), FEMALE, private_property_absent=True, **celeba),
        _find_subject(data, PUBFIG, GENDER, ("Male",), BLACK, size=100),
    )
    return Study(
        subjects=(
            _lfw(data, GENDER, BLACK),
            _lfw(data, GLASSES, MALE),
            *(subject for subject in others if subject is not None),
        ),
        properties=(_lfw(data, GLASSES, SENIOR), _lfw(data, GLASSES, BLACK_HAIR)),
        tasks=tuple(_lfw(data, task, MALE) for task in (RACE, HAIR, AGE)),
        inversion=Inversion(data_set=CIFAR, data=need_set(data, "cifar100"), victims=100, iterations=300),
        rounds=3000,
        seat="client-1",
        moments=29,
        # The other participant's in 290 rounds; sixteen gradients of the attacker's own in each of them.
        messages=580,
        gradients=4640,
        repeats=20,
        samples=100,
        examples=9315,
        seeds=20,
        few=20,
        device="auto",
    )


def _lfw(data: str, task: str, private: str, **settings: Any) -> Subject:
    source = need_faces(data, LFW, label=_LABELS[task], private_property=_PRIVATE[private], **settings)
    return Subject(data_set=LFW, task=task, private=private, data=source)


def _find_subject(
    data: str, name: str, task: str, label: tuple[str, ...], private: str, **settings: Any
) -> Subject | None:
    source = find_faces(data, name, label=label, private_property=_PRIVATE[private], **settings)
    return None if source is None else Subject(data_set=name, task=task, private=private, data=source)


def _cut(study: Study, steps: int) -> Study:
    """Return a study in which every part is kept, and of what is counted only the least."""
    parts = {
        name: tuple(subject.model_copy(update={"data": _limit(subject.data)}) for subject in getattr(study, name))
        for name in ("subjects", "properties", "tasks")
    }
    inversion = study.inversion
    fewer = {"data": _limit(inversion.data), "victims": 2, "iterations": min(steps, inversion.iterations), "seeds": 1}
    # Of two rounds one has the property: with fewer there might be no message with it, or none without. A participant
    # does not see the last.
    rounds, messages = 4, 8
    return study.model_copy(
        update={
            **parts,
            "inversion": inversion.model_copy(update=fewer),
            "participants": study.participants[:1],
            "guarding": study.guarding.model_copy(
                update={
                    "counts": (1,),
                    "stds": study.guarding.stds[:1],
                    "rounds": rounds,
                    "messages": messages,
                    "gradients": 20,
                }
            ),
            "rounds": min(max(rounds, steps), study.rounds),
            "moments": 1,
            "messages": messages,
            "gradients": 20,
            "repeats": 1,
            "samples": 2,
            "examples": 50,
            "seeds": 1,
            "few": 1,
        }
    )


def _limit(data: Source) -> Source:
    return data.model_copy(update={"train_limit": 300, "test_limit": 150}) if isinstance(data, FileSource) else data
