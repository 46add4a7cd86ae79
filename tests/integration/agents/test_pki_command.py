"""The pki command: one authority, two roles, keys that stay private and are never replaced."""

import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from io import StringIO
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from django.core.management import CommandError, call_command

from portal.accounts.models import Customer
from portal.events.models import Event
from portal.inventory.models import RouterCertificate
from tests.integration.certificates import identity_in
from tests.integration.isp import Isp, build_isp

pytestmark = pytest.mark.django_db


def pki(*arguments: object) -> str:
    out = StringIO()
    call_command("pki", *map(str, arguments), stdout=out, stderr=out)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pki("init", "--dir", tmp_path / "pki")
    return tmp_path / "pki"


def issue_rhino(folder: Path) -> str:
    return pki("issue", "--dir", folder, "--role", "router", "--name", "rhino")


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_the_authority_signs_end_entities_only_for_ten_years(folder: Path) -> None:
    ca = read(folder / "ca.pem")
    constraints = ca.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)
    assert isinstance(ca.public_key(), ec.EllipticCurvePublicKey)
    assert ca.not_valid_after_utc - datetime.now(tz=UTC) > timedelta(days=3650)


def test_the_portals_certificate_names_its_role_and_its_hosts(folder: Path) -> None:
    pki(
        "issue", "--dir", folder, "--role", "portal", "--dns", "localhost", "--ip", "127.0.0.1", "--ip", "::1"
    )
    certificate = read(folder / "portal.pem")
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["spiffe://longline/portal"]
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [ip_address("127.0.0.1"), ip_address("::1")]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(usage) == {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH}
    assert timedelta(days=364) < certificate.not_valid_after_utc - datetime.now(tz=UTC) < timedelta(days=366)
    certificate.verify_directly_issued_by(read(folder / "ca.pem"))


def test_the_portals_certificates_are_made_without_a_database(
    tmp_path: Path, django_assert_num_queries: Callable[[int], AbstractContextManager[object]]
) -> None:
    with django_assert_num_queries(0):
        pki("init", "--dir", tmp_path / "pki")
        pki("issue", "--dir", tmp_path / "pki", "--role", "portal", "--dns", "localhost")
    assert (tmp_path / "pki" / "portal.pem").exists()


def test_every_file_is_its_owners_alone(folder: Path) -> None:
    issue_rhino(folder)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == dict.fromkeys(["ca.pem", "ca.key", "router-rhino.pem", "router-rhino.key"], 0o600)


def test_nothing_is_overwritten(folder: Path) -> None:
    issue_rhino(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for again in (lambda: pki("init", "--dir", folder), lambda: issue_rhino(folder)):
        with pytest.raises(CommandError, match="never replaces"):
            again()
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_known_routers_certificate_is_registered(folder: Path, isp: Isp) -> None:
    issue_rhino(folder)
    row = RouterCertificate.objects.get(router=isp.routers["rhino"])
    identity = identity_in(folder / "router-rhino.pem")
    assert (row.serial, row.fingerprint) == (identity.serial, identity.fingerprint)
    assert identity.router == "rhino"


def test_a_router_that_comes_later_is_registered_later(folder: Path, dairy: Customer) -> None:
    assert "no router is named rhino" in issue_rhino(folder)
    assert RouterCertificate.objects.count() == 0
    build_isp(owner=dairy)
    pki("register", "--dir", folder, "--name", "rhino")
    pki("register", "--dir", folder, "--name", "rhino")
    assert RouterCertificate.objects.count() == 1


def test_a_revoked_certificate_stays_known_and_revoked(folder: Path, isp: Isp) -> None:
    issue_rhino(folder)
    assert "revoked" in pki("revoke", "--name", "rhino")
    assert RouterCertificate.objects.get().revoked_at is not None
    assert Event.objects.filter(kind="router.certificate_revoked").count() == 1
    with pytest.raises(CommandError, match="no such valid certificate"):
        pki("revoke", "--name", "rhino")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--role", "router"],
        ["--role", "portal", "--name", "rhino"],
        ["--role", "router", "--name", "Rhino"],
        ["--role", "router", "--name", "a/b"],
        ["--role", "router", "--name", "x" * 64],
        ["--role", "admin"],
        ["--role", "portal", "--ip", "localhost"],
    ],
)
def test_what_makes_no_identity_is_refused(folder: Path, arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        pki("issue", "--dir", folder, *arguments)
    assert {path.name for path in folder.iterdir()} == {"ca.pem", "ca.key"}


def test_without_an_authority_nothing_is_issued(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"ca\.pem is missing"):
        issue_rhino(tmp_path)


def test_the_key_of_another_authority_signs_nothing(folder: Path, tmp_path: Path) -> None:
    pki("init", "--dir", tmp_path / "other")
    (folder / "ca.key").write_bytes((tmp_path / "other" / "ca.key").read_bytes())
    with pytest.raises(CommandError, match="does not belong"):
        issue_rhino(folder)


def test_a_revoked_certificate_cannot_be_registered_again(folder: Path, isp: Isp) -> None:
    issue_rhino(folder)
    pki("revoke", "--name", "rhino")
    with pytest.raises(CommandError, match="is revoked permanently"):
        pki("register", "--dir", folder, "--name", "rhino")
    assert RouterCertificate.objects.get().revoked_at is not None


def test_the_certificate_of_another_router_is_not_registered(folder: Path, isp: Isp) -> None:
    issue_rhino(folder)
    (folder / "router-hippo.pem").write_bytes((folder / "router-rhino.pem").read_bytes())
    with pytest.raises(CommandError, match="belongs to another router"):
        pki("register", "--dir", folder, "--name", "hippo")
