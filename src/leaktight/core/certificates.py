"""Certificates: how machines that talk over TLS recognise each other.

One command makes them, and leaves no authority to look after.
"""

from __future__ import annotations

import dataclasses
import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leaktight.core.errors import InvalidValue
from leaktight.core.input_file import LARGEST_SETTINGS, read_input
from leaktight.core.private import private_folder, reason, write_private

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

ALWAYS = ("localhost", "127.0.0.1", "::1")
"""The hosts that every certificate is good for, beside those that are asked for."""
LONGEST = 36_500
"""How many days a certificate may be good at most."""


@dataclasses.dataclass(frozen=True)
class Certificate:
    """Where one party's three files are. That party gets the folder, by a way that nobody else can read.

    Args:
        name: whose it is; the certificate says so.
        authority: the authority's certificate, by which the others are known.
        certificate: the party's own, signed by the authority.
        key: the party's private key, for its owner's eyes alone.
    """

    name: str
    authority: Path
    certificate: Path
    key: Path


def make_certificates(
    folder: Path, names: Sequence[str], hosts: Sequence[str] = (), days: int = 365
) -> dict[str, Certificate]:
    """Make an authority, and for each name a folder with a certificate and its private key.

    Each certificate is good for both ends of a connection.

    The authority's own key is used once and kept nowhere, so nobody can make another certificate that these parties
    accept; for one more party, make all of them anew.

    Args:
        folder: where the folders go; a party's folder must not be there yet.
        names: the parties, each once.
        hosts: names and addresses under which the machines are reached, beside those of `ALWAYS`.
        days: how long the certificates are good, from 1 to 36500.

    Returns:
        The files of each party, by name.

    Raises:
        InvalidValue: a folder is there already, or a name or a host makes no sense.
    """
    check_names(names)
    if not 1 <= days <= LONGEST:
        raise InvalidValue(f"The `days` of certificates must be from 1 to {LONGEST}. Got {days} instead.")
    # A certificate with the name of another party would let its owner in as that one; each has its own anyway.
    hosts = [host for host in (*ALWAYS, *hosts) if host not in names]
    for name in names:
        if (folder / name).exists():
            raise InvalidValue(f"There is a `{folder / name}` already. Name another folder, or move it away.")
    signer, keys = _Authority.new(days), {name: _new_key() for name in names}
    # All are signed before one is written, so that a host that makes no sense leaves nothing behind.
    signed = {name: signer.sign(name, key, hosts) for name, key in keys.items()}
    certificates = {}
    for name in names:
        place = private_folder(folder / name)
        certificate = Certificate(name, place / "authority.pem", place / "certificate.pem", place / "key.pem")
        write_private(certificate.authority, _text(signer.certificate))
        write_private(certificate.certificate, _text(signed[name]))
        write_private(certificate.key, _private_text(keys[name]))
        certificates[name] = certificate
    return certificates


def make_node_key(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a key by which a node proves its identity, as Flower's SuperNodes do: ECDSA over P-384 in OpenSSH's form.

    Args:
        folder: where the two files go.
        name: what they are called; the public one ends in `.pub`.

    Returns:
        The private key's file, for its owner's eyes alone, and the public key's.

    Raises:
        InvalidValue: one of the files is there already, or the name makes no sense.
    """
    check_names([name])
    private, public = folder / name, folder / f"{name}.pub"
    for path in (private, public):
        if path.exists():
            raise InvalidValue(f"There is a file `{path}` already. Name another folder, or move it away.")
    key = _new_key()
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    write_private(private, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    write_private(public, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n")
    return private, public


def read_certificate(path: Path) -> bytes:
    """Return a certificate's or key's text.

    Raises:
        InvalidValue: the file cannot be read, or holds no such text.
    """
    try:
        content = read_input(path, LARGEST_SETTINGS)
    except OSError as error:
        raise InvalidValue(
            f"The file `{path}` cannot be read: {reason(error)}. `leaktight certificates` makes such files."
        ) from error
    if b"-----BEGIN " not in content:
        raise InvalidValue(
            f"The file `{path}` must hold a certificate or key in PEM. It does not; `leaktight certificates` makes "
            "such files."
        )
    return content


def check_names(names: Sequence[str]) -> None:
    """Raise unless the names are some, all different, and fit to be a folder and a host name each.

    Example:
        >>> check_names(["../key"])
        Traceback (most recent call last):
        leaktight.core.errors.InvalidValue: The name of a certificate must be letters, digits, `-` and `_`, at most 60. Got '../key' instead.
    """  # noqa: E501
    if not names or len(set(names)) != len(names):
        raise InvalidValue(f"The names of certificates must be at least one, all different. Got {list(names)} instead.")
    for name in names:
        plain = name.replace("-", "").replace("_", "")
        if not (plain.isascii() and plain.isalnum() and len(name) <= 60):
            raise InvalidValue(
                f"The name of a certificate must be letters, digits, `-` and `_`, at most 60. Got {name!r} instead."
            )


@dataclasses.dataclass(frozen=True)
class _Authority:
    """Signs certificates; it lives as long as the call that makes them."""

    key: EllipticCurvePrivateKey
    certificate: x509.Certificate
    until: datetime.datetime

    @staticmethod
    def new(days: int) -> _Authority:
        key = _new_key()
        from cryptography import x509

        until = _now() + datetime.timedelta(days=days)
        usage = _usage(key_cert_sign=True, crl_sign=True)
        builder = _builder("leaktight authority", "leaktight authority", key, until)
        limits = x509.BasicConstraints(ca=True, path_length=0)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(limits, critical=True).add_extension(usage, critical=True)
        return _Authority(key, _sign(builder.add_extension(identifier, critical=False), key), until)

    def sign(self, name: str, key: EllipticCurvePrivateKey, hosts: Sequence[str]) -> x509.Certificate:
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        roles = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(name, "leaktight authority", key, self.until)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(digital_signature=True), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(roles), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
        )
        names = [_host(host) for host in dict.fromkeys([name, *hosts])]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return _sign(builder, self.key)


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP384R1())


def _builder(name: str, issuer: str, key: EllipticCurvePrivateKey, until: datetime.datetime) -> x509.CertificateBuilder:
    from cryptography import x509

    # Clocks of two machines differ a little; a certificate that begins an hour ago is good on both.
    begin = _now() - datetime.timedelta(hours=1)
    builder = x509.CertificateBuilder().subject_name(_subject(name)).issuer_name(_subject(issuer))
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return builder.not_valid_before(begin).not_valid_after(until)


def _sign(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography.hazmat.primitives.hashes import SHA384

    return builder.sign(key, SHA384())


def _subject(name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(**granted: bool) -> x509.KeyUsage:
    from cryptography import x509

    every = "digital_signature content_commitment key_encipherment data_encipherment key_agreement"
    every += " key_cert_sign crl_sign encipher_only decipher_only"
    return x509.KeyUsage(**{use: granted.get(use, False) for use in every.split()})


def _host(host: str) -> x509.GeneralName:
    """Return an address or a name as a certificate holds it."""
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not host or not host.isascii() or any(sign.isspace() or sign in "/:@" for sign in host):
        raise InvalidValue(
            f"A host of certificates must be a name or an address, without a port. Got {host!r} instead."
        )
    return x509.DNSName(host)


def _text(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _private_text(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
