"""The connection check: what is wrong with the other side is said at once, and by name."""

import contextlib
import socket
import ssl
import threading

import pytest

from leaktight.core.certificates import make_certificates
from leaktight.wire.connection_check import HungUp, check_connection
from leaktight.wire.fault import Lost, Rejected

SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@contextlib.contextmanager
def served(answer):
    """Have a thread answer one connection; yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)
        assert not thread.is_alive()


def over_tls(own, after=SETTINGS):
    """Answer as a server with this certificate, which wants one of its own authority from the client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    context.load_verify_locations(own.authority)
    context.verify_mode = ssl.CERT_REQUIRED

    def answer(connection):
        with context.wrap_socket(connection, server_side=True) as encrypted:
            encrypted.sendall(after)
            encrypted.recv(1)

    return answer


def check(port, own, peer="label-party"):
    check_connection("127.0.0.1", port, own, peer)


def test_who_is_right_is_passed(certificates):
    with served(over_tls(certificates["label-party"])) as port:
        check(port, certificates["feature-party"])

    def plain(connection):
        connection.recv(100)
        connection.sendall(SETTINGS)

    with served(plain) as port:
        check(port, None)


def test_a_server_of_another_name_or_authority_is_refused(certificates, tmp_path):
    with (
        served(over_tls(certificates["label-party"])) as port,
        pytest.raises(Rejected, match=r"must be of somebody, by the same authority. It is not \(Hostname mismatch"),
    ):
        check(port, certificates["feature-party"], "somebody")
    strange = make_certificates(tmp_path, ["label-party", "feature-party"])
    with (
        served(over_tls(strange["label-party"])) as port,
        pytest.raises(Rejected, match="make certificates for both sides"),
    ):
        check(port, certificates["feature-party"])


def test_a_server_that_does_not_like_this_certificate_says_so_in_its_alert(certificates, tmp_path):
    strange = make_certificates(tmp_path, ["feature-party"])["feature-party"]
    mixed = type(strange)("feature-party", certificates["feature-party"].authority, strange.certificate, strange.key)
    with (
        served(over_tls(certificates["label-party"])) as port,
        pytest.raises(Rejected, match=r"The TLS connection to 127.0.0.1:\d+ failed \(.*unknown ca\)."),
    ):
        check(port, mixed)


def test_who_hangs_up_without_a_word_may_come_back(certificates):
    with served(lambda connection: connection.recv(100)) as port, pytest.raises(HungUp, match="hung up without a word"):
        check(port, None)
    with served(over_tls(certificates["label-party"], after=b"")) as port, pytest.raises(Lost):
        check_connection("127.0.0.1", port, None, "label-party")


def test_who_speaks_something_else_is_refused():
    def web(connection):
        connection.recv(100)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with (
        served(web) as port,
        pytest.raises(Rejected, match=r"must speak HTTP/2 without TLS. It does not; give both sides"),
    ):
        check(port, None)


def test_nobody_there_is_lost(port):
    with pytest.raises(Lost, match=rf"Nobody answers at 127.0.0.1:{port}: connection refused\."):
        check(port, None)
