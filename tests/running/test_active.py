"""Attackers who sit in the training: it is theirs alone, is kept like any other, and changes nothing for who only observes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from leaktight import running
from leaktight.attacks import Analytic
from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt
from leaktight.core.record import Record, Status
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits, RareDigit
from leaktight.defences import GaussianNoise
from leaktight.findings.rows import rows_of
from leaktight.learning import Federated, RoundRobin, Sgd, Split, Standalone
from leaktight.metrics import MSE
from leaktight.models import MLP
from leaktight.plans.plan import Grid, Plan
from leaktight.plans.validation import validate_plan
from leaktight.running import fingerprint
from leaktight.running.audit_task import AuditTask
from leaktight.running.store import TRAINING_FOLDER, Store
from leaktight.running.training_cache import TrainingCache

ROUNDS, TURNS = 6, 7  # in an observation of three messages each participant sends one


def scenario(**settings: Any) -> Federated:
    protocol = RoundRobin(local_steps=2, optimiser=Sgd(learning_rate=0.05))
    return Federated(
        **{
            "data": Digits(),
            "model": MLP(hidden=(8,)),
            "participants": 3,
            "protocol": protocol,
            "rounds": ROUNDS,
            **settings,
        }
    )


@pytest.fixture
def sitter(toys: ModuleType) -> Any:
    def make(seat: str = "client-1", knows: frozenset[Knows] = frozenset(), **settings: Any) -> Attempt:
        threat = ThreatModel(seat=seat, knows=knows)
        return Attempt(attack=toys.ToySitter(**settings), threat=threat, metrics=(toys.ToyCount(),))

    return make


@pytest.fixture
def plan(sitter: Any) -> Any:
    def make(probes: dict[str, Any] | None = None, defences: tuple[Any, ...] = (), **settings: Any) -> Plan:
        observers = {"first": Attempt(attack=Analytic(), metrics=(MSE(),)), "second": Attempt(attack=Analytic())}
        return Plan(
            scenarios={"1": scenario(**settings)},
            defences=defences,
            probes={**observers, "sitter": sitter(stretch=3.0)} if probes is None else probes,
            grid=Grid(victims=3, stages=("end",)),
        )

    return make


def timeless(records: list[Record]) -> list[Record]:
    return [record.model_copy(update={"seconds": 0.0}) for record in records]


def measured(records: list[Record]) -> dict[str, Record]:
    assert {record.status for record in records} == {Status.DONE}
    return {record.cell.label: record for record in records if record.cell.purpose == "measure"}


def count_training_runs(folder: Path) -> int:
    return len(list((folder / TRAINING_FOLDER).iterdir()))


def test_the_attacker_plays_every_round_and_finds_what_it_learned(plan: Any, tmp_path: Path) -> None:
    found = measured(running.run(plan(), tmp_path / "out"))
    assert found["sitter"].reading("turns").value == TURNS
    last = (
        TrainingCache(tmp_path / "out" / TRAINING_FOLDER)
        .get(TrainingCache(tmp_path).spec(found["sitter"].cell))
        .snapshots["end"]
    )
    assert last.memories["client-1"]["sitter"]["turns"] == ROUNDS
    # It was handed the final parameters once more when it was observed.
    size = torch.cat([tensor.flatten() for tensor in last.parameters.values()]).norm()
    assert found["sitter"].reading("size").value == pytest.approx(size.item(), rel=1e-5)


def test_observers_share_a_training_among_the_honest_and_an_attacker_has_one_of_its_own(
    plan: Any, tmp_path: Path
) -> None:
    with_it = running.run(plan(), tmp_path / "with")
    observers = {name: probe for name, probe in plan().probes.items() if name != "sitter"}
    without = running.run(plan(observers), tmp_path / "without")
    assert [record for record in timeless(with_it) if record.cell.label in ("first", "second", "analytic")] == timeless(
        without
    )
    # The observers' one, the control's, the attacker's, and its null cell's.
    assert (count_training_runs(tmp_path / "without"), count_training_runs(tmp_path / "with")) == (2, 4)
    found = measured(with_it)
    assert (
        found["first"].reading("accuracy") == found["second"].reading("accuracy") != found["sitter"].reading("accuracy")
    )


def test_an_interrupted_audit_resumes_from_the_attackers_kept_training(
    sitter: Any, plan: Any, tmp_path: Path, interrupted: Any
) -> None:
    log = tmp_path / "log"
    probes = {"sitter": sitter(stretch=3.0, log=str(log))}
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        running.run(plan(probes), out, workers=interrupted(3))
    assert (count_training_runs(out), len(log.read_text().splitlines())) == (3, 2 * ROUNDS)
    resumed = running.run(plan(probes), out)
    # Two cells have one turn each; no round of a training is played again.
    assert len(log.read_text().splitlines()) == 2 * TURNS
    assert timeless(resumed) == timeless(running.run(plan(probes), tmp_path / "whole"))


@pytest.mark.long
def test_one_worker_or_two_give_identical_records(plan: Any, tmp_path: Path) -> None:
    [one, two] = [running.run(plan(defences=(GaussianNoise(std=0.01),)), tmp_path / str(n), workers=n) for n in (1, 2)]
    assert timeless(one) == timeless(two)
    assert {record.status for record in two} == {Status.DONE}
    with Store.read(tmp_path / "2") as store:
        assert store.missing() == 0


def test_the_key_of_a_training_holds_the_attack_and_the_seat_and_no_metric(
    plan: Any, sitter: Any, tmp_path: Path
) -> None:
    training_cache = TrainingCache(tmp_path)
    [passive, *_, active] = [training_cache.spec(cell) for cell in plan().cells() if cell.purpose == "measure"]
    assert (passive.entrant, "entrant" in passive.to_dict(), "null" in passive.to_dict()) == (None, False, False)
    others = [sitter(), sitter(stretch=3.0, seat="client-2"), sitter(stretch=3.0, accomplices=("client-2",))]
    keys = {active.key, passive.key}
    for probe in (*others, sitter(stretch=3.0, knows=frozenset({Knows.LABELS}))):
        keys.add(active.model_copy(update={"entrant": probe.entrant}).key)
    assert len(keys) == 6
    cell = next(cell for cell in plan().cells() if cell.label == "sitter" and cell.purpose == "measure")
    ungraded = cell.model_copy(update={"probe": cell.probe.model_copy(update={"metrics": ()}), "label": "renamed"})
    assert training_cache.spec(ungraded) == active
    assert type(active).model_validate(active.to_dict()) == active


def test_an_attackers_own_code_is_part_of_what_its_training_is_made_from(
    plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [cell for cell in plan().cells() if cell.purpose == "measure"]
    before = {cell.label: TrainingCache(tmp_path).spec(cell).fingerprint for cell in cells}
    plain = fingerprint.trace

    def edited(modules: Any, *others: Any) -> dict[str, str]:
        found = plain(modules, *others)
        return {**found, "leaktight_toys.py": "edited"} if "leaktight_toys.py" in found else found

    monkeypatch.setattr(fingerprint, "trace", edited)
    after = {cell.label: TrainingCache(tmp_path).spec(cell).fingerprint for cell in cells}
    assert [label for label in before if before[label] != after[label]] == ["sitter"]


def test_accomplices_sit_in_the_training_too(sitter: Any, plan: Any, tmp_path: Path) -> None:
    both = sitter(seat="client-0", accomplices=("client-1",))
    found = measured(running.run(plan({"sitter": both}), tmp_path / "out"))["sitter"]
    spec = TrainingCache(tmp_path).spec(found.cell)
    end = TrainingCache(tmp_path / "out" / TRAINING_FOLDER).get(spec).snapshots["end"]
    turns = {name: memory["sitter"]["turns"] for name, memory in end.memories.items() if "sitter" in memory}
    assert turns == {"client-0": ROUNDS, "client-1": ROUNDS}
    assert found.reading("turns").value == TURNS


def test_in_the_null_cell_the_training_itself_had_nothing_to_learn_from(plan: Any, sitter: Any, tmp_path: Path) -> None:
    records = running.run(plan({"sitter": sitter()}), tmp_path / "out")
    [null] = [record for record in records if record.cell.purpose == "null"]
    training_cache = TrainingCache(tmp_path / "out" / TRAINING_FOLDER)
    spec = training_cache.spec(null.cell)
    assert spec.null
    assert spec.key != spec.model_copy(update={"null": False}).key
    assert null.reading("turns").value == TURNS
    real, noise = measured(records)["sitter"].reading("accuracy"), null.reading("accuracy")
    assert noise.value < real.value
    # Noise has the norm of what it stands for, so that the attacker is handed parameters of an honest size.
    assert null.reading("size").value == pytest.approx(measured(records)["sitter"].reading("size").value, rel=0.5)


def test_null_cells_of_observers_stand_on_the_training_of_all(plan: Any, tmp_path: Path) -> None:
    cells = [cell for cell in plan().cells() if cell.label == "first"]
    assert [cell.purpose for cell in cells] == ["measure", "null"]
    assert TrainingCache(tmp_path).spec(cells[0]) == TrainingCache(tmp_path).spec(cells[1])


def test_a_defence_is_priced_against_a_training_with_the_same_attacker(plan: Any, tmp_path: Path) -> None:
    records = running.run(plan(defences=(GaussianNoise(std=0.02),)), tmp_path / "out")
    rows = {(row.attack, row.defence.kind): row for row in rows_of(records)}
    assert {attack: row.active for (attack, _), row in rows.items()} == {
        "first": False,
        "second": False,
        "sitter": True,
    }
    for attack in ("first", "sitter"):
        bare, noisy = rows[attack, "none"], rows[attack, "gaussian_noise"]
        assert (bare.loss, noisy.loss.value) == (None, pytest.approx(bare.utility.value - noisy.utility.value))
    assert rows["first", "gaussian_noise"].loss.value != rows["sitter", "gaussian_noise"].loss.value


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"seat": "server"},
            "The attack x must take a participant's seat, as it takes part in training. Got `server` instead.",
        ),
        ({"seat": "wire"}, "Got `wire` instead."),
        ({"seat": "client-9"}, "There is no seat `client-9` for x in this scenario."),
        ({"accomplices": ("client-2", "client-7")}, "Got `client-7` instead. Known are: `client-0`"),
    ],
)
def test_a_seat_that_is_not_there_is_said_before_the_audit_starts(
    plan: Any, sitter: Any, settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        validate_plan(plan({"x": sitter(**settings)}))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("other", "seat", "sentence"),
    [
        (
            Split(data=RareDigit(), model=MLP(hidden=(8,)), rounds=2, moments=1),
            "feature-party",
            "In split learning nobody",
        ),
        (Standalone(federation=scenario(rounds=1)), "client-0", "Who trains alone meets nobody"),
    ],
    ids=["split", "standalone"],
)
def test_where_nobody_can_sit_in_the_cell_is_refused(
    plan: Any, sitter: Any, other: Any, seat: str, sentence: str, tmp_path: Path
) -> None:
    wanted = plan({"sitter": sitter(seat=seat)}).model_copy(
        update={"scenarios": {"1": other}, "grid": Grid(victims=2, batch_sizes=(16,))}
    )
    [record] = [one for one in running.run(wanted, tmp_path / "out") if one.cell.purpose == "measure"]
    assert (record.status, record.reason.startswith(sentence)) == (Status.REFUSED, True)


def test_a_training_with_an_attacker_is_described(plan: Any, tmp_path: Path) -> None:
    cells = [cell for cell in plan().cells() if cell.label in ("first", "sitter")]
    told = {(cell.label, cell.purpose): str(AuditTask(TrainingCache(tmp_path).spec(cell))) for cell in cells}
    assert told["first", "measure"] == told["first", "null"] == f"training with {Undefended()}"
    assert told["sitter", "measure"] == "training with none and toy_sitter inside"
    assert told["sitter", "null"] == "training with none and toy_sitter inside, on noise"
