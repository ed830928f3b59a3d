"""The memory allocator: freed memory is kept for the next step instead of being returned to the system."""

from __future__ import annotations

import ctypes
import os
import platform
import sys

SIZES = (1 << 30, 1 << 25)
"""From how many bytes a block is still given back at once; glibc up to 2.34 takes no more than the second."""
KEEP = "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"
"""Variables that glibc reads when a process starts."""
_PARAMETERS = -3, -1
"""What `mallopt` calls the same."""


def keep_memory() -> None:
    """Keep freed memory, in this process and those it starts; does nothing where the C library is not glibc.

    Each step of a training run allocates blocks of the same sizes again. By default, glibc returns those of some
    megabytes at once, and the next step pays for every page a second time: a quarter of a small convolutional network's
    step. In exchange every process keeps what it once needed at most. A user's own settings stay, all of them, if there
    is one.
    """
    if not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc":
        return
    if any(name in os.environ for name in (*KEEP, "GLIBC_TUNABLES")):
        return
    mallopt = ctypes.CDLL(None).mallopt
    block, top = _PARAMETERS
    # To say the second without the first would end the adaptation that glibc does by itself.
    kept = next((size for size in SIZES if mallopt(block, size)), None)
    if kept is not None and mallopt(top, SIZES[0]):
        os.environ.update(zip(KEEP, (str(kept), str(SIZES[0])), strict=True))
