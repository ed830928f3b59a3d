"""The example notebook runs from its first cell to its last, and shows what it promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "audit_model.ipynb"


def code_cells() -> list[dict[str, Any]]:
    return [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


def test_it_is_kept_without_outputs() -> None:
    assert [cell["outputs"] for cell in code_cells()] == [[]] * len(code_cells())
    assert {cell["execution_count"] for cell in code_cells()} == {None}


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_it_runs_and_shows_verdicts_and_table(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel, of the extra `dev`")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=280, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = {cell["id"]: cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"}
    *progress, shown = outputs["audit"]
    assert shown["data"]["text/html"].startswith("<p>Without a defence, ")
    assert "Top-k (share 0.1)" in shown["data"]["text/html"]
    # One line that changed in place, the first answers, and nothing on standard error.
    line, *answers = [output["data"]["text/plain"] for output in progress]
    assert line == "The audit is done."
    assert answers[0].startswith("First answer")
    [table] = outputs["table"]
    assert "verdict" in table["data"]["text/html"]
    assert (tmp_path / "digits-report.html").stat().st_size > 10_000
    assert not [output for each in outputs.values() for output in each if output.get("name") == "stderr"]
