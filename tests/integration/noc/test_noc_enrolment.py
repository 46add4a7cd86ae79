"""Enrolment: one token gives one certificate, and the portal chooses every name in the certificate."""

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from django.db import IntegrityError, transaction
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.core import clock
from portal.inventory import pki
from portal.inventory.certificates import enrolment_end, enrolment_offer, router_enrol
from portal.inventory.errors import EnrolmentExpired
from portal.inventory.models import Router, RouterCertificate, RouterEnrolment
from portal.inventory.pki import identity_of, router_uri
from portal.inventory.queries import router_of
from tests.integration.awaited_locks import concurrently
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db


@pytest.fixture
def authority(settings: Any, tmp_path: Path) -> pki.Authority:
    settings.LONGLINE_PKI_DIR = tmp_path
    return pki.authority_create(tmp_path, now=clock.now())


def csr(*, key: Any = None, claims: str = "spiffe://longline/router/hippo") -> str:
    """Return a certificate request that claims another identity."""
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "portal")]))
        .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(claims)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key or ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )
    return request.public_bytes(serialization.Encoding.PEM).decode()


def offer(router: Router, user: User) -> str:
    return enrolment_offer(router=router, user=user, now=clock.now())


def enrol(token: str, request: str, **more: str) -> Any:
    return APIClient().post("/api/v1/enroll", {"token": token, "csr_pem": request} | more, format="json")


def test_token_of_a_closed_account_is_invalid(isp: Isp, nora: User, authority: pki.Authority) -> None:
    token = offer(isp.routers["rhino"], nora)
    User.objects.filter(pk=nora.pk).update(is_active=False)
    assert enrol(token, csr()).json()["type"].endswith("enrolment-expired")
    assert not RouterCertificate.objects.exists()


def test_agent_gets_a_certificate_that_the_agent_api_accepts(
    isp: Isp, nora: User, authority: pki.Authority
) -> None:
    rhino, key = isp.routers["rhino"], ec.generate_private_key(ec.SECP256R1())
    answer = enrol(offer(rhino, nora), csr(key=key))
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    certificate = x509.load_pem_x509_certificate(answer.json()["certificate_pem"].encode())
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(answer.json()["ca_pem"].encode()))
    assert certificate.public_key() == key.public_key()
    identity = identity_of(certificate.public_bytes(serialization.Encoding.DER))
    assert router_of(identity) == rhino


def test_names_of_the_request_are_ignored(isp: Isp, nora: User, authority: pki.Authority) -> None:
    answer = enrol(offer(isp.routers["rhino"], nora), csr(claims="spiffe://longline/portal"))
    certificate = x509.load_pem_x509_certificate(answer.json()["certificate_pem"].encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.UniformResourceIdentifier(router_uri("rhino"))]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert "portal" not in certificate.subject.rfc4514_string()


def test_token_works_once(isp: Isp, nora: User, authority: pki.Authority) -> None:
    token = offer(isp.routers["rhino"], nora)
    assert enrol(token, csr()).status_code == 201
    again = enrol(token, csr())
    assert (again.status_code, again.json()["type"]) == (
        422,
        "http://testserver/api/docs/errors/#enrolment-used",
    )
    assert RouterCertificate.objects.count() == 1


def test_agent_that_lost_the_response_gets_it_again_with_the_same_key(
    isp: Isp, nora: User, authority: pki.Authority
) -> None:
    token, key = offer(isp.routers["rhino"], nora), ec.generate_private_key(ec.SECP256R1())
    first = enrol(token, csr(key=key))
    again = enrol(token, csr(key=key))
    assert (again.status_code, again.json()) == (201, first.json())
    assert enrol(token, csr()).status_code == 422
    assert RouterCertificate.objects.count() == 1


def test_revoked_certificate_is_not_returned_again(isp: Isp, nora: User, authority: pki.Authority) -> None:
    token, key = offer(isp.routers["rhino"], nora), ec.generate_private_key(ec.SECP256R1())
    assert enrol(token, csr(key=key)).status_code == 201
    RouterCertificate.objects.update(revoked_at=clock.now())
    assert enrol(token, csr(key=key)).json()["type"] == "http://testserver/api/docs/errors/#enrolment-used"


def test_token_of_another_router_is_refused_and_stays_valid(
    isp: Isp, nora: User, authority: pki.Authority
) -> None:
    token = offer(isp.routers["rhino"], nora)
    wrong = enrol(token, csr(), router="hippo")
    assert (wrong.status_code, wrong.json()["type"]) == (
        422,
        "http://testserver/api/docs/errors/#enrolment-of-another",
    )
    assert "is for rhino, but hippo presented it" in wrong.json()["detail"]
    assert enrol(token, csr(), router="rhino").status_code == 201


def test_database_allows_one_certificate_per_enrolment(
    isp: Isp, nora: User, authority: pki.Authority
) -> None:
    row, _, _ = router_enrol(token=offer(isp.routers["rhino"], nora), csr_pem=csr(), now=clock.now())
    row.refresh_from_db()
    row.pk, row.serial, row.fingerprint = None, "1", "1"
    with pytest.raises(IntegrityError, match="enrolment"), transaction.atomic():
        row.save(force_insert=True)


def test_token_is_valid_for_a_day(isp: Isp, nora: User, authority: pki.Authority) -> None:
    token, later = offer(isp.routers["rhino"], nora), clock.now() + timedelta(days=1, seconds=1)
    with pytest.raises(EnrolmentExpired):
        router_enrol(token=token, csr_pem=csr(), now=later)


def test_token_of_a_retired_router_is_invalid(isp: Isp, nora: User, authority: pki.Authority) -> None:
    token = offer(isp.routers["rhino"], nora)
    Router.objects.filter(name="rhino").update(retired_at=clock.now(), agent_url="")
    assert enrol(token, csr()).json()["type"] == "http://testserver/api/docs/errors/#enrolment-expired"


def test_newer_token_invalidates_the_older_one(isp: Isp, nora: User, authority: pki.Authority) -> None:
    older, newer = offer(isp.routers["rhino"], nora), offer(isp.routers["rhino"], nora)
    assert enrol(older, csr()).status_code == 422
    assert enrol(newer, csr()).status_code == 201


@pytest.mark.parametrize(
    "request_pem",
    [
        "nothing",
        "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
        csr(key=rsa.generate_private_key(public_exponent=65537, key_size=2048)),
        csr(key=ec.generate_private_key(ec.SECP521R1())),
    ],
    ids=["no PEM", "no DER", "RSA", "P-521"],
)
def test_invalid_request_is_refused_and_the_token_stays_valid(
    isp: Isp, nora: User, authority: pki.Authority, request_pem: str
) -> None:
    token = offer(isp.routers["rhino"], nora)
    answer = enrol(token, request_pem)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "csr_pem")
    assert enrol(token, csr()).status_code == 201


def test_request_signed_by_another_key_is_refused(isp: Isp, nora: User, authority: pki.Authority) -> None:
    der = bytearray(x509.load_pem_x509_csr(csr().encode()).public_bytes(serialization.Encoding.DER))
    der[-1] ^= 1
    broken = base64.encodebytes(bytes(der)).decode()
    pem = f"-----BEGIN CERTIFICATE REQUEST-----\n{broken}-----END CERTIFICATE REQUEST-----\n"
    assert enrol(offer(isp.routers["rhino"], nora), pem).status_code == 422


def test_portal_without_the_authority_key_signs_nothing(
    isp: Isp, nora: User, settings: Any, tmp_path: Path
) -> None:
    settings.LONGLINE_PKI_DIR = tmp_path
    answer = enrol(offer(isp.routers["rhino"], nora), csr())
    assert (answer.status_code, answer.json()["type"]) == (
        409,
        "http://testserver/api/docs/errors/#no-authority-here",
    )
    assert RouterEnrolment.objects.get().used_at is None


def test_token_is_not_stored_in_clear_text(isp: Isp, nora: User) -> None:
    token = offer(isp.routers["rhino"], nora)
    assert token.encode() not in bytes(RouterEnrolment.objects.get().digest)
    assert len(bytes(RouterEnrolment.objects.get().digest)) == 32


@pytest.mark.django_db(transaction=True)
def test_enrolment_that_an_agent_uses_at_this_moment_is_not_deleted(
    isp: Isp, nora: User, authority: pki.Authority
) -> None:
    offer(isp.routers["rhino"], nora)
    enrolment = RouterEnrolment.objects.get()

    waited, _ = concurrently(
        lambda: RouterEnrolment.objects.update(used_at=clock.now()),
        lambda: enrolment_end(enrolment=enrolment, now=clock.now()),
    )
    assert waited
    assert RouterEnrolment.objects.filter(pk=enrolment.pk).exists()
