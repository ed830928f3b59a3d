from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from leaktight.core.memory import KEPT, SETTINGS, keep_memory


def test_a_user_s_own_setting_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = SETTINGS
    monkeypatch.setenv(one, "7")
    monkeypatch.delenv(other, raising=False)
    keep_memory()
    assert os.environ[one] == "7"
    assert os.environ[other] == (str(KEPT) if sys.platform.startswith("linux") else None)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc gives memory back at once")
@pytest.mark.parametrize("kept", [True, False])
def test_pages_that_were_freed_are_not_asked_for_again(kept: bool) -> None:
    code = f"""
import os, resource
for name in {list(SETTINGS)}:
    os.environ.pop(name, None)
if {kept}:
    from leaktight.core.memory import keep_memory
    keep_memory()
import torch
def step():
    blocks = [torch.ones(10 << 20) for _ in range(2)]
for _ in range(5):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    asked = int(done.stdout) / (10 * 2 * (40 << 20) // resource.getpagesize())
    assert asked < 0.5 if kept else asked > 0.5
