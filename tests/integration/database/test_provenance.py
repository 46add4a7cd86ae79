"""Objects that outlive a token or a person are listed at its end, and the selected ones end with it."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.errors import MakerRevoked
from portal.accounts.invitations import invite, open_invitations
from portal.accounts.models import ApiToken, Customer, Membership, User
from portal.accounts.tokens import token_create, token_revoke
from portal.audit.models import EVENTS
from portal.core import clock
from portal.inventory import pki
from portal.inventory.certificates import enrolment_end
from portal.inventory.models import Router, RouterCertificate, RouterEnrolment
from portal.notifications.models import Webhook
from portal.notifications.webhook_operations import webhook_create
from tests.integration.isp import Isp, member
from tests.integration.noc.test_noc_enrolment import authority, csr, enrol
from tests.integration.web_pages.browser import signed_in, text

__all__ = ["authority"]

pytestmark = pytest.mark.django_db

URL = "https://hooks.example.net/in"


class TokenInUse:
    """A token and an API client that uses it."""

    def __init__(self, token: ApiToken, plain: str) -> None:
        self.token, self.api = token, APIClient(headers={"Authorization": f"Bearer {plain}"})

    def hook(self, **more: Any) -> Webhook:
        made = self.api.post("/api/v1/webhooks", {"url": URL, **more}, format="json")
        assert made.status_code == 201
        return Webhook.objects.get(pk=made.json()["id"])

    def another(self) -> "TokenInUse":
        wanted = {"name": "child", "scopes": self.token.scopes}
        made = self.api.post("/api/v1/tokens", wanted, format="json").json()
        return TokenInUse(ApiToken.objects.get(pk=made["id"]), made["secret"])

    def invite(self, email: str = "mallory@x.example") -> None:
        sent = {"email": email, "role": "admin"}
        assert self.api.post("/api/v1/invitations", sent, format="json").status_code == 201

    def offer(self, router: Router) -> str:
        made = self.api.post(f"/api/v1/routers/{router.pk}/enrolment")
        assert made.status_code == 201
        return str(made.json()["token"])


def token_of(user: User, **more: Any) -> TokenInUse:
    return TokenInUse(*token_create(user=user, name="leaked", now=clock.now(), **more))


def by_hand(user: User, customer: Customer | None) -> Webhook:
    return webhook_create(user=user, customer=customer, url=URL, now=clock.now())[0]


def is_enabled(webhook: Webhook) -> bool:
    return Webhook.objects.filter(pk=webhook.pk, disabled_at__isnull=True).exists()


def keys(answer: Any) -> list[str]:
    assert answer.status_code == 200
    return [row["key"] for row in (*answer.json()["webhooks"], *answer.json()["enrolments"])]


class TestTokens:
    def test_objects_made_with_a_token_are_listed_and_the_selected_ones_end(
        self, ada: User, dairy: Customer
    ) -> None:
        leaked, mine = token_of(ada), token_of(ada)
        child = leaked.another()
        first, second, other = leaked.hook(), child.hook(), by_hand(ada, dairy)
        child.invite()
        mine.invite("dora@dairy.example")
        here = f"/api/v1/tokens/{leaked.token.pk}"
        found = mine.api.get(f"{here}/made")
        assert keys(found) == [f"webhook-{first.pk}", f"webhook-{second.pk}"]
        assert [row["prefix"] for row in found.json()["tokens"]] == [child.token.prefix]
        assert [row["email"] for row in found.json()["invitations"]] == ["mallory@x.example"]
        assert mine.api.delete(f"{here}?end=webhook-{second.pk}").status_code == 204
        assert [is_enabled(hook) for hook in (first, second, other)] == [True, False, True]
        assert [row.email for row in open_invitations(clock.now())] == ["dora@dairy.example"]
        assert {caller.api.get("/api/v1/vlls").status_code for caller in (leaked, child)} == {401}

    def test_page_ends_only_selected_objects(self, ada: User, dairy: Customer) -> None:
        leaked, browser = token_of(ada), signed_in(ada)
        first, second = leaked.hook(), leaked.hook(url=f"{URL}/2")
        page = f"/account/tokens/{leaked.token.pk}/revoke/"
        shown = browser.get(page)
        assert "Webhook of Alpine Dairy:" in text(shown)
        assert 'type="checkbox"' in shown.content.decode()
        assert "checked" not in shown.content.decode()
        assert browser.get("/account/tokens/").content.decode().count(page) == 1
        browser.post(page, {"end": [f"webhook-{first.pk}"]})
        assert (is_enabled(first), is_enabled(second)) == (False, True)
        assert leaked.api.get("/api/v1/vlls").status_code == 401
        assert browser.get(page).status_code == 404

    def test_objects_made_without_the_token_cannot_be_selected(self, ada: User, dairy: Customer) -> None:
        leaked, mine, other = token_of(ada), token_of(ada), by_hand(ada, dairy)
        key = f"webhook-{other.pk}"
        refused = mine.api.delete(f"/api/v1/tokens/{leaked.token.pk}?end={key}")
        assert refused.status_code == 422
        assert ApiToken.objects.get(pk=leaked.token.pk).revoked_at is None
        signed_in(ada).post(f"/account/tokens/{leaked.token.pk}/revoke/", {"end": key})
        assert is_enabled(other)

    def test_token_without_the_scope_ends_no_webhook(self, ada: User) -> None:
        leaked, narrow = token_of(ada), token_of(ada, scopes=["read", "order"])
        hook = leaked.hook()
        here = f"/api/v1/tokens/{leaked.token.pk}"
        assert narrow.api.delete(f"{here}?end=webhook-{hook.pk}").status_code == 403
        assert is_enabled(hook)
        assert ApiToken.objects.get(pk=leaked.token.pk).revoked_at is None
        assert narrow.api.delete(here).status_code == 204
        assert is_enabled(hook)

    def test_former_admin_neither_sees_nor_ends_webhooks_of_the_customer(self, ada: User) -> None:
        leaked, mine = token_of(ada), token_of(ada)
        hook = leaked.hook()
        ada.memberships.update(role="viewer")
        assert keys(mine.api.get(f"/api/v1/tokens/{leaked.token.pk}/made")) == []
        page = f"/account/tokens/{leaked.token.pk}/revoke/"
        assert URL not in text(signed_in(ada).get(page))
        signed_in(ada).post(page, {"end": f"webhook-{hook.pk}"})
        assert is_enabled(hook)

    def test_revoked_token_can_invite_nobody(self, ada: User, dairy: Customer) -> None:
        leaked = token_of(ada)
        token_revoke(token=leaked.token, now=clock.now())
        with pytest.raises(MakerRevoked):
            invite(
                by=ada,
                customer=dairy,
                email="m@x.example",
                role="admin",
                now=clock.now(),
                made_with=leaked.token,
            )

    def test_audit_trail_names_the_token(self, ada: User) -> None:
        leaked = token_of(ada)
        hook = leaked.hook()
        assert EVENTS[Webhook].objects.get(pgh_obj_id=hook.pk).made_with_id == leaked.token.pk


class TestEnrolments:
    def test_open_enrolments_are_void_and_certificates_of_used_ones_revoked(
        self, isp: Isp, nina: User, authority: pki.Authority
    ) -> None:
        leaked, mine = token_of(nina), token_of(nina)
        rhino, hippo, zebra = (isp.routers[name] for name in ("rhino", "hippo", "zebra"))
        assert enrol(leaked.offer(rhino), csr()).status_code == 201
        late = leaked.offer(hippo)
        assert enrol(leaked.offer(zebra), csr()).status_code == 201
        here = f"/api/v1/tokens/{leaked.token.pk}"
        found = mine.api.get(f"{here}/made")
        rows = {row["router"]: row for row in found.json()["enrolments"]}
        assert rows["rhino"]["serial"] == rhino.certificates.get().serial
        assert rows["hippo"]["serial"] is None
        chosen = "&".join(f"end={rows[name]['key']}" for name in ("rhino", "hippo"))
        assert mine.api.delete(f"{here}?{chosen}").status_code == 204
        good = RouterCertificate.objects.filter(revoked_at__isnull=True)
        assert [row.router.name for row in good] == ["zebra"]
        assert enrol(late, csr()).status_code == 422

    def test_enrolment_used_meanwhile_is_revoked(
        self, isp: Isp, nina: User, authority: pki.Authority
    ) -> None:
        token = token_of(nina).offer(isp.routers["rhino"])
        enrolment = RouterEnrolment.objects.get()
        assert enrol(token, csr()).status_code == 201
        enrolment_end(enrolment=enrolment, now=clock.now())
        assert RouterCertificate.objects.get().revoked_at is not None

    def test_enrolments_are_hidden_without_the_noc_scope(
        self, isp: Isp, nina: User, authority: pki.Authority
    ) -> None:
        leaked, narrow = token_of(nina), token_of(nina, scopes=["read", "order"])
        leaked.offer(isp.routers["rhino"])
        assert keys(narrow.api.get(f"/api/v1/tokens/{leaked.token.pk}/made")) == []


class TestPeople:
    @pytest.fixture
    def eve(self, dairy: Customer, bakery: Customer) -> User:
        """Return an admin of both customers."""
        found = member("eve", dairy, Membership.Role.ADMIN)
        Membership.objects.create(user=found, customer=bakery, role=Membership.Role.ADMIN)
        return found

    def test_admin_sees_and_ends_only_objects_made_for_that_customer(
        self, ada: User, eve: User, dairy: Customer, bakery: Customer
    ) -> None:
        selected, other, foreign = by_hand(eve, dairy), by_hand(eve, dairy), by_hand(eve, bakery)
        invite(by=eve, customer=dairy, email="m@x.example", role="admin", now=clock.now())
        membership = eve.memberships.get(customer=dairy)
        page = f"/team/{dairy.pk}/members/{membership.pk}/remove/"
        shown = text(signed_in(ada).get(page))
        assert shown.count("Webhook of Alpine Dairy:") == 2
        assert "Invitation of m@x.example" in shown
        assert bakery.name not in shown
        sent = {"end": [f"webhook-{selected.pk}", f"webhook-{foreign.pk}"]}
        assert signed_in(ada, reauthenticated=True).post(page, sent).status_code == 302
        assert [is_enabled(hook) for hook in (selected, other, foreign)] == [False, True, True]
        assert not eve.memberships.filter(customer=dairy).exists()

    def test_api_ends_only_objects_made_for_that_customer(
        self, ada: User, eve: User, dairy: Customer, bakery: Customer
    ) -> None:
        own, foreign, api = by_hand(eve, dairy), by_hand(eve, bakery), token_of(ada).api
        here = f"/api/v1/members/{eve.memberships.get(customer=dairy).pk}"
        assert keys(api.get(f"{here}/made")) == [f"webhook-{own.pk}"]
        assert api.delete(f"{here}?end=webhook-{foreign.pk}").status_code == 422
        assert eve.memberships.count() == 2
        assert api.delete(f"{here}?end=webhook-{own.pk}").status_code == 204
        assert (is_enabled(own), is_enabled(foreign), eve.memberships.count()) == (False, True, 1)

    def test_members_who_are_not_admins_see_nothing(self, alice: User, ada: User) -> None:
        by_hand(ada, ada.memberships.get().customer)
        membership = ada.memberships.get()
        page = f"/team/{membership.customer_id}/members/{membership.pk}/remove/"
        assert signed_in(alice).get(page).status_code == 403
        assert token_of(alice).api.get(f"/api/v1/members/{membership.pk}/made").status_code == 403
        assert token_of(alice).api.get(f"/api/v1/people/{alice.pk}/made").status_code == 403

    def test_refused_removal_ends_nothing(self, ada: User, dairy: Customer) -> None:
        hook, membership = by_hand(ada, dairy), ada.memberships.get()
        page = f"/team/{dairy.pk}/members/{membership.pk}/remove/"
        signed_in(ada, reauthenticated=True).post(page, {"end": f"webhook-{hook.pk}"})
        assert is_enabled(hook)
        assert ada.memberships.exists()

    @pytest.mark.parametrize("surface", ["page", "api"])
    def test_closing_an_account_shows_and_ends_objects_of_its_user_everywhere(
        self,
        surface: str,
        isp: Isp,
        nina: User,
        ada: User,
        eve: User,
        dairy: Customer,
        bakery: Customer,
        authority: pki.Authority,
    ) -> None:
        dairys, bakerys, adas = by_hand(eve, dairy), by_hand(eve, bakery), by_hand(ada, dairy)
        User.objects.filter(pk=eve.pk).update(noc_role="nocAdmin")
        eve.refresh_from_db()
        assert enrol(token_of(eve).offer(isp.routers["rhino"]), csr()).status_code == 201
        api, page = token_of(nina).api, f"/noc/people/{eve.pk}/close/"
        chosen = keys(api.get(f"/api/v1/people/{eve.pk}/made"))
        assert chosen[:2] == [f"webhook-{dairys.pk}", f"webhook-{bakerys.pk}"]
        assert len(chosen) == 3
        shown = text(signed_in(nina).get(page))
        assert f"Certificate of rhino: {RouterCertificate.objects.get().serial}" in shown
        member("charlie", bakery, Membership.Role.ADMIN)
        if surface == "page":
            signed_in(nina, reauthenticated=True).post(page, {"end": chosen[1:]})
        else:
            query = "&".join(f"end={key}" for key in chosen[1:])
            assert api.post(f"/api/v1/people/{eve.pk}/close?{query}").status_code == 200
        assert [is_enabled(hook) for hook in (dairys, bakerys, adas)] == [True, False, True]
        assert RouterCertificate.objects.get().revoked_at is not None
        assert not User.objects.get(pk=eve.pk).is_active
