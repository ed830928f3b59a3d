from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.metric import Reading
from leaktight.core.record import Record, Status
from leaktight.running import gallery
from leaktight.running import store as module
from leaktight.running.fingerprint import Fingerprint, versions
from leaktight.running.store import LOCK_FILE, STORE_FILE, Store
from leaktight.running.store_integrity import STORE_FORMAT

Plans = Callable[..., Any]
PICTURES = gallery.encode({"guess": torch.full((2, 1, 2, 2), 7, dtype=torch.uint8)})


def record(cell: Any, status: Status = Status.DONE, value: float = 1.5) -> Record:
    readings = (Reading(name="psnr", value=value),) if status is Status.DONE else ()
    return Record(cell=cell, status=status, reason="" if readings else "It is so.", readings=readings, seconds=0.25)


@pytest.fixture
def plan(toy_plan: Plans, toys: ModuleType) -> Any:
    return toy_plan(attacks={"a": {}, "b": {"blur": 0.1}}, defences=(toys.ToyNoise(),))


@pytest.fixture
def store(tmp_path: Path, plan: Any) -> Iterator[Store]:
    with Store.create(tmp_path / "audit") as made:
        made.begin(plan)
        yield made


def test_records_come_back_in_the_order_of_the_plan(store: Store, plan: Any) -> None:
    cells = plan.cells()
    for value, cell in enumerate(reversed(cells)):
        store.write(record(cell, value=value))
    assert [found.cell for found in store.records()] == cells
    assert store.records()[0] == record(cells[0], value=len(cells) - 1)
    assert store.missing() == 0


def test_what_is_not_there_is_counted(store: Store, plan: Any) -> None:
    cells = plan.cells()
    store.write(record(cells[2]))
    assert store.missing() == len(cells) - 1
    assert [found.cell for found in store.records()] == [cells[2]]


def test_done_and_refused_are_settled_and_failed_is_not(store: Store, plan: Any) -> None:
    done, refused, failed, *_ = plan.cells()
    for cell, status in ((done, Status.DONE), (refused, Status.REFUSED), (failed, Status.FAILED)):
        store.write(record(cell, status), fingerprint=Fingerprint({"made of": status.value}))
    made = {status: Fingerprint({"made of": status.value}) for status in Status}
    assert store.settled_digests() == {done.key: made[Status.DONE].digest, refused.key: made[Status.REFUSED].digest}
    assert store.fingerprint(made[Status.DONE].digest) == made[Status.DONE]
    assert store.fingerprint("nothing") == Fingerprint()
    store.write(record(failed))
    assert failed.key in store.settled_digests()


def test_cells_of_an_earlier_plan_are_kept_but_not_shown(store: Store, plan: Any, toy_plan: Plans) -> None:
    first = plan.cells()[0]
    store.write(record(first))
    other = toy_plan(attacks={"c": {"blur": 0.3}})
    store.begin(other)
    assert store.records() == []
    assert store.plan() == other
    store.begin(plan)
    assert [found.cell for found in store.records()] == [first]


def test_what_is_forgotten_is_missing(store: Store, plan: Any) -> None:
    first, second, *_ = plan.cells()
    for cell in (first, second):
        store.write(record(cell))
    store.forget([first.key])
    assert [found.cell for found in store.records()] == [second]


def test_versions_are_those_that_made_the_records_of_the_plan(
    store: Store, plan: Any, toy_plan: Plans, monkeypatch: Any
) -> None:
    first, second, third, *_ = plan.cells()
    with Store.read(store.folder) as reader:
        assert reader.plan() == plan
        assert reader.versions() == {}
        store.write(record(first))
        assert reader.versions() == versions()
        store.close()
        monkeypatch.setattr(module, "versions", lambda: {**versions(), "torch": "99.0"})
        store = Store.create(store.folder)
        store.write(record(second))
        store.write(record(third))
        assert reader.versions() == {**versions(), "torch": f"{torch.__version__} and 99.0"}
        store.begin(plan)
        assert reader.versions()["torch"] == f"{torch.__version__} and 99.0"
        store.write(record(first))
        assert reader.versions()["torch"] == "99.0"
        store.begin(toy_plan(attacks={"c": {"blur": 0.3}}))
        assert reader.versions() == {}
        store.close()


def test_pictures(store: Store, plan: Any) -> None:
    with_pictures, without, *_ = plan.cells()
    store.write(record(with_pictures), PICTURES)
    store.write(record(without))
    assert store.gallery(with_pictures.key)["guess"].unique().tolist() == [7]
    assert store.gallery(without.key) == store.gallery("nothing") == {}


def test_only_the_owner_can_read_any_file_of_it(tmp_path: Path, plan: Any) -> None:
    before = os.umask(0)
    try:
        with Store.create(tmp_path / "audit") as store:
            store.begin(plan)
            store._connection.execute("BEGIN IMMEDIATE")
            store._connection.execute("DELETE FROM cells")
            store._connection.execute("INSERT INTO meta VALUES ('x', 'y')")
            files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.folder.iterdir()}
    finally:
        os.umask(before)
    assert STORE_FILE in files
    assert f"{STORE_FILE}-journal" in files
    assert set(files.values()) == {0o600}


def test_a_reader_reads_while_the_audit_writes_and_changes_nothing(store: Store, plan: Any) -> None:
    with Store.read(store.folder) as reader:
        store.write(record(plan.cells()[0]))
        assert len(reader.records()) == 1
        with pytest.raises(LeaktightError, match="cannot be written"):
            reader.write(record(plan.cells()[1]))


def test_a_store_on_a_read_only_disk_can_be_read(store: Store, plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(record(plan.cells()[0]))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with Store.read(store.folder) as reader:
        assert len(reader.records()) == 1


def test_a_second_audit_is_kept_out(store: Store) -> None:
    with pytest.raises(LeaktightError, match=r"Another process is writing to `.*`. Wait until it has ended"):
        Store.create(store.folder)
    store.close()
    Store.create(store.folder).close()


def test_a_killed_audit_leaves_no_lock_and_no_half_cell(tmp_path: Path) -> None:
    code = f"""
import os, signal, sqlite3
from pathlib import Path
from leaktight.running.store import Store
store = Store.create(Path({str(tmp_path)!r}))
store._connection.execute("INSERT INTO meta VALUES ('whole', '1')")
store._connection.execute("PRAGMA cache_size = 0")
store._connection.execute("PRAGMA cache_spill = 1")
store._connection.execute("BEGIN IMMEDIATE")
store._connection.executemany("INSERT INTO meta VALUES (?, ?)", [(str(n), "x" * 10000) for n in range(200)])
os.kill(os.getpid(), signal.SIGKILL)
"""  # noqa: S608
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert (tmp_path / f"{STORE_FILE}-journal").stat().st_size > 0
    with Store.read(tmp_path) as reader:
        assert reader._rows("SELECT name FROM meta") == [("whole",)]
    with Store.create(tmp_path) as store:
        assert store._rows("PRAGMA integrity_check") == [("ok",)]


def test_a_full_disk_is_one_sentence_and_loses_nothing(store: Store, plan: Any) -> None:
    first, second, *_ = plan.cells()
    store.write(record(first))
    [(pages,)] = store._connection.execute("PRAGMA page_count").fetchall()
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(
        LeaktightError, match=r"The disk is full, and a cell could not be written to `.*`. Finished cells are kept"
    ):
        store.write(record(second), b"x" * 100_000)
    assert [found.cell for found in store.records()] == [first]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    store.write(record(second), b"x" * 100_000)
    assert len(store.records()) == 2


def test_a_locked_store_is_one_sentence(store: Store, plan: Any) -> None:
    store._connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(store.folder / STORE_FILE, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LeaktightError, match="Another process is writing to"):
        store.write(record(plan.cells()[0]))
    other.execute("ROLLBACK")
    other.close()
    store.write(record(plan.cells()[0]))
    assert len(store.records()) == 1


def test_files_that_are_no_store(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidValue, match=r"There is no audit in `.*`. Name the folder that `leaktight audit --out` wrote to."
    ):
        Store.read(tmp_path)
    path = tmp_path / STORE_FILE
    path.write_bytes(b"this is no database at all, but it is long enough to look at" * 20)
    for opened in (Store.read, Store.create):
        with pytest.raises(
            LeaktightError, match=r"is not a store that can be read. Move it away, or choose another folder."
        ):
            opened(tmp_path)
    assert path.read_bytes().startswith(b"this is no database")
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    for opened in (Store.read, Store.create):
        with pytest.raises(InvalidValue, match=r"is not an audit store. Choose another folder."):
            opened(tmp_path)


def test_a_damaged_store_is_one_sentence(store: Store, plan: Any) -> None:
    for cell in plan.cells():
        store.write(record(cell), PICTURES * 50)
    store.close()
    path = store.folder / STORE_FILE
    content = bytearray(path.read_bytes())
    content[4096:-4096] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(LeaktightError, match="is damaged"), Store.read(store.folder) as reader:
        reader.records()


@pytest.mark.parametrize("other", [STORE_FORMAT - 1, STORE_FORMAT + 1])
def test_another_format_asks_for_its_release(store: Store, other: int) -> None:
    store._connection.execute(f"PRAGMA user_version = {other}")
    store.close()
    for opened in (Store.read, Store.create):
        with pytest.raises(
            InvalidValue,
            match=f"has format {other}, and this release reads format {STORE_FORMAT}. Use the release that wrote it",
        ):
            opened(store.folder)


def test_a_store_that_was_never_begun(tmp_path: Path) -> None:
    with Store.create(tmp_path) as store, pytest.raises(InvalidValue, match="was never begun"):
        store.plan()


def test_refused_openings_let_the_lock_go(store: Store) -> None:
    store._connection.execute(f"PRAGMA user_version = {STORE_FORMAT + 1}")
    store.close()
    with pytest.raises(InvalidValue):
        Store.create(store.folder)
    lock = sqlite3.connect(store.folder / LOCK_FILE, timeout=0, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    lock.close()


def flip(path: Path, text: bytes) -> None:
    """Change one bit of a file, in the middle of what a text is found at."""
    content = bytearray(path.read_bytes())
    [place] = [at for at in range(len(content)) if content.startswith(text, at)]
    content[place + len(text) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture
def damaged(store: Store, plan: Any) -> Callable[[bytes], Store]:
    """Return how a store with a record for each cell is damaged at a text, and opened again."""
    for value, cell in enumerate(plan.cells()):
        # The third has a number, pictures and versions like no other.
        pictures = b"unlike any others" if value == 2 else PICTURES
        store.write(record(cell, value=777.125 if value == 2 else value), pictures, Fingerprint({"number": str(value)}))
    store.close()

    def open_again(text: bytes) -> Store:
        flip(store.folder / STORE_FILE, text)
        return Store.create(store.folder)

    return open_again


@pytest.mark.parametrize("text", [b"777.125", b"unlike any others"])
def test_a_flipped_byte_is_noticed_and_costs_its_record_alone(damaged: Any, plan: Any, text: bytes) -> None:
    with damaged(text) as store:
        cells = plan.cells()
        assert store.remove_damaged() == [cells[2].key]
        assert [found.cell for found in store.records()] == [cell for cell in cells if cell != cells[2]]
        assert store.remove_damaged() == []
        store.write(record(cells[2]))
        assert store.missing() == 0


def test_a_report_leaves_a_damaged_record_out_and_says_so(
    damaged: Any, plan: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = damaged(b"777.125")
    store.close()
    with Store.read(store.folder) as reader:
        assert len(reader.records()) == len(plan.cells()) - 1
        assert reader.missing() == 1
    path = store.folder / STORE_FILE
    assert [said.message for said in caplog.records] == [
        f"1 record in `{path}` is damaged and left out. Run the audit again."
    ]


def test_damaged_pictures_are_not_shown(damaged: Any, plan: Any) -> None:
    with damaged(b"unlike any others") as store:
        assert store.gallery(plan.cells()[2].key) == {}
        assert store.gallery(plan.cells()[1].key)["guess"].unique().tolist() == [7]


def test_a_damaged_fingerprint_is_not_made_up(damaged: Any, plan: Any) -> None:
    with damaged(b'{"number": "2"}') as store:
        assert store.remove_damaged() == []
        made = store.settled_digests()[plan.cells()[2].key]
        assert made == Fingerprint({"number": "2"}).digest
        assert store.fingerprint(made) == Fingerprint()


@pytest.mark.parametrize(
    "column", ["key", "status", "record", "fingerprint", "versions", "checksum", "gallery_checksum"]
)
@pytest.mark.parametrize("value", ["'other'", "x'ff'", "7"])
def test_no_column_can_be_other_than_it_was(damaged: Any, plan: Any, column: str, value: str) -> None:
    with damaged(b'{"number": "2"}') as store:
        key = plan.cells()[2].key
        store._connection.execute(f"UPDATE cells SET {column} = {value} WHERE key = ?", (key,))  # noqa: S608
        assert len(store.remove_damaged()) == 1
        assert key not in store.settled_digests()
        assert len(store.records()) == len(plan.cells()) - 1


def test_a_damaged_index_hides_no_record(damaged: Any, plan: Any) -> None:
    store = damaged(b'{"number": "2"}')
    store.close()
    path, cells = store.folder / STORE_FILE, plan.cells()
    content = path.read_bytes()
    places = [at for at in range(len(content)) if content.startswith(cells[2].key.encode(), at)]
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with Store.create(store.folder) as mended:
            mended.begin(plan)
            lost = len(mended.remove_damaged())
            assert lost <= 1
            assert len(mended.records()) == len(cells) - lost
