"""What a party keeps on its disk: two checkpoints, and the digests of its answers."""

import pytest

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.learning.checkpoint import write_checkpoint
from leaktight.wire.checkpoints import Checkpoints
from leaktight.wire.fault import PeerFault
from leaktight.wire.frame import Sort
from leaktight.wire.replay_guard import ReplayGuard


def state(step, mark=0.0):
    return {"party": {"step": float(step)}, "mark": mark}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "party.safetensors"


def test_the_last_two_checkpoints_are_kept_and_found_again(path):
    checkpoints = Checkpoints(path)
    assert checkpoints.steps == []
    assert checkpoints.newest() is None
    for step in (0, 10, 20):
        checkpoints.write(step, state(step))
    for kept in (checkpoints, Checkpoints(path)):
        assert kept.steps == [10, 20]
        assert kept.newest() == state(20)
        assert kept.read(10) == state(10)
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_a_step_that_is_reached_again_takes_its_own_place(path):
    checkpoints = Checkpoints(path)
    for step in (10, 20):
        checkpoints.write(step, state(step))
    checkpoints.write(20, state(20, mark=1.0))
    assert Checkpoints(path).steps == [10, 20]
    assert Checkpoints(path).read(20) == state(20, mark=1.0)


def test_a_process_that_dies_between_two_writes_still_has_the_older_one(path):
    checkpoints = Checkpoints(path)
    checkpoints.write(10, state(10))
    path.replace(checkpoints.previous)
    again = Checkpoints(path)
    assert again.steps == [10]
    again.write(20, state(20))
    assert Checkpoints(path).steps == [10, 20]


def test_a_file_that_is_no_checkpoint_is_never_written_over(path):
    path.write_text("my thesis")
    with pytest.raises(InvalidValue, match="must be a whole checkpoint"):
        Checkpoints(path)
    assert path.read_text() == "my thesis"
    write_checkpoint(path, {"model": {"step": 1.0}})
    with pytest.raises(InvalidValue, match=r"must be a party's checkpoint. It is not; name another one"):
        Checkpoints(path)
    with pytest.raises(InvalidValue, match="it is a folder"):
        Checkpoints(path.parent)


def test_answers_are_remembered_over_the_end_of_a_process(tmp_path):
    guard = ReplayGuard(tmp_path / "replay")
    for step in range(5):
        guard.check_question(step, b"first", "the activations", "peer")
        guard.add_question(step, b"first %d" % step)
    # No close: the process was killed.
    again = ReplayGuard(tmp_path / "replay", resumes=True)
    again.check_question(3, b"first 3", "the activations", "peer")
    again.check_question(5, b"anything", "the activations", "peer")
    with pytest.raises(PeerFault, match="must send the activations of step 3 as before"):
        again.check_question(3, b"second", "the activations", "peer")
    guard.close()
    assert (tmp_path / "replay").stat().st_mode & 0o777 == 0o600


def test_what_nobody_goes_back_to_is_forgotten_and_a_cut_off_record_too(tmp_path):
    path = tmp_path / "replay"
    guard = ReplayGuard(path)
    for step in range(100):
        guard.add_question(step, b"x")
    guard.forget(90)
    assert path.stat().st_size == 10 * 41
    guard.check_question(5, b"y", "the activations", "peer")
    guard.add_question(100, b"x")
    guard.close()
    path.write_bytes(path.read_bytes()[:-7])
    again = ReplayGuard(path, resumes=True)
    assert path.stat().st_size == 10 * 41
    again.check_question(100, b"y", "the activations", "peer")
    with pytest.raises(PeerFault):
        again.check_question(95, b"y", "the activations", "peer")
    assert ReplayGuard(path).latest == -1


def test_an_answer_that_cannot_be_noted_is_not_given(tmp_path):
    """On a full disk a part of a record may be written without an error."""
    guard = ReplayGuard(tmp_path / "replay")
    guard.add_answer(Sort.GRADIENT, 1, b"x")

    class Full:
        def write(self, content):
            return 7

        def close(self):
            pass

    guard.close()
    guard._file = Full()
    with pytest.raises(LeaktightError, match=r"cannot be written: no space left on device. Nothing was sent"):
        guard.add_answer(Sort.GRADIENT, 2, b"y")
    assert guard.latest == 1
