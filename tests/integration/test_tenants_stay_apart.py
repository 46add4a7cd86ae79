"""Every page and operation, with the ids of another customer: as if they did not exist.

Generated from the URLconf: an address with an argument that nobody named here fails the test, and so does
an address that answers a stranger in any way but 404.
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
from portal.core.view_permission import declared
from portal.diagnosis.trouble_reports import trouble_report
from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_operations import webhook_create, webhook_test
from portal.telemetry.models import Quarantine
from portal.vll.models import Hold, LineTest, Order, Vll, VllEnd
from portal.vll.operations import hold_make
from tests.integration.accounts.codes import with_totp
from tests.integration.circuits import found_line
from tests.integration.imports.files import checked
from tests.integration.isp import Isp, build_isp, member
from tests.integration.orders import end, order
from tests.integration.router_answers import activate
from tests.integration.test_sample_quarantine import send
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db

METHODS = ["get", "post", "put", "patch", "delete"]
# Addresses whose arguments are their own proof or name nobody's object: a link mailed to one reader, the
# identity provider's name, the digest of the provider's logo.
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
# The inside of the network is the NOC's: everybody else gets one answer, whether the object exists or not.
FOR_THE_NOC = 403
REFUSED_BEFORE_LOOKING = 405


def patterns(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        address = f"{prefix}{entry.pattern}"
        if isinstance(entry, URLResolver):
            yield from patterns(entry, address)
        elif isinstance(entry, URLPattern):
            yield address, entry


def pages() -> list[tuple[str, URLPattern]]:
    """Every address outside the API, whose own test is its builder's."""
    return [
        (address, entry)
        for address, entry in patterns(get_resolver())
        if not address.startswith("api/") and entry.name not in BEARER
    ]


WITH_ARGUMENTS = [(address, entry) for address, entry in pages() if entry.pattern.converters]
WITHOUT = [(address, entry) for address, entry in pages() if not entry.pattern.converters]


@dataclass
class Dairy:
    """``ids``: of an object of the customer's, or of the NOC's, for each argument of an address."""

    isp: Isp
    alice: User
    ids: dict[str, Any]


@pytest.fixture(scope="module")
def dairys(module_rows: None) -> Dairy:
    dairy = Customer.objects.create(name="Alpine Dairy", created_at=clock.now())
    ada, alice = member("ada", dairy, "admin"), member("alice", dairy, "operator")
    isp = build_isp(owner=dairy)
    vll = order(isp, alice, description="Secret of the dairy").vll
    activate(vll)
    invitation = invite(by=ada, customer=dairy, email="dora@dairy.example", role="viewer", now=clock.now())
    token, _ = token_create(user=alice, name="Token of the dairy", now=clock.now())
    with_totp(alice)
    ends = {"a_end": end(isp, "rhino:host-cust2", outer=7), "z_end": end(isp, "hippo:host-cust2", outer=7)}
    hold = hold_make(user=alice, cir_bps=1000, now=clock.now(), **ends)
    url = "https://hooks.example.net/dairy"
    webhook, _ = webhook_create(user=ada, customer=dairy, url=url, now=clock.now())
    ids = {
        "webhook_id": webhook.pk,
        "delivery_id": webhook_test(webhook=webhook, now=clock.now()).pk,
        "vll_id": vll.pk,
        "test_id": LineTest.objects.create(
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
        "hold_id": hold.pk,
        "user_id": alice.pk,
        "circuit_id": found_line(isp),
        "import_id": checked(User.objects.create_user("nora", noc_role="noc"), "sites", "name\nBern\n").pk,
        "kind": "sites",
        "port_id": isp.ports["rhino:host-cust1"].pk,
        "router_id": isp.routers["rhino"].pk,
        "site_id": isp.routers["rhino"].site_id,
        "link_id": isp.links["rhino-hippo"].pk,
        "of": "customers",
        "quarantine_id": set_aside(isp, vll).pk,
        "side": "a",
        "vni_range_id": ReservedVniRange.objects.create(first=1, last=1, reason="lab").pk,
    }
    return Dairy(isp, alice, ids)


@pytest.fixture
def hers(dairys: Dairy) -> dict[str, Any]:
    return dairys.ids


def an_alarm() -> Alarm:
    """Of hers: the trouble that she has reported."""
    alarms_watch(now=clock.now())
    return Alarm.objects.get(kind=Kind.TROUBLE)


def set_aside(isp: Isp, vll: Vll) -> Quarantine:
    """The counts of a line by a router whose clock was wrong."""
    send(isp, vll, clock.now())
    return Quarantine.objects.get()


def filled(address: str, entry: URLPattern, values: dict[str, Any]) -> str:
    for name in entry.pattern.converters:
        assert name in values, f"{address}: say in `hers` what a {name} of the other customer is"
        for converter in ("uuid", "int", "str", "slug"):
            address = address.replace(f"<{converter}:{name}>", str(values[name]))
    assert "<" not in address, address
    return f"/{address}"


def nowhere(values: dict[str, Any]) -> dict[str, Any]:
    """Ids of nothing, in the same shape."""
    return {name: uuid4() if not isinstance(value, int) else 2**31 for name, value in values.items()}


def closed_to(user: User, entry: URLPattern) -> bool:
    """Whether the address asks about the reader alone, before it looks at any object, and says no."""
    permission = declared(entry.callback)
    assert permission is not None, entry.pattern
    return len(signature(permission).parameters) == 1 and not permission(user)


def everything() -> dict[str, list[Any]]:
    """The rows that a stranger could have wanted to change."""
    models = (
        Vll,
        VllEnd,
        Order,
        Hold,
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
    address: str, entry: URLPattern, hers: dict[str, Any], charlie: User
) -> None:
    client, before = signed_in(charlie), everything()
    for method in METHODS:
        here: HttpResponse = getattr(client, method)(filled(address, entry, hers))
        gone: HttpResponse = getattr(client, method)(filled(address, entry, nowhere(hers)))
        assert here.status_code == gone.status_code, f"{method} tells what exists"
        allowed = {404, REFUSED_BEFORE_LOOKING, *({FOR_THE_NOC} if closed_to(charlie, entry) else ())}
        assert here.status_code in allowed, method
    assert everything() == before


@pytest.mark.parametrize("address", [f"/{address}" for address, _ in WITHOUT])
def test_a_stranger_reads_nothing_of_the_dairy(address: str, hers: dict[str, Any], charlie: User) -> None:
    client = signed_in(charlie)
    for query in ({}, {"q": "dairy", "show": "all", **{name: str(value) for name, value in hers.items()}}):
        answer = client.get(address, query)
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
        for secret in ("dairy", str(hers["vll_id"]), str(hers["order_id"])):
            said = body.decode().lower()
            for echo in ('value="dairy"', "“dairy”", '"/search/?q=dairy"'):
                said = said.replace(echo, "")
            # A part of the page asks again for the address that was asked for.
            said = said.replace(escape(answer.wsgi_request.get_full_path().lower()), "")  # type: ignore[attr-defined]
            assert secret not in said, f"{address}: {secret}"


def test_objects_of_two_customers_do_not_mix_in_one_address(
    hers: dict[str, Any], charlie: User, bakery: Customer
) -> None:
    client, before = signed_in(charlie), everything()
    for what in (
        f"members/{hers['membership_id']}/remove/",
        f"members/{hers['membership_id']}/role/",
        f"invitations/{hers['invitation_id']}/revoke/",
    ):
        assert client.post(f"/team/{bakery.pk}/{what}", {"role": "viewer"}).status_code == 404
    assert everything() == before


def test_a_stranger_orders_nothing_on_the_dairys_ports(dairys: Dairy, charlie: User) -> None:
    ports = {
        f"{side}-port": dairys.isp.ports[f"{router}:host-cust2"].pk
        for side, router in zip("az", ("rhino", "hippo"), strict=True)
    }
    answer = signed_in(charlie).post("/orders/new/", ports)
    assert answer.status_code == 422
    assert "host-cust2" not in text(answer)
    assert Order.objects.count() == 1


def test_a_stranger_leaves_no_trace_in_the_dairys_history(hers: dict[str, Any], charlie: User) -> None:
    signed_in(charlie).post(f"/vlls/{hers['vll_id']}/remove/")
    actors = {(row["pgh_context"] or {}).get("username") for row in EVENTS[Vll].objects.values()}
    assert "charlie" not in actors


def test_the_link_of_an_invitation_tells_a_stranger_no_more_than_its_reader(
    hers: dict[str, Any], charlie: User
) -> None:
    path = invitation_path(Invitation.objects.get(pk=hers["invitation_id"]))
    assert signed_in(charlie).post(path).status_code == 409
    assert Membership.objects.filter(user=charlie).count() == 1
