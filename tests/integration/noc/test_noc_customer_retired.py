"""Retiring a customer: members lose access, the history stays, and nothing new can belong to it."""

from typing import Any

import pytest
from django.contrib.auth import authenticate

from portal.accounts import permissions
from portal.accounts.invitations import invite, open_invitations
from portal.accounts.models import ApiToken, Customer, Membership, User
from portal.core import clock
from portal.events.models import Event
from portal.inventory.errors import InUse, Retired
from portal.inventory.models import Port
from portal.inventory.operations import customer_change, customer_remove, customer_return, port_change
from portal.vll.models import Order, Vll
from portal.vll.operations.line_removal import order_delete
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate, answer
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def by(user: User) -> dict[str, Any]:
    return {"user": user, "now": clock.now()}


@pytest.fixture
def over(isp: Isp, alice: User, dairy: Customer, nora: User) -> Vll:
    """Terminate the dairy's only line; the ports are then free for others."""
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    for side in "az":
        answer(vll, side, "removed")
    for port in Port.objects.all():
        port_change(port=port, customer=None, **by(nora))
    vll.refresh_from_db()
    return vll


def test_customer_with_ports_or_lines_cannot_be_retired(
    isp: Isp, alice: User, dairy: Customer, nora: User
) -> None:
    order(isp, alice, description="Milk run")
    with pytest.raises(InUse) as refused:
        customer_remove(customer=dairy, **by(nora))
    assert "port hippo:host-cust1" in refused.value.used_by
    dairy.refresh_from_db()
    assert dairy.retired_at is None


def test_members_lose_access_and_history_stays(
    over: Vll, ada: User, alice: User, dairy: Customer, nora: User
) -> None:
    api, page = client(alice), signed_in(alice)
    invite(by=ada, customer=dairy, email="dora@dairy.example", role="viewer", now=clock.now())
    customer_remove(customer=dairy, **by(nora))
    assert authenticate(username="alice", password="correct horse battery") is None
    assert page.get("/").status_code == 302
    assert api.get("/api/v1/vlls").status_code == 401
    assert not ApiToken.objects.filter(user=alice, revoked_at=None).exists()
    assert not open_invitations(clock.now()).exists()
    assert Order.objects.filter(customer=dairy).count() == 2
    assert "Milk run" in text(signed_in(nora).get(f"/vlls/{over.pk}/"))


def test_member_of_another_customer_too_orders_only_there(
    over: Vll, alice: User, dairy: Customer, bakery: Customer, nora: User
) -> None:
    Membership.objects.create(user=alice, customer=bakery, role="operator")
    customer_remove(customer=dairy, **by(nora))
    dairy.refresh_from_db()
    assert User.objects.get(pk=alice.pk).is_active
    assert (permissions.may_order(alice, dairy), permissions.may_order(alice, bakery)) == (False, True)
    assert list(permissions.orderable_customers(alice)) == [bakery]


def test_nothing_new_can_belong_to_a_retired_customer(over: Vll, dairy: Customer, nora: User) -> None:
    customer_remove(customer=dairy, **by(nora))
    customer_remove(customer=dairy, **by(nora))
    with pytest.raises(Retired):
        port_change(port=Port.objects.first(), customer=dairy, **by(nora))
    with pytest.raises(Retired):
        customer_change(customer=dairy, name="Dairy", **by(nora))


def test_page_and_api_retire_and_list_a_customer(over: Vll, dairy: Customer, nina: User) -> None:
    page = signed_in(nina)
    assert "their API tokens are revoked" in text(page.get(f"/noc/customers/{dairy.pk}/remove/"))
    assert client(nina).delete(f"/api/v1/customers/{dairy.pk}").status_code == 204
    assert "Alpine Dairy no limit yes" in text(page.get("/noc/customers/", {"retired": "yes"}))
    assert "Alpine Dairy" not in text(page.get("/noc/customers/", {"retired": "no"}))
    shown = client(nina).get("/api/v1/customers", {"retired": "true"}).json()["results"]
    assert [row["name"] for row in shown if row["retired_at"]] == ["Alpine Dairy"]


def test_reversal_restores_members_without_their_tokens(
    over: Vll, isp: Isp, ada: User, alice: User, dairy: Customer, nora: User
) -> None:
    gone_before = User.objects.create(username="gone", is_active=False)
    Membership.objects.create(user=gone_before, customer=dairy, role="viewer")
    api = client(alice)
    customer_remove(customer=dairy, **by(nora))
    # A token whose creation was under way during the retirement.
    ApiToken.objects.filter(user=alice).update(revoked_at=None)
    customer_return(customer=dairy, **by(nora))
    customer_return(customer=dairy, **by(nora))
    dairy.refresh_from_db()
    assert dairy.retired_at is None
    assert authenticate(username="alice", password="correct horse battery") == alice
    assert not User.objects.get(pk=gone_before.pk).is_active
    assert api.get("/api/v1/vlls").status_code == 401
    for port in Port.objects.all():
        port_change(port=port, customer=dairy, **by(nora))
    assert order(isp, User.objects.get(pk=alice.pk)).state == "acknowledged"
    assert Event.objects.filter(kind="customer.reopened", customer_id=dairy.pk).count() == 1


def test_only_noc_admins_reverse_on_page_and_api(over: Vll, dairy: Customer, nora: User, nina: User) -> None:
    customer_remove(customer=dairy, **by(nora))
    assert client(nora).post(f"/api/v1/customers/{dairy.pk}/reopen").status_code == 403
    assert signed_in(nora).post(f"/noc/customers/{dairy.pk}/reopen/").status_code == 403
    assert "Reopen" in text(signed_in(nina).get("/noc/customers/", {"retired": "yes"}))
    assert client(nina).post(f"/api/v1/customers/{dairy.pk}/reopen").json()["retired_at"] is None
    customer_remove(customer=dairy, **by(nora))
    said = text(signed_in(nina, reauthenticated=True).post(f"/noc/customers/{dairy.pk}/reopen/", follow=True))
    assert "Its API tokens stay revoked." in said
    assert Customer.objects.get(pk=dairy.pk).retired_at is None
