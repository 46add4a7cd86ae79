"""Every change leaves who, what, before and after; by trigger, so that nothing goes past it."""

import json
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.accounts.models import ApiToken, Customer, Membership, User
from portal.accounts.tokens import token_create
from portal.allocation.models import ReservedVniRange
from portal.audit.actor import working
from portal.audit.history import SHOWN, changes, customer_history, object_history, vll_history
from portal.audit.models import EVENTS, TRACKED
from portal.celery import app
from portal.core import clock
from portal.inventory.models import Port, Router, Site
from portal.vll.models import Reservation, Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.modify_line import order_modify
from portal.vll.operations.order_approval import order_reject
from portal.web.noc.history import actor
from tests.integration.accounts.codes import with_totp
from tests.integration.api.test_api_v1 import client as api_of
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    """Read the ends again, because those of a new order have no ids."""
    return Vll.objects.get(pk=order(isp, alice).vll_id)


def of(row: Any) -> list[Any]:
    return changes(type(row), {row.pk: "row"})


class TestLongTrails:
    def test_a_long_trail_is_not_read_to_its_beginning(self, isp: Isp) -> None:
        rhino = isp.routers["rhino"]
        _rename_often(Router, rhino.pk, "agent_url")
        with CaptureQueriesContext(connection) as queries:
            history = object_history(Router, rhino.pk)
        assert len(history) == SHOWN
        assert [change.after["agent_url"] for change in history[:2]] == [
            f"https://r/{RENAMED}",
            f"https://r/{RENAMED - 1}",
        ]
        assert history[-1].before["agent_url"] == f"https://r/{RENAMED - SHOWN}"
        assert _rows_read(queries) <= 2 * SHOWN

    def test_a_customer_with_many_reservations_has_no_longer_trail(
        self, isp: Isp, ada: User, dairy: Customer
    ) -> None:
        at = clock.now()
        for _ in range(SHOWN + 50):
            reservation = Reservation.objects.create(
                customer=dairy,
                slot=1,
                reserved_by="ada",
                created_at=at,
                expires_at=at + timedelta(minutes=15),
                cir_bps=1000,
                ends={},
            )
            reservation.delete()
        with CaptureQueriesContext(connection) as queries:
            history = customer_history(dairy.pk)
        assert len(history) == SHOWN
        assert {change.operation for change in history} == {"insert", "delete"}
        assert _rows_read(queries) <= 2 * SHOWN


RENAMED = 600


def _rename_often(model: Any, pk: int, column: str) -> None:
    for number in range(1, RENAMED + 1):
        model.objects.filter(pk=pk).update(**{column: f"https://r/{number}"})


def _rows_read(queries: CaptureQueriesContext) -> int:
    """The number of rows that the statements brought."""
    with connection.cursor() as cursor:
        found = 0
        for query in queries.captured_queries:
            cursor.execute(f"SELECT count(*) FROM ({query['sql']}) AS brought")  # noqa: S608 - the portal's own
            found += cursor.fetchone()[0]
    return found


class TestWhatIsRecorded:
    def test_every_tracked_table_records_its_rows(self, vll: Vll, alice: User) -> None:
        token_create(user=alice, name="ci", now=clock.now())
        with_totp(alice)
        ReservedVniRange.objects.create(first=1, last=9, reason="lab")
        silent = {model.__name__ for model in TRACKED if not EVENTS[model].objects.exists()}
        assert silent == {
            *("Invitation", "EmailAddress", "SocialAccount"),
            *("RouterCertificate", "RouterEnrolment", "RouterFreeze"),
            *("Hold", "Webhook", "MailOptOut", "Quarantine"),
            *("TroubleReport", "OperatorState"),
        }

    def test_a_reservation_leaves_who_made_renewed_and_gave_it_up(
        self, isp: Isp, ada: User, dairy: Customer
    ) -> None:
        api = api_of(ada)
        ends = {
            f"{side}_end": {"port": isp.ports[f"{router}:host-cust1"].pk, "tagging": "dot1q", "outer_vlan": 7}
            for side, router in (("a", "rhino"), ("z", "hippo"))
        }
        made = api.post("/api/v1/holds", {**ends, "cir_bps": 1000}, format="json").json()
        assert api.post(f"/api/v1/holds/{made['id']}/renew").status_code == 200
        assert api.delete(f"/api/v1/holds/{made['id']}").status_code == 204
        history = [change for change in customer_history(dairy.pk) if change.what == "hold"]
        assert [change.operation for change in history] == ["delete", "update", "insert"]
        assert {change.by["username"] for change in history} == {"ada"}
        assert history[1].after["renewals"] == 1
        assert history[2].after["ends"]["a"]["outer_vlan"] == 7

    def test_a_new_password_leaves_that_it_was_set_and_by_whom(self, bob: User) -> None:
        changed = signed_in(bob).post(
            "/account/password/",
            {
                "oldpassword": "correct horse battery",
                "password1": "another horse battery",
                "password2": "another horse battery",
            },
        )
        assert changed.status_code == 302
        change = next(c for c in of(bob) if "password_set_at" in c.after and c.operation == "update")
        assert (change.before, set(change.after)) == ({"password_set_at": None}, {"password_set_at"})
        assert change.by["username"] == "bob"

    def test_nothing_but_a_new_hash_moves_that_time(self, bob: User) -> None:
        User.objects.filter(pk=bob.pk).update(password="hash-1")
        first = User.objects.get(pk=bob.pk).password_set_at
        bob.password, bob.first_name = "hash-1", "Bob"
        bob.save()
        assert (first is not None, User.objects.get(pk=bob.pk).password_set_at) == (True, first)
        bob.password = "hash-2"
        bob.save()
        assert User.objects.get(pk=bob.pk).password_set_at > first

    def test_a_change_that_was_rejected_leaves_what_it_would_have_made_of_the_line(
        self, alice: User, nora: User, dairy: Customer, vll: Vll
    ) -> None:
        activate(vll)
        Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
        pending = order_modify(user=alice, vll=vll, changes={"cir_bps": 2 * GBIT}, now=clock.now())
        order_reject(user=nora, order=pending, reason="No capacity before May", now=clock.now())
        inserted = next(c for c in of(pending) if c.operation == "insert")
        assert (inserted.after["before"]["cir_bps"], inserted.after["after"]["cir_bps"]) == (GBIT, 2 * GBIT)

    def test_a_bulk_update_past_the_orm_is_recorded_with_before_and_after(self, isp: Isp) -> None:
        port = isp.ports["rhino:host-cust1"]
        with connection.cursor() as cursor:
            cursor.execute("UPDATE inventory_port SET description = 'by hand' WHERE id = %s", [port.pk])
        change = of(port)[-1]
        assert (change.operation, change.before, change.after, change.by) == (
            "update",
            {"description": ""},
            {"description": "by hand"},
            {},
        )

    def test_a_deletion_is_recorded_with_what_was_there(self, bob: User) -> None:
        membership = Membership.objects.get(user=bob)
        Membership.objects.filter(pk=membership.pk).delete()
        (deleted,) = of(Membership(pk=membership.pk))[1:]
        assert (deleted.operation, deleted.before["role"], deleted.after) == ("delete", "viewer", {})

    def test_what_routers_report_is_not_somebodys_change(self, isp: Isp, vll: Vll) -> None:
        before = len(vll_history(vll))
        Vll.objects.filter(pk=vll.pk).update(oper_status="op-up")
        vll.ends.update(link_up=True)
        Router.objects.update(generation=7)
        assert len(vll_history(vll)) == before
        assert len(of(isp.routers["rhino"])) == 1

    def test_no_secret_reaches_the_trail(self, alice: User) -> None:
        _, plain = token_create(user=alice, name="ci", now=clock.now())
        alice.set_password("another horse battery")
        alice.save()
        token, seed = ApiToken.objects.get(), with_totp(alice)
        models = (User, ApiToken, Authenticator)
        trail = json.dumps([list(EVENTS[model].objects.values()) for model in models], default=str)
        sealed = Authenticator.objects.get(user=alice, type="totp").data["secret"]
        for secret in (
            alice.password,
            plain,
            seed,
            sealed,
            bytes(token.digest).hex(),
            str(bytes(token.digest)),
        ):
            assert secret not in trail

    def test_the_trail_cannot_be_changed(self, bob: User) -> None:
        for change in (
            "DELETE FROM audit_membershipevent",
            "UPDATE audit_membershipevent SET role = 'admin'",
        ):
            with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(change)


class TestWho:
    def test_a_page_names_the_user_and_the_request(self, ada: User, bob: User, dairy: Customer) -> None:
        membership = Membership.objects.get(user=bob)
        signed_in(ada, reauthenticated=True).post(
            f"/team/{dairy.pk}/members/{membership.pk}/role/",
            {"role": "operator"},
            headers={"X-Request-Id": "request-0001"},
        )
        change = of(membership)[-1]
        assert (change.before, change.after) == ({"role": "viewer"}, {"role": "operator"})
        assert change.by == {"user": ada.pk, "username": "ada", "request_id": "request-0001"}

    def test_the_api_names_the_token_too(self, alice: User, vll: Vll) -> None:
        activate(vll)
        token, plain = token_create(user=alice, name="ci", now=clock.now())
        answer = APIClient(headers={"Authorization": f"Bearer {plain}"}).delete(
            f"/api/v1/vlls/{vll.pk}", headers={"If-Match": _etag(plain, vll)}
        )
        assert answer.status_code == 202
        by = of(vll)[-1].by
        assert (by["username"], by["token"]) == ("alice", token.prefix)

    @pytest.mark.django_db(transaction=True)
    def test_a_task_names_itself_and_nothing_stays_behind_it(self) -> None:
        site = Site.objects.create(name="Basel")

        @app.task(name="tests.rename", shared=False)
        def rename() -> None:
            Site.objects.update(name="Winterthur")

        rename()
        Site.objects.update(name="Zürich")
        assert [change.by for change in of(site)] == [{}, {"task": "tests.rename"}, {}]

    def test_a_savepoint_that_was_rolled_back_takes_nobodys_name_with_it(self) -> None:
        site = Site.objects.create(name="Basel")
        with working(task="tests.rename"):
            with pytest.raises(DatabaseError), transaction.atomic():
                Site.objects.update(name="Winterthur")
                Site.objects.create(pk=site.pk, name="Zürich")
            Site.objects.update(name="Zürich")
        assert [change.by for change in of(site)] == [{}, {"task": "tests.rename"}]

    @pytest.mark.django_db(transaction=True)
    def test_each_transaction_and_each_single_statement_has_an_actor(self) -> None:
        site = Site.objects.create(name="Basel")
        with working(task="tests.rename"):
            for name in ("Winterthur", "Zürich"):
                with transaction.atomic():
                    Site.objects.update(name=name)
            Site.objects.update(name="Basel")
            with transaction.atomic():
                Site.objects.update(name="Chur")
                with working(username="ada"):
                    Site.objects.update(name="Davos")
        by = [change.by for change in of(site)]
        assert by == [{}, *[{"task": "tests.rename"}] * 4, {"task": "tests.rename", "username": "ada"}]


class TestReading:
    def test_the_noc_reads_the_history_on_a_lines_page(self, alice: User, nora: User, vll: Vll) -> None:
        activate(vll)
        order_delete(user=alice, vll=vll, now=clock.now())
        page = text(signed_in(nora).get(f"/vlls/{vll.pk}/"))
        for said in ("Line created", "A end created", "Order changed", "lifecycle pendingActive → active"):
            assert said in page

    def test_the_api_returns_the_same_history(self, bob: User, vll: Vll) -> None:
        activate(vll)
        client = APIClient()
        client.force_authenticate(bob)
        history = client.get(f"/api/v1/vlls/{vll.pk}/history").json()["results"]
        assert len(history) == len(vll_history(vll))
        lifecycle = next(row for row in history if row["object"] == "vll" and row["operation"] == "update")
        assert lifecycle["before"] == {"lifecycle": "pendingActive"}
        assert lifecycle["after"] == {"lifecycle": "active"}

    def test_the_noc_reads_it_and_a_stranger_does_not(self, nora: User, charlie: User, vll: Vll) -> None:
        client = APIClient()
        for user, status in ((nora, 200), (charlie, 404)):
            client.force_authenticate(user)
            assert client.get(f"/api/v1/vlls/{vll.pk}/history").status_code == status

    def test_markup_in_a_value_stays_text(self, alice: User, vll: Vll) -> None:
        Vll.objects.filter(pk=vll.pk).update(description="<img src=x onerror=alert(1)>")
        page = signed_in(alice).get(f"/vlls/{vll.pk}/").content.decode()
        assert "<img src=x" not in page


def _etag(plain: str, vll: Vll) -> str:
    answer = APIClient(headers={"Authorization": f"Bearer {plain}"}).get(f"/api/v1/vlls/{vll.pk}")
    return str(answer.headers.get("ETag", "*"))


def test_ports_are_tracked_without_what_is_booked_on_them(db: None) -> None:
    assert "booked_bps" not in {field.name for field in EVENTS[Port]._meta.fields}


def test_what_changes_by_signing_in_is_said_to_be_the_persons_own(alice: User) -> None:
    login = {"login": "alice", "password": "correct horse battery"}
    assert Client(headers={"accept-language": "de"}).post("/login/", login)["Location"] == "/"
    change = of(alice)[-1]
    assert change.after == {"language": "de"}
    assert change.by["username"] == "alice"
    assert actor(change) == "alice"
