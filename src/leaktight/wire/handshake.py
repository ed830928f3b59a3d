"""The handshake: what two parties tell each other first, and the step that they resume from. No data, no labels."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from leaktight.core.errors import LeaktightError
from leaktight.core.value import Value
from leaktight.data.columns import Columns
from leaktight.models.network import Network
from leaktight.wire.fault import PeerFault, printable
from leaktight.wire.frame import Frame, Sort, pack_words, unpack_words

Whole = Annotated[int, Field(ge=0, lt=2**53)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{0,64}$")]
MOST_SIDE = 100_000
MOST_UNSIZED = 1 << 20
"""How many numbers an example may have if the network is a user's own, whose size is known only when it is built."""


class Hello(Value):
    """What a party says of itself.

    Args:
        role: which party it is.
        settings: a digest of each setting that both must share, by name; so a difference can be named, and no value is
            told.
        rows: how many training rows it holds.
        test_rows: how many test rows.
        people: a digest of the sorted ids of its rows; empty if rows are aligned by their order alone.
        training: which training run this is; empty for a feature party that has not begun.
        steps: those that it can resume from.
        ids: of the feature party, for each position of its rows how many ids it can hold, 0 for a number; empty for
            images.
        shape: of a feature party with images, the shape of one.
        classes: of the label party, how many there are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    role: Annotated[str, Field(max_length=40)]
    settings: Annotated[dict[Annotated[str, Field(max_length=40)], Digest], Field(max_length=40)]
    rows: Whole
    test_rows: Whole
    people: Digest = ""
    training: Digest = ""
    steps: Annotated[list[Whole], Field(min_length=1, max_length=8)]
    ids: Annotated[list[Annotated[int, Field(ge=0, lt=2**24)]], Field(max_length=MOST_SIDE)] = []
    shape: Annotated[list[Annotated[int, Field(ge=1, le=MOST_SIDE)]], Field(max_length=3)] = []
    classes: Annotated[int, Field(ge=0, le=MOST_SIDE)] = 0

    @property
    def inputs(self) -> Columns | tuple[int, ...]:
        """What the feature party's rows hold, as `halves` takes it; columns are nameless."""
        return tuple(self.shape) if self.shape else Columns(tuple(map(str, range(len(self.ids)))), tuple(self.ids))

    def to_frame(self) -> Frame:
        """Return what goes over the wire."""
        return Frame(Sort.HELLO, 0, pack_words(self.to_dict()))


def read_hello(frame: Frame, sender: str) -> Hello:
    """Return what the other party says of itself.

    Raises:
        PeerFault: it is not that.
    """
    words = unpack_words(frame.payload, sender)
    try:
        return Hello.model_validate(words)
    except (LeaktightError, RecursionError) as error:
        raise PeerFault(f"What {sender} says of itself must be a whole handshake. {printable(str(error))}") from None


def digests(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each setting.

    Example:
        >>> digests({"rounds": 3}) == digests({"rounds": 3}), digests({"rounds": 3}) == digests({"rounds": 4})
        (True, False)
    """
    texts = {name: json.dumps(value, sort_keys=True, separators=(",", ":")) for name, value in settings.items()}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:32] for name, text in texts.items()}


def require_agreement(own: Hello, other: Hello, expected: str) -> None:
    """Raise unless the other party is who it must be, agrees in every setting, and holds rows of the same people.

    Raises:
        PeerFault: with what differs.
    """
    if other.role != expected:
        raise PeerFault(f"The other side must be {expected}. Got {printable(other.role)} instead.")
    names = sorted(own.settings.keys() | other.settings.keys())
    differing = [name for name in names if own.settings.get(name) != other.settings.get(name)]
    if differing:
        quoted = ", ".join(f"`{printable(name)}`" for name in differing)
        raise PeerFault(f"Both parties must have the same settings. They differ in {quoted}; compare the two files.")
    for what, ours, theirs in (("training", own.rows, other.rows), ("test", own.test_rows, other.test_rows)):
        if ours != theirs:
            raise PeerFault(
                f"Both parties must hold {what} rows of the same people. {own.role} has {ours}, {expected} {theirs}."
            )
    if own.people != other.people:
        advice = "Compare the ids" if own.people and other.people else "Name an `id` column on both sides or on none"
        raise PeerFault(f"Both parties must hold rows of the same people, and their ids differ. {advice}.")
    if own.training and other.training and own.training != other.training:
        raise PeerFault(
            f"Both parties must resume the same training run, and {expected} has begun another one. "
            "Bring back the checkpoint that belongs to it, or start both anew."
        )


def common_steps(feature: Sequence[int], label: Sequence[int]) -> tuple[int, int]:
    """Return the steps from which the feature and the label party resume: the latest that fit together.

    The label party may be one step ahead: it sends its last gradient again, which the feature party applies if it has
    not yet.

    Args:
        feature: steps that the feature party can resume from.
        label: steps that the label party can resume from.

    Raises:
        PeerFault: there are none.

    Example:
        >>> common_steps([50, 75], [50, 76]), common_steps([0, 50], [50, 100])
        ((75, 76), (50, 50))
    """
    pairs = [(theirs, ours) for ours in feature for theirs in label if theirs - ours in (0, 1)]
    if not pairs:
        raise PeerFault(
            f"The parties must have a step in common. The feature party can resume from {_or(feature)}, the label "
            f"party from {_or(label)}; bring back an earlier checkpoint, or start both anew."
        )
    theirs, ours = max(pairs)
    return ours, theirs


def require_bounded(inputs: Columns | tuple[int, ...], most_ids: int) -> None:
    """Raise if a model for such rows would be larger than its owner allows.

    Raises:
        PeerFault: it would.
    """
    total = sum(inputs.ids) if isinstance(inputs, Columns) else math.prod(inputs)
    if total > most_ids:
        bound = f"columns must have at most {most_ids} ids in all"
        if not isinstance(inputs, Columns):
            bound = f"images must have at most {most_ids} numbers"
        raise PeerFault(f"The feature party's {bound}. Got {total} instead; raise `most_ids` if that is right.")
    if not inputs:
        raise PeerFault("The feature party must hold a column. Got none instead.")


def require_small(network: Network, inputs: Columns | tuple[int, ...], classes: int, most: int) -> None:
    """Raise if a network for such rows and classes has more parameters than this party allows; nothing is allocated.

    Args:
        network: the agreed network.
        inputs: what the feature party's rows hold, or the shape of its images.
        classes: how many classes the label party has.
        most: how many parameters it may have.

    Raises:
        PeerFault: it has more.
    """
    size = network.size(inputs, classes)
    if size is None:
        numbers = len(inputs) if isinstance(inputs, Columns) else math.prod(inputs)
        if numbers > MOST_UNSIZED:
            raise PeerFault(
                f"The examples for {network.kind}, whose size is known only when it is built, must have at most "
                f"{MOST_UNSIZED} numbers. Got {numbers} instead."
            )
    elif size > most:
        raise PeerFault(
            f"The network must have at most {most} parameters. By the other party's hello it has {size}; "
            "raise `most_parameters` if that is right."
        )


def _or(steps: Sequence[int]) -> str:
    return " or ".join(map(str, sorted(set(steps))))
