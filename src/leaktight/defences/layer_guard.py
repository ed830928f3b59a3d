"""Layer guard: a defence for the riskiest layers only."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from pathlib import Path
from typing import ClassVar, Literal

import torch
from pydantic import Field, SerializeAsAny, field_validator, model_validator

from leaktight.channels.layers import OnLayers
from leaktight.core.channel import Channel
from leaktight.core.defence import Chain, Defence, Gradient, Strength
from leaktight.core.effect import Effect
from leaktight.core.errors import InvalidValue, Refusal, unknown
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, layer_of
from leaktight.core.task import Task
from leaktight.data.files import Location
from leaktight.data.source import Source
from leaktight.defences.finite import finite
from leaktight.defences.local_dp import LocalDP
from leaktight.defences.ranking import read_ranking
from leaktight.defences.sealing_order import public_order
from leaktight.defences.withhold import Withhold

_HOOKS = ("on_agree", "on_task", "on_batch", "on_close", "on_reveal")


class LayerGuard(Defence):
    r"""Apply a defence of messages to the k riskiest layers, and send the others as they are.

    Without it a message holds the gradient or update \(g_l\) of every layer \(l\); with it, for a ranking
    \(l_1, l_2, \ldots\) of the layers,

    .. math:: \tilde g_l = A(g_{l_1}, \ldots, g_{l_k})_l \text{ for } l \in \{ l_1, \ldots, l_k \}, \qquad
        \tilde g_l = g_l \text{ otherwise,}

    where the guard A sees the guarded layers as a message of their own: top-k takes its share of them, noise falls on
    them alone. What the other layers tell is not touched, and they come from the same examples.

    The ranking is public and the same for all parties. It is chosen once, in `on_agree`, from one of three places:
    `layers` by hand, `ranking` from a file that `leaktight layers` wrote, or `public`, by a small shadow attack: on the
    source's test examples a model is trained for some steps, and layers are ranked by what gradients tell of the
    source's private property without them (`sealing_order`), not by what each tells alone. Parties on different
    machines whose numbers are rounded differently should take one of the first two.

    Args:
        guard: what is done to the guarded layers: any defence that acts on messages of gradients or updates, and on
            nothing else.
        count: k, how many layers are guarded, from 0 to as many as are ranked; 0 is off, more is stronger.
        layers: the layers by wire name without its last part, as `body.linear1`, riskiest first.
        ranking: the path of a `layers.json`.
        risk: which ranking of that file to take, by the name that it has there: `property`, `reconstruction`, `labels`,
            or that of a kind of leak from another package.
        public: a source whose test part is public, of the same shape and classes as the private data, with a private
            property, or with a class in its place (`class_property`).

    Example:
        >>> from leaktight.learning import classification
        >>> from leaktight.models import MLP
        >>> task = classification(MLP(hidden=(2,)).build((4,), classes=3, seed=0), (4,), 3)
        >>> defence, local = LayerGuard(layers=("head", "body.linear1")), Local("client-0", seed=0)
        >>> _ = defence.on_task(defence.on_agree(task), local)
        >>> message = Message(Kind.GRADIENT, "client-0", "server", 0, task.public_parameters())
        >>> list(defence.on_message(message, local).tensors)
        ['body.linear1.weight', 'body.linear1.bias']

    Differs from the paper: it ranks layers and leaves the defence to others; it names encryption and trusted execution
    environments for the riskiest, which are not here; the guard `sealed` says what one would be worth. It ranks
    trained models by V-information or sensitivity of each layer alone; `public` looks at the initial one and a shadow
    model. Sensitivity ranks nothing here: it follows the size of a layer, not what it tells.

    References:
        Mo et al., "Layer-wise Characterization of Latent Information Leakage in Federated Learning", 2021, sections 4.2
        and 7.
    """

    kind: Literal["layer_guard"] = "layer_guard"
    strength: ClassVar[Strength] = Strength("count", "up", 0.0)
    guard: SerializeAsAny[Defence] = Withhold()
    count: int = Field(default=1, ge=0)
    layers: tuple[str, ...] = ()
    ranking: Location = ""
    risk: str = "property"
    public: SerializeAsAny[Source] | None = None

    @field_validator("guard")
    @classmethod
    def _acts_on_messages(cls, guard: Defence) -> Defence:
        fault = _fault(guard)
        if fault:
            raise ValueError(f"must act on messages and on nothing else. Got {fault}.")
        return guard

    @model_validator(mode="after")
    def _check_source(self) -> LayerGuard:
        sources = [name for name in ("layers", "ranking", "public") if getattr(self, name)]
        if len(sources) != 1:
            got = " and ".join(f"`{name}`" for name in sources) or "none of them"
            raise InvalidValue(
                f"{self.kind} must be told the riskiest layers by one of `layers`, `ranking` and `public`. Got {got} "
                "instead."
            )
        if len(set(self.layers)) < len(self.layers):
            raise InvalidValue(
                f"The `layers` of {self.kind} must be different ones. Got {', '.join(self.layers)} instead."
            )
        if not self.ranking and self.risk != type(self).model_fields["risk"].default:
            raise InvalidValue(
                f"The `risk` of {self.kind} must be left out without a `ranking` to take it from. Got `{self.risk}` "
                "instead."
            )
        return self

    @property
    def withholds(self) -> bool:
        """Whether the guard leaves tensors out."""
        return self.guard.withholds

    @property
    def partial(self) -> bool:
        """It leaves every layer as it is that it does not guard."""
        return True

    @property
    def memoryless(self) -> bool:
        """Whether the guard is."""
        return self.guard.memoryless

    @property
    def promise(self) -> Literal["noise"] | None:
        """Noise, where the guard promises noise or more of the layers that it acts on.

        Never differential privacy: the other layers go out as they are, and come from the same examples.
        """
        return "noise" if self.count and self.guard.promise else None

    @property
    def redraws(self) -> bool:
        """Whether the guard does, if it guards anything."""
        return bool(self.count) and self.guard.redraws

    @property
    def effects(self) -> frozenset[Effect]:
        """Those of the guard, on its layers; a bound on some layers is none on the message."""
        return self.guard.effects - {"bound"}

    def conflicts(self) -> tuple[str, ...]:
        """Return those of the guard."""
        return self.guard.conflicts()

    def stamp(self) -> Hashable:
        """Return the layers in the file, and the stamp of the guard; public data are looked at themselves."""
        ranked = read_ranking(Path(self.ranking).expanduser(), self.risk) if self.ranking else ()
        return ranked, self.guard.stamp()

    @property
    def states_channel(self) -> bool:
        """Whether the guard does."""
        return self.guard.states_channel

    def channel(self, task: Task) -> Channel:
        """State what the guard does to the agreed layers."""
        layers = self._agreed_layers(task)
        inner = self.guard.channel(task)
        # A guard that is off, or guards nothing, leaves a message as it is.
        stages = (OnLayers(layers, inner.message),) if layers and inner.message else ()
        return Channel(message=stages, complete=inner.complete or not layers)

    def on_agree(self, task: Task) -> Task:
        """Choose the layers, in public."""
        known = dict.fromkeys(map(layer_of, task.public_parameters()))
        ranked = self._rank(task)
        for layer in ranked:
            if layer not in known:
                if layer in dict(task.model.named_modules()):
                    raise Refusal(
                        f"{self.kind} guards layers that learn and are shared. Got `{layer}`, which another defence "
                        "has fixed."
                    )
                raise unknown("layer", layer, known)
        if self.count > len(ranked):
            raise InvalidValue(
                f"The `count` of {self.kind} must be at most {len(ranked)}, as many layers as are ranked. Got "
                f"{self.count} instead."
            )
        return dataclasses.replace(task, agreed={**task.agreed, self.key: ranked[: self.count]})

    def on_task(self, task: Task, local: Local) -> Task:
        """Remember what was agreed."""
        local.memory.setdefault("guarded", {layer: place for place, layer in enumerate(self._agreed_layers(task))})
        return task

    def on_message(self, message: Message, local: Local) -> Message:
        """Hand the tensors of the chosen layers to the guard, as a message of their own."""
        if message.kind not in (Kind.GRADIENT, Kind.UPDATE):
            raise Refusal(
                f"{self.kind} guards layers of gradients and updates. Got a message of kind {message.kind} instead."
            )
        if "guarded" not in local.memory:
            raise InvalidValue(
                f"{self.kind} must know which layers it guards before a message goes out. Call `on_task` first."
            )
        part = {name: t for name, t in message.tensors.items() if layer_of(name) in local.memory["guarded"]}
        if not part:
            return finite(message, self.kind)
        guarded = self.guard.on_message(dataclasses.replace(message, tensors=part), local.scope("guard"))
        sent = {name: guarded.tensors.get(name) if name in part else tensor for name, tensor in message.tensors.items()}
        kept = {name: tensor for name, tensor in sent.items() if tensor is not None}
        return finite(dataclasses.replace(message, tensors=kept, sealed=guarded.sealed), self.kind)

    def _agreed_layers(self, task: Task) -> tuple[str, ...]:
        if self.key not in task.agreed:
            raise InvalidValue(
                f"{self.kind} must be agreed on before a party is made. Call `on_agree` with the public task first."
            )
        return task.agreed[self.key]

    def _rank(self, task: Task) -> tuple[str, ...]:
        if self.public is not None:
            return _by_shadow_attack(task, self.public)
        return self.layers or read_ranking(Path(self.ranking).expanduser(), self.risk)


def _by_shadow_attack(task: Task, source: Source) -> tuple[str, ...]:
    """Return the layers in the order in which a small shadow attack on public examples says to guard them."""
    data = source.load()
    if (data.shape, data.classes) != (task.shape, task.classes):
        raise InvalidValue(
            f"The `public` data of layer_guard must have examples of shape {task.shape} and {task.classes} classes "
            f"like the private data. Got shape {data.shape} and {data.classes} classes instead."
        )
    return public_order(task, data.test.to(task.device))


def _fault(guard: Defence) -> str:
    """Say which defence it is that acts elsewhere too, and how; nothing if it is a defence of messages alone."""
    if isinstance(guard, Chain) and guard.links:
        return next(filter(None, map(_fault, guard.links)), "")
    acts = guard.hooks()
    if "on_message" not in acts:
        return f"{guard.kind} instead, which does nothing to a message"
    if isinstance(guard, LocalDP):
        return f"{guard.kind} instead, whose epsilon would leave out what the other layers tell"
    if guard.per_example:
        return f"{guard.kind} instead, which needs the gradient of each example"
    others = [hook for hook in _HOOKS if hook in acts]
    if others:
        return f"{guard.kind} instead, which acts in `{others[0]}` too"
    step = Gradient({"weight": torch.zeros(2)}, per_example=False)
    moved = guard.on_gradient(step, Local("trial", seed=0)) is not step
    return f"{guard.kind} instead, which acts on the gradient of each local step" if moved else ""
