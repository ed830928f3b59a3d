"""Connections: order, bounds and endings, without any transport but a thread."""

import threading
import time

import pytest

from leaktight.wire.connection import WAITING, Connection
from leaktight.wire.fault import Lost, PeerFault, Rejected
from leaktight.wire.frame import HEADER, Frame, Sort


@pytest.fixture
def connect():
    connections = []

    def make(patience=2.0):
        connections.append(Connection("peer", patience))
        return connections[-1]

    yield make
    for connection in connections:
        connection.close()


@pytest.fixture
def pair(connect):
    """Two connections, what goes out of one coming in at the other."""

    def join(**settings):
        one, other = connect(**settings), connect(**settings)
        for here, there in ((one, other), (other, one)):
            threading.Thread(target=there.feed, args=(here.drain(),), daemon=True).start()
        return one, other

    return join


def test_frames_arrive_in_order_and_are_counted(pair):
    one, other = pair()
    sender = threading.Thread(target=lambda: [one.send(Frame(Sort.GRADIENT, step, b"xyz")) for step in range(50)])
    sender.start()
    assert [other.receive(Sort.GRADIENT).step for _ in range(50)] == list(range(50))
    sender.join()
    assert one.sent == other.received == 50 * (HEADER.size + 3)


def test_the_response_time_is_that_of_the_last_answer(pair):
    one, other = pair()
    assert one.response_time is None
    one.send(Frame(Sort.GRADIENT, 0))
    other.receive(Sort.GRADIENT)
    time.sleep(0.05)
    other.send(Frame(Sort.ACTIVATIONS, 1))
    one.receive(Sort.ACTIVATIONS)
    assert 0.05 <= one.response_time < 2.0


def test_a_peer_that_sends_nothing_is_lost_when_patience_ends(connect):
    connection, silence = connect(patience=0.2), threading.Event()
    threading.Thread(target=connection.feed, args=(iter(silence.wait, True),), daemon=True).start()
    with pytest.raises(Lost, match=r"^peer is connected and sent nothing for 0.2 s.$"):
        connection.receive(Sort.DONE)
    silence.set()


def test_a_peer_that_takes_nothing_is_lost_when_patience_ends(connect):
    connection = connect(patience=0.1)
    with pytest.raises(Lost, match=r"^peer is connected and took nothing for 0.1 s.$"):
        for step in range(WAITING + 1):
            connection.send(Frame(Sort.DONE, step))


def test_who_waits_to_send_notices_that_the_connection_has_ended(connect):
    connection = connect(patience=100.0)
    connection.feed([])
    with pytest.raises(Lost, match="The connection to peer ended"):
        for step in range(WAITING + 1):
            connection.send(Frame(Sort.DONE, step))


def test_what_ends_a_connection_is_told_after_what_came_before(connect):
    connection = connect(patience=100.0)
    connection.feed([Frame(Sort.DONE, 1).to_bytes()])
    assert connection.receive(Sort.DONE).step == 1
    for _ in range(2):
        with pytest.raises(Lost, match="The connection to peer ended"):
            connection.receive(Sort.DONE)


def test_a_bad_frame_ends_the_connection_with_its_fault(connect):
    connection = connect()
    connection.feed([HEADER.pack(99, 0), Frame(Sort.DONE, 1).to_bytes()])
    with pytest.raises(PeerFault, match="must be of a known sort"):
        connection.receive(Sort.DONE)


def test_a_transport_that_breaks_down_is_a_lost_connection(connect, monkeypatch):
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    connection = connect(patience=100.0)

    def contents():
        yield Frame(Sort.DONE, 1).to_bytes()
        raise ZeroDivisionError

    threading.Thread(target=connection.feed, args=(contents(),)).start()
    connection.receive(Sort.DONE)
    with pytest.raises(Lost, match="The connection to peer ended"):
        connection.receive(Sort.DONE)


def test_a_frame_that_is_not_awaited_is_a_fault_and_a_fault_that_is_told_a_rejection(pair):
    one, other = pair()
    one.send(Frame(Sort.TEST, 0))
    with pytest.raises(PeerFault, match=r"must send a frame of sort HELLO or DONE now. Got TEST instead"):
        other.receive(Sort.HELLO, Sort.DONE)
    one.send_fault("No\x1b[31m way.")
    with pytest.raises(Rejected, match=r"^peer does not continue: No \[31m way.$"):
        other.receive(Sort.HELLO)


def test_who_sends_too_fast_waits_and_memory_stays_bounded(connect):
    connection, taken = connect(), []

    def flood():
        for step in range(1000):
            taken.append(step)
            yield Frame(Sort.DONE, step).to_bytes()

    reader = threading.Thread(target=connection.feed, args=(flood(),))
    reader.start()
    time.sleep(0.1)
    assert len(taken) <= WAITING + 2
    connection.close()
    reader.join(5)
    assert not reader.is_alive()


def test_a_closed_connection_takes_nothing_and_drains_what_it_has(connect):
    connection = connect()
    connection.send(Frame(Sort.DONE, 7))
    connection.close()
    with pytest.raises(Lost):
        connection.send(Frame(Sort.DONE, 8))
    connection.send_fault("Nobody hears this.")
    assert list(connection.drain()) == [Frame(Sort.DONE, 7).to_bytes()]
