"""One local step, hook by hook: each hook's input is compared before and after, so that forbidden changes show."""

from __future__ import annotations

from torch import Tensor

from leaktight.core.defence import Defence
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.task import Batch
from leaktight.learning.gradient import gradient
from leaktight.testing.conformance import own_draws, require_unchanged
from leaktight.testing.toys import toy_batch, toy_task


def toy_step(defence: Defence, local: Local, round: int, raw: Batch | None = None) -> Message:
    """Play the hooks of one local step; require that none changes its input, and return what goes out.

    The batch and the parameters are the same whatever the seed, the round and the party, the private ones too if the
    memory is: a difference is noise then.

    Args:
        defence: whose hooks are played.
        local: a fresh Local; with a key, no hook may draw from anywhere else.
        round: the round to begin.
        raw: the examples; None for `toy_batch()`.

    Example:
        >>> from leaktight.defences import Pruning
        >>> sorted(toy_step(Pruning(), Local("client-0", seed=0), 0).tensors)
        ['body.1.bias', 'body.1.weight', 'head.bias', 'head.weight']
    """
    task, raw = toy_task(), raw or toy_batch()
    local.now.examples, local.now.batch = len(raw), raw
    with require_unchanged(f"{defence} in on_agree", task=task.model.state_dict()):
        public = defence.on_agree(task)
    with (
        own_draws(f"{defence} in on_task", local),
        require_unchanged(f"{defence} in on_task", task=public.model.state_dict()),
    ):
        own = defence.on_task(public, local)
    local.begin(round)
    with own_draws(f"{defence} in on_batch", local), require_unchanged(f"{defence} in on_batch", batch=tensors_of(raw)):
        used = local.now.batch = defence.on_batch(raw, local)
    initial = own.model.tensors()
    private = local.memory.setdefault(
        "private", {name: tensor for name, tensor in initial.items() if own.wire(name) is None}
    )
    gradients = gradient(own, {**initial, **private}, used, per_example=defence.per_example)
    with (
        own_draws(f"{defence} in on_gradient", local),
        require_unchanged(f"{defence} in on_gradient", gradient=gradients.tensors, batch=tensors_of(used)),
    ):
        mean = defence.on_gradient(gradients, local).mean().tensors
    wired = own.outward(mean)
    message = Message(Kind.GRADIENT, local.party, "server", round, wired, {"examples": float(len(used))})
    with (
        own_draws(f"{defence} in on_message", local),
        require_unchanged(f"{defence} in on_message", message=wired, batch=tensors_of(used)),
    ):
        return defence.on_message(message, local)


def tensors_of(batch: Batch) -> dict[str, Tensor]:
    """Return a batch as named tensors."""
    return {"inputs": batch.inputs, "labels": batch.labels}
