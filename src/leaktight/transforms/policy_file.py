"""Policy files: a policy as `leaktight search` wrote it down."""

from __future__ import annotations

import functools
from pathlib import Path

from leaktight.core.document import parse_toml
from leaktight.core.errors import InvalidValue
from leaktight.core.input_file import LARGEST_SETTINGS
from leaktight.data.files import read_bytes
from leaktight.transforms.policy import Policy


def read_policy(path: Path) -> Policy:
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
    return _parse_file(path, read_bytes(path, LARGEST_SETTINGS))


@functools.lru_cache(8)
def _parse_file(path: Path, content: bytes) -> Policy:
    try:
        held = parse_toml(content.decode())
    # Bytes that are no text, text that is no TOML, and TOML that is nested too deeply.
    except ValueError as error:
        raise InvalidValue(
            f"The file `{path}` must be a whole result of `leaktight search`. It is damaged ({error}); run that again."
        ) from None
    found = held.get("policy")
    if not isinstance(found, str):
        raise InvalidValue(
            f"The file `{path}` must hold a `policy` like `3-1-7+43-18-18`. It does not; run `leaktight search`."
        )
    try:
        return Policy.of(found)
    except InvalidValue as error:
        raise InvalidValue(f"The `policy` in the file `{path}` cannot be read. {error}") from None
