"""No page shows or changes an object of another customer: it responds as if the object did not exist.

The tests take all addresses from the URLconf. They fail for an address with an argument that is not listed
here, and for an address that sends a stranger any other status than 404.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from inspect import signature
from typing import Any
from uuid import uuid4

import pytest
from allauth.mfa.models import Authenticator
from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, get_resolver

from portal.accounts.invitations import invitation_path, invite
from portal.accounts.models import ApiToken, Customer, Invitation, Membership, User
from portal.accounts.tokens import token_create
from portal.alarms.kinds import Kind
from portal.alarms.models import Alarm
from portal.alarms.rounds import alarms_watch
from portal.allocation.models import ReservedVniRange
from portal.audit.models import EVENTS
from portal.core import clock
from portal.core.http import declared
from portal.diagnosis.trouble_reports import trouble_report
from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_operations import webhook_create, webhook_test
from portal.vll.models import ActivationTest, Order, Reservation, Vll, VllEnd
from portal.vll.operations.reservations import reservation_make
from tests.integration.accounts.codes import with_totp
from tests.integration.circuits import found_line
from tests.integration.imports.files import checked
from tests.integration.isp import Isp, build_isp, member
from tests.integration.orders import end, order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db

METHODS = ["get", "post", "put", "patch", "delete"]
# Addresses with a secret argument (a link in a mail) or with one that names no customer's object (the name of
# the identity provider, the digest of the logo).
BEARER = {
    "invitation",
    "unsubscribe",
    "email-change-confirm",
    "provider-logo",
    "provider-style",
    "account_reset_password_from_key",
    "openid_connect_login",
    "openid_connect_callback",
}
# Only the NOC reads objects of the network; others get this status whether the object exists or not.
FOR_THE_NOC = 403
METHOD_NOT_ALLOWED = 405
# The documentation belongs to no customer. This page exists only in the documentation for staff.
STAFF_PAGE = "routers/"


def patterns(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        address = f"{prefix}{entry.pattern}"
        if isinstance(entry, URLResolver):
            yield from patterns(entry, address)
        elif isinstance(entry, URLPattern):
            yield address, entry


def pages() -> list[tuple[str, URLPattern]]:
    """Return every address outside the API, which tests/guards checks."""
    return [
        (address, entry)
        for address, entry in patterns(get_resolver())
        if not address.startswith("api/") and entry.name not in BEARER
    ]


WITH_ARGUMENTS = [(address, entry) for address, entry in pages() if entry.pattern.converters]
WITHOUT = [(address, entry) for address, entry in pages() if not entry.pattern.converters]


@dataclass
class Dairy:
    """A customer with an order, a line and more. ``ids`` has an object of this customer, or of the NOC, for
    each argument of an address.
    """

    isp: Isp
    alice: User
    ids: dict[str, Any]


@pytest.fixture(scope="module")
def dairys(module_rows: None, documentation_sites: None) -> Dairy:
    dairy = Customer.objects.create(name="Alpine Dairy", created_at=clock.now())
    ada, alice = member("ada", dairy, "admin"), member("alice", dairy, "operator")
    isp = build_isp(owner=dairy)
    vll = order(isp, alice, description="Secret of the dairy").vll
    activate(vll)
    invitation = invite(by=ada, customer=dairy, email="dora@dairy.example", role="viewer", now=clock.now())
    token, _ = token_create(user=alice, name="Token of the dairy", now=clock.now())
    with_totp(alice)
    ends = {"a_end": end(isp, "rhino:host-cust2", outer=7), "z_end": end(isp, "hippo:host-cust2", outer=7)}
    reservation = reservation_make(user=alice, cir_bps=1000, now=clock.now(), **ends)
    url = "https://hooks.example.net/dairy"
    webhook, _ = webhook_create(user=ada, customer=dairy, url=url, now=clock.now())
    ids = {
        "webhook_id": webhook.pk,
        "delivery_id": webhook_test(webhook=webhook, now=clock.now()).pk,
        "vll_id": vll.pk,
        "test_id": ActivationTest.objects.create(
            vll=vll,
            order=vll.orders.get(),
            revision=1,
            admin_status_after="admin-up",
            frame=vll.frame,
            created_at=clock.now(),
            state="not_tested",
            reason="no-tunnel",
            finished_at=clock.now(),
        ).pk,
        "report_id": trouble_report(user=alice, vll=vll, note="", now=clock.now()).pk,
        "order_id": vll.orders.get().pk,
        "alarm_id": an_alarm().pk,
        "customer_id": dairy.pk,
        "membership_id": Membership.objects.get(user=alice).pk,
        "invitation_id": invitation.pk,
        "token_id": token.pk,
        "reservation_id": reservation.pk,
        "user_id": alice.pk,
        "circuit_id": found_line(isp),
        "import_id": checked(User.objects.create_user("nora", noc_role="noc"), "sites", "name\nBern\n").pk,
        "kind": "sites",
        "port_id": isp.ports["rhino:host-cust1"].pk,
        "router_id": isp.routers["rhino"].pk,
        "site_id": isp.routers["rhino"].site_id,
        "link_id": isp.links["rhino-hippo"].pk,
        "of": "customers",
        "path": STAFF_PAGE,
        "side": "a",
        "vni_range_id": ReservedVniRange.objects.create(first=1, last=1, reason="lab").pk,
    }
    return Dairy(isp, alice, ids)


@pytest.fixture
def ids(dairys: Dairy) -> dict[str, Any]:
    return dairys.ids


def an_alarm() -> Alarm:
    """Return the alarm of the trouble that Alice has reported."""
    alarms_watch(now=clock.now())
    return Alarm.objects.get(kind=Kind.TROUBLE)


def filled(address: str, entry: URLPattern, values: dict[str, Any]) -> str:
    for name in entry.pattern.converters:
        assert name in values, f"{address}: add a {name} of the other customer to `dairys`"
        for converter in ("uuid", "int", "str", "slug", "path"):
            address = address.replace(f"<{converter}:{name}>", str(values[name]))
    assert "<" not in address, address
    return f"/{address}"


def nowhere(values: dict[str, Any]) -> dict[str, Any]:
    """Return ids of the same types that no object has."""
    return {name: uuid4() if not isinstance(value, int) else 2**31 for name, value in values.items()}


def closed_to(user: User, entry: URLPattern) -> bool:
    """Return whether the address rejects the user for their role, before it reads any object."""
    permission = declared(entry.callback)
    assert permission is not None, entry.pattern
    return len(signature(permission).parameters) == 1 and not permission(user)


def everything() -> dict[str, list[Any]]:
    """Return the rows that a stranger might try to change."""
    models = (
        Vll,
        VllEnd,
        Order,
        Reservation,
        Customer,
        User,
        Membership,
        Invitation,
        ApiToken,
        Authenticator,
        Webhook,
        Delivery,
    )
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in models}


@pytest.mark.parametrize(("address", "entry"), WITH_ARGUMENTS, ids=[address for address, _ in WITH_ARGUMENTS])
def test_a_stranger_finds_nothing_there(
    address: str, entry: URLPattern, ids: dict[str, Any], charlie: User
) -> None:
    client, before = signed_in(charlie), everything()
    for method in METHODS:
        here: HttpResponse = getattr(client, method)(filled(address, entry, ids))
        gone: HttpResponse = getattr(client, method)(filled(address, entry, nowhere(ids)))
        assert here.status_code == gone.status_code, f"{method} reveals which objects exist"
        allowed = {404, METHOD_NOT_ALLOWED, *({FOR_THE_NOC} if closed_to(charlie, entry) else ())}
        assert here.status_code in allowed, method
    assert everything() == before


@pytest.mark.parametrize("address", [f"/{address}" for address, _ in WITHOUT])
def test_a_stranger_reads_nothing_of_the_dairy(address: str, ids: dict[str, Any], charlie: User) -> None:
    client = signed_in(charlie)
    for query in ({}, {"q": "dairy", "show": "all", **{name: str(value) for name, value in ids.items()}}):
        response = client.get(address, query)
        body = b"".join(response.streaming_content) if response.streaming else response.content  # type: ignore[attr-defined]
        for secret in ("dairy", str(ids["vll_id"]), str(ids["order_id"])):
            page = body.decode().lower()
            for echo in ('value="dairy"', "“dairy”", '"/search/?q=dairy"'):
                page = page.replace(echo, "")
            # A part of the page reloads itself from the address of the request.
            page = page.replace(escape(response.wsgi_request.get_full_path().lower()), "")  # type: ignore[attr-defined]
            assert secret not in page, f"{address}: {secret}"


def test_objects_of_two_customers_do_not_mix_in_one_address(
    ids: dict[str, Any], charlie: User, bakery: Customer
) -> None:
    client, before = signed_in(charlie), everything()
    for action in (
        f"members/{ids['membership_id']}/remove/",
        f"members/{ids['membership_id']}/role/",
        f"invitations/{ids['invitation_id']}/revoke/",
    ):
        assert client.post(f"/team/{bakery.pk}/{action}", {"role": "viewer"}).status_code == 404
    assert everything() == before


def test_a_stranger_orders_nothing_on_the_dairys_ports(dairys: Dairy, charlie: User) -> None:
    ports = {
        f"{side}-port": dairys.isp.ports[f"{router}:host-cust2"].pk
        for side, router in zip("az", ("rhino", "hippo"), strict=True)
    }
    response = signed_in(charlie).post("/orders/new/", ports)
    assert response.status_code == 422
    assert "host-cust2" not in text(response)
    assert Order.objects.count() == 1


def test_a_stranger_leaves_no_trace_in_the_dairys_history(ids: dict[str, Any], charlie: User) -> None:
    signed_in(charlie).post(f"/vlls/{ids['vll_id']}/remove/")
    actors = {(row["pgh_context"] or {}).get("username") for row in EVENTS[Vll].objects.values()}
    assert "charlie" not in actors


def test_a_stranger_cannot_use_the_link_of_an_invitation(ids: dict[str, Any], charlie: User) -> None:
    path = invitation_path(Invitation.objects.get(pk=ids["invitation_id"]))
    assert signed_in(charlie).post(path).status_code == 409
    assert Membership.objects.filter(user=charlie).count() == 1
