"""Protect: one line in a user's own ClientApp, and every answer to a train message goes through a defence."""

from __future__ import annotations

import dataclasses
import logging
import math
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context, Error, Message, MessageType, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from flwr.common.constant import ErrorCode
from flwr.common.logger import log
from torch import Tensor

from leaktight.core.defence import Chain, Defence, Gradient, Undefended
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.local import Local
from leaktight.core.message import Kind
from leaktight.core.message import Message as Sent
from leaktight.flower.codec import examples_in, matching_record, record_of, tensors_of
from leaktight.flower.defence_memory import begins_run, load_memory, make_state_folder, save_memory

_log = logging.getLogger(__name__)
_ELSEWHERE = ("on_agree", "on_task", "on_batch", "on_close", "on_reveal")


@dataclasses.dataclass(frozen=True)
class Protection:
    """The mod that `protect` returns; see there.

    Args:
        defence: what is done to every update.
        folder: where memory and budget outlast the node's process; None keeps them in its context alone.
    """

    defence: Defence
    folder: Path | None = None

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Let a message be answered, and defend the answer; an answer to any but a train message may hold no arrays."""
        if message.metadata.message_type.partition(".")[0] != MessageType.TRAIN:
            return self._refuse_arrays(message, call_next(message, context))
        # The app may change what it was given in place.
        received = RecordDict(
            {name: record_of(tensors_of(record)) for name, record in message.content.array_records.items()}
        )
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        # Closed, whatever goes wrong: an undefended update must not go out because of a fault that nobody foresaw.
        try:
            reply.content = self._defend(received, reply.content, context)
        except Exception as error:
            _log.exception("The update was not sent, because it could not be defended.")
            # What others raise may quote private numbers; our own sentences do not.
            why = str(error) if isinstance(error, LeaktightError) else type(error).__name__
            reason = f"The update was not sent, because {self.defence.kind} failed: {why}"
            return Message(Error(ErrorCode.MOD_FAILED_PRECONDITION, reason), reply_to=message)
        return reply

    def _refuse_arrays(self, message: Message, reply: Message) -> Message:
        if reply.has_error():
            return reply
        try:
            _refuse_bytes(reply.content)
            if reply.content.array_records:
                raise InvalidValue(
                    f"The reply to a message of type `{message.metadata.message_type}` holds arrays, "
                    "and only updates are defended. Send arrays in replies to `train` alone."
                )
        except InvalidValue as error:
            _log.error("The reply was not sent: %s", error)
            return Message(
                Error(ErrorCode.MOD_FAILED_PRECONDITION, f"The reply was not sent: {error}"), reply_to=message
            )
        return reply

    def _defend(self, received: RecordDict, content: RecordDict, context: Context) -> RecordDict:
        _refuse_bytes(content)
        if not content.array_records:
            return content
        first = begins_run(context, self.defence, self.folder)
        local = load_memory(context, self.defence, self.folder)
        defended = RecordDict({name: record for name, record in content.items() if not isinstance(record, ArrayRecord)})
        before: dict[tuple[str, str], Tensor] = {}
        after: dict[tuple[str, str], Tensor] = {}
        for name, record in content.array_records.items():
            old, new = tensors_of(matching_record(name, received, content)), tensors_of(record)
            _check(name, old, new)
            before |= {(name, array): old[array] for array in new}
            after |= {(name, array): tensor for array, tensor in new.items()}
        several = len(content.array_records) > 1
        sent = self._defend_update(before, after, several, local, examples_in(content))
        if first:
            log(logging.INFO, describe_change(self.defence, before, after, sent))
        for name in content.array_records:
            defended[name] = record_of({array: tensor for (record, array), tensor in sent.items() if record == name})
        save_memory(context, self.defence, local, self.folder)
        # In the order of the reply: an aggregation may go by it.
        return RecordDict({name: defended[name] for name in content})

    def _defend_update(
        self, before: Places, after: Places, several: bool, local: Local, examples: int | None
    ) -> dict[tuple[str, str], Tensor]:
        """Return received parameters plus the defended update; where the update is withheld, as they came."""

        def wire_name(place: tuple[str, str]) -> str:
            return "/".join(place) if several else place[1]

        update = {
            wire_name(place): after[place].to(_wide(old)) - old.to(_wide(old))
            for place, old in before.items()
            if old.is_floating_point()
        }
        facts = {} if examples is None else {"examples": float(examples)}
        out = self.defence.on_message(
            Sent(Kind.UPDATE, local.party, "server", local.round, update, facts), local
        ).outgoing()
        unknown = [name for name in out if name not in update or out[name].shape != update[name].shape]
        if unknown:
            raise InvalidValue(
                f"{self.defence.kind} must keep the names and shapes of an update. Got `{unknown[0]}` instead."
            )
        return {place: _add(old, out.get(wire_name(place))) for place, old in before.items()}


Places = dict[tuple[str, str], Tensor]
"""Tensors by the name of their record and their own."""


def describe_change(defence: Defence, before: Places, after: Places, sent: Places) -> str:
    """Return how large an update is and how much a defence changes it, for the log of the party whose update it is.

    Noise is given by the norm that it has on average, which says nothing of the draw.

    Args:
        defence: the defence.
        before: what was received.
        after: what the app answered.
        sent: what goes out.

    Example:
        >>> from leaktight.defences import GaussianNoise
        >>> zero, one = {("arrays", "weight"): torch.zeros(4)}, {("arrays", "weight"): torch.ones(4)}
        >>> describe_change(GaussianNoise(std=0.5, clip=1.0), zero, one, one)
        'gaussian_noise(clip=1.0, std=0.5): noise norm 1 beside an update norm of 2, which is clipped to 1.'
    """
    moved = {place: old for place, old in before.items() if old.is_floating_point()}
    entries = sum(old.numel() for old in moved.values())
    norm, changed = (
        math.sqrt(sum(float((new[place].double() - old[place].double()).square().sum()) for place in moved))
        for new, old in ((after, before), (sent, after))
    )
    noise, bound = defence.noise_norm(entries), defence.message_bound
    if not noise:
        return f"{defence}: an update of norm {norm:.3g} was changed by {changed:.3g}."
    clipped = f", which is clipped to {bound:.3g}" if bound is not None and norm > bound else ""
    return f"{defence}: noise norm {noise:.3g} beside an update norm of {norm:.3g}{clipped}."


def protect(defence: Defence, state: str | Path | None = None) -> Protection:
    """Return a mod that defends every update of a ClientApp, however it trains.

    What crosses the boundary: of every floating array, scalars included, the received value plus the defended update,
    by name. Integer arrays, such as the step counter of batch norm, go back as they were received: there is no noise on
    whole numbers, and a counter reveals how long a participant trained. Metrics (loss, accuracy, number of examples)
    pass as they are, and reveal what they reveal. Whatever cannot be defended is not sent: any fault, an array that was
    not received, bytes in a config record, an update that is not finite, or arrays in the reply to an `evaluate` or
    `query` message, makes an error reply.

    The log of the node says once in each run how large the noise is beside the update. A chain in which a link undoes
    another one is warned about.

    Every message's noise comes from a new key of 256 secret bits of the operating system, which is kept nowhere: nobody
    can draw it again. Memory (residuals) and notes (an epsilon) are kept in the context's state on the node. Put it
    first among the mods, so that nothing changes the update after it.

    Args:
        defence: any defence of messages, or a chain of them. One that needs the model, the examples or each step's
            gradient is refused: use `defend_training`. So is one whose strength means off.
        state: a folder of the node's own, where budget and memory outlast its process and its runs. Without one the
            budget of a node that is started anew begins anew, and a warning says so once.

    Example:
        >>> from flwr.clientapp import ClientApp
        >>> from leaktight.defences import GaussianNoise, TopK
        >>> app = ClientApp(mods=[protect(GaussianNoise(std=0.05, clip=1.0))])
        >>> app = ClientApp(mods=[protect(TopK(share=0.1, noise=0.01))])
        >>> protect(Undefended())
        Traceback (most recent call last):
        ...
        leaktight.core.errors.InvalidValue: `protect` needs a defence that changes messages. \
Got none instead, which does nothing to them.
    """
    fault = _fault(defence)
    if fault:
        raise InvalidValue(f"`protect` needs a defence that changes messages. Got {fault}.")
    warn_conflicts(defence)
    return Protection(defence, make_state_folder(state))


def warn_conflicts(defence: Defence) -> None:
    """Say in the log which link of a chain undoes another one."""
    for sentence in defence.conflicts():
        log(logging.WARNING, sentence)


def _fault(defence: Defence) -> str:
    """Say why a defence cannot be put at the boundary alone; nothing if it can."""
    if isinstance(defence, Chain):
        links = [link for link in defence.links if not isinstance(link, Undefended)]
        return (
            next(filter(None, map(_fault, links)), "")
            if links
            else f"{defence.kind} instead, which does nothing to them"
        )
    acts, strength = defence.hooks(), defence.strength
    value = None if strength is None else getattr(defence, strength.field)
    if strength is not None and value == strength.off and not defence.noise_norm(1):
        return f"{defence.kind} with `{strength.field}` {value:g} instead, which means off"
    if strength is not None and strength.stronger == "up" and value == 0 and not defence.noise_norm(1):
        return f"{defence.kind} with `{strength.field}` 0 instead, which adds no noise"
    others = [hook for hook in _ELSEWHERE if hook in acts]
    step = Gradient({"weight": torch.zeros(2)}, per_example=False)
    if others or defence.per_example or defence.on_gradient(step, Local("trial", seed=0)) is not step:
        return (
            f"{defence.kind} instead, which also acts in `{(others or ['on_gradient'])[0]}`: "
            "use `leaktight.flower.defend_training`"
        )
    return "" if "on_message" in acts else f"{defence.kind} instead, which does nothing to them"


def _check(name: str, old: dict[str, Tensor], new: dict[str, Tensor]) -> None:
    for array, tensor in new.items():
        if array not in old:
            raise InvalidValue(
                f"The array `{array}` of the reply's record `{name}` was not received, so that its update "
                "cannot be computed. Send back what came."
            )
        was = old[array]
        if tensor.shape != was.shape or tensor.is_complex() or tensor.is_floating_point() != was.is_floating_point():
            raise InvalidValue(
                f"The array `{array}` must keep its shape {tuple(was.shape)} and stay real. "
                f"Got {tuple(tensor.shape)} of type {tensor.dtype} instead."
            )


def _refuse_bytes(content: RecordDict) -> None:
    for name, record in content.config_records.items():
        for key, value in record.items():
            if isinstance(value, bytes) or (isinstance(value, list) and any(isinstance(item, bytes) for item in value)):
                raise InvalidValue(
                    f"The reply's config record `{name}` holds bytes in `{key}`, which no defence can look into. "
                    "Keep them in the context's state."
                )


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _add(old: Tensor, update: Tensor | None) -> Tensor:
    if update is None:
        return old
    new = (old.to(update.dtype) + update).to(old.dtype)
    if not torch.isfinite(new).all():
        raise InvalidValue(f"The defended parameters must be finite numbers of type {old.dtype}. Got others instead.")
    return new
