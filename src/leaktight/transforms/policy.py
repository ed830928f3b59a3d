"""Policies: which transformation functions an image goes through before anybody trains on it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)
from torch import Tensor

from leaktight.core.document import parse_toml
from leaktight.core.errors import InvalidValue, excerpt, from_validation
from leaktight.core.input_file import LARGEST_SETTINGS
from leaktight.core.value import Value
from leaktight.data.files import read_bytes
from leaktight.transforms.batched import Pixels, apply_operation
from leaktight.transforms.images import ImageDraws, as_bytes, from_bytes, require_images
from leaktight.transforms.library import LIBRARY, Function, function_at, is_index

if TYPE_CHECKING:
    from leaktight.transforms.dataset import PolicyTransform

Probability = Literal["always", "listed"]
MOST_FUNCTIONS = 1000
"""How many functions a policy may have in all its branches; the paper's have six."""
_CHUNK = 256
"""So many images of 32x32 stay in a processor's cache from one function to the next."""


class Policy(Value):
    r"""One or several sequences of functions, of which each image goes through one that is drawn for it.

    A branch `3-1-7` applies function 3, then 1, then 7 of the library; `+` joins branches to a hybrid, and each image
    \(x\) gets

    .. math:: \hat x = t_{b,k}(\ldots t_{b,1}(x)), \qquad b \sim \text{Uniform}\{1, \ldots, B\},

    where each function with a sign draws it anew, plus or minus with equal chance.

    Args:
        branches: the sequences, each of one or more indices from 0 to 49; also the text `3-1-7+43-18-18`.

    Example:
        >>> policy = Policy.of("3-1-7+43-18-18")
        >>> policy.branches, str(policy)
        (((3, 1, 7), (43, 18, 18)), '3-1-7+43-18-18')
        >>> from leaktight.core.draws import public_draws
        >>> Policy.of("0").apply(torch.zeros(1, 1, 2, 2), public_draws(0)).unique().tolist()
        [1.0]

    Differs from the paper: none known in "always". The published library lists a probability for each function, which
    the paper's code never reads; "listed" does.

    References:
        Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, sections 4.4
        and 5.1.
    """

    branches: tuple[tuple[int, ...], ...] = Field(min_length=1)

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the policy that a text like `3-1-7+43-18-18` writes down."""
        return cls.model_validate(text)

    # Validators of one name replace each other along a class's bases, so this one also does what the root's does.
    @model_validator(mode="wrap")
    @classmethod
    def _validate(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler({"branches": _parse(data)} if isinstance(data, str) else data)
        except ValidationError as error:
            raise from_validation(cls, error) from None

    @field_validator("branches")
    @classmethod
    def _check_indices(cls, branches: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        if sum(map(len, branches)) > MOST_FUNCTIONS:
            raise ValueError(f"must have at most {MOST_FUNCTIONS} functions. Got {sum(map(len, branches))} instead.")
        for branch in branches:
            if not branch:
                raise ValueError("must each have at least one function. Got an empty one instead.")
            strange = [index for index in branch if not 0 <= index < len(LIBRARY)]
            if strange:
                raise ValueError(f"must be made of indices in 0..{len(LIBRARY) - 1}. Got {strange[0]} instead.")
        return branches

    @model_serializer
    def _serialise(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "+".join("-".join(map(str, branch)) for branch in self.branches)

    @property
    def words(self) -> str:
        """What it does: the functions of each branch in order, branches joined by `or`.

        Example:
            >>> Policy.of("8-21+0").words
            'autocontrast, move sideways (level 5); or invert'
        """
        return "; or ".join(", ".join(function_at(index).words for index in branch) for branch in self.branches)

    def __repr__(self) -> str:
        return f"Policy.of({str(self)!r})"

    def apply(self, images: Tensor, draws: ImageDraws, probability: Probability = "always") -> Tensor:
        """Return every image after one branch, in 8 bit steps of [0, 1].

        The draws of the first functions do not depend on how many follow: with a stream in the same state, `3-1` makes
        what `3-1-7` has after two functions. Indices that do the same make the same, unless their listed probabilities
        count and differ.

        Args:
            images: (n, channels, height, width) in [0, 1], of 1 or 3 channels; rounded to 8 bits first, as Pillow needs
                it.
            draws: gives branches, signs and chances.
            probability: `always` applies every function of the branch, `listed` each with its probability in the
                library.
        """
        require_images(images)
        require_probability(probability)
        branch, signs, chances = self._draw(len(images), draws)
        changed = torch.empty_like(images, memory_format=torch.contiguous_format, requires_grad=False)
        for start in range(0, len(images), _CHUNK):
            part = slice(start, start + _CHUNK)
            pixels = as_bytes(images[part])
            for number, indices in enumerate(self.branches):
                rows = np.flatnonzero(branch[part] == number)
                chosen = pixels[rows]
                for place, function in enumerate(map(function_at, indices)):
                    share = 1.0 if probability == "always" else function.probability
                    chosen = apply_function(
                        function, chosen, signs[place][part][rows], chances[place][part][rows] < share
                    )
                pixels[rows] = chosen
            changed[part] = from_bytes(pixels, images)
        return changed

    def transform(self, seed: int | None = None, probability: Probability = "always") -> PolicyTransform:
        """Return the policy as a transform of single images, for a plain PyTorch `Dataset`.

        A seed makes it repeatable.
        """
        from leaktight.transforms.dataset import PolicyTransform

        return PolicyTransform(self, seed, probability)

    def _draw(self, count: int, draws: ImageDraws) -> tuple[NDArray[Any], list[NDArray[Any]], list[NDArray[Any]]]:
        """Draw each image's branch, and for each place in it a sign and a chance."""
        branch = draws.integers(len(self.branches), (count,)).numpy()
        signs, chances = [], []
        for _ in range(max(map(len, self.branches))):
            signs.append(2 * draws.integers(2, (count,)).numpy() - 1)
            chances.append(draws.uniforms((count,)).numpy())
        return branch, signs, chances


def read_policy(path: Path | str) -> Policy:
    """Return the policy in a file: its `policy`, a text like `3-1-7+43-18-18`; whatever else is there is for people.

    Args:
        path: the file, a `policy.toml`.

    Raises:
        InvalidValue: there is no such file, or it is damaged, or it has no policy; one sentence says which.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "policy.toml"
        ...     _ = file.write_text('policy = "3-1-7"')
        ...     str(read_policy(file))
        '3-1-7'
    """
    place = Path(path)
    return _parse_file(place, read_bytes(place, LARGEST_SETTINGS))


def require_probability(probability: str) -> None:
    """Raise if this is no way to apply a policy: a word that nobody knows must not weaken it.

    Example:
        >>> require_probability("Always")
        Traceback (most recent call last):
        leaktight.core.errors.InvalidValue: The `probability` of a policy must be `always` or `listed`. Got 'Always' instead.
    """  # noqa: E501
    if probability not in get_args(Probability):
        raise InvalidValue(f"The `probability` of a policy must be `always` or `listed`. Got {probability!r} instead.")


def apply_function(function: Function, pixels: Pixels, signs: NDArray[Any], wanted: NDArray[np.bool_]) -> Pixels:
    """Return images after one function, each with its sign, where it is wanted; the same array if nothing changes."""
    if function.identity:
        return pixels
    groups = [(sign, wanted & (signs == sign)) for sign in (1, -1)] if function.signed else [(1, wanted)]
    changed = pixels
    for sign, group in groups:
        if group.all():
            return apply_operation(function.operation, pixels, function.value, sign)
        if group.any():
            changed = changed.copy() if changed is pixels else changed
            changed[group] = apply_operation(function.operation, pixels[group], function.value, sign)
    return changed


def _parse(text: str) -> tuple[tuple[int, ...], ...]:
    parts = [branch.split("-") for branch in text.split("+")]
    if not all(is_index(part) for branch in parts for part in branch):
        raise InvalidValue(
            f"A policy must be indices joined by `-`, and branches by `+`, as `3-1-7+43-18-18`. Got {excerpt(text)} "
            "instead."
        )
    return tuple(tuple(map(int, branch)) for branch in parts)


@functools.lru_cache(8)
def _parse_file(path: Path, content: bytes) -> Policy:
    try:
        settings = parse_toml(content.decode())
    # Bytes that are no text, text that is no TOML, and TOML that is nested too deeply.
    except ValueError as error:
        raise InvalidValue(
            f"The file `{path}` must be a whole result of `leaktight search`. It is damaged ({error}); run that again."
        ) from None
    policy = settings.get("policy")
    if not isinstance(policy, str):
        raise InvalidValue(
            f"The file `{path}` must hold a `policy` like `3-1-7+43-18-18`. It does not; run `leaktight search`."
        )
    try:
        return Policy.of(policy)
    except InvalidValue as error:
        raise InvalidValue(f"The `policy` in the file `{path}` cannot be read. {error}") from None


_PUBLISHED = {
    "ats2021-resnet20-cifar100": "3-1-7+43-18-18",
    "ats2021-convnet-cifar100": "21-13-3+7-4-15",
    "ats2021-resnet20-fashion-mnist": "19-15-45+2-43-21",
    "ats2021-convnet-fashion-mnist": "42-28-42+14-48-48",
}

PUBLISHED: Mapping[str, Policy] = {name: Policy.of(text) for name, text in _PUBLISHED.items()}
"""The policies that the paper found, by network and data: the hybrids of Table 1.

Their branches are the two policies that the search chose.

References:
    Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, Table 1.
"""
