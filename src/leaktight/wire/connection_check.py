"""The connection check: connect once before gRPC does, so that a wrong certificate is one sentence and no long wait.

gRPC does not say why a TLS handshake failed: it keeps trying in silence. So this check stays our own.
"""

from __future__ import annotations

import socket
import ssl

from leaktight.core.certificates import Certificate
from leaktight.core.private import reason
from leaktight.wire.fault import Lost, Rejected

SECONDS = 5.0
# How every HTTP/2 client begins, with an empty frame of settings; a server begins with settings too.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4


class HungUp(Lost):
    """The other side hung up without a word: it does not accept the certificate, or it has just ended."""


def check_connection(host: str, port: int, own: Certificate | None, peer: str) -> None:
    """Connect once, show the own certificate, check the other side's, and leave.

    Args:
        host: where the other side is.
        port: its port.
        own: this side's certificate; None without TLS.
        peer: the name that the other side's certificate must carry.

    Raises:
        Lost: nobody is there, or not yet.
        Rejected: somebody is there, and one of the two sides does not accept the other's certificate.
    """
    where = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), timeout=SECONDS) as plain:
            start = _start_plain(plain) if own is None else _start_tls(plain, own, peer)
    except ssl.SSLCertVerificationError as error:
        raise Rejected(
            f"The certificate at {where} must be of {peer}, by the same authority. "
            f"It is not ({error.verify_message.rstrip('.')}); make certificates for both sides at once."
        ) from None
    except ssl.SSLError as error:
        # It is the alert of the other side that says so, and TLS 1.3 sends it after the handshake.
        alert = (error.reason or str(error)).replace("_", " ").lower()
        raise Rejected(
            f"The TLS connection to {where} failed ({alert}). Check that both sides have certificates of one authority."
        ) from None
    except OSError as error:
        raise Lost(f"Nobody answers at {where}: {reason(error)}.") from None
    if not start:
        raise HungUp(
            f"The other side at {where} hung up without a word. Check that both sides have certificates of one "
            "authority."
        )
    if len(start) > 3 and start[3] != _SETTINGS:
        raise Rejected(
            f"The other side at {where} must speak HTTP/2 without TLS. It does not; give both sides `certificates`."
        )


def _start_plain(plain: socket.socket) -> bytes:
    """Return how the other side begins without TLS."""
    plain.sendall(_PREFACE)
    return plain.recv(9)


def _start_tls(plain: socket.socket, own: Certificate, peer: str) -> bytes:
    """Return how the other side begins after a TLS handshake with both certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(own.authority)
    context.load_cert_chain(own.certificate, own.key)
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(plain, server_hostname=peer) as encrypted:
        # HTTP/2 has the server speak at once; if it does not accept the certificate, it says so here or hangs up.
        return encrypted.recv(9)
