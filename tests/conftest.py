"""What all tests share: one torch thread, programs that listen to signals, and where real data may be."""

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data with real data sets is not here")
    return folder


@pytest.fixture(scope="session")
def launch() -> Callable[..., "subprocess.Popen[Any]"]:
    """Return a `subprocess.Popen` for programs that a test sends a signal to.

    A suite in the background of a shell without job control ignores Ctrl-C, and whatever it starts inherits that.
    """

    def start(command: list[Any], **options: Any) -> "subprocess.Popen[Any]":
        # What has a handler here is at its default in the program; what is ignored here stays ignored there.
        before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            return subprocess.Popen(command, **options)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    return start


@pytest.fixture(scope="session")
def made() -> ModuleType:
    """Return the maker of records by hand."""
    spec = importlib.util.spec_from_file_location("made_by_hand", Path(__file__).parent / "made.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
