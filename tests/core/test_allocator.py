from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest

from leaktight.core.allocator import KEEP

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such settings")
STEPS = """
import resource
import torch
def step():
    blocks = [torch.ones(10 << 20) for _ in range(2)]
for _ in range(5):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * resource.getpagesize() / (10 * 2 * (40 << 20)))
"""


def ran(code: str, **settings: str) -> str:
    """Run code in a process of its own, because what is said to the C library cannot be taken back."""
    environment = {
        name: value for name, value in os.environ.items() if name not in (*KEEP, "GLIBC_TUNABLES")
    } | settings
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def variables(**settings: str) -> dict[str, str]:
    code = f"""
import json, os
from leaktight.core.allocator import keep_memory
keep_memory()
print(json.dumps({{name: os.environ[name] for name in {KEEP} if name in os.environ}}))
"""
    found: dict[str, str] = json.loads(ran(code, **settings))
    return found


@glibc
def test_processes_that_are_started_keep_memory_too() -> None:
    assert set(variables()) == set(KEEP)


@pytest.mark.parametrize("name", KEEP)
def test_a_user_s_own_setting_stays_and_stays_alone(name: str) -> None:
    assert variables(**{name: "7"}) == {name: "7"}


@pytest.mark.long
@glibc
def test_pages_that_were_freed_are_not_asked_for_again() -> None:
    kept = f"from leaktight.core.allocator import keep_memory\nkeep_memory()\n{STEPS}"
    # Blocks of 40 megabytes are beyond what glibc keeps by itself.
    assert float(ran(STEPS)) > 0.5
    assert float(ran(kept)) < 0.5
