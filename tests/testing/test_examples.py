"""The examples that the pages for developers show conform and do what the pages say."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from leaktight.attacks import preset
from leaktight.channels import AddNoise
from leaktight.core import registry
from leaktight.core.channel import Channel
from leaktight.core.defence import Undefended
from leaktight.core.metric import Reading
from leaktight.core.random import stream
from leaktight.core.record import Record
from leaktight.core.threat import Knows, ThreatModel
from leaktight.findings.rows import rows_of
from leaktight.findings.sentence import sentence_of
from leaktight.findings.verdict import judge
from leaktight.metrics import PSNR
from leaktight.testing import check_attack, check_channel, check_defence, check_metric, check_value, toy_run
from leaktight.testing.conformance import ConformanceError

ROOT = Path(__file__).resolve().parents[2]
EVERY_PAGE = sorted((ROOT / "docs" / "extend").glob("*.md"))
PAGES = [page for page in EVERY_PAGE if page.stem != "package"]
FILES = sorted(path for path in (ROOT / "src/leaktight/testing/examples").glob("*.py") if path.name != "__init__.py")
SHOWN = re.compile(r"<!-- (\S+) -->\n```python\n(.*?)```\n", re.DOTALL)


CLASSES = {
    "Damping": "damping",
    "EdgeError": "edge_error",
    "KnownBrightness": "known_brightness",
    "MeanImage": "mean_image",
    "NearGrey": "near_grey",
    "Outlines": "outlines",
    "Stripes": "stripes",
    "TwoLayers": "two_layers",
}


@pytest.fixture(scope="module")
def parts() -> Iterator[SimpleNamespace]:
    """Import the examples for this module's tests alone: what is imported is registered beside our own parts."""
    registry.load()
    before = {family: dict(kinds) for family, kinds in registry._classes.items()}
    folder = "leaktight.testing.examples"
    yield SimpleNamespace(**{name: getattr(import_module(f"{folder}.{file}"), name) for name, file in CLASSES.items()})
    for file in CLASSES.values():
        sys.modules.pop(f"{folder}.{file}")
    registry._classes.clear()
    registry._classes.update(before)


def test_every_example_has_its_page() -> None:
    shown = {ROOT / name for page in PAGES for name, _ in SHOWN.findall(page.read_text())}
    assert shown == set(FILES)


def test_the_map_links_to_every_page() -> None:
    linked = re.findall(r"\(extend/(\w+)\.md\)", (ROOT / "docs/architecture.md").read_text())
    assert sorted(linked) == [page.stem for page in EVERY_PAGE]


def test_the_defence_conforms_and_its_channel_does_not_lie(parts) -> None:
    check_defence(parts.Damping(factor=0.5, std=0.05))
    check_channel(parts.Damping(factor=0.5, std=0.05))


def test_a_lie_about_the_defence_is_found(parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts.Damping, "channel", lambda self, task: Channel(message=(AddNoise(std=self.std),)))
    with pytest.raises(ConformanceError):
        check_channel(parts.Damping(factor=0.5, std=0.05))


def test_the_attack_runs_and_is_told_from_one_that_reads_messages(parts) -> None:
    with pytest.raises(ConformanceError):
        check_attack(parts.MeanImage(), metrics=(PSNR(),))


def test_the_metric_conforms(parts) -> None:
    check_metric(parts.EdgeError())


def test_the_leak_kind_judges_what_the_metric_measured(parts, made) -> None:
    def record(value: float, **settings) -> Record:
        edges = Reading(
            name="example_edge_error",
            value=value,
            low=value / 2,
            high=2 * value,
            n=8,
            chance=0.2,
            leaks="low",
            against="raw",
        )
        return made.record(psnr=None, extra=(edges,), **settings)

    noise = parts.Damping(std=0.5)
    judgements = {
        one.defence.kind: one
        for one in judge(rows_of([record(0.001), record(0.05, defence=noise)]))
        if one.kind == parts.Outlines()
    }
    assert {kind: one.verdict for kind, one in judgements.items()} == {"none": "leaks", "example_damping": "leaks"}
    assert "Outlines come back with an edge error of 0.05, against 0.001 without it" in sentence_of(
        judgements["example_damping"]
    )


def test_the_network_learns_the_data(parts) -> None:
    data = parts.Stripes(examples=32).load()
    model = parts.TwoLayers(width=2).build(data.shape, data.classes, seed=0)
    optimiser = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(30):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(data.train.inputs), data.train.labels).backward()
        optimiser.step()
    assert (model(data.test.inputs).argmax(1) == data.test.labels).all()


def test_every_part_is_a_value_that_comes_back_from_its_json(parts) -> None:
    for made in vars(parts).values():
        check_value(made())


def test_the_prior_and_the_term_steer_a_search(parts) -> None:
    view = ThreatModel(knows=frozenset({Knows.LABELS, Knows.DEFENCE})).view(toy_run(Undefended(), rounds=2))
    settings = {"iterations": 5, "prior": parts.NearGrey(spread=0.2), "labels": "given"}
    plain = preset("posterior", **settings)(view, stream(0))
    dark = preset("posterior", **settings, terms=(parts.KnownBrightness(brightness=0.0, weight=1e6),))(view, stream(0))
    assert torch.cat(dark.inputs).mean().abs() < torch.cat(plain.inputs).mean().abs()
