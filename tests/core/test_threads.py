from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from leaktight.core.threads import SPINS, one_thread, rest_soon


def test_idle_threads_rest_soon_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    rest_soon()
    assert os.environ["GOMP_SPINCOUNT"] == SPINS
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    rest_soon()
    assert os.environ["GOMP_SPINCOUNT"] == "7"


def test_it_is_said_before_torch_is_there() -> None:
    code = "import sys, leaktight.cli.main, leaktight.core.threads; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_threads_are_given_back_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    with pytest.raises(ZeroDivisionError), one_thread():
        told.append(1 // 0)
    assert told == [1, 7]
