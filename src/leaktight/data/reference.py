"""References: `package.module:function`, how a setting names the user's own Python code."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from leaktight.core.errors import InvalidValue, did_you_mean

_FORM = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def is_reference(text: str) -> bool:
    """Whether a text has the form `package.module:function`.

    Example:
        >>> is_reference("my_project.data:load"), is_reference("data/mnist")
        (True, False)
    """
    return bool(_FORM.fullmatch(text))


@contextmanager
def current_folder() -> Iterator[None]:
    """Let modules in the current folder be imported inside the block."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(folder)


def imported(reference: str) -> Callable[..., Any]:
    """Return the function or class that a reference names, or say in one sentence why it cannot be had.

    Example:
        >>> imported("math:sqrt")(9.0)
        3.0
    """
    if not is_reference(reference):
        raise InvalidValue(f"A reference must be of the form `package.module:function`. Got {reference!r} instead.")
    module_name, name = reference.split(":")
    try:
        with current_folder():
            module = importlib.import_module(module_name)
    except (ImportError, SyntaxError) as error:
        raise InvalidValue(
            f"The module `{module_name}` cannot be imported: {error}. Check its name, or run from the folder that holds it."
        ) from error
    found = getattr(module, name, None)
    if found is None:
        public = [known for known in vars(module) if not known.startswith("_")]
        raise InvalidValue(f"The module `{module_name}` has no `{name}`. {did_you_mean(name, public)}")
    if not callable(found):
        raise InvalidValue(f"The `{name}` of `{module_name}` must be a function. Got {type(found).__name__} instead.")
    function: Callable[..., Any] = found
    return function
