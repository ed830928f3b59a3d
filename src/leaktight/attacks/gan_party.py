"""GAN party: a participant who makes pictures of somebody else's class, judged by the shared model."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.attacks.gan_target import ClassTarget, KeyTarget, Target, estimate_key, parameters_left
from leaktight.core.draws import Draws, public_draws
from leaktight.core.errors import Refusal
from leaktight.core.local import Local, Memory
from leaktight.core.message import Message, Tensors
from leaktight.core.party import Seat
from leaktight.core.random import seed_of
from leaktight.core.task import Batch
from leaktight.core.threat import Knows
from leaktight.defences.key_theory import key_at_distance, random_keys
from leaktight.learning.client import Client
from leaktight.learning.optimiser import restore_moments, take_moments

if TYPE_CHECKING:
    from leaktight.attacks.gan import GanAttack

SCOPE = "gan"
"""Where the party keeps what it learned, in the memory of its seat."""

CONTROLS = "controls"
"""Where it keeps the generators that others are compared with, within that."""

LOOKS = 12
"""Of how many rounds pictures are kept, at most."""

STREAK = 15
"""How many generator steps in a row must reach the share of `early_stop`."""


@dataclasses.dataclass
class GanParty:
    """A participant that follows the protocol, with fakes among its own examples.

    On each turn it trains its generator against the parameters that it was handed, makes fakes, and answers as an
    honest participant would who also owned the fakes of the last rounds, under a label that nobody else uses. What it
    keeps from turn to turn is in the memory of its seat alone: the generator, what its optimiser remembers, the fakes,
    pictures of some rounds, estimates of a key if it makes some, and where there are keys, generators that follow
    random ones. Nothing of these goes into its answer.

    Args:
        attack: the settings.
        seat: its seat, whose honest owner trains for it.
    """

    attack: GanAttack
    seat: Seat

    def __post_init__(self) -> None:
        self.fake_class = _fake_class(self.attack, self.seat)
        if not isinstance(self.seat.honest, Client):
            raise Refusal(
                f"gan needs the seat of a federation's participant. Got that of {self.name}, which is not one."
            )
        self.honest = self.seat.honest

    @property
    def name(self) -> str:
        """The name of its seat."""
        return self.seat.name

    def respond(self, message: Message) -> Message:
        """Train the generator, and answer with an update that teaches the others its fakes."""
        local = self.seat.local
        local.begin(message.round)
        own = local.scope(SCOPE)
        parameters = self.seat.task.model_parameters(message.tensors)
        target = self._aim(parameters, own)
        generator = self._train(parameters, target, own)
        if isinstance(target, KeyTarget):
            self._train_controls(parameters, target, own)
        fakes = draw_samples(generator, self.attack.generator.noise, self.attack.fakes, own.draws)
        own.memory["fakes"] = torch.cat([own.memory.get("fakes", fakes[:0]), fakes])[
            -self.attack.kept_rounds * len(fakes) :
        ]
        self._look(generator, message.round, own)
        sent = self._forger(own.memory["fakes"]).respond(message)
        own.memory.pop("left", None)
        if (
            self.attack.class_key == "estimated"
            and isinstance(target, KeyTarget)
            and (left := parameters_left(message, sent))
        ):
            own.memory["left"] = left
        return sent

    def close(self) -> Message | None:
        """Reveal what the honest owner would."""
        return self.honest.close()

    def _aim(self, parameters: Tensors, own: Local) -> Target:
        """Return what the model should take this turn's fakes for: the victim's class, or a key if it has no scores."""
        task = self.seat.task
        with torch.no_grad():
            outputs = task.forward(parameters, torch.zeros(1, *task.shape, device=task.device))
        try:
            task.predict(outputs)
        except Refusal:
            other = random_keys(1, outputs.shape[1], self._chance("other key")).to(outputs)[0]
            return KeyTarget(self._key(outputs[0], parameters, own), other)
        return ClassTarget(self.attack.victim_class, task.predict)

    def _key(self, embedding: Tensor, parameters: Tensors, own: Local) -> Tensor:
        """Return the attack key, as far as the victim's is known or can be told; one at random where nothing is."""
        if self.attack.class_key in ("exact", "distance"):
            exact = self._known_key().to(embedding)
            return (
                exact
                if self.attack.class_key == "exact"
                else key_at_distance(exact, self.attack.distance, self._chance("key"))
            )
        if self.attack.class_key == "estimated" and "fakes" in own.memory:
            self._estimate(parameters, own)
            if own.memory["estimate"].any():
                return F.normalize(own.memory["estimate"], dim=0)
        return random_keys(1, len(embedding), self._chance("key")).to(embedding)[0]

    def _estimate(self, parameters: Tensors, own: Local) -> None:
        """Learn from what others did since the last turn; where that one was only observed, nothing came of it."""
        memory, task = own.memory, self.seat.task
        if "left" in memory:
            fakes = memory["fakes"][-self.attack.fakes :]
            memory["estimate"] = estimate_key(
                task, task.model_parameters(memory["left"]), parameters, fakes, memory.get("estimate")
            )
        elif "estimate" not in memory:
            raise Refusal(
                "gan cannot tell what others did since its last turn where the server weighs answers, hides them in a "
                "sum, or has momentum. Estimate keys under `round_robin`, or set `class_key` to `random`."
            )

    def _chance(self, name: str) -> Draws:
        """Return draws that are the same on every turn."""
        return public_draws(self.seat.local.seed, self.seat.local.party, SCOPE, name)

    def _known_key(self) -> Tensor:
        keys = [
            secret
            for name, secret in sorted(self.seat.known.items())
            if name.startswith(f"{Knows.KEYS}/") and name.rpartition("/")[2] == str(self.attack.victim_class)
        ]
        if not keys:
            raise Refusal(
                f"gan needs the key of class {self.attack.victim_class}. Nobody else has one; attack a class that is "
                "owned, or use a random key."
            )
        return keys[0]

    def _train_controls(self, parameters: Tensors, target: KeyTarget, own: Local) -> None:
        """Train a generator for each of the random keys to compare with."""
        for number in range(self.attack.controls):
            key = random_keys(1, len(target.key), self._chance(f"control {number}")).to(target.key)[0]
            self._train(parameters, KeyTarget(key, target.other), own.scope(CONTROLS).scope(str(number)))

    def _train(self, parameters: Tensors, target: Target, own: Local) -> nn.Module:
        """Train the generator until its fakes are taken for what it is after, or for as long as it may; return it."""
        attack, task = self.attack, self.seat.task
        generator = restore_generator(attack, task.shape, own).to(task.device)
        leaves = dict(generator.named_parameters())
        steps = attack.optimiser.over(leaves.values())
        restore_moments(steps, leaves, own.memory.get("optimiser", {}))
        streak = 0
        for _ in range(attack.generator_steps):
            outputs = task.forward(
                parameters, generator(_noise(attack.batch_size, attack.generator.noise, generator, own.draws))
            )
            loss = target.loss(outputs).mean()
            steps.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            steps.step()
            reached = attack.early_stop is not None and target.hits(outputs).double().mean().item() >= attack.early_stop
            streak = streak + 1 if reached else 0
            if streak >= STREAK:
                break
        own.memory["optimiser"] = take_moments(steps, leaves)
        own.memory["generator"] = {name: tensor.detach().clone() for name, tensor in generator.state_dict().items()}
        return generator

    def _look(self, generator: nn.Module, round: int, own: Local) -> None:
        """Keep pictures of this round, always from the same noise, and the estimate of a key, if the round is sampled.

        Rounds in between are forgotten over time.
        """
        apart = 1
        while round // apart >= LOOKS:
            apart *= 2
        history: Memory = own.memory.setdefault("history", {})
        estimates: Memory = own.memory.setdefault("estimates", {}) if "estimate" in own.memory else {}
        for memory in (history, estimates):
            for number in [name for name in memory if int(name) % apart]:
                del memory[number]
        if round % apart == 0 and "estimate" in own.memory:
            estimates[str(round)] = own.memory["estimate"].clone()
        if round % apart == 0:
            draws = public_draws(own.seed, own.party, SCOPE, "pictures")
            # Batch norm needs a whole batch to look at.
            pictures = draw_samples(generator, self.attack.generator.noise, self.attack.batch_size, draws)
            history[str(round)] = pictures[: self.attack.pictures].clone()

    def _forger(self, fakes: Tensor) -> Client:
        """Return the honest owner of the seat with fakes among its examples."""
        own = self.seat.data
        labels = torch.full((len(fakes),), self.fake_class, device=own.labels.device)
        # A copy and not a new one: what the defence knows of the owner's classes stays as it is.
        forger = copy.copy(self.honest)
        forger.data = Batch.join([Batch(own.inputs, own.labels), Batch(fakes.to(own.inputs), labels)])
        return forger


def _fake_class(attack: GanAttack, seat: Seat) -> int:
    """Return the class of the fakes; refuse if it is the victim's, or if either class is the attacker's own.

    Pictures of a class of its own would show what it holds anyway, and count as somebody else's.
    """
    classes, victim = seat.task.classes, attack.victim_class
    fake = classes - 1 if attack.fake_class is None else attack.fake_class
    if max(fake, victim) >= classes or fake == victim or {fake, victim} & set(seat.data.labels.tolist()):
        raise Refusal(
            "gan needs the victim's class and another one for its fakes, neither its own, among the model's "
            f"{classes}. Got {victim} and {fake} instead; give the scenario `spare_classes`, or change `victim_class` "
            "or `fake_class`."
        )
    return fake


def restore_generator(attack: GanAttack, shape: tuple[int, ...], own: Local) -> nn.Module:
    """Return the generator as its memory has it; a new one if there is none."""
    generator = attack.generator.build(shape, seed_of(own.seed, own.party, SCOPE, "generator", *own.path[1:]))
    if "generator" in own.memory:
        generator.load_state_dict(own.memory["generator"])
    return generator


@torch.no_grad()
def draw_samples(generator: nn.Module, noise: int, count: int, draws: Draws) -> Tensor:
    """Return so many samples of a generator."""
    images: Tensor = generator(_noise(count, noise, generator, draws))
    return images


def _noise(count: int, length: int, generator: nn.Module, draws: Draws) -> Tensor:
    """Draw noise from U(-1, 1), on the generator's device."""
    return (2 * draws.uniforms((count, length)) - 1).to(next(generator.parameters()).device)
