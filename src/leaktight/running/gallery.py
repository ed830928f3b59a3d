"""The gallery: a few originals beside what the attack made of them.

It holds private images and stays with their owner.
"""

from __future__ import annotations

import io
import math

import safetensors.torch
import torch
from torch import Tensor

from leaktight.core.attack import GuessedSamples, Reconstruction
from leaktight.core.errors import LeaktightError
from leaktight.core.probe import Finding
from leaktight.core.tensor_file import DamagedTensors, load_tensors
from leaktight.metrics.pairing import UNPAIRED, blank, is_image, on_screen, pair

SHOWN = 8
_IMAGES = ("truth_raw", "truth_used", "guess", "owned", "made", "history")
_NUMBERS = ("labels", "guess_labels", "rounds")

Gallery = dict[str, Tensor]
"""`truth_raw`, `truth_used` and `guess` as uint8 images (n, channels, height, width).

There are also `labels` and `guess_labels` (-1: none).

Where nobody knows the truth there are only guesses. Of made-up examples there are `owned` and `made` instead, likewise
images, `history` (rounds, n, channels, height, width) and `rounds`."""


def gallery_of(finding: Finding, shown: int = SHOWN) -> Gallery:
    """Return the first few examples of a finding, paired one to one; nothing for what is not an image.

    Args:
        finding: what a probe found.
        shown: at most how many examples.
    """
    guess = finding.guess
    if isinstance(guess, GuessedSamples):
        return _sample_gallery(guess, finding, shown)
    if isinstance(guess, Reconstruction) and not finding.truth:
        return _alone(guess, shown)
    if not isinstance(guess, Reconstruction) or not is_image(finding.truth[0].task.shape):
        return {}
    rows: dict[str, list[Tensor]] = {
        name: [] for name in ("truth_raw", "truth_used", "guess", "labels", "guess_labels")
    }
    for number, (inputs, ground_truth) in enumerate(zip(guess.inputs, finding.truth, strict=True)):
        place = pair(on_screen(inputs), ground_truth.used.inputs)
        labels = guess.labels[number] if guess.labels is not None else None
        for position in range(min(len(ground_truth.used), len(ground_truth.raw))):
            at, used = int(place[position]), ground_truth.used.inputs[position]
            rows["truth_raw"].append(ground_truth.raw.inputs[position])
            rows["truth_used"].append(used)
            rows["guess"].append(blank(used[None])[0] if at == UNPAIRED else inputs[at])
            rows["labels"].append(ground_truth.raw.labels[position])
            rows["guess_labels"].append(_label(labels, at))
        if len(rows["guess"]) >= shown:
            break
    return {name: _plain(torch.stack([row.cpu() for row in found[:shown]])) for name, found in rows.items() if found}


def _alone(guess: Reconstruction, shown: int) -> Gallery:
    """Return the first few guesses where nobody knows the originals."""
    inputs = torch.cat(guess.inputs)[:shown]
    if not is_image(inputs.shape[1:]):
        return {}
    labels = torch.full((len(inputs),), -1) if guess.labels is None else torch.cat(guess.labels)[:shown]
    return {"guess": _plain(inputs.cpu()), "guess_labels": _plain(labels.cpu())}


def _sample_gallery(guess: GuessedSamples, finding: Finding, shown: int) -> Gallery:
    """Return examples of the class that the attacked parties hold, and what the attacker made up.

    The latter is from some rounds and from the end.
    """
    if not is_image(guess.inputs.shape[1:]):
        return {}
    batches = [ground_truth.raw if ground_truth.owned is None else ground_truth.owned for ground_truth in finding.truth]
    owned = [batch.inputs[batch.labels == guess.label][:shown].cpu() for batch in batches]
    found = {
        "owned": torch.cat([guess.inputs[:0].cpu(), *owned])[:shown],
        "made": guess.inputs[:shown].cpu(),
        "history": guess.history[:, :shown].cpu(),
        "rounds": torch.tensor(guess.rounds),
    }
    return {name: _plain(tensor) for name, tensor in found.items()}


def encode(gallery: Gallery) -> bytes:
    """Return a gallery as safetensors; nothing for an empty one."""
    return safetensors.torch.save(gallery) if gallery else b""


def decode(content: bytes | None) -> Gallery:
    """Undo `encode`."""
    if not content:
        return {}
    try:
        gallery, _ = load_tensors(io.BytesIO(content), len(content))
    except DamagedTensors:
        gallery = {}
    if not gallery or not _belongs_together(gallery):
        raise LeaktightError("The pictures of a cell cannot be read. Delete the store and run the audit again.")
    return gallery


def _belongs_together(gallery: Gallery) -> bool:
    """Return whether a gallery holds images and numbers as `gallery_of` makes them.

    There must be a number for each image that has one.
    """
    images, numbers = ([gallery[name] for name in names if name in gallery] for names in (_IMAGES, _NUMBERS))
    counts = {name: len(tensor) for name, tensor in gallery.items() if tensor.dim()}
    return (
        len(images) + len(numbers) == len(gallery)
        and all(tensor.dtype is torch.uint8 and tensor.dim() in (4, 5) for tensor in images)
        and all(tensor.dtype is torch.long and tensor.dim() == 1 for tensor in numbers)
        and all(counts.get(name, math.inf) >= counts.get("guess", 0) for name in ("labels", "guess_labels"))
        and counts.get("rounds", 0) <= counts.get("history", 0)
    )


def _label(labels: Tensor | None, at: int) -> Tensor:
    if labels is None or at == UNPAIRED:
        return torch.tensor(-1)
    found = labels[at].detach()
    return found.argmax() if found.dim() else found


def _plain(tensor: Tensor) -> Tensor:
    """Return images as bytes and labels as they are."""
    if not tensor.is_floating_point():
        return tensor.long().contiguous()
    return (tensor.detach().clamp(0, 1) * 255).round().to(torch.uint8).contiguous()
