"""What every defence promises; `check_defence` is for whoever writes one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import InvalidValue, LeaktightError, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.run import Run
from leaktight.core.scenario import flatten
from leaktight.testing.channels import check_channel
from leaktight.testing.conformance import (
    close,
    contains,
    finite,
    installed_classes,
    own_randomness,
    picture,
    plain,
    require,
    sample,
)
from leaktight.testing.hooks import toy_step
from leaktight.testing.randomness import Step, check_constant_noise, check_draws, check_entries, check_streams
from leaktight.testing.toys import PARTY, toy_batch, toy_run, toy_task
from leaktight.testing.values import check_value

Play = Callable[..., Run]
CANARY = 0.733125


def check_defence(defence: Defence, play: Play = toy_run, step: Step = toy_step) -> None:
    """Check every promise of a defence; the first that is broken is a `ConformanceError` that names it.

    Args:
        defence: the defence, at a strength that is not off.
        play: makes a run under a defence. A defence of messages that are not gradients brings its own, with the options
            of `toys.toy_run`.
        step: plays the hooks of one step, like `hooks.toy_step`.

    Example:
        >>> from leaktight.defences import GaussianNoise
        >>> check_defence(GaussianNoise(std=0.5))
    """
    check_value(defence)
    check_title(defence)
    check_form(defence, play)
    check_off(defence, play)
    check_input(defence, step)
    check_seed(defence, play)
    check_canary(defence, play)
    check_streams(defence, step)
    check_constant_noise(defence, step)
    check_entries(defence, step)
    check_draws(defence, step)
    check_channel(defence, step(defence, Local(PARTY, 0), 0, toy_batch()).kind)
    check_strength(defence, play)
    check_extremes(defence, play)
    check_chains(defence, play)


def check_title(defence: Defence) -> None:
    """It has a title, which reports name it by: words on one line."""
    title = defence.title
    is_plain = bool(title) and title == " ".join(title.split()) and "_" not in title
    require(is_plain, f"{defence} must have a title of words. Got {title!r}.")


def check_form(defence: Defence, play: Play = toy_run) -> None:
    """A message keeps its kind, addresses, facts, names, shapes and types; what is kept and noted is plain.

    Only a defence that says so (`withholds`) may leave tensors out.
    """
    run = play(defence)
    for ground_truth in run.truths.values():
        clean, sent = ground_truth.clean, ground_truth.sent
        for part in ("kind", "sender", "receiver", "round", "facts"):
            before, after = getattr(clean, part), getattr(sent, part)
            require(before == after, f"{defence} must keep the {part} of a message. Got {after!r} for {before!r}.")
        forms = [{name: (t.dtype, tuple(t.shape)) for name, t in m.tensors.items()} for m in (clean, sent)]
        if defence.withholds:
            forms[0] = {name: form for name, form in forms[0].items() if name in forms[1]}
        require(forms[0] == forms[1], f"{defence} must keep names, types and shapes. Got {forms[1]} for {forms[0]}.")
        require(finite(sent.tensors), f"{defence} must send finite numbers.")
    for local in run.locals.values():
        require(
            plain(local.memory), f"{defence} must keep nothing in memory but tensors, numbers and dictionaries of them."
        )
        numbers = all(isinstance(note, float | int) for note in local.notes.values())
        require(numbers, f"{defence} must note numbers. Got {local.notes!r}.")


def check_off(defence: Defence, play: Play = toy_run) -> None:
    """At the strength that means off, other settings at their defaults, messages are those of no defence."""
    if defence.strength is None or defence.strength.off is None:
        return
    off = (sample(type(defence)) or defence).with_strength(defence.strength.off)
    for one, other in zip(_sent_messages(play(off)), _sent_messages(play(Undefended())), strict=True):
        # A mean of gradients of single examples is rounded in another order than the gradient of a mean.
        same = (
            close(one.tensors, other.tensors) if defence.per_example else picture(one.tensors) == picture(other.tensors)
        )
        require(same, f"{off} must be the identity, because {defence.strength.off} means off. The message changed.")


def check_seed(defence: Defence, play: Play = toy_run) -> None:
    """The same seed gives the same bytes, whatever torch's global generator does, and leaves that alone."""
    pictures = []
    with torch.random.fork_rng(devices=[]):
        for state in (1, 2):
            torch.random.manual_seed(state)
            with own_randomness(str(defence)):
                pictures.append([picture(message.tensors) for message in play(defence).transcript])
    require(pictures[0] == pictures[1], f"{defence} must send the same bytes for the same seed. Two runs differ.")


def check_input(defence: Defence, step: Step = toy_step) -> None:
    """No hook changes its input in place."""
    step(defence, Local(PARTY, 0), 0, toy_batch())


def check_canary(defence: Defence, play: Play = toy_run) -> None:
    """Nothing that a party keeps shows in what it sends before the end, whole or inside another tensor.

    A party keeps memory, inputs and labels. Memory is looked at after one round and after more, because a defence may
    change what it keeps. Constant tensors are left out: everybody sends zeros.
    """
    data = toy_batch(8)
    data.inputs[:, 0, 0, 0] = CANARY
    runs = [play(defence, data=data, batch_size=8, rounds=rounds) for rounds in (1, 2, 3)]
    secrets = [(f"its memory at home. Its `{name}` shows", secret) for run in runs for name, secret in _memories(run)]
    for ground_truth in runs[-1].truths.values():
        secrets.append(("the batch at home. Its inputs show", ground_truth.used.inputs[:1, 0, 0, 0]))
        secrets.append(("the batch at home. Its labels show", ground_truth.used.labels))
    for message in _before_the_end(runs[-1]):
        rows = [*message.tensors.values(), torch.tensor(list(message.facts.values()))]
        for what, secret in secrets:
            shown = any(contains(row, secret) for row in rows)
            require(not shown, f"{defence} must keep {what} in a {message.kind} message.")


def check_strength(defence: Defence, play: Play = toy_run) -> None:
    """The stronger, other settings at their defaults, the more of a message changes on average.

    If its strength does not claim that, every level must still change something.
    """
    levels = _ladder(defence)
    if not levels or defence.strength is None:
        return
    require(len(levels) > 1, f"{defence} must be on to be checked. Its strength is the value that means off.")
    undefended = _sent_messages(play(Undefended(), rounds=8))
    changes = [_change(_sent_messages(play(level, rounds=8)), undefended) for level in levels]
    if not defence.strength.changes:
        for level, change in zip(levels, changes, strict=True):
            require(change > 0, f"{level} must change a message. It is the same as without a defence.")
        return
    for (weak, little), (strong, much) in itertools.pairwise(zip(levels, changes, strict=True)):
        grows = much >= 0.99 * little
        require(grows, f"{strong} must change a message more than {weak}. It changed {much:.3g} against {little:.3g}.")
    grown = changes[-1] > changes[0]
    require(grown, f"{levels[-1]} must change a message more than {levels[0]}. Both changed {changes[0]:.3g}.")


def check_extremes(defence: Defence, play: Play = toy_run) -> None:
    """Tiny, huge and zero gradients give a finite message or an error.

    So do single examples, and parameters of no dimension or of one entry.
    """
    for scale, batch_size in itertools.product((0.0, 1e-30, 1.0, 1e30), (1, 3)):
        what = f"gradients scaled by {scale:g} of {batch_size} example(s)"
        try:
            run = play(defence, task=toy_task(loss_scale=scale, scalars=True), batch_size=batch_size)
        except LeaktightError:
            require(
                scale != 1.0,
                f"{defence} must accept parameters of no dimension and single examples. It raised an error.",
            )
            continue
        sound = all(finite(message.tensors) for message in _sent_messages(run))
        require(sound, f"{defence} must send finite numbers or raise. It sent others for {what}.")


def check_chains(defence: Defence, play: Play = toy_run) -> None:
    """Before and after every other installed defence it sends a message of the same form, or refuses."""
    others = [sample(final) for kind, final in installed_classes("defence").items() if kind != defence.kind]
    for other in filter(None, others):
        for links in ((defence, other), (other, defence)):
            try:
                check_form(Chain(links=links), play)
            except Refusal:
                # Some do not fit together: to withhold a layer, say, that another defence keeps from going out anyway.
                continue
            except InvalidValue as error:
                require(False, f"{Chain(links=links)} must send a message or raise a Refusal. It raised: {error}")


def _ladder(defence: Defence) -> list[Defence]:
    """Return the defence at rising strengths, its own the last; where nothing means off, halves of its own strength."""
    if defence.strength is None:
        return []
    base: Defence = sample(type(defence)) or defence
    own, off = getattr(defence, defence.strength.field), defence.strength.off
    if off is not None:
        on = own == off or (own > off) == (defence.strength.stronger == "up")
        require(on, f"{defence} must be stronger than off. Its strength {own} is on the other side of {off}.")
        values = [off + part * (own - off) for part in (0.25, 0.5, 1.0)]
    else:
        values = [own / 4, own / 2, own] if defence.strength.stronger == "up" else [own, own / 2, own / 4]
    if isinstance(own, int):
        values = [round(value) for value in values]
    return [base.with_strength(value) for value in dict.fromkeys(values)]


def _memories(run: Run) -> Iterator[tuple[str, Tensor]]:
    """Return every tensor in the parties' memories that has something to tell, by its place."""
    for local in run.locals.values():
        for name, value in flatten(local.memory).items():
            if isinstance(value, Tensor) and len(torch.unique(value)) > 1:
                yield name, value


def _before_the_end(run: Run) -> list[Message]:
    """Return what parties sent before they closed; what they were sent they may remember."""
    return [message for message in run.transcript if message.sender in run.locals and message.kind is not Kind.REVEAL]


def _sent_messages(run: Run) -> list[Message]:
    return [ground_truth.sent for ground_truth in run.truths.values()]


def _change(sent: list[Message], plain: list[Message]) -> float:
    """Return the mean squared distance to undefended messages, over the tensors of one shape.

    What was left out counts as zeros.
    """
    squares = [
        float((one.tensors.get(name, torch.zeros_like(tensor)) - tensor).double().square().sum())
        for one, other in zip(sent, plain, strict=True)
        for name, tensor in other.tensors.items()
        if name not in one.tensors or one.tensors[name].shape == tensor.shape
    ]
    return sum(squares) / len(sent)
