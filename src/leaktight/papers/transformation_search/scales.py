"""The three scales: which data and networks, how policies are searched, how long is trained, how hard is attacked."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SerializeAsAny

from leaktight.core.device import DeviceName
from leaktight.core.errors import InvalidValue
from leaktight.core.value import Value
from leaktight.data import Digits, Photos
from leaktight.data.files import ImageSource
from leaktight.data.source import Source
from leaktight.models import ConvNet, LeNet, ResNet20
from leaktight.models.network import Network
from leaktight.papers.datasets import need_folder, need_set
from leaktight.papers.paper import Order
from leaktight.plans.plan import Stage
from leaktight.search.settings import Method
from leaktight.transforms.policy import Policy

CIFAR100, CIFAR10, FASHION = "CIFAR100", "CIFAR10", "F-MNIST"
RESNET, CONVNET, LENET = "ResNet20", "ConvNet", "LeNet"
PUBLISHED = ("3-1-7+43-18-18", "21-13-3+7-4-15")
"""The hybrids that the paper found on CIFAR100: for ResNet20, and for ConvNet."""
VARIANTS: dict[str, str] = {
    "LBFGS+L2": "ats2021-lbfgs-l2",
    "Adam+Cosine": "ats2021-adam-cosine",
    "LBFGS+COS": "ats2021-lbfgs-cosine",
    "Adam+L1": "ats2021-adam-l1",
    "Adam+L2": "ats2021-adam-l2",
    "SGD+COS": "ats2021-sgd-cosine",
}
"""The paper's names of its six attacks, and ours."""


class Subject(Value):
    """A network on a data set.

    Args:
        data_set: its name in our tables.
        network: its name there.
        data: where images come from.
        model: the network.
        learning_rate: the server's first step size.
        source: the subject whose searched policies are applied, by its name; empty if they are searched here.
    """

    data_set: str
    network: str
    data: SerializeAsAny[Source]
    model: SerializeAsAny[Network]
    learning_rate: float = 0.05
    source: str = ""

    @property
    def name(self) -> str:
        """The data set and the network, as a name of folders.

        Example:
            >>> Subject(data_set="F-MNIST", network="LeNet", data=Digits(), model=LeNet()).name
            'f-mnist-lenet'
        """
        return f"{self.data_set}-{self.network}".lower()


class SearchSize(Value):
    """How policies are searched (Algorithm 1).

    Args:
        candidates: how many policies are drawn; more finds better ones.
        images: on how many images each is scored.
        epochs: how long the model is trained on a tenth of the data that scores privacy.
        method: `racing`, or `random` as published, which scores every candidate on all images.
        batches: over how many batches the accuracy score is a mean.
    """

    candidates: int
    images: int
    epochs: int
    method: Method = "racing"
    batches: int = 10


class Strength(Value):
    """How hard something is attacked.

    Args:
        victims: how many images, each behind a gradient of its own; more gives narrower intervals.
        iterations: of Adam, SGD or L-BFGS that tries one step at a time; more is stronger.
        lbfgs: iterations of plain L-BFGS, of at most 20 evaluations each.
        restarts: candidates for each victim where a preset has several, at most.
    """

    victims: int
    iterations: int
    lbfgs: int = 50
    restarts: int = 16


class Study(Value):
    """Everything that is done at one scale.

    Args:
        subjects: what policies are searched for, and measured on (Tables 1 to 3).
        transfers: what the policies of a subject are applied to (Table 4).
        explained: the subject that the figures and Table 2 are about.
        other: one more, on whose undefended training run the published policies are attacked; None for none.
        search: how policies are searched.
        epochs: how long is trained, in passes over all data.
        rounds: rounds in place of `epochs`; None for those.
        participants: how many there are.
        batch_size: examples behind a gradient in training.
        decayed: whether steps become a tenth after 3/8, 5/8 and 7/8 of the training.
        crop_flip: whether images are padded, cropped and flipped before a policy, and where there is none.
        random: how many random policies are trained with.
        published: the paper's hybrids that are measured beside ours, but in Table 4.
        attacked: at which stage of the training models are attacked (Tables 1 to 4). Accuracies are of the end.
        attack: how hard every model is attacked by Adam and cosine (Tables 1, 3 and 4).
        variants: how hard by the other attacks (Table 2).
        adaptive: how hard early in a training, by who knows the policy too.
        early: after how many steps, beside none; the first number is the smaller. Then none and the hybrid alone are
            attacked, under one seed.
        weight_decay: how much of the parameters is added to each gradient in training.
        semi_trained: the file of Algorithm 1's semi-trained model of the focus; `searches.prepare` finds it.
        compared: how many random policies are scored and attacked on one model (Fig. 2), in three draws.
        compared_attack: how hard.
        samples: on how many images privacy and accuracy are scored (Fig. 2, 5).
        moments: at how many moments of a training run accuracy is measured (Fig. 3).
        other_attack: how hard `other`.
        path: how hard is attacked while similarity is written down (Fig. 6); its victims are those of `variants`, which
            share the audit.
        seeds: how often the training runs of Tables 1 and 3 are repeated; 2 or more give intervals over them.
        few: how often everything else that a check rests on: Tables 2 and 4, Fig. 1 to 3, 5 and 6, and the tables
            `early` and `networks`.
        epsilon: the PSNR in dB below which a reconstruction counts as failed (Definition 2).
        delta: which share of reconstructions may succeed.
        gamma: how much accuracy may be lost.
        seed: what all randomness derives from.
        hybrids: the searched hybrid of each subject, by the subject's name; `searches.prepare` finds them.
        device: where tensors live.
    """

    subjects: tuple[Subject, ...] = Field(min_length=1)
    transfers: tuple[Subject, ...] = ()
    explained: str
    other: Subject | None = None
    search: SearchSize
    epochs: int
    rounds: int | None = None
    participants: int = 10
    batch_size: int = 32
    decayed: bool = False
    crop_flip: bool = False
    random: int
    published: tuple[str, ...] = PUBLISHED
    attacked: Stage = "end"
    attack: Strength
    variants: Strength
    adaptive: Strength
    early: tuple[int, int] = (10, 50)
    weight_decay: float = 0.0
    compared: int
    compared_attack: Strength
    samples: int
    moments: int
    path: Strength
    other_attack: Strength = Strength(victims=10, iterations=400)
    seeds: int = 1
    few: int = 1
    epsilon: float = 10.0
    delta: float = 0.1
    gamma: float = 0.02
    seed: int = 0
    hybrids: dict[str, Policy] = {}
    semi_trained: str = ""
    device: DeviceName = "cpu"

    @property
    def focus(self) -> Subject:
        """The subject that the figures are about."""
        return next(subject for subject in self.subjects if subject.name == self.explained)

    def hybrid_of(self, subject: Subject) -> Policy:
        """Return the hybrid that a subject is trained with: its own, or that of the subject it is transferred from."""
        wanted = subject.source or subject.name
        if wanted not in self.hybrids:
            raise InvalidValue(
                f"The policies of {wanted} must be searched before audits are planned with them. Call `prepare` first."
            )
        return self.hybrids[wanted]

    def rounds_of(self, subject: Subject) -> int:
        """Return how many rounds a training takes: so many epochs of equal shares of the data."""
        share = len(subject.data.load().train) // self.participants
        return self.epochs * max(1, share // self.batch_size) if self.rounds is None else self.rounds


def study_of(order: Order) -> Study:
    """Return what an order asks for; with `steps`, cut to the least that still runs every part."""
    whole = {"smoke": _smoke, "small": _small, "paper": _paper}[order.scale](order.data)
    cut = whole if order.steps is None else _cut(whole, order.steps)
    return cut.model_copy(update={"seed": order.seed})


def describe_cut(order: Order) -> str:
    """Return what `steps` cuts, as the middle of a sentence."""
    study = study_of(order)
    smaller = ", 200 training and 50 test images" if order.scale != "smoke" else ""
    return (
        f"{study.search.candidates} candidates, {study.rounds} rounds, attacks on 2 images by at most {order.steps} "
        f"iterations, one seed, {study.compared} policies compared, scores on {study.samples} images{smaller}"
    )


def _smoke(data: str) -> Study:
    photos = Subject(data_set="photos", network=LENET, data=Photos(size=16), model=LeNet())
    digits = Subject(data_set="digits", network=LENET, data=Digits(size=16), model=LeNet(), source=photos.name)
    weak = Strength(victims=2, iterations=10, lbfgs=1, restarts=1)
    return Study(
        subjects=(photos,),
        transfers=(digits,),
        explained=photos.name,
        search=SearchSize(candidates=8, images=8, epochs=2, batches=2),
        epochs=4,
        participants=2,
        random=1,
        published=(),
        attacked="initial",
        attack=Strength(victims=4, iterations=40),
        variants=weak,
        adaptive=weak,
        compared=9,
        compared_attack=weak,
        samples=8,
        moments=2,
        path=weak,
    )


def _small(data: str) -> Study:
    need_folder(data, "small")
    cifar = Subject(data_set=CIFAR10, network=LENET, data=need_set(data, "cifar10"), model=LeNet())
    fashion = need_set(data, "fashion-mnist", train_limit=10_000, test_limit=2_000)
    return Study(
        subjects=(cifar,),
        transfers=(Subject(data_set=FASHION, network=LENET, data=fashion, model=LeNet(), source=cifar.name),),
        explained=cifar.name,
        other=cifar.model_copy(update={"network": CONVNET, "model": ConvNet(width=8)}),
        search=SearchSize(candidates=1500, images=100, epochs=50),
        # Every policy, seed and data set is one more training run, of which only accuracies are taken.
        epochs=5,
        random=2,
        # In trials on ten images, without a defence, the attack reached 26 dB on the untrained network, 15 dB after a
        # third of an epoch and 12.6 dB after one, where the mean image has 12.5: later there is nothing left to defend,
        # and who sees all rounds attacks when it pays.
        attacked="initial",
        # From 800 iterations to the paper's 4800 its PSNR did not change.
        attack=Strength(victims=15, iterations=800),
        # Fifteen iterations of L-BFGS are up to 300 evaluations from each start.
        variants=Strength(victims=10, iterations=800, lbfgs=15, restarts=2),
        # Every outcome of a policy is a search of its own, or a part of one; images of three seeds are added up.
        adaptive=Strength(victims=6, iterations=200),
        compared=48,
        compared_attack=Strength(victims=4, iterations=400),
        samples=60,
        moments=8,
        path=Strength(victims=10, iterations=400),
        other_attack=Strength(victims=4, iterations=400),
        seeds=3,
        few=3,
    )


def _paper(data: str) -> Study:
    need_folder(data, "paper")
    sets = {
        CIFAR100: need_set(data, "cifar100"),
        FASHION: need_set(data, "fashion-mnist").model_copy(update={"size": 32}),
    }
    networks: dict[str, Network] = {RESNET: wide_resnet(), CONVNET: ConvNet(width=64, norm="running")}
    common: dict[str, Any] = {"learning_rate": 0.1}
    subjects = {
        (data_set, network): Subject(data_set=data_set, network=network, data=source, model=model, **common)
        for data_set, source in sets.items()
        for network, model in networks.items()
    }
    full = Strength(victims=100, iterations=4800)
    return Study(
        subjects=tuple(subjects.values()),
        transfers=tuple(
            subjects[FASHION, network].model_copy(update={"source": subjects[CIFAR100, network].name})
            for network in networks
        ),
        explained=subjects[CIFAR100, RESNET].name,
        search=SearchSize(candidates=1500, images=100, epochs=50, method="random"),
        epochs=200,
        # 130 images a round; the paper's code has batches of 128 and no participants.
        batch_size=13,
        decayed=True,
        weight_decay=5e-4,
        crop_flip=True,
        random=10,
        attack=full,
        variants=full.model_copy(update={"lbfgs": 300}),
        adaptive=full,
        # Three draws of a hundred.
        compared=300,
        compared_attack=Strength(victims=100, iterations=2500),
        samples=100,
        moments=40,
        path=Strength(victims=100, iterations=2500),
        seeds=3,
        few=3,
        device="auto",
    )


def wide_resnet() -> ResNet20:
    """Return ResNet20 as the paper has it: of width 4, its batch norm in training mode with running statistics."""
    return ResNet20(width=4, norm="running")


def score_network(network: Network) -> Network:
    """Return a network as scores are taken on it: with batch norm in evaluation mode.

    Scores need each image's own gradient, which there is none of where a batch normalises itself.
    """
    if isinstance(network, ResNet20 | ConvNet) and network.norm == "running":
        return network.model_copy(update={"norm": "batch"})
    return network


def _cut(study: Study, steps: int) -> Study:
    """Return a study in which every part is kept, and of what is counted only the least."""
    subjects = {name: tuple(_limit(subject) for subject in getattr(study, name)) for name in ("subjects", "transfers")}
    strengths = {
        name: Strength(victims=2, iterations=min(steps, getattr(study, name).iterations), lbfgs=1, restarts=1)
        for name in ("attack", "variants", "adaptive", "compared_attack", "path", "other_attack")
    }
    return study.model_copy(
        update={
            **subjects,
            **strengths,
            "other": study.other and _limit(study.other),
            "search": study.search.model_copy(update={"candidates": 4, "images": 8, "epochs": 1, "batches": 2}),
            "rounds": max(1, min(steps, study.rounds or steps)),
            "batch_size": min(4, study.batch_size),
            "random": 1,
            "early": (1, 2),
            "compared": 9,
            "samples": 4,
            "moments": 1,
            "seeds": 1,
            "few": 1,
        }
    )


def _limit(subject: Subject) -> Subject:
    if not isinstance(subject.data, ImageSource):
        return subject
    fewer = subject.data.model_copy(update={"train_limit": 200, "test_limit": 50})
    return subject.model_copy(update={"data": fewer})
