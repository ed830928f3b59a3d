"""Lines: order, bounds, heartbeats and endings, without any transport but a thread."""

import threading
import time

import pytest

from leaktight.wire.fault import Lost, PeerFault, Rejected
from leaktight.wire.frame import HEADER, MAGIC, VERSION, Frame, Sort
from leaktight.wire.line import WAITING, Line


@pytest.fixture
def lines():
    made = []

    def make(**settings):
        made.append(Line("peer", **{"heartbeat": 0.05, "timeout": 2.0, "patience": 2.0, **settings}))
        return made[-1]

    yield make
    for line in made:
        line.close()


@pytest.fixture
def joined(lines):
    """Two lines, what goes out of one coming in at the other."""

    def join(**settings):
        one, other = lines(**settings), lines(**settings)
        for here, there in ((one, other), (other, one)):
            threading.Thread(target=there.feed, args=(here.drain(),), daemon=True).start()
        return one, other

    return join


def test_frames_arrive_in_order_and_are_counted(joined):
    one, other = joined(heartbeat=100.0)
    sender = threading.Thread(target=lambda: [one.send(Frame(Sort.GRADIENT, step, b"xyz")) for step in range(50)])
    sender.start()
    assert [other.receive(Sort.GRADIENT).step for _ in range(50)] == list(range(50))
    sender.join()
    assert other.received >= 50 * (HEADER.size + 3)
    assert one.sent == other.received


def test_heartbeats_keep_a_silent_line_alive_and_measure_the_round_trip(joined):
    one, other = joined(heartbeat=0.02, timeout=0.3, patience=5.0)
    threading.Timer(0.8, lambda: one.send(Frame(Sort.DONE, 0))).start()
    assert other.receive(Sort.DONE).step == 0
    assert 0 < other.round_trip < 0.3


def test_a_line_without_a_sign_of_life_is_lost(lines):
    line = lines(timeout=0.2)
    silence = threading.Event()
    threading.Thread(target=line.feed, args=(iter(silence.wait, True),), daemon=True).start()
    with pytest.raises(Lost, match=r"Nothing was heard of peer for 0.2 s."):
        line.receive(Sort.DONE)
    silence.set()


def test_signs_of_life_alone_are_not_waited_for_for_ever(joined):
    one, _ = joined(heartbeat=0.02, timeout=0.1, patience=0.4)
    with pytest.raises(Lost, match=r"gave signs of life and sent nothing for 0.4 s."):
        one.receive(Sort.DONE)


def test_what_ends_a_line_is_told_after_what_came_before(lines):
    line = lines()
    line.feed([Frame(Sort.DONE, 1).to_bytes()])
    assert line.receive(Sort.DONE).step == 1
    with pytest.raises(Lost, match="The connection to peer ended"):
        line.receive(Sort.DONE)


def test_a_bad_frame_ends_the_line_with_its_fault(lines):
    line = lines()
    line.feed([HEADER.pack(MAGIC, VERSION + 1, Sort.DONE, 0, 0), Frame(Sort.DONE, 1).to_bytes()])
    with pytest.raises(PeerFault, match="must speak version 1"):
        line.receive(Sort.DONE)


def test_a_frame_that_is_not_awaited_is_a_fault_and_a_told_one_a_rejection(joined):
    one, other = joined()
    one.send(Frame(Sort.TEST, 0))
    with pytest.raises(PeerFault, match=r"must send a frame of sort HELLO or DONE now. Got TEST instead"):
        other.receive(Sort.HELLO, Sort.DONE)
    one.fault("No\x1b[31m way.")
    with pytest.raises(Rejected, match=r"^peer does not go on: No \[31m way.$"):
        other.receive(Sort.HELLO)


def test_who_sends_too_fast_waits_and_memory_stays_bounded(lines):
    line = lines(heartbeat=100.0)
    taken = []

    def flood():
        for step in range(1000):
            taken.append(step)
            yield Frame(Sort.DONE, step).to_bytes()

    reader = threading.Thread(target=line.feed, args=(flood(),))
    reader.start()
    time.sleep(0.1)
    assert len(taken) <= WAITING + 2
    line.close()
    reader.join(5)
    assert not reader.is_alive()


def test_a_flood_of_heartbeats_is_answered_by_few(lines):
    line = lines(heartbeat=100.0)
    line.feed(Frame(Sort.PING, step).to_bytes() for step in range(1000))
    line.close()
    assert len(list(line.drain())) <= WAITING


def test_a_closed_line_takes_nothing_and_drains_what_it_has(lines):
    line = lines(heartbeat=100.0)
    line.send(Frame(Sort.DONE, 7))
    line.close()
    with pytest.raises(Lost):
        line.send(Frame(Sort.DONE, 8))
    line.fault("Nobody hears this.")
    assert [content[-16:-8] for content in line.drain()] == [(7).to_bytes(8, "big")]


def test_a_line_that_nobody_drains_is_lost_when_nothing_is_heard(lines):
    line = lines(heartbeat=100.0, timeout=0.1)
    with pytest.raises(Lost, match="Nothing was heard"):
        for step in range(WAITING + 1):
            line.send(Frame(Sort.DONE, step))
