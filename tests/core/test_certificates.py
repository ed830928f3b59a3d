"""Certificates: who signed them, whom they are good for, and who may read them."""

import ipaddress
import ssl

import pytest

from leaktight.core.certificates import make_certificates, make_node_key, read_certificate
from leaktight.core.errors import InvalidValue

x509 = pytest.importorskip("cryptography.x509")
NAMES = ("label-party", "feature-party")


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("made"), NAMES, hosts=["labels.example", "10.1.2.3"])


def parsed(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def handshake(client, server, host="127.0.0.1", trusted=None):
    """Two ends of TLS in memory that both show a certificate; returns whom the client and the server see."""
    contexts = []
    for side, own in ((ssl.PROTOCOL_TLS_SERVER, server), (ssl.PROTOCOL_TLS_CLIENT, client)):
        context = ssl.SSLContext(side)
        context.load_verify_locations((trusted or own).authority)
        context.load_cert_chain(own.certificate, own.key)
        context.verify_mode = ssl.CERT_REQUIRED
        contexts.append(context)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        contexts[0].wrap_bio(there, back, server_side=True),
        contexts[1].wrap_bio(back, there, server_hostname=host),
    ]
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not waiting
    return [dict(part[0] for part in end.getpeercert()["subject"])["commonName"] for end in reversed(ends)]


def test_both_ends_know_each_other_by_name(identities):
    assert handshake(identities["feature-party"], identities["label-party"]) == ["label-party", "feature-party"]
    assert handshake(identities["label-party"], identities["feature-party"], "feature-party") == [
        "feature-party",
        "label-party",
    ]


@pytest.mark.parametrize("host", ["localhost", "::1", "labels.example", "10.1.2.3"])
def test_certificates_are_good_for_every_host_that_was_named(identities, host):
    handshake(identities["feature-party"], identities["label-party"], host)


def test_another_host_and_another_authority_are_refused(identities, tmp_path):
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(identities["feature-party"], identities["label-party"], "elsewhere.example")
    stranger = make_certificates(tmp_path, ["feature-party"])["feature-party"]
    with pytest.raises(ssl.SSLError):
        handshake(stranger, identities["label-party"])


def test_files_are_for_their_owner_and_no_key_of_the_authority_is_kept(identities):
    folder = identities["label-party"].key.parent.parent
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 6
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.name for path in files if b"PRIVATE KEY" in path.read_bytes()} == {"key.pem"}
    keys = [parsed(path).public_key().public_numbers() for path in files if path.name == "authority.pem"]
    assert keys[0] == keys[1]
    assert keys[0] not in [parsed(one.certificate).public_key().public_numbers() for one in identities.values()]


def test_a_party_cannot_sign_for_others(identities):
    own = parsed(identities["label-party"].certificate)
    assert not own.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ipaddress.ip_address("127.0.0.1") in names.get_values_for_type(x509.IPAddress)
    assert "feature-party" not in names.get_values_for_type(x509.DNSName)


def test_nothing_is_written_over_and_a_strange_host_leaves_nothing(identities, tmp_path):
    folder = identities["label-party"].key.parent.parent
    with pytest.raises(InvalidValue, match=r"There is a `.*label-party` already"):
        make_certificates(folder, NAMES)
    with pytest.raises(InvalidValue, match="without a port"):
        make_certificates(tmp_path / "new", NAMES, hosts=["example:443"])
    assert not (tmp_path / "new").exists()
    with pytest.raises(InvalidValue, match=r"`days` of certificates must be from 1 to 36500. Got 0"):
        make_certificates(tmp_path / "new", NAMES, days=0)
    with pytest.raises(InvalidValue, match="Got 10000000 instead"):
        make_certificates(tmp_path / "new", NAMES, days=10_000_000)


def test_no_certificate_bears_the_name_of_another_party(tmp_path):
    identities = make_certificates(tmp_path, NAMES, hosts=["feature-party", "label-party", "example"])
    for name in NAMES:
        names = (
            parsed(identities[name].certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        )
        assert names.get_values_for_type(x509.DNSName) == [name, "localhost", "example"]


@pytest.mark.parametrize("names", [[], ["a", "a"], [".."], ["a/b"], [""], ["ü"], ["a" * 61]])
def test_names_that_are_no_names(tmp_path, names):
    with pytest.raises(InvalidValue, match="name"):
        make_certificates(tmp_path, names)
    assert not list(tmp_path.iterdir())


def test_a_node_key_is_a_pair_that_openssh_reads(tmp_path):
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    private, public = make_node_key(tmp_path, "node-1")
    key = serialization.load_ssh_private_key(private.read_bytes(), None)
    shown = serialization.load_ssh_public_key(public.read_bytes())
    assert key.public_key().public_numbers() == shown.public_numbers()
    assert shown.curve.name == "secp384r1"
    assert private.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InvalidValue, match="already"):
        make_node_key(tmp_path, "node-1")


def test_what_is_no_certificate_is_told(tmp_path, identities):
    assert read_certificate(identities["label-party"].key).startswith(b"-----BEGIN PRIVATE KEY")
    with pytest.raises(InvalidValue, match="cannot be read: no such file"):
        read_certificate(tmp_path / "none.pem")
    (tmp_path / "odd.pem").write_text("hello")
    with pytest.raises(InvalidValue, match="must hold a certificate or key in PEM"):
        read_certificate(tmp_path / "odd.pem")
