"""Secure draws: random numbers that nobody can draw again who does not have the key.

What really leaves a party must not carry numbers of a torch generator: its seeds have 32 bits, all of which can be
tried in minutes against a few entries of a message. Here a stream is AES-256 in counter mode under a key of 256 secret
bits.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Protocol

import torch
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from torch import Tensor

from leaktight.core.draws import Draws, Root, Work
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.torch_private import TorchDispatchMode

KEY_BYTES = 32
_CHUNK = 2**18
"""How many numbers are made at a time: few enough to stay near the processor between steps of the formula."""
_ZEROS = memoryview(bytes(8 * _CHUNK))


class RoundKeys(Protocol):
    """A party's keys by round."""

    def at(self, round: int) -> SecretKey:
        """Return the key of a round."""


class SecretKey(Root):
    """A party's secret: 256 bits from the operating system, or derived from such by names.

    It prints nothing of itself. `hex` is for a private file alone.

    Example:
        >>> key = SecretKey.new()
        >>> key, key.derive("noise", 3) == key.derive("noise", 3), key.derive("noise", 3) == key.derive("noise", 4)
        (SecretKey(...), True, False)
    """

    __slots__ = ("_bytes",)

    def __init__(self, content: bytes) -> None:
        if len(content) != KEY_BYTES:
            raise InvalidValue(
                f"A secret key must have {KEY_BYTES} bytes. Got {len(content)} instead; use `SecretKey.new()`."
            )
        self._bytes = content

    @classmethod
    def new(cls) -> SecretKey:
        """Return a key that nobody else has."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_hex(cls, text: str) -> SecretKey:
        """Undo `hex`."""
        try:
            return cls(bytes.fromhex(text))
        except ValueError:
            raise InvalidValue(
                "A secret key must be written in hexadecimal digits. Got something else instead."
            ) from None

    @property
    def hex(self) -> str:
        """The key in hexadecimal digits."""
        return self._bytes.hex()

    def derive(self, *names: object) -> SecretKey:
        """Return the key of some names. It reveals neither this key nor those of other names."""
        text = json.dumps([str(name) for name in names]).encode()
        return SecretKey(hmac.digest(self._bytes, text, hashlib.sha256))

    def at(self, round: int) -> SecretKey:
        """Return the key of a round: this one, in every round."""
        return self

    def draws(self) -> SecureDraws:
        """Return the stream of this key, from its beginning."""
        return SecureDraws(self._bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretKey) and hmac.compare_digest(self._bytes, other._bytes)

    def __hash__(self) -> int:
        return hash(self.derive("hash")._bytes)

    def __repr__(self) -> str:
        return "SecretKey(...)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A secret key stays in its process.")


class SecureDraws(Draws):
    r"""Draws from AES-256 in counter mode.

    Normal numbers come in pairs by Box and Muller: \(\sqrt{-2 \ln u} \, (\cos 2 \pi v, \sin 2 \pi v)\) with
    \(u \in (0, 1]\) of 31 bits (63 in double precision), so that the tail ends at 6.6 (9.3) standard deviations.

    What is left: numbers are rounded to floating point, and the grid of a sum can tell which sums are impossible
    (Mironov 2012). Noise of a guarantee therefore comes from `private_normals`, at four times the cost. How long a draw
    takes depends on how many numbers are drawn; whether it tells more than that, by caches or by denormal numbers, was
    not measured.

    Args:
        key: 32 secret bytes; the stream begins at its beginning.

    References:
        Mironov, "On Significance of the Least Significant Bits for Differential Privacy", 2012; Holohan and Braghin,
        "Secure Random Sampling in Differential Privacy", 2021, section 4.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = _encryptor(key)

    def normals(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw standard normal numbers."""
        wide, integer = (dtype, torch.int64) if dtype is torch.float64 else (torch.float32, torch.int32)
        normals = torch.empty(math.prod(shape), dtype=wide)
        self._fill(normals, integer)
        return normals.view(tuple(shape)).to(dtype)

    def private_normals(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw half the sum of four normal numbers (Holohan and Braghin).

        No single grid of floating point is then left to read.
        """
        total = self.normals(shape, dtype)
        for _ in range(3):
            total += self.normals(shape, dtype)
        return total.div_(2)

    def uniforms(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw numbers from [0, 1), of 24 bits, or 53 in double precision."""
        integer, wide, bits = (torch.int64, dtype, 53) if dtype is torch.float64 else (torch.int32, torch.float32, 24)
        whole = self._bits(math.prod(shape), integer).bitwise_and_(2**bits - 1)
        return whole.to(wide).mul_(2.0**-bits).view(tuple(shape)).to(dtype)

    def integers(self, high: int, shape: Sequence[int] = ()) -> Tensor:
        """Draw whole numbers from 0 to `high` - 1; what would make small ones likelier is drawn again."""
        if high < 1:
            raise InvalidValue(f"The `high` of whole numbers must be at least 1. Got {high} instead.")
        limit = 2**63 // high * high - 1
        numbers = self._whole(math.prod(shape))
        while (over := numbers > limit).any():
            numbers[over] = self._whole(int(over.sum()))
        return numbers.remainder_(high).view(tuple(shape))

    def permutation(self, count: int) -> Tensor:
        """Draw an order: that of random numbers of 63 bits, of which no two are the same."""
        while True:
            numbers = self._whole(count)
            ordered, order = numbers.sort()
            if not (ordered[1:] == ordered[:-1]).any():
                return order

    @contextlib.contextmanager
    def initialise(self) -> Iterator[None]:
        """Let module constructors draw from this stream in place of torch's global generator."""
        with _Initialisation(self):
            yield

    def fill(self, out: Tensor) -> None:
        """Fill a flat tensor in single precision with standard normal numbers."""
        self._fill(out, torch.int32)

    def each(self, work: Work, blocks: Sequence[Tensor]) -> None:
        """Do some work on one block after the other: torch's threads share each step of the formula."""
        for block in blocks:
            work(block, self, 0)

    def _fill(self, out: Tensor, integer: torch.dtype) -> None:
        for chunk in torch.split(out, _CHUNK):
            pairs = (len(chunk) + 1) // 2
            bits = self._bits(2 * pairs, integer)
            largest = torch.iinfo(integer).max
            # In (0, 1]: its logarithm is finite.
            radius = bits[:pairs].bitwise_and_(largest).to(out.dtype).add_(1).mul_(1 / (largest + 1))
            radius.log_().mul_(-2).sqrt_()
            angle = bits[pairs:].to(out.dtype).mul_(math.pi / (largest + 1))
            torch.mul(angle.cos(), radius, out=chunk[:pairs])
            torch.mul(angle.sin_(), radius, out=radius)
            chunk[pairs:] = radius[: len(chunk) - pairs]

    def _whole(self, count: int) -> Tensor:
        """Return whole numbers of 63 bits."""
        return self._bits(count, torch.int64).bitwise_and_(2**63 - 1)

    def _bits(self, count: int, integer: torch.dtype) -> Tensor:
        """Return whole numbers of the full range of a type, all equally likely."""
        bits = torch.empty(count, dtype=integer)
        target = bits.numpy().data.cast("B") if count else memoryview(b"")
        for at in range(0, len(target), len(_ZEROS)):
            part = target[at : at + len(_ZEROS)]
            self._cipher.update_into(_ZEROS[: len(part)], part)
        return bits


def _encryptor(key: bytes) -> CipherContext:
    # Every key has one stream, so that its counter may begin at 0.
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()


class _Initialisation(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Takes the place of torch's global generator: every random operation draws from a secure stream, or raises."""

    def __init__(self, draws: Draws) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.draws = draws

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        if kwargs.get("generator") is None:
            if func is torch.ops.aten.uniform_.default:
                return self._uniform(*args, **kwargs)
            if func is torch.ops.aten.normal_.default:
                return self._normal(*args, **kwargs)
            if func is torch.ops.aten.randperm.default:
                return self.draws.permutation(args[0])
        raise LeaktightError(
            "The secret initial weights of a network must be drawn by `uniform_` or `normal_`, as those of torch's own "
            f"layers are. Got `{func.overloadpacket.__name__}` instead; use one of these."
        )

    def _uniform(self, tensor: Tensor, low: float = 0.0, high: float = 1.0, generator: None = None) -> Tensor:
        return tensor.copy_(self.draws.uniforms(tensor.shape, tensor.dtype).mul_(high - low).add_(low))

    def _normal(self, tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: None = None) -> Tensor:
        return tensor.copy_(self.draws.normals(tensor.shape, tensor.dtype).mul_(std).add_(mean))
