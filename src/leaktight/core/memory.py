"""Memory: what was freed is kept for the next step instead of being given back to the system."""

from __future__ import annotations

import ctypes
import os
import sys

KEPT = 1 << 30
"""How many bytes may be kept, and how large a block may be that is."""

SETTINGS = {"MALLOC_MMAP_THRESHOLD_": -3, "MALLOC_TRIM_THRESHOLD_": -1}
"""Variables that glibc reads when a process starts, and the parameters of its `mallopt` that say the same later."""


def keep_memory() -> None:
    """Keep freed memory, in this process and those it starts; does nothing where the C library is not glibc.

    Each step of a training allocates blocks of the same sizes again. By default, glibc returns those of some megabytes at once, and the
    next step pays for every page a second time: a quarter of a small convolutional network's step. A user's own setting stays.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    for variable, parameter in SETTINGS.items():
        if variable not in os.environ:
            os.environ[variable] = str(KEPT)
            if mallopt is not None:
                mallopt(parameter, KEPT)
