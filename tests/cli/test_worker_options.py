from __future__ import annotations

import sys

import pytest

from leaktight.cli.main import main
from leaktight.cli.worker_options import open_workers
from leaktight.core.errors import InvalidValue
from leaktight.core.threads import cores
from leaktight.running.ray_cluster import Cluster


def test_processes_here_are_a_number() -> None:
    with open_workers("local", None, None) as workers:
        assert workers == cores()
    with open_workers("local", 3, None) as workers:
        assert workers == 3


def test_ray_is_a_cluster_that_nobody_has_started_yet() -> None:
    with open_workers("ray", 2, "head:1") as workers:
        assert isinstance(workers, Cluster)
        assert (workers._workers, workers._address, workers._ray) == (2, "head:1", None)


def test_an_address_is_for_ray() -> None:
    with (
        pytest.raises(InvalidValue, match=r"`--address head:1` is that of a Ray cluster. Add `--backend ray`"),
        open_workers("local", 1, "head:1"),
    ):
        pass


@pytest.mark.parametrize("command", ["audit", "layers", "search", "reproduce"])
def test_every_command_with_workers_takes_ray(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--backend" in shown
    assert "--address" in shown


def test_a_missing_ray_is_one_sentence_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["audit", "--model", "mlp", "--data", "digits", "--backend", "ray", "--out", f"{tmp_path}/out"]) == 2
    assert "Error: The backend `ray` needs the package ray" in capsys.readouterr().err
