"""The captured scenario: nothing is trained here; messages that crossed a wire elsewhere are attacked."""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch
from pydantic import Field, SerializeAsAny
from torch import nn

from leaktight.attacks.running_statistics import read_statistics
from leaktight.captures.as_captured import AsCaptured
from leaktight.captures.capture import LARGEST_FILE, Capture, read_captures
from leaktight.captures.known import Known, unknown_settings
from leaktight.captures.manifest import ENDING
from leaktight.captures.sender import exchange, has_vanished, undefended_message
from leaktight.captures.task import mixing_layers, outputs_in, random_layers, runs, task_of
from leaktight.captures.truth import read_truth, truth_files
from leaktight.core.defence import Defence, Undefended
from leaktight.core.device import DeviceName, device_of
from leaktight.core.digest import digest
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.factory import call_object
from leaktight.core.input_file import digest_input
from leaktight.core.message import Message, Tensors
from leaktight.core.random import global_seed
from leaktight.core.run import GroundTruth, MessageKey, Run
from leaktight.core.scenario import Content, Control, Enter, Observation, Progress, Scenario, Snapshot, Training
from leaktight.core.task import Batch, Task
from leaktight.core.threat import Exchange
from leaktight.core.training_mode import MEAN, VARIANCE
from leaktight.data import Digits
from leaktight.data.files import Location
from leaktight.data.source import Source
from leaktight.learning.federated import Federated
from leaktight.learning.protocol import FedSGD
from leaktight.models.factory import Factory
from leaktight.models.obstacles import obstacles
from leaktight.models.trial import trial_inputs
from leaktight.models.weights import load_state

CAPTURES = "the captured messages"


class Captured(Scenario):
    """Messages of a training run that happened elsewhere, with or without the private batches behind them.

    As `as_captured` each message is what was recorded. As `none` it is what its sender would have sent without a
    defence, computed from the private batch, where the owner gave it: what the captured messages are compared with.

    Args:
        folder: where the captures are.
        model: the model that was trained, as `package.module:function`. It is attacked with the parameters and buffers
            that were captured: batch norm in training mode where its sender had it so, everything else in evaluation
            mode.
        shape: the shape of one example; empty if the manifests say it.
        truth: the file with the private batches, or a folder of such files; empty if nobody gave them. With it, only
            messages whose batch it holds are looked at.
        public: public examples of the same kind, of which the test part is taken; without them the chance level is that
            of grey or noise.
        rounds: look at these rounds only; empty for all.
        known: what is known of how all messages were made, where their manifests do not say it.
        device: where tensors live: `cpu`, `cuda`, `mps`, or `auto`.
    """

    kind: Literal["captured"] = "captured"
    folder: Location
    model: Factory
    shape: tuple[int, ...] = ()
    truth: Location = ""
    public: SerializeAsAny[Source] | None = None
    rounds: tuple[int, ...] = ()
    # Left out where it is empty, so that audits of before it was there keep their keys.
    known: Known = Field(Known(), exclude_if=lambda known: known == Known())
    device: DeviceName = "cpu"

    @property
    def stages(self) -> tuple[str, ...]:
        """Messages come from all of a training run."""
        return ("training",)

    @property
    def baseline(self) -> Defence:
        """With the truth, what would have been sent without defence; without it, the captures are all there is."""
        return Undefended() if self.truth else AsCaptured()

    def _all_captures(self) -> list[Capture]:
        """Return the messages of the chosen rounds, by round and sender."""
        return [
            dataclasses.replace(capture, manifest=capture.manifest.fill(self.known))
            for capture in read_captures(Path(self.folder))
            if not self.rounds or capture.manifest.round in self.rounds
        ]

    def files(self) -> list[Path]:
        """Return every file that messages and truth are read from, by name, and none that lies beside them."""
        folder = Path(self.folder)
        manifests = [capture.manifest for capture in read_captures(folder)]
        names = {name for manifest in manifests for name in (manifest.tensors, manifest.parameters)}
        paths = [*folder.glob(f"*{ENDING}"), *(folder / name for name in names)]
        return [*sorted(paths), *(truth_files(Path(self.truth)) if self.truth else [])]

    def captures(self) -> list[Capture]:
        """Return the messages that are looked at: all that were seen, or those whose private batch is known."""
        captures = self._all_captures()
        if self.truth:
            known = self.batches(captures)
            captures = [capture for capture in captures if capture.manifest.name in known]
        return captures

    def batches(self, captures: Sequence[Capture]) -> dict[str, Batch]:
        """Return the private batches behind captures, by `SENDER/ROUND`; none without the truth."""
        if not self.truth:
            return {}
        return read_truth(Path(self.truth), [capture.manifest.name for capture in captures])

    def module(self, capture: Capture) -> nn.Module:
        """Return the model with what a message's sender was sent, in the mode in which its function returns it."""
        parameters = capture.parameters()
        with global_seed(0):
            module = call_object(
                self.model.function, shape=self.shape_of(capture), classes=_classes(capture, parameters)
            )
        if not isinstance(module, nn.Module):
            raise InvalidValue(
                f"`{self.model.function}` must return a torch.nn.Module. Got {type(module).__name__} instead."
            )
        return load_state(
            module, parameters, f"The capture of {capture.manifest.sender} in round {capture.manifest.round}"
        )

    def shape_of(self, capture: Capture) -> tuple[int, ...]:
        """Return the shape of one example, from the settings, the manifest or the truth."""
        shape = self.shape or capture.manifest.shape or ()
        if not shape and self.truth:
            shape = tuple(self.batches([capture])[capture.manifest.name].inputs.shape[1:])
        if not shape:
            raise InvalidValue("The shape of one example is in no manifest. Give it, such as `--shape 1,28,28`.")
        return shape

    def task(self, capture: Capture) -> Task:
        """Return the public task at the parameters and buffers of a capture, batch norm as its sender had it."""
        module, manifest, shape = self.module(capture).eval(), capture.manifest, self.shape_of(capture)
        classes = outputs_in(module, shape) or _classes(capture, module.state_dict())
        trained = _in_mode_of_sender(module, capture)
        # Of one example that has a single value in each channel there is no variance; of two there is.
        trial = torch.zeros(min(manifest.step_size, 2), *shape)
        if trained is not None and runs(trained, trial) and not obstacles(trained, shape, classes, self.model.head):
            module = trained
        task = task_of(
            module,
            shape,
            classes,
            self.model.head,
            (manifest.mean, manifest.std) if manifest.mean and manifest.std else None,
        )
        return dataclasses.replace(task, model=task.model.to(device_of(self.device)))

    def content(self, seed: int) -> Content:
        """The files of the captures, and the model with what was sent first."""
        files = [part for path in self.files() for part in (path.name, digest_input(path, LARGEST_FILE).hex())]
        task = self.task(self.captures()[0])
        inputs = trial_inputs(task.model, task.shape).cpu()
        return Content(task.model, (inputs,), torch.zeros(len(inputs), dtype=torch.long), {CAPTURES: digest(*files)})

    def seats(self, seeds: Sequence[int], batch_sizes: Sequence[int]) -> frozenset[str]:
        """Whoever received a capture.

        Each capture is opened once, because a damaged one is better named now than in every cell.
        """
        captures = self.captures()
        task = self.task(captures[0])
        for capture in captures:
            exchange(capture, task)
        return frozenset(capture.manifest.receiver for capture in captures)

    def control(self) -> Control:
        """A federation, because no answer is known of captured messages.

        The same instruments must be exact where an answer is known.
        """
        return Control(Federated(data=Digits(), model={"kind": "mlp"}, protocol=FedSGD(), rounds=0))

    def train(
        self, defence: Defence, seed: int, progress: Progress | None = None, enter: Enter | None = None
    ) -> Training:
        """Train nothing: that happened elsewhere."""
        return Training({"training": Snapshot({})})

    def observe(
        self, training: Training, defence: Defence, observation: Observation, enter: Enter | None = None
    ) -> Run:
        """Return captured messages of this batch size, as many as asked for, spread evenly over rounds and senders."""
        if not isinstance(defence, AsCaptured | Undefended):
            raise Refusal(
                f"Captured messages cannot be sent again under {defence.kind}. Record messages that were sent under it."
            )
        if isinstance(defence, Undefended) and not self.truth:
            raise Refusal(
                "What would have been sent without defence follows from the private batch alone. Add the truth."
            )
        chosen = _spread(
            [c for c in self.captures() if c.manifest.step_size == observation.batch_size], observation.victims
        )
        if not chosen:
            raise Refusal(f"No captured message was made from batches of {observation.batch_size}.")
        task, batches = self.task(chosen[0]), self.batches(chosen)
        transcript: list[Message] = []
        truths: dict[MessageKey, GroundTruth] = {}
        for capture in chosen:
            asked, sent = exchange(capture, task)
            if capture.manifest.name in batches:
                batch = batches[capture.manifest.name].to(task.device)
                plain = undefended_message(task, asked, sent, batch, capture.manifest)
                sent = sent if isinstance(defence, AsCaptured) else _require_known(plain)
                statistics = {} if plain is None else read_statistics(task, Exchange(asked.tensors, plain))
                truths[sent.key] = GroundTruth(task, batch, batch, plain or sent, sent, plain, statistics=statistics)
            transcript += [asked, sent]
        notes = self._notes(chosen, task, transcript)
        return Run(tuple(transcript), task, defence, truths, auxiliary=self._auxiliary(task), notes=notes)

    def _auxiliary(self, task: Task) -> Batch | None:
        """Return the public examples, if there are any and they are of the same kind."""
        data = None if self.public is None else self.public.load()
        if data is not None and (data.shape != task.shape or data.classes > task.classes):
            raise InvalidValue(
                f"Public examples must have the shape {task.shape} and at most {task.classes} classes like the "
                f"captured ones. Got {data.shape} and {data.classes} instead."
            )
        return None if data is None else data.test.to(task.device)

    def _notes(self, chosen: Sequence[Capture], task: Task, transcript: Sequence[Message]) -> dict[str, float]:
        """Count what may keep an attack from succeeding, for the diagnosis."""
        module = self.module(chosen[0])
        manifests = [capture.manifest for capture in chosen]
        in_training = any(manifest.training is not False for manifest in manifests)
        pairs = zip(transcript[::2], transcript[1::2], strict=True)
        return {
            "captures.messages": float(len(chosen)),
            "captures.left_out": float(len(self._all_captures()) - len(self.captures())),
            "captures.unknown_steps": float(sum(manifest.unknown_steps for manifest in manifests)),
            "captures.unknown_examples": float(sum(manifest.examples is None for manifest in manifests)),
            "captures.several_examples": float(sum(manifest.facts()["examples"] > 1 for manifest in manifests)),
            "captures.batch_norms": float(
                len(mixing_layers(module)) - len(task.model.batch_norms()) if in_training else 0
            ),
            "captures.dropouts": float(len(random_layers(module)) if in_training else 0),
            **{
                f"captures.assumed_{name}": float(number)
                for name, number in Counter(
                    name for manifest in manifests for name in unknown_settings(manifest, manifest.kind == "update")
                ).items()
            },
            "captures.not_replayed": float(sum(not manifest.is_replayed for manifest in manifests)),
            "captures.vanished": float(sum(has_vanished(task, asked, sent) for asked, sent in pairs)),
        }


def _in_mode_of_sender(module: nn.Module, capture: Capture) -> nn.Module | None:
    """Return a copy of a model with batch norm in training mode, where its sender had it so; None if it had not.

    A manifest may say it. Where nobody does, running statistics that moved do.
    """
    training = capture.manifest.training
    sent = {} if training is not None else capture.tensors()
    parts = [(name.rpartition("."), tensor) for name, tensor in sent.items()]
    moved = {layer for (layer, _, part), tensor in parts if part in (MEAN, VARIANCE) and tensor.any()}
    names = [name for name in mixing_layers(module) if training or name in moved]
    if not names:
        return None
    copied = copy.deepcopy(module)
    for name in names:
        copied.get_submodule(name).train()
    return copied


def _spread(captures: Sequence[Capture], count: int) -> list[Capture]:
    """Return so many captures, or all, evenly spread."""
    number = min(count, len(captures))
    return [captures[place * len(captures) // number] for place in range(number)]


def _require_known(plain: Message | None) -> Message:
    if plain is None:
        raise Refusal(
            "What would have been sent without defence cannot be computed: the number or size of local steps is "
            "unknown, or another optimiser than SGD took them. State them, such as `--known local_steps=1 "
            "--known learning_rate=0.1`, or when messages are recorded."
        )
    return plain


def _classes(capture: Capture, state: Tensors) -> int:
    """Return how many classes there are: by the manifest, or as many as the last matrix has rows."""
    matrices = [tensor for tensor in state.values() if tensor.dim() == 2]
    return capture.manifest.classes or (max(2, len(matrices[-1])) if matrices else 2)
