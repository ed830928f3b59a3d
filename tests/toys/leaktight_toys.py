"""A plugin with a scenario, an attack and a defence whose answers are known and that go wrong on demand, and with a kind of leak."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import nn

from leaktight.core.attack import Attack, Reconstruction, Scores
from leaktight.core.defence import Defence, Strength
from leaktight.core.display import show_count
from leaktight.core.errors import InvalidValue, LeaktightError, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.metric import Metric, Quantity, Reading
from leaktight.core.party import Party, Seat
from leaktight.core.random import global_seed, normal_like, seed_of, stream
from leaktight.core.record import Record
from leaktight.core.run import GroundTruth, Run
from leaktight.core.scenario import Enter, Observation, Progress, Scenario, Snapshot, Training
from leaktight.core.task import Batch, Model, Task
from leaktight.core.threat import Knows, View
from leaktight.findings.kind import LeakKind
from leaktight.findings.rows import Row
from leaktight.statistics.interval import wilson

if TYPE_CHECKING:
    from leaktight.report.page import Page, Section

SHAPE = (1, 2, 2)
Trouble = Literal["none", "refuse", "error", "numeric", "memory", "bug", "die", "die_once", "slow"]


def happen(trouble: Trouble, log: str = "") -> None:
    """Write that something was done, and go wrong as asked."""
    before = Path(log).read_text() if log and Path(log).exists() else ""
    if log:
        with Path(log).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if trouble == "refuse":
        raise Refusal("The toy refuses. Ask something else.")
    if trouble == "error":
        raise LeaktightError("The toy is broken. Mend it.")
    if trouble == "numeric":
        raise RuntimeError("svd did not converge\nand much more")
    if trouble == "memory":
        raise MemoryError
    if trouble == "bug":
        raise TypeError("a fault of the program")
    if trouble == "die" or (trouble == "die_once" and not before):
        os.kill(os.getpid(), signal.SIGKILL)
    if trouble == "slow":
        time.sleep(0.4)


def mortal(cache: object, options: Mapping[str, Any]) -> SimpleNamespace:
    """Make a worker that answers with what it was given; the first processes that make one are killed meanwhile."""
    log = Path(options["log"])
    with log.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if len(log.read_text().split()) <= options["deaths"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return SimpleNamespace(answer=lambda content, progress: [content])


def squared(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return (outputs - nn.functional.one_hot(labels, 2)).square().sum(1)


class ToyScenario(Scenario):
    """Two parties, four pixels, one linear layer."""

    kind: Literal["toy_scenario"] = "toy_scenario"
    trouble: Trouble = "none"
    log: str = ""
    rounds: int = 4
    pause: float = 0.0
    device: Literal["auto", "cpu", "cuda", "mps"] = "cpu"

    def task(self, seed: int) -> Task:
        with global_seed(seed_of(seed, "model")):
            model = Model(nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), nn.Linear(3, 2))
        return Task(model, squared, lambda outputs: outputs, SHAPE, 2)

    def train(
        self, defence: Defence, seed: int, progress: Progress | None = None, enter: Enter | None = None
    ) -> Training:
        happen(self.trouble, self.log)
        for played in range(1, self.rounds + 1):
            time.sleep(self.pause)
            if progress is not None:
                progress(played, self.rounds)
        parameters = self.task(seed).public_parameters()
        memories = {"client-0": {"defence": {"steps": 3, "residual": {"body.1.weight": torch.ones(3, 4)}}}}
        stages = {"initial": 1.0, "early": 0.9, "end": 0.5}
        return Training(
            {s: Snapshot({n: t * scale for n, t in parameters.items()}, memories) for s, scale in stages.items()},
            (Reading(name="accuracy", value=0.75, low=0.7, high=0.8, n=100, chance=0.5),),
            {"epsilon": 2.0},
        )

    def observe(
        self, training: Training, defence: Defence, observation: Observation, enter: Enter | None = None
    ) -> Run:
        task = self.task(observation.seed)
        snapshot = training.snapshots[observation.stage]
        transcript, truths = [], {}
        for number in range(observation.victims):
            name = f"client-{number % 2}"
            rng = stream(observation.seed, "batch", number)
            batch = Batch(
                torch.rand(observation.batch_size, *SHAPE, generator=rng), torch.zeros(observation.batch_size).long()
            )
            if observation.batch_size > 100:
                raise InvalidValue("The batch size must be at most 100.")
            local = Local(name, observation.seed)
            local.begin(number)
            leaves = {n: t.clone().requires_grad_() for n, t in snapshot.parameters.items()}
            loss = task.loss(task.forward(leaves, batch.inputs), batch.labels).mean()
            tensors = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
            clean = Message(Kind.GRADIENT, name, "server", number, tensors, {"examples": float(len(batch))})
            sent = defence.on_message(clean, local)
            transcript += [Message(Kind.PARAMETERS, "server", name, number, snapshot.parameters), sent]
            truths[sent.key] = GroundTruth(task, batch, batch, clean, sent)
        return Run(tuple(transcript), task, defence, truths, notes={"epsilon": 1.0, "rounds": 7.0})


class ToyAttack(Attack):
    """Exact for one example: the ratio of the first layer's gradients."""

    kind: Literal["toy_attack"] = "toy_attack"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs", "labels"})
    trouble: Trouble = "none"
    log: str = ""
    blur: float = 0.0
    adapts: bool = False

    @property
    def needs(self) -> frozenset[Knows]:
        return frozenset({Knows.DEFENCE} if self.adapts else ())

    def run(self, view: View, rng: torch.Generator) -> Reconstruction:
        happen(self.trouble, self.log)
        exchanges = view.exchanges()
        guesses = []
        for exchange in exchanges:
            weight, bias = exchange.sent.tensors["body.1.weight"], exchange.sent.tensors["body.1.bias"]
            row = int(bias.abs().argmax())
            guess = (weight[row] / bias[row]).view(1, *view.task.shape)
            guess = guess.repeat(int(exchange.sent.facts["examples"]), 1, 1, 1)
            guesses.append(guess + self.blur * normal_like(guess, rng))
        labels = tuple(torch.zeros(len(guess)).long() for guess in guesses)
        return Reconstruction(tuple(e.sent.key for e in exchanges), tuple(guesses), labels)


class ToyNoise(Defence):
    """Gaussian noise."""

    kind: Literal["toy_noise"] = "toy_noise"
    title: ClassVar[str] = "noise of the toys"
    strength: ClassVar[Strength] = Strength("std", "up", 0.0)
    std: float = 0.1

    def on_message(self, message: Message, local: Local) -> Message:
        return message.map(lambda tensor: tensor + self.std * local.draws.normal_like(tensor))


class ToySitter(Attack):
    """Sits in the training, counts its turns there, keeps what it was handed last, and stretches what its seat sends."""

    kind: Literal["toy_sitter"] = "toy_sitter"
    claims: ClassVar[frozenset[str]] = frozenset({"scores"})
    accomplices: tuple[str, ...] = ()
    stretch: float = 1.0
    log: str = ""

    @property
    def active(self) -> bool:
        return True

    def take(self, seat: Seat) -> Party:
        return Sitting(seat, self)

    def run(self, view: View, rng: torch.Generator) -> Scores:
        own = view.memory["sitter"]
        size = torch.stack([tensor.norm() for tensor in own["last"].values()]).norm()
        return Scores((), (torch.tensor([float(own["turns"]), size.item()]),))


@dataclasses.dataclass(frozen=True)
class Sitting:
    """Who sits in a seat for a ToySitter."""

    seat: Seat
    attack: ToySitter

    @property
    def name(self) -> str:
        return self.seat.name

    def respond(self, message: Message) -> Message:
        happen("none", self.attack.log)
        own = self.seat.local.scope("sitter").memory
        own["turns"] = own.get("turns", 0) + 1
        own["last"] = {name: tensor.clone() for name, tensor in message.tensors.items()}
        return self.seat.honest.respond(message).map(lambda tensor: self.attack.stretch * tensor)

    def close(self) -> Message | None:
        return self.seat.honest.close()


class ToyCount(Metric):
    """What a ToySitter has in mind."""

    kind: Literal["toy_count"] = "toy_count"
    claim: ClassVar[str] = "scores"
    leaks: ClassVar[None] = None

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        return {
            "turns": Quantity("turns taken", digits=0),
            "size": Quantity("size of what was handed out", "nats", digits=2),
        }

    def grade(self, guess: Scores, truth: object, rng: object, public: object = None) -> list[Reading]:
        turns, size = guess.values[0].tolist()
        return [Reading(name="turns", value=turns), Reading(name="size", value=size)]


class ToyGlimpse(Metric):
    """How many pictures have their brightness told to a hundredth."""

    kind: Literal["toy_glimpse"] = "toy_glimpse"
    claim: ClassVar[str] = "inputs"

    def grade(
        self, guess: Reconstruction, truth: Sequence[GroundTruth], rng: object, public: object = None
    ) -> list[Reading]:
        pairs = zip(guess.inputs, truth, strict=True)
        hits = [abs(float(one.mean() - other.raw.inputs.mean())) < 0.01 for one, other in pairs]
        share = sum(hits) / len(hits)
        low, high = wilson(sum(hits), len(hits))
        each = tuple(map(float, hits))
        return [
            Reading(name=self.kind, value=share, low=low, high=high, n=len(hits), chance=0.05, leaks="high", each=each)
        ]


class ToyBrightness(LeakKind):
    """How bright the picture behind a message is."""

    kind: Literal["toy_brightness"] = "toy_brightness"
    rank: ClassVar[int] = 40
    heading: ClassVar[str] = "Brightness"
    noun: ClassVar[str] = "the brightness"
    names: ClassVar[tuple[str, ...]] = ("toy_glimpse",)
    chart: ClassVar[str] = "brightness told"
    control: ClassVar[str] = "of brightness must tell every picture's."
    sections: ClassVar[tuple[str, ...]] = ("leaktight_toys:brightness_section",)

    def reading(self, row: Row) -> Reading | None:
        return row.reading("toy_glimpse")

    def clause(self, row: Row) -> str:
        return f"{self.short(row)} pictures have their brightness told"

    def short(self, row: Row) -> str:
        reading = self.reading(row)
        return "nothing" if reading is None else show_count(reading)

    def measure(self, row: Row) -> str:
        return "pictures with their brightness told"

    def is_exact(self, record: Record) -> bool | None:
        reading = record.reading("toy_glimpse")
        return None if reading is None else reading.value == 1.0

    def glossary(self, names: Collection[str], records: Sequence[Record]) -> dict[str, str]:
        return {"Brightness": "The mean of all pixels."} if "toy_glimpse" in names else {}


def brightness_section(page: Page) -> Section | None:
    """Say of each row how many pictures have their brightness told."""
    from leaktight.report.page import Section

    kind = ToyBrightness()
    lines = [kind.clause(row) for row in page.summary.rows if kind.reading(row) is not None]
    template = "<ul>{% for line in lines %}<li>{{ line }}</li>{% endfor %}</ul>"
    return Section("brightness", "How bright", values={"lines": lines}, text=template) if lines else None
