"""Defences: what one party changes on its own side, and how several compose."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import SerializeAsAny

from leaktight.core.channel import Channel
from leaktight.core.effect import Effect, find_conflicts
from leaktight.core.errors import InvalidValue
from leaktight.core.label_bound import LabelBound
from leaktight.core.local import Local
from leaktight.core.message import Message, Tensors
from leaktight.core.secure import SecretKey
from leaktight.core.task import Batch, Task
from leaktight.core.value import Registered

if TYPE_CHECKING:
    from leaktight.core.threat import Knows

HOOKS = ("on_agree", "on_task", "on_batch", "on_gradient", "on_message", "on_close", "on_reveal")
"""Where a defence may act, in the order of a run."""
ACTING = frozenset({"on_task", "on_batch", "on_gradient", "on_message"})
"""Where a party may change what it sends."""


@dataclasses.dataclass(frozen=True)
class Gradient:
    """A gradient by parameter name: the mean over a batch, or one per example along the first dimension.

    Args:
        tensors: by the model's own names.
        per_example: whether there is one for each example.
        running: the running statistics of batch norm after the pass, by the model's own names; they go out along with
            the message, and no hook of gradients sees them.
        batch: mean and unbiased variance of the batch at each batch norm, by the same names.
    """

    tensors: Tensors
    per_example: bool
    running: Tensors = dataclasses.field(default_factory=dict)
    batch: Tensors = dataclasses.field(default_factory=dict)

    def mean(self) -> Gradient:
        """Return the mean over the batch."""
        if not self.per_example:
            return self
        return Gradient({name: tensor.mean(0) for name, tensor in self.tensors.items()}, per_example=False)


@dataclasses.dataclass(frozen=True)
class Strength:
    """The field that a trade-off curve sweeps, which way is stronger, and the value that means off; None if none does.

    Args:
        field: its name.
        stronger: which way.
        off: the value that means off; None if none does.
        changes: whether a message changes more, the stronger; not so where only a secret becomes harder to guess.
    """

    field: str
    stronger: Literal["up", "down"]
    off: float | None
    changes: bool = True


class Defence(Registered):
    """A change that one party makes on its own side; every hook leaves things as they are unless overridden.

    Hooks in the order of a run: `on_agree` (public, before anything), `on_task` (once per party), `on_batch`,
    `on_gradient` (each local step), `on_message` (at the boundary), `on_close` (what is revealed at the end),
    `on_reveal` (public again). A hook without a `Local` cannot touch a secret. A hook transforms or raises; it never
    changes its input in place.
    """

    family: ClassVar[str] = "defence"
    strength: ClassVar[Strength | None] = None
    is_public: ClassVar[bool] = True
    """Whether attackers can know what it does.

    False of messages that were captured elsewhere: nobody knows what was done to them.
    """
    leaves_open: ClassVar[tuple[str, ...]] = ()
    """What an attacker still gets by design, a sentence each, where that was checked; `explain` and reports say it."""
    knowable: ClassVar[frozenset[Knows]] = frozenset()
    """What there is to know where it is in use, and not elsewhere."""

    @property
    def per_example(self) -> bool:
        """Whether `on_gradient` needs one gradient per example."""
        return False

    @property
    def wants_poisson(self) -> bool:
        """Whether its parties should draw batches by Poisson sampling where the scenario allows it.

        Its promise is then stronger.
        """
        return False

    @property
    def withholds(self) -> bool:
        """Whether `on_message` leaves tensors out of what anybody sees."""
        return False

    @property
    def partial(self) -> bool:
        """Whether it leaves some tensors of a message as they are, on purpose."""
        return False

    @property
    def covers_buffers(self) -> bool:
        """Whether it changes the running statistics of batch norm that go out along with a message, if it acts at all.

        What acts on messages sees them among the other tensors, and what changes examples changes them too. A defence
        that acts on gradients or the loss alone would let them pass.
        """
        return bool(self.hooks() & {"on_batch", "on_message"}) or not self.hooks() & ACTING

    @property
    def memoryless(self) -> bool:
        """Whether a party sends the same gradients and updates with or without a past, but for draws of its own.

        An attacker who plays a new party models such a defence. False unless a defence says so, and for one that
        protects other messages.
        """
        return False

    @property
    def promise(self) -> Literal["dp", "noise"] | None:
        """What its settings promise: differential privacy, noise that is new in every message, or neither.

        The conformance kit reads it, and checks that noise that was promised is in every tensor and is never the same
        twice.
        """
        return None

    @property
    def redraws(self) -> bool:
        """Whether something is drawn anew for each message.

        An attacker who combines messages about the same examples then learns more.
        """
        return self.promise is not None

    @property
    def effects(self) -> frozenset[Effect]:
        """What it does to a whole message that another link of a chain can undo."""
        return frozenset()

    @property
    def message_bound(self) -> float | None:
        """The norm that a message does not exceed before any noise; None if there is no such bound."""
        return None

    def noise_norm(self, entries: int) -> float:
        """Return the root mean square norm of the noise that it adds to a message.

        Args:
            entries: how many entries the message has.
        """
        return 0.0

    def conflicts(self) -> tuple[str, ...]:
        """Return a sentence for each part of it that undoes another one."""
        return ()

    @property
    def label_bound(self) -> LabelBound | None:
        """What it says that no detector of labels can do better than; None if it says nothing of it."""
        return None

    @property
    def states_channel(self) -> bool:
        """Whether `channel` states everything that it does to gradients and updates."""
        return type(self).channel is not Defence.channel or not self.hooks() & ACTING

    def channel(self, task: Task) -> Channel:
        """State how messages of gradients and updates come about under this defence, for attackers who know it.

        A defence that overrides no hook changes nothing. One that does, and states nothing, is attacked as if it were
        off, and audits say so; only the suite `strongest` and the learned inverter play it.

        Args:
            task: the public task, after `on_agree`.
        """
        return Channel(complete=not self.hooks() & ACTING)

    def hooks(self) -> frozenset[str]:
        """Return the hooks in which it may act: those that its class overrides."""
        return frozenset(hook for hook in HOOKS if getattr(type(self), hook) is not getattr(Defence, hook))

    def stamp(self) -> Hashable:
        """Return something that changes with what the defence reads from elsewhere, such as a file.

        It changes even if the settings stay the same.
        """
        return None

    def with_strength(self, value: float) -> Self:
        """Return this defence at another strength."""
        if self.strength is None:
            raise InvalidValue(f"The defence {self.kind} has no strength that could be changed.")
        return type(self).model_validate({**self.to_dict(), self.strength.field: value})

    def on_agree(self, task: Task) -> Task:
        """Change the public task, before training."""
        return task

    def on_task(self, task: Task, local: Local) -> Task:
        """Make a party's own task: a private head, a private loss."""
        return task

    def on_batch(self, batch: Batch, local: Local) -> Batch:
        """Change the examples that a step trains on."""
        return batch

    def on_gradient(self, gradient: Gradient, local: Local) -> Gradient:
        """Change the gradient of one local step."""
        return gradient

    def on_message(self, message: Message, local: Local) -> Message:
        """Change what goes out."""
        return message

    def on_close(self, local: Local) -> Tensors:
        """Return what the party reveals at the end."""
        return {}

    def on_reveal(self, task: Task, reveals: Sequence[Message]) -> Task:
        """Change the public task by what all parties revealed."""
        return task


def bind_key(key: SecretKey, party: str, defence: Defence) -> SecretKey:
    """Return a party's key under one defence, so that changed settings never meet old draws.

    Example:
        >>> key = SecretKey.new()
        >>> bind_key(key, "client-0", Undefended()) == bind_key(key, "client-0", Chain())
        False
    """
    return key.derive(party, json.dumps(defence.to_dict(), sort_keys=True), repr(defence.stamp()))


class Undefended(Defence):
    """No defence: every message goes out as it is."""

    kind: Literal["none"] = "none"
    title: ClassVar[str] = "no defence"

    @property
    def memoryless(self) -> bool:
        """It remembers nothing."""
        return True


class Chain(Defence):
    """Several defences, one after the other, each with a memory of its own.

    Example:
        >>> Chain(links=()).on_close(Local("client-0", seed=0))
        {}
    """

    kind: Literal["chain"] = "chain"
    links: tuple[SerializeAsAny[Defence], ...] = ()

    @property
    def per_example(self) -> bool:
        """Whether any link needs one gradient per example."""
        return any(link.per_example for link in self.links)

    @property
    def wants_poisson(self) -> bool:
        """Whether any link wants Poisson sampling."""
        return any(link.wants_poisson for link in self.links)

    @property
    def withholds(self) -> bool:
        """Whether any link leaves tensors out."""
        return any(link.withholds for link in self.links)

    @property
    def partial(self) -> bool:
        """Whether any link leaves some tensors as they are."""
        return any(link.partial for link in self.links)

    @property
    def covers_buffers(self) -> bool:
        """Whether any link that acts does, if one acts."""
        acting = [link for link in self.links if link.hooks() & ACTING]
        return any(link.covers_buffers for link in acting) or not acting

    @property
    def memoryless(self) -> bool:
        """Whether all links are."""
        return all(link.memoryless for link in self.links)

    @property
    def promise(self) -> Literal["dp", "noise"] | None:
        """The strongest promise of a link."""
        promises = {link.promise for link in self.links}
        return "dp" if "dp" in promises else "noise" if "noise" in promises else None

    @property
    def redraws(self) -> bool:
        """Whether any link does."""
        return any(link.redraws for link in self.links)

    @property
    def effects(self) -> frozenset[Effect]:
        """Those of all links."""
        return frozenset[Effect]().union(*(link.effects for link in self.links))

    @property
    def message_bound(self) -> float | None:
        """The smallest bound of a link."""
        return min((link.message_bound for link in self.links if link.message_bound is not None), default=None)

    def noise_norm(self, entries: int) -> float:
        """Return that of all links together, as if no link changed the noise of another."""
        return math.hypot(*(link.noise_norm(entries) for link in self.links))

    def conflicts(self) -> tuple[str, ...]:
        """Return a sentence for each link that undoes an earlier one, and what links say of themselves.

        Example:
            >>> from leaktight.defences import GaussianNoise, TopK
            >>> Chain(links=(TopK(noise=0.1),)).conflicts()
            ()
            >>> [sentence] = Chain(links=(TopK(), GaussianNoise())).conflicts()
            >>> sentence.partition(":")[0]
            'gaussian_noise after top_k puts noise on the entries that top_k left out'
        """
        parts = links(self)
        undone = find_conflicts([(part.kind, part.effects) for part in parts])
        return tuple(dict.fromkeys([*undone, *(sentence for part in parts for sentence in part.conflicts())]))

    @property
    def states_channel(self) -> bool:
        """Whether all links do."""
        return all(link.states_channel for link in self.links)

    def channel(self, task: Task) -> Channel:
        """State what all links do, one after the other."""
        whole = Channel()
        for link in self.links:
            whole = whole.then(link.channel(task))
        return whole

    def hooks(self) -> frozenset[str]:
        """Return the hooks of all links."""
        return frozenset[str]().union(*(link.hooks() for link in self.links))

    def stamp(self) -> Hashable:
        """Return the stamps of the links."""
        return tuple(link.stamp() for link in self.links)

    def _scopes(self, local: Local) -> list[tuple[Defence, Local]]:
        return [(link, local.scope(f"{position}-{link.kind}")) for position, link in enumerate(self.links)]

    def on_agree(self, task: Task) -> Task:
        """Let each link change the public task."""
        for link in self.links:
            task = link.on_agree(task)
        return task

    def on_task(self, task: Task, local: Local) -> Task:
        """Let each link change the party's task."""
        for link, scope in self._scopes(local):
            task = link.on_task(task, scope)
        return task

    def on_batch(self, batch: Batch, local: Local) -> Batch:
        """Let each link change the batch."""
        for link, scope in self._scopes(local):
            batch = link.on_batch(batch, scope)
        return batch

    def on_gradient(self, gradient: Gradient, local: Local) -> Gradient:
        """Let each link change the gradient."""
        for link, scope in self._scopes(local):
            gradient = link.on_gradient(gradient, scope)
        return gradient

    def on_message(self, message: Message, local: Local) -> Message:
        """Let each link change the message."""
        for link, scope in self._scopes(local):
            message = link.on_message(message, scope)
        return message

    def on_close(self, local: Local) -> Tensors:
        """Collect what each link reveals, under its position."""
        return {
            f"{scope.path[-1]}/{name}": tensor
            for link, scope in self._scopes(local)
            for name, tensor in link.on_close(scope).items()
        }

    def on_reveal(self, task: Task, reveals: Sequence[Message]) -> Task:
        """Hand each link what it revealed."""
        for position, link in enumerate(self.links):
            prefix = f"{position}-{link.kind}/"
            mine = [
                dataclasses.replace(
                    message,
                    tensors={n.removeprefix(prefix): t for n, t in message.tensors.items() if n.startswith(prefix)},
                )
                for message in reveals
            ]
            task = link.on_reveal(task, [message for message in mine if message.tensors])
        return task

    def __str__(self) -> str:
        return " + ".join(map(str, self.links)) or "none"


def is_undefended(defence: Defence) -> bool:
    """Return whether this is the absence of any defence."""
    return defence.kind == "none" or (isinstance(defence, Chain) and all(map(is_undefended, defence.links)))


def links(defence: Defence) -> tuple[Defence, ...]:
    """Return the single defences that a chain is made of, or the defence itself."""
    if isinstance(defence, Chain):
        return tuple(part for link in defence.links for part in links(link))
    return (defence,)
