"""Agents renew certificates over a connection that uses them; a new CA replaces the old one step by step."""

import hashlib
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from django.core.management import CommandError, call_command

from portal.alarms.kinds import Kind
from portal.alarms.router_alarms import agents
from portal.core import clock
from portal.inventory import pki
from portal.inventory.certificates import (
    Renewed,
    certificate_register,
    certificate_renew,
    certificates_revoke,
)
from portal.inventory.errors import BadCertificateRequest
from portal.inventory.models import ObservedRouter, Router, RouterCertificate
from portal.inventory.pki import PORTAL_URI, router_uri
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db
YEAR = timedelta(days=365)


@pytest.fixture
def folder(tmp_path: Path, settings) -> Path:
    settings.LONGLINE_PKI_DIR = tmp_path
    pki.authority_create(tmp_path, now=clock.now())
    pki.certificate_issue(
        tmp_path,
        authority=pki.authority_load(tmp_path),
        file_name="portal",
        uri=PORTAL_URI,
        now=clock.now(),
    )
    return tmp_path


class Agent:
    """An agent's key with a certificate that expires after this time."""

    def __init__(self, folder: Path, router: Router, ends_in: timedelta) -> None:
        self.folder, self.router, self.key = folder, router, ec.generate_private_key(ec.SECP256R1())
        self.trusted = pki.trusted_pem(folder)
        self.certificate = pki.certificate_sign(
            self.key.public_key(),
            authority=pki.authority_load(folder),
            common_name="router",
            uri=router_uri(router.name),
            now=clock.now() + ends_in - YEAR,
        )
        certificate_register(router=router, certificate=self.certificate, now=clock.now())

    def renew(self, *, key: ec.EllipticCurvePrivateKey | None = None, now: datetime | None = None) -> Renewed:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "anything")])
        request = x509.CertificateSigningRequestBuilder().subject_name(name)
        csr = request.sign(key or self.key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
        renewed = certificate_renew(
            router=self.router,
            shown=self.certificate,
            csr_pem=csr,
            ca_sha256=hashlib.sha256(self.trusted).hexdigest(),
            now=now or clock.now(),
        )
        if renewed.ca_pem:
            self.trusted = renewed.ca_pem.encode()
        if renewed.certificate_pem:
            self.certificate = x509.load_pem_x509_certificate(renewed.certificate_pem.encode())
        return renewed


def authority_of(certificate: x509.Certificate, trusted: bytes) -> x509.Certificate:
    for each in x509.load_pem_x509_certificates(trusted):
        if each.subject == certificate.issuer:
            certificate.verify_directly_issued_by(each)
            return each
    raise AssertionError("no trusted authority has issued it")


def certificates_alarmed() -> list[str]:
    return [each.name for each in agents(clock.now()) if each.kind is Kind.CERTIFICATE_ENDS]


def test_certificate_with_long_validity_stays(folder: Path, isp: Isp) -> None:
    agent = Agent(folder, isp.routers["rhino"], timedelta(days=31))
    assert agent.renew() == Renewed(certificate_pem=None, ca_pem=None)


def test_expiring_certificate_is_renewed_once_for_its_key(folder: Path, isp: Isp) -> None:
    agent = Agent(folder, isp.routers["rhino"], timedelta(days=29))
    old = agent.certificate
    renewed = agent.renew()
    new = agent.certificate
    assert new.public_key() == old.public_key()
    assert new.not_valid_after_utc > clock.now() + timedelta(days=364)
    agent.certificate = old
    assert agent.renew() == renewed
    assert RouterCertificate.objects.filter(router=agent.router, revoked_at__isnull=True).count() == 2


def test_another_key_is_refused(folder: Path, isp: Isp) -> None:
    agent = Agent(folder, isp.routers["rhino"], timedelta(days=29))
    with pytest.raises(BadCertificateRequest):
        agent.renew(key=ec.generate_private_key(ec.SECP256R1()))


def test_revocation_covers_all_certificates_of_the_key(folder: Path, isp: Isp) -> None:
    agent, another = (Agent(folder, isp.routers["rhino"], timedelta(days=29)) for _ in range(2))
    old = agent.certificate
    agent.renew()
    serials = {f"{each.serial_number:x}" for each in (old, agent.certificate)}
    revoked = certificates_revoke(router=agent.router, serial=f"{old.serial_number:x}", now=clock.now())
    assert {serial.lstrip("0") for serial in revoked} == serials
    good = RouterCertificate.objects.get(router=agent.router, revoked_at__isnull=True)
    assert int(good.serial, 16) == another.certificate.serial_number


def test_certificate_revoked_meanwhile_renews_nothing(folder: Path, isp: Isp) -> None:
    agent = Agent(folder, isp.routers["rhino"], timedelta(days=29))
    certificates_revoke(router=agent.router, serial=None, now=clock.now())
    with pytest.raises(BadCertificateRequest):
        agent.renew()


def test_portal_without_the_ca_key_still_sends_other_cas(folder: Path, isp: Isp) -> None:
    agent = Agent(folder, isp.routers["rhino"], timedelta(days=29))
    agent.trusted = b"others"
    (folder / "ca.key").unlink()
    assert agent.renew() == Renewed(certificate_pem=None, ca_pem=pki.trusted_pem(folder).decode())


def test_alarm_depends_on_the_certificate_that_the_agent_uses(folder: Path, isp: Isp) -> None:
    """An agent that cannot store a new certificate keeps using the old one."""
    agent = Agent(folder, isp.routers["rhino"], timedelta(days=20))
    old = agent.certificate
    assert certificates_alarmed() == ["rhino"]
    agent.renew()
    assert certificates_alarmed() == ["rhino"]
    agent.renew()
    assert certificates_alarmed() == []
    certificates_revoke(router=agent.router, serial=None, now=clock.now())
    assert certificates_alarmed() == []
    assert old != agent.certificate


class TestRollover:
    @pytest.fixture
    def agents(self, folder: Path, isp: Isp) -> list[Agent]:
        ObservedRouter.objects.exclude(router__name__in=["rhino", "hippo"]).delete()
        Router.objects.exclude(name__in=["rhino", "hippo"]).update(agent_url="")
        return [Agent(folder, isp.routers[name], YEAR) for name in ("rhino", "hippo")]

    def step(self, folder: Path, name: str, *more: str) -> None:
        call_command("pki", "rollover", name, "--dir", str(folder), *more)

    def test_ca_replacement_waits_for_every_router(self, folder: Path, agents: list[Agent]) -> None:
        old = pki.authority_load(folder).certificate
        self.step(folder, "begin")
        with pytest.raises(CommandError, match="2 routers do not trust the next CA yet: hippo, rhino"):
            self.step(folder, "switch")
        for agent in agents:
            assert agent.renew().certificate_pem is None
            # An agent requests again immediately after it received something.
            assert agent.renew() == Renewed(certificate_pem=None, ca_pem=None)
            assert authority_of(agent.certificate, agent.trusted) == old
        self.step(folder, "switch", "--dns", "portal.example.net")
        new = pki.authority_load(folder).certificate
        assert new != old
        own = x509.load_pem_x509_certificate((folder / "portal.pem").read_bytes())
        assert authority_of(own, agents[0].trusted) == new
        with pytest.raises(CommandError, match="2 routers have not used a certificate of the new CA yet"):
            self.step(folder, "finish")
        for agent in agents:
            agent.renew()
            assert authority_of(agent.certificate, agent.trusted) == new
        # The agents have a new certificate, but have not used it yet.
        with pytest.raises(CommandError, match="2 routers have not used a certificate of the new CA yet"):
            self.step(folder, "finish")
        for agent in agents:
            agent.renew()
        self.step(folder, "finish")
        assert not (folder / "ca-old.key").exists()
        for agent in agents:
            agent.renew()
            assert x509.load_pem_x509_certificates(agent.trusted) == [new]
            assert authority_of(agent.certificate, agent.trusted) == new
            assert agent.renew() == Renewed(certificate_pem=None, ca_pem=None)

    def test_interrupted_step_can_be_repeated(self, folder: Path, agents: list[Agent]) -> None:
        (folder / "ca-next.key").write_bytes(b"cut off")
        self.step(folder, "begin")
        before = (folder / "ca-next.key").read_bytes()
        (folder / "ca-next.key").write_bytes((folder / "portal.key").read_bytes())
        with pytest.raises(CommandError, match="does not belong"):
            self.step(folder, "switch", "--force")
        (folder / "ca-next.key").write_bytes(before)
        (folder / "portal.key").write_bytes(b"cut off")
        self.step(folder, "switch", "--force")
        assert authority_of(
            x509.load_pem_x509_certificates((folder / "portal.pem").read_bytes())[0], pki.trusted_pem(folder)
        )

    def test_steps_are_taken_in_order(self, folder: Path, agents: list[Agent]) -> None:
        for wrong in ("switch", "finish"):
            with pytest.raises(CommandError, match="is not possible now"):
                self.step(folder, wrong, "--force")
        self.step(folder, "begin")
        for wrong in ("begin", "finish"):
            with pytest.raises(CommandError, match="is not possible now"):
                self.step(folder, wrong, "--force")
        self.step(folder, "switch", "--force")
        with pytest.raises(CommandError, match="is not possible now"):
            self.step(folder, "switch", "--force")
        assert (folder / "ca-old.key").exists()
        self.step(folder, "finish", "--force")
        assert pki.authorities_load(folder) == [pki.authority_load(folder).certificate]
