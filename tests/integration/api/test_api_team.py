"""A customer's members in the API: programs can do everything that the team page can do."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.invitations import (
    PER_ADDRESS,
    SEND_INVITATION,
    WINDOW,
    invitation_revoke,
    invite,
    open_invitations,
)
from portal.accounts.models import ApiToken, Customer, Invitation, Scope, User
from portal.accounts.people import customer_retire
from portal.accounts.tokens import token_create
from portal.core import clock
from portal.inventory.interfaces import with_link_speed
from portal.inventory.models import Port
from tests.integration.api.test_api_v1 import client as client_of
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.requested_tasks import requested

pytestmark = pytest.mark.django_db
MEMBERS, INVITATIONS = "/api/v1/members", "/api/v1/invitations"
DORA = {"email": "dora@dairy.example", "role": "viewer"}


def client(user: User) -> APIClient:
    """Return a client with a token of every scope, as of a user who had all rights when it was made."""
    api = client_of(user)
    ApiToken.objects.filter(user=user).update(scopes=Scope.values)
    return api


def place_of(user: User) -> str:
    return f"{MEMBERS}/{user.memberships.get().pk}"


def change(by: User, of: User, role: str, **headers: str) -> Any:
    return client(by).patch(place_of(of), {"role": role}, format="json", headers=headers)


def post(by: User, document: Any = DORA, **headers: str) -> Any:
    return client(by).post(INVITATIONS, document, format="json", headers=headers)


def names(by: User, **query: str) -> list[str]:
    return [row["username"] for row in client(by).get(MEMBERS, query).json()["results"]]


@pytest.fixture
def invitation(ada: User, dairy: Customer) -> Invitation:
    return invite(by=ada, customer=dairy, now=clock.now(), **DORA)


class TestMembers:
    def test_users_see_their_team_and_the_noc_sees_all(
        self, ada: User, bob: User, charlie: User, nora: User
    ) -> None:
        assert names(bob) == ["ada", "bob"]
        assert names(charlie) == ["charlie"]
        assert names(nora) == ["ada", "bob", "charlie"]
        assert names(nora, customer="Alpine Dairy") == ["ada", "bob"]
        assert names(nora, role="viewer") == ["bob"]
        assert client(bob).get(place_of(ada)).json() == {
            "id": ada.memberships.get().pk,
            "customer": "Alpine Dairy",
            "user": ada.pk,
            "username": "ada",
            "full_name": "",
            "email": "",
            "role": "admin",
        }

    @pytest.mark.parametrize("who", ["ada", "nina"])
    def test_admins_change_roles_of_the_current_version(
        self, who: str, bob: User, request: pytest.FixtureRequest
    ) -> None:
        by = request.getfixturevalue(who)
        etag = client(by).get(place_of(bob))["ETag"]
        assert change(by, bob, "operator").status_code == 428
        changed = change(by, bob, "operator", **{"If-Match": etag})
        assert (changed.status_code, changed.json()["role"]) == (200, "operator")
        assert changed["ETag"] == client(by).get(place_of(bob))["ETag"]
        assert change(by, bob, "admin", **{"If-Match": etag}).status_code == 412
        assert bob.memberships.get().role == "operator"

    def test_admins_remove_members(self, ada: User, bob: User) -> None:
        place = place_of(bob)
        assert client(ada).delete(place).status_code == 204
        assert client(ada).get(place).status_code == 404
        assert not bob.memberships.exists()

    @pytest.mark.parametrize("who", ["alice", "bob", "nora"])
    def test_other_users_cannot_remove_members(
        self, who: str, ada: User, bob: User, request: pytest.FixtureRequest
    ) -> None:
        by = request.getfixturevalue(who)
        assert change(by, bob, "admin", **{"If-Match": "*"}).status_code == 403
        assert client(by).delete(place_of(bob)).status_code == 403
        assert bob.memberships.get().role == "viewer"

    def test_last_admin_stays_an_admin(self, ada: User) -> None:
        refused = change(ada, ada, "viewer", **{"If-Match": "*"})
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (409, "last-admin")
        assert client(ada).delete(place_of(ada)).status_code == 409

    def test_team_of_a_retired_customer_cannot_change(self, bob: User, dairy: Customer, nina: User) -> None:
        customer_retire(customer=dairy, now=clock.now())
        assert change(nina, bob, "admin", **{"If-Match": "*"}).status_code == 403
        assert post(nina, {**DORA, "customer": "Alpine Dairy"}).status_code == 422


class TestInvitations:
    def test_admin_invites_reads_and_withdraws(self, ada: User, dairy: Customer) -> None:
        made = post(ada)
        assert made.status_code == 201
        assert requested(SEND_INVITATION) == [(SEND_INVITATION, [made.json()["id"]])]
        shown = client(ada).get(made["Location"]).json()
        assert shown == made.json()
        assert (shown["customer"], shown["invited_by"], shown["sent_at"]) == ("Alpine Dairy", "ada", None)
        assert client(ada).get(INVITATIONS).json()["results"] == [shown]
        assert client(ada).delete(made["Location"]).status_code == 204
        assert client(ada).get(made["Location"]).status_code == 404
        assert client(ada).delete(made["Location"]).status_code == 404
        assert not open_invitations(clock.now()).exists()

    def test_repeated_invitation_with_one_key_is_one_invitation(self, ada: User) -> None:
        first, again = (post(ada, **{"Idempotency-Key": "k"}) for _ in range(2))
        assert (first.status_code, first.content) == (201, again.content)
        assert Invitation.objects.count() == 1

    @pytest.mark.parametrize("who", ["alice", "bob", "nora"])
    def test_users_who_are_not_admins_see_and_send_no_invitations(
        self, who: str, invitation: Invitation, request: pytest.FixtureRequest
    ) -> None:
        api = client(request.getfixturevalue(who))
        assert api.get(INVITATIONS).json()["results"] == []
        for method in (api.get, api.delete):
            assert method(f"{INVITATIONS}/{invitation.pk}").status_code == 403
        assert post(request.getfixturevalue(who), {**DORA, "email": "eve@x.example"}).status_code == 403
        assert open_invitations(clock.now()).count() == 1

    def test_noc_invites_the_first_admin_of_a_customer(self, ada: User, nina: User) -> None:
        wanted = {**DORA, "role": "admin"}
        client(nina).post("/api/v1/customers", {"name": "Cheese Inc"}, format="json")
        unnamed = post(nina, wanted)
        assert (unnamed.status_code, unnamed.json()["errors"][0]["field"]) == (422, "customer")
        assert post(nina, {**wanted, "customer": "Cheese Inc"}).json()["customer"] == "Cheese Inc"
        assert post(ada, {**wanted, "customer": "Cheese Inc"}).status_code == 422

    @pytest.mark.parametrize(
        "wrong", [{"email": "dora"}, {"email": 7}, {"role": "king"}, {"more": 1}, {"email": "a@b.c\nBcc: d"}]
    )
    def test_invalid_invitation_is_refused(self, ada: User, wrong: dict[str, Any]) -> None:
        refused = post(ada, {**DORA, **wrong})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, next(iter(wrong)))

    def test_invitation_of_a_member_or_invited_address_is_a_conflict(
        self, ada: User, bob: User, invitation: Invitation
    ) -> None:
        User.objects.filter(pk=bob.pk).update(email="bob@dairy.example")
        assert post(ada).json()["errors"][0]["code"] == "already-invited"
        known = post(ada, {**DORA, "email": "bob@dairy.example"})
        assert (known.status_code, known.json()["errors"][0]["code"]) == (409, "already-member")

    def test_too_many_invitations_for_one_address_are_429_and_the_key_stays_valid(
        self, ada: User, dairy: Customer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = clock.now()
        for _ in range(PER_ADDRESS):
            invitation_revoke(invitation=invite(by=ada, customer=dairy, now=now, **DORA), now=now)
        refused = post(ada, **{"Idempotency-Key": "k"})
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (429, "invited-too-often")
        assert 86_000 < int(refused["Retry-After"]) <= 86_401
        assert datetime.fromisoformat(refused.json()["errors"][0]["facts"]["again_at"]) == now + WINDOW
        monkeypatch.setattr(clock, "now", lambda: now + WINDOW + timedelta(seconds=1))
        assert post(ada, **{"Idempotency-Key": "k"}).status_code == 201


class TestPools:
    def test_noc_reads_the_free_resources_of_the_pools(self, isp: Isp, alice: User, nora: User) -> None:
        order(isp, alice)
        client(nora).post("/api/v1/vni-ranges", {"first": 10, "last": 19, "reason": "lab"}, format="json")
        found = client(nora).get("/api/v1/pools").json()
        total = 2**24 - 1
        assert found["vnis"] == {
            "total": total,
            "reserved": 10,
            "free": total - 11,
            "leased": 1,
            "resting": 0,
            "quarantined": 0,
        }
        assert found["gre_pairs"] == {"leased": 0, "resting": 0, "quarantined": 0}
        rhino = isp.ports["rhino:host-cust1"]
        assert {"id": rhino.pk, "port_name": "rhino:host-cust1", "customer": "Alpine Dairy", "leases": 1} in (
            found["busiest_ports"]
        )
        (full,) = [port for port in found["fullest_ports"] if port["id"] == rhino.pk]
        rhino = with_link_speed(Port.objects.filter(pk=rhino.pk)).get()
        assert (full["booked_bps"], full["free_bps"]) == (rhino.booked_bps, rhino.free_bps)
        assert {router["name"] for router in found["fullest_routers"]} == {"hippo", "rhino"}
        assert all(router["booked_cores"] > 0 for router in found["fullest_routers"])

    def test_other_users_do_not_read_the_pools(self, ada: User) -> None:
        assert client(ada).get("/api/v1/pools").status_code == 403


class TestTokens:
    """What a token grants stays valid after its revocation, so granting rights needs a separate scope."""

    def writes(self, user: User, invitation: Invitation, other: User, scopes: list[str]) -> set[int]:
        _, plain = token_create(user=user, name="test", scopes=scopes, now=clock.now())
        api = APIClient(headers={"Authorization": f"Bearer {plain}"})
        eve = {"email": "eve@dairy.example", "role": "admin", "customer": "Alpine Dairy"}
        mine, theirs = f"{INVITATIONS}/{invitation.pk}", place_of(other)
        if user.noc_role == "none" or "noc" in scopes:
            assert [api.get(place).status_code for place in (MEMBERS, theirs, INVITATIONS, mine)] == [200] * 4
        return {
            api.post(INVITATIONS, eve, format="json").status_code,
            api.patch(theirs, {"role": "admin"}, format="json", headers={"If-Match": "*"}).status_code,
            api.delete(theirs).status_code,
            api.delete(mine).status_code,
        }

    @pytest.mark.parametrize(
        ("who", "scopes"),
        [("ada", ["read"]), ("ada", ["read", "order"]), ("nina", ["read", "order", "noc"])],
    )
    def test_token_without_the_scope_reads_the_team_and_changes_nothing(
        self,
        who: str,
        scopes: list[str],
        bob: User,
        invitation: Invitation,
        request: pytest.FixtureRequest,
    ) -> None:
        assert self.writes(request.getfixturevalue(who), invitation, bob, scopes) == {403}
        assert bob.memberships.get().role == "viewer"
        assert list(open_invitations(clock.now())) == [invitation]

    @pytest.mark.parametrize(("who", "scopes"), [("ada", ["read", "team"]), ("nina", ["noc", "team"])])
    def test_token_with_the_scope_changes_the_team(
        self,
        who: str,
        scopes: list[str],
        bob: User,
        invitation: Invitation,
        request: pytest.FixtureRequest,
    ) -> None:
        assert self.writes(request.getfixturevalue(who), invitation, bob, scopes) == {200, 201, 204}

    def test_noc_admins_token_needs_the_noc_scope_for_teams(
        self, nina: User, bob: User, invitation: Invitation
    ) -> None:
        assert self.writes(nina, invitation, bob, ["read", "team"]) == {404, 422}

    def test_team_token_orders_nothing(self, ada: User) -> None:
        _, plain = token_create(user=ada, name="people", scopes=["read", "team"], now=clock.now())
        api = APIClient(headers={"Authorization": f"Bearer {plain}"})
        assert api.post("/api/v1/vlls", {}, format="json").status_code == 403
        assert api.post("/api/v1/tokens", {"name": "x", "scopes": ["read"]}, format="json").status_code == 403
