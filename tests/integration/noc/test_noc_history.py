"""The history of each object: inventory, and users with their tokens and second factor."""

from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.models import Authenticator

from portal.accounts.models import ApiToken, Customer, User
from portal.accounts.tokens import token_create
from portal.core import clock
from portal.inventory import pki
from portal.inventory.certificates import certificates_revoke
from portal.inventory.models import BackboneLink, Router
from tests.integration.accounts.codes import with_totp
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.noc.test_noc_enrolment import csr
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def history_of(user: User, address: str) -> list[dict[str, Any]]:
    response = client(user).get(f"/api/v1/{address}/history")
    assert response.status_code == 200
    results: list[dict[str, Any]] = response.json()["results"]
    return results


def test_routers_history_names_author_and_change(isp: Isp, nora: User) -> None:
    rhino = isp.routers["rhino"]
    api = client(nora)
    sent = {"format": "json", "headers": {"If-Match": "*"}}
    assert api.patch(f"/api/v1/routers/{rhino.pk}", {"cores": 8}, **sent).status_code == 200
    newest, oldest = history_of(nora, f"routers/{rhino.pk}")
    assert (newest["before"], newest["after"], newest["by"]["username"]) == (
        {"cores": rhino.cores},
        {"cores": 8},
        "nora",
    )
    assert (oldest["operation"], oldest["after"]["name"]) == ("insert", "rhino")
    page = signed_in(nora).get(f"/noc/routers/{rhino.pk}/history/")
    shown = text(page)
    assert '<details class="card ll-fold" open>' in page.content.decode()
    assert "Router changed by nora, token" in shown
    assert f"cores {rhino.cores} → 8" in shown


def test_routers_history_has_certificates_and_enrolments_and_no_secret(
    isp: Isp, nora: User, nina: User, tmp_path: Path, settings: Any
) -> None:
    settings.LONGLINE_PKI_DIR = tmp_path
    pki.authority_create(tmp_path, now=clock.now())
    rhino = isp.routers["rhino"]
    token = client(nina).post(f"/api/v1/routers/{rhino.pk}/enrolment").json()["token"]
    assert (
        client(nora).post("/api/v1/enroll", {"token": token, "csr_pem": csr()}, format="json").status_code
        == 201
    )
    certificates_revoke(router=rhino, serial=None, now=clock.now())
    found = history_of(nora, f"routers/{rhino.pk}")
    made = {(change["object"], change["operation"]) for change in found}
    assert made >= {
        ("routerenrolment", "insert"),
        ("routerenrolment", "update"),
        ("routercertificate", "insert"),
        ("routercertificate", "update"),
    }
    offered = next(c for c in found if (c["object"], c["operation"]) == ("routerenrolment", "insert"))
    assert (offered["by"]["username"], offered["after"]["offered_by"]) == ("nina", "nina")
    assert any(change["after"].get("revoked_at") for change in found)
    assert not {"digest", "der"} & {name for change in found for name in change["after"]}
    shown = text(signed_in(nora).get(f"/noc/routers/{rhino.pk}/history/"))
    assert "Enrolment created" in shown
    assert "Certificate changed" in shown


def test_history_of_a_removed_object_is_readable(isp: Isp, nora: User) -> None:
    link = isp.links["rhino-hippo"].pk
    BackboneLink.objects.filter(pk=link).delete()
    assert [change["operation"] for change in history_of(nora, f"links/{link}")] == ["delete", "insert"]
    assert "Link deleted" in text(signed_in(nora).get(f"/noc/links/{link}/history/"))
    assert signed_in(nora).get(f"/noc/links/{2**31}/history/").status_code == 404


def test_customers_history_has_its_members(isp: Isp, dairy: Customer, alice: User, nora: User) -> None:
    alice.memberships.all().delete()
    assert {change["object"] for change in history_of(nora, f"customers/{dairy.pk}")} == {
        "customer",
        "membership",
    }
    assert "Membership deleted (operator)" in text(signed_in(nora).get(f"/noc/customers/{dairy.pk}/history/"))


def test_removal_of_a_second_factor_is_recorded_without_its_seed(alice: User, nora: User) -> None:
    with_totp(alice)
    Authenticator.objects.filter(user=alice).delete()
    changes = [
        change for change in history_of(nora, f"people/{alice.pk}") if change["object"] == "authenticator"
    ]
    assert "delete" in {change["operation"] for change in changes}
    assert not any("data" in change["before"] or "data" in change["after"] for change in changes)
    assert "Second factor deleted (totp)" in text(signed_in(nora).get(f"/noc/people/{alice.pk}/history/"))


def test_users_history_has_tokens_and_networks_and_no_secret(alice: User, nora: User) -> None:
    token_create(user=alice, name="lab", now=clock.now(), allowed_networks=["192.0.2.0/24"])
    (made,) = [change for change in history_of(nora, f"people/{alice.pk}") if change["object"] == "apitoken"]
    assert made["after"]["allowed_networks"] == ["192.0.2.0/24"]
    assert not {"digest", "secret"} & set(made["after"])


def test_users_read_only_their_own_history(alice: User, charlie: User) -> None:
    assert history_of(alice, f"people/{alice.pk}")
    assert client(charlie).get(f"/api/v1/people/{alice.pk}/history").status_code == 404
    assert ApiToken.objects.exists()


@pytest.mark.parametrize("kind", ["sites", "routers", "links", "customers"])
def test_only_the_noc_reads_the_networks_history(isp: Isp, alice: User, kind: str) -> None:
    assert Router.objects.exists()
    assert client(alice).get(f"/api/v1/{kind}/1/history").status_code == 403


def test_reserved_vnis_show_author_and_time(nina: User) -> None:
    page, api = signed_in(nina), client(nina)
    made = api.post("/api/v1/vni-ranges", {"first": 1, "last": 99, "reason": "lab"}, format="json").json()
    url = f"/api/v1/vni-ranges/{made['id']}"
    changed = api.patch(url, {"last": 199}, format="json", headers={"If-Match": "*"})
    assert changed.status_code == 200
    newest, oldest = api.get(f"{url}/history").json()["results"]
    assert (newest["before"], newest["after"], newest["by"]["username"]) == (
        {"last": 99},
        {"last": 199},
        "nina",
    )
    assert oldest["operation"] == "insert"
    listed = text(page.get("/noc/vni-ranges/"))
    assert "1-199: lab 199" in listed
    assert "UTC nina" in listed
    assert "199" in text(page.get(f"/noc/vni-ranges/{made['id']}/history/"))
    assert api.delete(url).status_code == 204
    assert api.get(f"{url}/history").json()["results"][0]["operation"] == "delete"
