"""What all tests share: one torch thread, and where real data may be."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

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
def made() -> ModuleType:
    """Return the maker of records by hand."""
    spec = importlib.util.spec_from_file_location("made_by_hand", Path(__file__).parent / "made.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
