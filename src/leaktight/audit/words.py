"""Words: how defences, cells and numbers are named to people who do not read code."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from leaktight.core.attack import Attack
from leaktight.core.defence import Chain, Defence
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt, Probe
from leaktight.core.record import Cell
from leaktight.core.value import Kinded

STAGES = {"initial": "before training", "early": "early in training", "end": "after training"}


def undefended(defence: Defence) -> bool:
    """Return whether this is the absence of any defence."""
    return defence.kind == "none" or (isinstance(defence, Chain) and all(map(undefended, defence.links)))


def links(defence: Defence) -> tuple[Defence, ...]:
    """Return the single defences that a chain is made of, or the defence itself."""
    if isinstance(defence, Chain):
        return tuple(part for link in defence.links for part in links(link))
    return (defence,)


def strength_of(defence: Defence) -> float | None:
    """Return the value of the field that a trade-off curve sweeps, or None if there is none."""
    return None if defence.strength is None else float(getattr(defence, defence.strength.field))


def rank(defence: Defence) -> float:
    """Return a number that grows with the strength of one kind of defence."""
    value = strength_of(defence)
    if value is None or defence.strength is None:
        return 0.0
    return value if defence.strength.stronger == "up" else -value


def plain(kind: str) -> str:
    """Return a kind's name as words.

    Example:
        >>> plain("gaussian_noise"), plain("dp_sgd"), plain("top_k")
        ('Gaussian noise', 'DP-SGD', 'top-k')
    """
    names = {"dp_sgd": "DP-SGD", "top_k": "top-k", "gaussian_noise": "Gaussian noise", "laplace_noise": "Laplace noise"}
    return names.get(kind, kind.replace("_", " "))


def name_of(defence: Defence) -> str:
    """Name a defence by its kind, its strength and whatever else is not at its default.

    Example:
        >>> from leaktight.core.defence import Undefended
        >>> name_of(Undefended())
        'no defence'
    """
    if undefended(defence):
        return "no defence"
    if isinstance(defence, Chain):
        return " + ".join(name_of(link) for link in defence.links)
    swept = defence.strength.field if defence.strength else ""
    shown = [
        f"{field.replace('_', ' ')} {_shown(getattr(defence, field))}"
        for field, info in type(defence).model_fields.items()
        if field != "kind" and (field == swept or getattr(defence, field) != info.default)
    ]
    return f"{plain(defence.kind)} ({', '.join(shown)})" if shown else plain(defence.kind)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def family_of(defence: Defence) -> str:
    """Name a defence without its strength: what one line of a trade-off plot shows."""
    if undefended(defence) or isinstance(defence, Chain) or defence.strength is None:
        return name_of(defence)
    swept = defence.strength.field
    fields = type(defence).model_fields
    rest = [
        f"{field.replace('_', ' ')} {_shown(getattr(defence, field))}"
        for field in fields
        if field not in ("kind", swept) and getattr(defence, field) != fields[field].default
    ]
    return f"{plain(defence.kind)} ({', '.join(rest)})" if rest else plain(defence.kind)


def attack_of(probe: Probe) -> Attack | None:
    """Return the attack a probe holds; None for a measurement that needs none."""
    return probe.attack if isinstance(probe, Attempt) else None


def label_of(cell: Cell) -> str:
    """Return how a cell's probe is named: its label, or else its own kind and settings."""
    attack = attack_of(cell.probe)
    return cell.label or str(attack or cell.probe)


def setting_of(cell: Cell) -> str:
    """Say when and from how many examples a cell's messages were made."""
    return setting(cell.batch_size, cell.stage)


def setting(batch_size: int, stage: str) -> str:
    """Say when and from how many examples a message was made.

    Example:
        >>> setting(1, "initial"), setting(8, "end")
        ('batches of 1, before training', 'batches of 8, after training')
    """
    return f"batches of {batch_size}, {STAGES.get(stage, stage)}"


def gist(made: Kinded | type[Kinded]) -> str:
    """Return the first paragraph of what a class says about itself, as one line without markup.

    Example:
        >>> from leaktight.core.defence import Undefended
        >>> gist(Undefended), gist(Undefended()) == gist(Undefended)
        ('No defence: every message goes out as it is.', True)
    """
    return " ".join((inspect.getdoc(made) or "").partition("\n\n")[0].split()).replace("`", "")


def listed(words: Sequence[str]) -> str:
    """Join words as a sentence does.

    Example:
        >>> listed(["a", "b", "c"]), listed(["a"])
        ('a, b and c', 'a')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def capital(text: str) -> str:
    """Return a text as the start of a sentence.

    Example:
        >>> capital("top-k (share 0.1)"), capital("DP-SGD")
        ('Top-k (share 0.1)', 'DP-SGD')
    """
    return text[:1].upper() + text[1:]


def title_of(reading: str) -> str:
    """Return what a reading is called in a report.

    Example:
        >>> title_of("psnr"), title_of("leak_auc")
        ('PSNR', 'leak auc')
    """
    titles = {
        "psnr": "PSNR",
        "ssim": "SSIM",
        "mse": "MSE",
        "rmse_relative": "relative error",
        "label_distance": "labels missed",
        "reconstruction_statement": "images recognised",
    }
    return titles.get(reading, reading.replace("_", " "))


def percent(value: float) -> str:
    """Show a share as a percentage.

    Example:
        >>> percent(0.4375), percent(0.02)
        ('44 %', '2 %')
    """
    return f"{100 * value:.0f} %"


def points(value: float) -> str:
    """Show a difference of shares in percentage points.

    Example:
        >>> points(0.031), points(-0.0004)
        ('3.1', '0.0')
    """
    return f"{100 * value + 0.0:.1f}".replace("-0.0", "0.0")


def counted(reading: Reading) -> str:
    """Show a share as a count.

    Example:
        >>> counted(Reading(name="hits", value=0.875, n=8)), counted(Reading(name="hits", value=0, n=8))
        ('7 of 8', 'none of 8')
    """
    count = round(reading.value * reading.n)
    return f"all {count}" if count == reading.n > 1 else f"{count or 'none'} of {reading.n}"
