"""What every defence promises about its random numbers.

It draws them from its Local, anew for each message, for every entry of every tensor.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable

import torch
from torch import Tensor

from leaktight.core.defence import Defence, Undefended
from leaktight.core.local import SPENT, Local, Memory
from leaktight.core.message import Kind, Message
from leaktight.core.scenario import flatten
from leaktight.core.secure import SecretKey
from leaktight.core.task import Batch
from leaktight.testing.conformance import require
from leaktight.testing.hooks import toy_step
from leaktight.testing.toys import PARTY, toy_batch

Step = Callable[[Defence, Local, int, Batch], Message]
_KEY, _OTHER = SecretKey(bytes(range(32))), SecretKey(bytes(range(1, 33)))
_ROUNDS, _FEW = 5, 4
_SAME = 1e-3
"""Which share of the entries of a tensor may get no noise, or the noise of another: what is drawn may be small."""


def check_streams(defence: Defence, step: Step = toy_step) -> None:
    """Noise, if there is any, is new for every seed, party and round, on every tensor.

    All start from the same memory: what differs is noise then, and not a key that each party made for itself. Only a
    defence that says so (`partial`) may leave tensors as they are.
    """
    sent = _Sender(defence, step)
    first = sent()
    noisy = _differences(first, sent(seed=1))
    if not noisy:
        promised = defence.promise is not None
        require(
            not promised,
            f"{defence} must draw other noise for another seed, since it promises noise. It drew the same.",
        )
        return
    for name in noisy:
        messages = {
            "party": [first, sent(party="client-1")],
            "round": [sent(round=number) for number in range(_ROUNDS)],
        }
        for what, several in messages.items():
            new = not any(torch.equal(one[name], other[name]) for one, other in itertools.combinations(several, 2))
            require(new, f"{defence} must draw other noise for another {what}. It drew the same for `{name}`.")
    spared = [name for name in first if name not in noisy]
    require(
        defence.partial or not spared,
        f"{defence} must put noise on every tensor of a message. It left `{(spared or [''])[0]}` as it is; if that is "
        "meant, override `partial`.",
    )


def check_constant_noise(defence: Defence, step: Step = toy_step) -> None:
    """What is added to a message depends on the message, or on chance.

    Otherwise, whoever sees two messages takes off what is in both.
    """
    sent = _Sender(defence, step)
    first = sent()
    if _differences(first, sent(seed=1)):
        return
    plain, other = (step(Undefended(), Local(PARTY, 0), 0, toy_batch(seed=examples)).tensors for examples in (0, 1))
    again = sent(examples=1)
    for name, tensor in first.items():
        if name not in plain or tensor.shape != plain[name].shape or torch.equal(tensor, plain[name]):
            continue
        constant = torch.allclose(tensor - plain[name], again[name] - other[name], rtol=1e-3, atol=1e-6)
        require(not constant, f"{defence} must not add the same numbers to every message. It does, to `{name}`.")


def check_entries(defence: Defence, step: Step = toy_step) -> None:
    """Noise that a defence promises is on every entry, and differs from entry to entry.

    This holds for a message, and for each of several local steps.
    """
    sent = _Sender(defence, step)
    # On cut gradients noise may be on some rows, or along each.
    if defence.promise is None or sent.kind is Kind.CUT_GRADIENT:
        return
    first, second = sent(), sent(seed=1)
    for name in _differences(first, second):
        noise = (first[name] - second[name]).flatten()
        if len(noise) < _FEW:
            continue
        most = max(1, int(_SAME * len(noise)))
        require(
            int((noise == 0).sum()) <= most,
            f"{defence} must put noise on every entry. It left some of `{name}` as they are.",
        )
        alike = len(noise) - len(torch.unique(noise))
        require(alike <= most, f"{defence} must draw noise for each entry. It put the same on several of `{name}`.")


def check_draws(defence: Defence, step: Step = toy_step) -> None:
    """Every random number comes from the Local's key, where it has one, and so from nothing that others know.

    Two keys make other noise and other secrets; another seed beside the same key makes the same.
    """
    sent = _Sender(defence, step)
    first = sent(key=_KEY)
    noisy = _differences(sent(), sent(seed=1))
    for name in noisy:
        new = not torch.equal(first[name], sent(key=_OTHER)[name])
        require(new, f"{defence} must draw its noise from `local.draws`. Under two keys it put the same on `{name}`.")
    same = not _differences(first, sent(key=_KEY, seed=1))
    require(
        same, f"{defence} must draw from its Local's key alone. Another seed beside the same key made another message."
    )
    kept = [_secrets(defence, step, key) for key in (_KEY, _OTHER)]
    for name, secret in kept[0].items():
        new = name not in kept[1] or not torch.equal(secret, kept[1][name])
        require(new, f"{defence} must make secrets of each party's own. Two keys made the same `{name}`.")


class _Sender:
    """Sends messages under a defence from the same memory."""

    def __init__(self, defence: Defence, step: Step) -> None:
        self.defence, self.step = defence, step
        earlier = Local(PARTY, 0)
        self.kind = step(defence, earlier, 0, toy_batch()).kind
        self.memory = earlier.memory

    def __call__(
        self, party: str = PARTY, seed: int = 0, round: int = 0, examples: int = 0, key: SecretKey | None = None
    ) -> dict[str, Tensor]:
        local = Local(party, seed, memory=copy.deepcopy(self.memory), key=key)
        return dict(self.step(self.defence, local, round, toy_batch(seed=examples)).tensors)


def _secrets(defence: Defence, step: Step, key: SecretKey) -> Memory:
    """Return what a party drew for itself before it saw its first message: tensors in memory with something to tell."""
    local = Local(PARTY, 0, key=key)
    step(defence, local, 0, toy_batch())
    tensors = {name: value for name, value in flatten(local.memory).items() if isinstance(value, Tensor)}
    public = _public(defence, step)
    return {
        name: value
        for name, value in tensors.items()
        if SPENT not in name.split("/") and len(torch.unique(value)) > 1 and name not in public
    }


def _public(defence: Defence, step: Step) -> set[str]:
    """Return what is in memory without chance: what other examples change, under the same seed."""
    memories = []
    for examples in (0, 1):
        local = Local(PARTY, 0)
        step(defence, local, 0, toy_batch(seed=examples))
        memories.append({name: value for name, value in flatten(local.memory).items() if isinstance(value, Tensor)})
    return set(_differences(*memories))


def _differences(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[str]:
    """Return the names under which two messages differ."""
    return [name for name in one if name not in other or not torch.equal(one[name], other[name])]
