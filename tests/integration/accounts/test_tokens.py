"""API tokens: what each may be used for, from where, until when, and by whom it is made."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections, transaction
from rest_framework.test import APIClient

from portal.accounts.errors import MakerRevoked, ScopeNotForYou, TooManyTokens
from portal.accounts.models import ApiToken, User
from portal.accounts.tokens import token_create, token_revoke
from portal.audit.models import EVENTS
from portal.core import clock
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def caller_with(user: User, **more: Any) -> APIClient:
    _, plain = token_create(user=user, name="test", now=clock.now(), **more)
    return APIClient(headers={"Authorization": f"Bearer {plain}"})


class TestScopes:
    def test_a_reading_token_reads(self, alice: User) -> None:
        assert caller_with(alice, scopes=["read"]).get("/api/v1/vlls").status_code == 200

    def test_a_reading_token_writes_nothing(self, alice: User, isp: Isp) -> None:
        vll = order(isp, alice).vll
        client = caller_with(alice, scopes=["read"])
        for answer in (
            client.post("/api/v1/vlls", {}, format="json"),
            client.delete(f"/api/v1/vlls/{vll.pk}"),
            client.post("/api/v1/tokens", {}, format="json"),
        ):
            assert answer.status_code == 403
            assert "may only read" in answer.json()["detail"]
        assert Vll.objects.get().wanted_present

    def test_a_reading_token_may_ask_whether_a_line_could_be_ordered(self, alice: User) -> None:
        answer = caller_with(alice, scopes=["read"]).post("/api/v1/vlls/validate", {}, format="json")
        assert answer.status_code != 403

    def test_an_ordering_token_gets_past_the_gate(self, alice: User) -> None:
        answer = caller_with(alice, scopes=["read", "order"]).post("/api/v1/vlls", {}, format="json")
        assert answer.status_code != 403

    def test_a_token_of_the_noc_without_its_scope_sees_no_tenant(
        self, alice: User, nora: User, isp: Isp
    ) -> None:
        order(isp, alice)
        seen = {
            scopes: len(caller_with(nora, scopes=scopes).get("/api/v1/vlls").json()["results"])
            for scopes in (("read",), ("read", "order"), ("noc",))
        }
        assert seen == {("read",): 0, ("read", "order"): 0, ("noc",): 1}
        assert caller_with(nora, scopes=["read"]).get("/api/v1/routers").status_code == 403

    def test_the_noc_scope_makes_nobody_noc(self, alice: User, nora: User) -> None:
        callers = {user.username: caller_with(user, scopes=["read"]) for user in (alice, nora)}
        # As of somebody who was NOC staff when it was made.
        ApiToken.objects.update(scopes=["read", "noc"])
        assert callers["alice"].get("/api/v1/routers").status_code == 403
        written = {name: client.post("/api/v1/vlls", {}, format="json") for name, client in callers.items()}
        assert written["alice"].status_code == 403
        assert written["nora"].status_code == 422

    def test_nobody_puts_rights_on_a_token_that_they_do_not_have(
        self, ada: User, alice: User, nora: User, nina: User
    ) -> None:
        def may(user: User, scope: str) -> bool:
            try:
                token_create(user=user, name="test", scopes=["read", scope], now=clock.now())
            except ScopeNotForYou:
                return False
            return True

        people = (ada, alice, nora, nina)
        assert [user.username for user in people if may(user, "team")] == ["ada", "nina"]
        assert [user.username for user in people if may(user, "webhooks")] == ["ada", "nina"]
        assert [user.username for user in people if may(user, "noc")] == ["nora", "nina"]

    def test_who_was_an_admin_once_makes_no_more_of_their_tokens(self, ada: User) -> None:
        client, wanted = caller_with(ada, scopes=["order", "team"]), {"name": "ci", "scopes": ["team"]}
        assert client.post("/api/v1/tokens", wanted, format="json").status_code == 201
        ada.memberships.update(role="viewer")
        refused = client.post("/api/v1/tokens", wanted, format="json")
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "scope-not-for-you")

    def test_an_unknown_scope_is_refused_by_the_database(self, alice: User) -> None:
        token, _ = token_create(user=alice, name="test", now=clock.now())
        with pytest.raises(IntegrityError):
            ApiToken.objects.filter(pk=token.pk).update(scopes=["root"])


class TestNetworks:
    def get(self, user: User, network: str, **more: Any) -> int:
        client = caller_with(user, allowed_networks=[ip_network(network)])
        return int(client.get("/api/v1/vlls", **more).status_code)

    def test_a_token_works_from_its_networks_only(self, alice: User) -> None:
        assert self.get(alice, "192.0.2.0/24", REMOTE_ADDR="192.0.2.7") == 200
        assert self.get(alice, "192.0.2.0/24", REMOTE_ADDR="198.51.100.7") == 403
        assert self.get(alice, "2001:db8::/32", REMOTE_ADDR="2001:db8::7") == 200
        assert self.get(alice, "192.0.2.0/24", REMOTE_ADDR="::ffff:192.0.2.7") == 200

    def test_a_callers_own_word_about_its_address_does_not_count(self, alice: User) -> None:
        said = {"HTTP_X_FORWARDED_FOR": "192.0.2.7"}
        assert self.get(alice, "192.0.2.0/24", REMOTE_ADDR="198.51.100.7", **said) == 403

    def test_only_the_address_that_a_trusted_proxy_wrote_counts(self, alice: User, settings: Any) -> None:
        settings.LONGLINE_TRUSTED_PROXIES = ["10.0.0.0/29"]
        for said, status in (("192.0.2.7", 200), ("192.0.2.7, 198.51.100.7", 403), ("nonsense", 403)):
            answer = self.get(alice, "192.0.2.0/24", REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR=said)
            assert (said, answer) == (said, status)


class TestApi:
    def make(self, client: APIClient, **changes: Any) -> Any:
        wanted = {"name": "ci", "scopes": ["read"], "allowed_networks": ["192.0.2.0/24"], **changes}
        return client.post("/api/v1/tokens", wanted, format="json")

    def test_the_secret_is_shown_once_and_works(self, alice: User) -> None:
        made = self.make(caller_with(alice), allowed_networks=["127.0.0.1/32"])
        assert made.status_code == 201
        secret = made.json()["secret"]
        client = APIClient(headers={"Authorization": f"Bearer {secret}"})
        listed = client.get("/api/v1/tokens").json()["results"]
        assert {row["name"] for row in listed} == {"ci", "test"}
        # What is kept secret may have the separator in it.
        assert secret.split("_", 2)[2] not in str(listed)

    def test_revoking_ends_it_at_once(self, alice: User) -> None:
        client = caller_with(alice)
        made = self.make(client, allowed_networks=[]).json()
        assert client.delete(f"/api/v1/tokens/{made['id']}").status_code == 204
        dead = APIClient(headers={"Authorization": f"Bearer {made['secret']}"})
        assert dead.get("/api/v1/vlls").status_code == 401

    def test_nobody_sees_or_revokes_another_persons_token(
        self, alice: User, charlie: User, nora: User
    ) -> None:
        theirs, _ = token_create(user=alice, name="hers", now=clock.now())
        for stranger in (charlie, nora):
            client = caller_with(stranger)
            assert client.get(f"/api/v1/tokens/{theirs.pk}").status_code == 404
            assert client.delete(f"/api/v1/tokens/{theirs.pk}").status_code == 404

    def test_a_token_hands_on_no_more_than_it_has(self, alice: User) -> None:
        soon = clock.now() + timedelta(days=1)
        narrow = caller_with(
            alice, scopes=["order"], allowed_networks=[ip_network("127.0.0.0/24")], expires_at=soon
        )
        codes = [
            self.make(narrow, **changes).json()["errors"][0]["code"]
            for changes in (
                {"scopes": ["noc"]},
                {"scopes": ["team"]},
                {"scopes": ["order"], "allowed_networks": ["0.0.0.0/0"]},
                {"scopes": ["order"], "allowed_networks": [], "expires_at": "2999-01-01T00:00:00Z"},
            )
        ]
        assert codes == ["scope-not-held", "scope-not-held", "network-not-held", "outlives-its-maker"]
        inherited = self.make(narrow, scopes=["order"], allowed_networks=[]).json()
        assert inherited["allowed_networks"] == ["127.0.0.0/24"]
        assert inherited["expires_at"] is not None

    @pytest.mark.parametrize("network", ["192.0.2.1/24", "300.0.0.0/8", "0x7f000001", "fe80::1%eth0/64", ""])
    def test_what_is_no_network_is_refused(self, alice: User, network: str) -> None:
        assert self.make(caller_with(alice), allowed_networks=[network]).status_code == 422


class TestLineage:
    """A token that leaked has had time to make others."""

    def made_with(self, client: APIClient) -> tuple[int, APIClient]:
        made = client.post("/api/v1/tokens", {"name": "more", "scopes": ["read", "order"]}, format="json")
        secret = made.json()["secret"]
        return made.json()["id"], APIClient(headers={"Authorization": f"Bearer {secret}"})

    def test_revoking_a_token_ends_all_that_were_made_with_it(self, alice: User) -> None:
        leaked, plain = token_create(user=alice, name="leaked", now=clock.now())
        child = self.made_with(APIClient(headers={"Authorization": f"Bearer {plain}"}))[1]
        grandchild, other = self.made_with(child)[1], caller_with(alice)
        signed_in(alice).post(f"/account/tokens/{leaked.pk}/revoke/")
        seen = [client.get("/api/v1/vlls").status_code for client in (child, grandchild, other)]
        assert seen == [401, 401, 200]

    def test_revoking_one_that_was_made_leaves_its_maker(self, alice: User) -> None:
        maker = caller_with(alice)
        pk, child = self.made_with(maker)
        assert maker.delete(f"/api/v1/tokens/{pk}").status_code == 204
        assert [client.get("/api/v1/vlls").status_code for client in (maker, child)] == [200, 401]

    def test_a_token_that_was_revoked_meanwhile_makes_none(self, alice: User) -> None:
        maker, _ = token_create(user=alice, name="maker", now=clock.now())
        token_revoke(token=maker, now=clock.now())
        with pytest.raises(MakerRevoked):
            token_create(user=alice, name="late", now=clock.now(), made_with=maker)

    def test_the_trail_says_with_what_a_token_was_made(self, alice: User) -> None:
        maker, _ = token_create(user=alice, name="maker", now=clock.now())
        made, _ = token_create(user=alice, name="made", now=clock.now(), made_with=maker)
        assert EVENTS[ApiToken].objects.get(pgh_obj_id=made.pk).made_with_id == maker.pk


@pytest.mark.django_db(transaction=True)
def test_none_slips_through_while_its_maker_is_revoked(alice: User) -> None:
    maker, _ = token_create(user=alice, name="maker", now=clock.now())
    revoked = threading.Event()

    def revoke() -> None:
        try:
            token_revoke(token=maker, now=clock.now())
        finally:
            revoked.set()
            connection.close()

    revoking = threading.Thread(target=revoke)
    with transaction.atomic():
        late, _ = token_create(user=alice, name="late", now=clock.now(), made_with=maker)
        revoking.start()
        assert not revoked.wait(0.5)
    revoking.join()
    late.refresh_from_db()
    assert late.revoked_at is not None


class TestPage:
    def test_alice_makes_a_token_sees_it_once_and_revokes_it(self, alice: User) -> None:
        client = signed_in(alice, reauthenticated=True)
        form = {"name": "laptop", "scope": "order", "days": "30", "networks": "192.0.2.0/24 2001:db8::/32"}
        made = client.post("/account/tokens/", form)
        token = ApiToken.objects.get()
        assert f"ll_{token.prefix}_" in made.content.decode()
        assert token.scopes == ["read", "order"]
        assert [str(network) for network in token.allowed_networks] == ["192.0.2.0/24", "2001:db8::/32"]
        assert 'id="secret"' not in client.get("/account/tokens/").content.decode()
        client.post(f"/account/tokens/{token.pk}/revoke/")
        assert "No tokens yet" in text(client.get("/account/tokens/"))

    def test_the_noc_scope_is_offered_to_the_noc_alone(self, alice: User, nora: User) -> None:
        assert "Act as the NOC" not in text(signed_in(alice).get("/account/tokens/"))
        assert "Act as the NOC" in text(signed_in(nora).get("/account/tokens/"))
        forged = {"name": "x", "scope": "noc", "days": "30"}
        assert signed_in(alice, reauthenticated=True).post("/account/tokens/", forged).status_code == 422

    @pytest.mark.parametrize("scope", ["team", "webhooks"])
    def test_what_outlives_a_token_has_to_be_ticked_by_who_runs_a_team(
        self, scope: str, ada: User, alice: User, nina: User
    ) -> None:
        form = {"name": "people", "scope": "read", "days": "30"}
        answers = {}
        for user in (ada, alice, nina):
            for ticked in ({}, {scope: "on"}):
                browser = signed_in(user, reauthenticated=True)
                answers[user.username] = browser.post("/account/tokens/", {**form, **ticked})
        made = ApiToken.objects.order_by("pk").values_list("user__username", "scopes")
        assert list(made) == [
            ("ada", ["read"]),
            ("ada", ["read", scope]),
            ("alice", ["read"]),
            ("nina", ["read"]),
            ("nina", ["read", scope]),
        ]
        assert answers["alice"].status_code == 422
        assert "Only admins of a customer and NOC admins" in text(answers["alice"])


class TestHowMany:
    def test_a_user_has_so_many_live_tokens_and_no_more(self, ada: User, alice: User, settings: Any) -> None:
        settings.LONGLINE_API_TOKENS_EACH = 3
        now = clock.now()
        tokens = [token_create(user=ada, name=f"token {n}", now=now)[0] for n in range(2)]
        soon = now + timedelta(hours=1)
        token_create(user=ada, name="short", now=now, expires_at=soon)
        with pytest.raises(TooManyTokens) as refused:
            token_create(user=ada, name="one more", now=now)
        assert refused.value.facts == {"maximum": 3}
        assert "Revoke one" in refused.value.sentence
        # One that has expired does not count, nor does a revoked one, nor another user's.
        token_create(user=ada, name="later", now=soon)
        token_revoke(token=tokens[0], now=soon)
        token_create(user=ada, name="instead", now=soon)
        token_create(user=alice, name="hers", now=soon)

    def test_the_api_refuses_with_409_and_the_page_in_its_form(self, ada: User, settings: Any) -> None:
        settings.LONGLINE_API_TOKENS_EACH = 1
        _, plain = token_create(user=ada, name="first", now=clock.now())
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
        refused = client.post("/api/v1/tokens", {"name": "second", "scopes": ["read"]}, format="json")
        assert refused.status_code == 409
        assert refused.json()["type"].endswith("#too-many-tokens")
        form = {"name": "second", "scope": "read", "days": "30"}
        page = signed_in(ada, reauthenticated=True).post("/account/tokens/", form)
        assert page.status_code == 422
        assert "which is the limit" in page.content.decode()
        assert ApiToken.objects.filter(user=ada).count() == 1

    def test_the_page_shows_50_at_a_time(self, ada: User) -> None:
        for number in range(51):
            token_create(user=ada, name=f"token {number:02}", now=clock.now())
        browser = signed_in(ada)
        first = browser.get("/account/tokens/").content.decode()
        assert first.count('<th scope="row">') == 50
        assert "token 00" not in first
        older = re.search(r'href="\?after=([^"]+)"', first)
        assert older is not None
        second = browser.get(f"/account/tokens/?after={older[1]}").content.decode()
        assert second.count('<th scope="row">') == 1
        assert "token 00" in second


@pytest.mark.django_db(transaction=True)
def test_of_many_requests_at_one_moment_no_more_tokens_come_than_a_user_may_have(
    ada: User, settings: Any
) -> None:
    settings.LONGLINE_API_TOKENS_EACH = 2

    def create(number: int) -> bool:
        try:
            token_create(user=ada, name=f"token {number}", now=clock.now())
        except TooManyTokens:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(4) as requests:
        assert sum(requests.map(create, range(6))) == 2
