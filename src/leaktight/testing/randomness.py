"""What every defence promises of its random numbers: its Local's, new for each party, round and seed, and on every tensor."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from leaktight.core.defence import Defence, Undefended
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.secure import SecretKey
from leaktight.core.task import Batch
from leaktight.testing.conformance import ConformanceError, require
from leaktight.testing.hooks import toy_step
from leaktight.testing.toys import PARTY, toy_batch

Step = Callable[[Defence, Local, int, Batch], Message]
_KEY = SecretKey(bytes(range(32)))


def check_streams(defence: Defence, step: Step = toy_step) -> None:
    """Noise, if there is any, differs between seeds, rounds and parties, and falls on every tensor.

    All start from the same memory: what differs is noise then, and not a key that each party made for itself. Only a defence that says
    so (`partial`) may leave tensors as they are.
    """
    earlier = Local(PARTY, 0)
    step(defence, earlier, 0, toy_batch())

    def sent(party: str = PARTY, seed: int = 0, round: int = 0, examples: int = 0) -> dict[str, Tensor]:
        local = Local(party, seed, memory=copy.deepcopy(earlier.memory))
        return dict(step(defence, local, round, toy_batch(seed=examples)).tensors)

    first, seeded = sent(), sent(seed=1)
    if not _changed(first, seeded):
        require(
            defence.promise is None,
            f"{defence} must draw other noise for another seed, since it promises noise. It drew the same.",
        )
        plain, other = (step(Undefended(), Local(PARTY, 0), 0, toy_batch(seed=examples)).tensors for examples in (0, 1))
        again = sent(examples=1)
        same = [
            name
            for name, tensor in first.items()
            if name in plain
            and tensor.shape == plain[name].shape
            and not torch.equal(tensor, plain[name])
            and torch.allclose(tensor - plain[name], again[name] - other[name], rtol=1e-3, atol=1e-6)
        ]
        require(
            not same,
            f"{defence} must not add the same numbers to every message: whoever sees two of them takes them off again.",
        )
        return
    for what, changed in (("party", sent(party="client-1")), ("round", sent(round=1))):
        require(bool(_changed(first, changed)), f"{defence} must draw other noise for another {what}. It drew the same.")
    spared = [name for name in first if name not in _changed(first, seeded)]
    if spared and not defence.partial:
        raise ConformanceError(
            f"{defence} must put noise on every tensor of a message. It left `{spared[0]}` as it is; if that is meant, set `partial`."
        )


def check_draws(defence: Defence, step: Step = toy_step) -> None:
    """Every random number comes from the Local that the defence is given, and so from a secure stream where messages really leave."""
    step(defence, Local(PARTY, 0, key=_KEY), 0, toy_batch())


def _changed(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[str]:
    """Return the names under which two messages differ."""
    return [name for name in one if name not in other or not torch.equal(one[name], other[name])]
