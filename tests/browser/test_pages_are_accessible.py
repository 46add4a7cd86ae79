"""Every page, light and dark, wide and narrow: no violations, no overflow, no errors of scripts."""

import html
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.urls import URLResolver, get_resolver, resolve
from playwright.sync_api import Page, expect

from portal.accounts.models import ApiToken, Customer, Membership, User
from portal.accounts.tokens import token_create
from portal.alarms.models import Alarm
from portal.alarms.operations import alarm_acknowledge, alarm_silence
from portal.alarms.rounds import alarms_watch
from portal.allocation.models import ReservedVniRange
from portal.api.openapi.document import GROUPS
from portal.core import clock
from portal.diagnosis.trouble_reports import trouble_report
from portal.imports.models import Import
from portal.imports.operations import import_cancel
from portal.inventory.models import (
    BackboneLink,
    ObservedCircuit,
    Port,
    Router,
    RouterFreeze,
    RouterSilence,
    Site,
)
from portal.inventory.observation_store import circuits_store
from portal.netbox_sync.models import ExportedVll, NetboxRun, NetboxState
from portal.notifications.mail_recipients import unsubscribe_path
from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_operations import webhook_create, webhook_test
from portal.telemetry.reported_counters import EndCount
from portal.vll.models import ActivationTest, Order, PlanResult, Reservation, Vll, VllEnd
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.reservations import reservation_make
from portal.web.noc.inventory.inventory_kinds import KINDS
from tests.browser.reader import DARK_AND_NARROW, LIGHT_AND_WIDE, Reader, german
from tests.integration.circuits import attachment, circuit, tunnel
from tests.integration.imports.files import checked, staged
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import activate, refuse
from tests.integration.telemetry.test_losses import of_interface, of_router, store_at

# A line's page has links to the months and to the diagnosis, which scripts load at once.
_FILLED_BY_SCRIPTS = {
    "Availability and frame loss by month",
    "95th percentile by month",
    "Is it me or you?",
}
# Addresses that take a form or return part of a page.
_BUTTONS_AND_PARTS = {
    f"web:{name}"
    for name in (
        *("order-check", "order-ports", "order-reservation", "reservation-renew", "reservation-release"),
        *("live", "vll-status", "vll-change-check", "vll-resume", "vll-restore", "vll-cancel"),
        *("activation-test-call-off", "trouble-report", "trouble-close"),
        *("account-language", "palette", "provider-logo", "provider-style"),
        *("vll-retry", "invite", "member-role", "invitation-revoke"),
        *("webhook-rotate", "webhook-test", "webhook-disable", "webhook-enable", "webhook-redeliver"),
        *("noc-netbox-run", "noc-order-plan", "noc-order-approve", "noc-order-reject"),
        *("noc-order-force-retry", "noc-order-force-end", "noc-customer-reopen", "noc-suggest"),
        "noc-interfaces",
        *("noc-staff-add", "noc-person-role", "noc-person-reopen"),
        *(
            "noc-router-actions",
            "noc-router-freeze",
            "noc-adoption-sheet",
            "noc-router-enrolment",
            "noc-router-dead",
            "noc-router-revoke",
        ),
        "noc-router-calibration",
        "noc-router-rebuild",
        *("noc-import-template", "noc-import-errors", "noc-import-begin", "noc-import-cancel"),
        *(f"noc-alarm-{do}" for do in ("acknowledge", "unacknowledge", "assign", "silence", "unsilence")),
    )
}
_READ_ELSEWHERE = {
    "web:documentation",  # built by Sphinx: test_documentation.py
    *("web:team", "web:invitation", "web:tokens", "web:email-change", "web:email-change-confirm"),
}
_ROUTERS = {"a_end": "rhino", "z_end": "hippo"}


@pytest.fixture
def lines(transactional_db: None, isp: Isp, alice: User, ada: User, settings: Any) -> dict[str, Vll]:
    """Return a line in each state of its life, and create all kinds of records of NetBox."""

    def new(name: str, vlan: int) -> Vll:
        ends = {
            "a_end": end(isp, "rhino:host-cust1", outer=vlan),
            "z_end": end(isp, "hippo:host-cust1", outer=vlan),
        }
        return order(isp, alice, description=name, cir_bps=10**8, **ends).vll

    found = {
        name: new(name, vlan) for vlan, name in enumerate(("new", "active", "failed", "gone"), start=100)
    }
    activate(found["active"])
    Customer.objects.update(approve_up_to_bps=GBIT)
    alice.refresh_from_db()
    ends = {"a_end": end(isp, "rhino:host-cust2"), "z_end": end(isp, "hippo:host-cust2")}
    pending = order(isp, alice, description="pending", cir_bps=2 * GBIT, **ends)
    add_plan(pending, isp)
    found["pending"] = pending.vll
    ends = {name: end(isp, f"{router}:host-cust2", outer=7) for name, router in _ROUTERS.items()}
    reservation_make(user=alice, cir_bps=10**6, now=clock.now(), **ends)
    refuse(found["failed"], "a")
    add_failed_test(found["active"])
    activate(found["gone"])
    order_delete(user=alice, vll=found["gone"], now=clock.now())
    add_delivery_log(ada)
    settings.NETBOX_URL = "http://netbox.invalid"
    add_netbox_runs(found["active"])
    ReservedVniRange.objects.create(first=1, last=9, reason="lab")
    record_losses(isp, found["active"])
    loss = {"state": "not_restored", "since_ms": 1_790_000_000_000, "detail": "seen 7 times"}
    VllEnd.objects.filter(vll=found["active"], side="a").update(vlan_loss=loss)
    trouble_report(user=alice, vll=found["active"], note="It stutters since noon", now=clock.now())
    raise_alarms(isp, alice)
    find_foreign_lines(isp)
    import_tables()
    RouterFreeze.objects.create(
        router=isp.routers["hippo"],
        reason="line cards",
        by="nora",
        since=clock.now(),
        until=clock.now() + timedelta(hours=1),
    )
    Router.objects.filter(name="hippo").update(frozen_since=clock.now())
    return found


def import_tables() -> None:
    """Create an import with an invalid row, one that is not checked yet, and one that was stopped."""
    ivo = User.objects.create_user("ivo", noc_role="noc")
    checked(ivo, "sites", "name,latitude,longitude\nBasel,north,\nChur,46.85,9.53\n# Genf,,\n")
    staged(ivo, "routers", "name,site\nchamois,Chur\n")
    import_cancel(this=staged(ivo, "customers", "name\nChur Coal\n"), user=ivo, now=clock.now())


def find_foreign_lines(isp: Isp) -> None:
    """Store a complete foreign line, one without an end, and one that is irregular in every way."""
    odd = attachment("host-cust2", 7, 8, wide=True)
    far = tunnel("rhino", "zebra", 4711, "geneve", standard=False)
    circuits_store(
        isp.routers["rhino"],
        [
            circuit(attachment("host-cust1", 900), tunnel("rhino", "hippo", 900)),
            circuit(attachment("host-cust1", 901), tunnel("rhino", "hippo", 901, "gre")),
            circuit(odd, far, back=False),
        ],
    )
    whole_port = attachment("host-cust2")
    circuits_store(isp.routers["hippo"], [circuit(whole_port, tunnel("hippo", "rhino", 900))])


def raise_alarms(isp: Isp, somebody: User) -> None:
    """Create a silent router with several lines, a cleared alarm, an acknowledged and a silenced one."""
    RouterSilence.objects.create(router=isp.routers["hippo"], since=clock.now() - timedelta(hours=2))
    Router.objects.filter(name="zebra").update(locked_since=clock.now())
    alarms_watch(now=clock.now())
    Router.objects.filter(name="zebra").update(locked_since=None)
    alarms_watch(now=clock.now())
    alarm_acknowledge(
        alarm=Alarm.objects.get(kind="trouble"), user=somebody, note="Urs drives there", now=clock.now()
    )
    until = clock.now() + timedelta(hours=8)
    alarm_silence(alarm=Alarm.objects.get(kind="losses"), user=somebody, until=until, now=clock.now())


def record_losses(isp: Isp, vll: Vll) -> None:
    """Record losses of a link's interface, of a router and of a line over some hours."""
    link, now = BackboneLink.objects.filter(a_router=isp.routers["rhino"])[0], clock.now()
    counted = of_interface(link.a_interface, rx_packets=10**11, tx_packets=10**11, rx_miss=10**8, drops=10**7)
    own = of_router(no_such_tunnel=10**6, buffers=16384, buffers_free=1000)
    ends = (EndCount(str(vll.pk), "a", 900, 90, 800, 80, in_drops=1, out_drops=2000),)
    for ago in (timedelta(hours=5), timedelta(hours=4), timedelta(seconds=20)):
        store_at(isp, now - ago, (counted, of_interface("cust0")), own, ends=ends, now=now)


def add_failed_test(vll: Vll) -> None:
    """Add a test with lost frames."""
    counts = [{"frame": frame, "sent": 100, "received": 100, "fragmented": False} for frame in (64, 1024)]
    ActivationTest.objects.create(
        vll=vll,
        order=vll.orders.get(),
        revision=1,
        admin_status_after="admin-up",
        frame=vll.frame,
        created_at=clock.now(),
        state="failed",
        reason="large-frames-lost",
        largest_passed=1024,
        directions={"a_to_z": counts, "z_to_a": counts[:1]},
        round_trip_us={"sent": 5, "received": 5, "min": 400, "avg": 520, "max": 900},
        conditions={
            "transport": "vxlan4",
            "routers": {
                side: {"router": router, "port": "host-cust1", "vpp": "25.10", "agent": "0.1.0"}
                for side, router in (("a", "rhino"), ("z", "hippo"))
            },
            "path": {
                "required_ip_mtu": 1550,
                "ip_mtu": None,
                "links": [{"link": "rhino:bb-next — hippo:bb-prev", "ip_mtu": None, "backup": False}],
            },
        },
        finished_at=clock.now(),
    )


def add_delivery_log(ada: User) -> None:
    """Add a webhook that was made with one of her tokens, with a delivery in each state."""
    dairy = Customer.objects.get(name="Alpine Dairy")
    url = "https://hooks.example.net/a/rather/long/way/to/the/program/that/listens"
    token, _ = token_create(user=ada, name="tickets", now=clock.now())
    webhook, _ = webhook_create(
        user=ada, customer=dairy, url=url, description="Tickets", made_with=token, now=clock.now()
    )
    taken, refused, _ = (webhook_test(webhook=webhook, now=clock.now()) for _ in range(3))
    entry = {"at": clock.now().isoformat(), "took_ms": 12}
    for delivery, state, status, error in (
        (taken, "delivered", 204, ""),
        (refused, "failed", 500, "status"),
    ):
        Delivery.objects.filter(pk=delivery.pk).update(
            state=state,
            next_try_at=None,
            tries=10,
            log=[{**entry, "status": status, "error": error}],
            answer="No <b>such</b> thing",
        )


def add_netbox_runs(line: Vll) -> None:
    """Add runs of all kinds, with changes and findings, and a line that NetBox refuses."""
    now = clock.now()
    fields = {"speed_bps": [10**9, 10**10], "customer": [None, "Alpine Dairy"]}
    changes = [
        {"kind": "port", "name": "rhino:host-cust1", "creates": creates, "fields": fields}
        for creates in (True, False)
    ]
    findings = [
        {"code": "link_mtu_missing", "subject": "zebra:bb-prev", "facts": {"link": "hippo — zebra"}},
        {"code": "kept", "subject": "rhino", "facts": {"field": "site", "ours": "Bern", "theirs": "Zürich"}},
    ]
    counts = {"changes": 2, "findings": 2}
    of_all = {"requested_at": now, "started_at": now, "finished_at": now}
    NetboxRun.objects.create(
        why="person",
        requested_by="nina",
        dry=True,
        changes=changes,
        findings=findings,
        counts=counts,
        **of_all,
    )
    error = {"code": "token_refused", "facts": {"status": 403, "detail": "Invalid token"}}
    NetboxRun.objects.create(why="webhook", error=error, **of_all)
    NetboxRun.objects.create(why="schedule", requested_at=now, started_at=now, phase="lines", done=3, total=9)
    NetboxState.objects.create(pk=1, release="4.4.10", error=error, failing_since=now, retry_at=now)
    taken = {"code": "interface_taken", "facts": {"interface": "host-cust1.101", "by": "Theirs"}}
    ExportedVll.objects.create(vll=line, error=taken)


def add_plan(pending_order: Order, isp: Isp) -> None:
    """Add a plan of the order with a complete part, and with the part of a router that did not respond."""
    difference = {"end": "a", "field": "transport.vni", "before": None, "after": 70001}
    cli = "create vxlan tunnel src 10.255.0.1 dst 10.255.0.2 vni 70001 instance 16383 decap-next l2"
    operation = {"n": 1, "stage": "create", "end": "a", "message": "vxlan_add_del_tunnel_v3", "cli": cli}
    reason = {
        "code": "vlan-taken",
        "message": "VLAN 100 belongs to somebody else",
        "object": "host-cust1.100",
    }
    complete = {
        "differences": [difference],
        "operations": [operation | {"why": "the tunnel is missing"}],
        "ends": [{"end": "a", "status": "conflict", "reason": reason}],
        "error": "",
    }
    silent = {"differences": [difference], "operations": [], "ends": [], "error": "ConnectTimeout"}
    PlanResult.objects.create(
        order=pending_order,
        requested_by="nora",
        requested_at=clock.now(),
        finished_at=clock.now(),
        routers=[
            {"router": isp.routers[name].pk, "name": name, "generation": 0, **part}
            for name, part in (("hippo", silent), ("rhino", complete))
        ],
    )


def visits(lines: dict[str, Vll]) -> dict[str, list[str]]:
    """Return the addresses that each user reads; "" is a visitor who is not signed in."""
    ada = Membership.objects.get(user__username="ada")
    return {
        "": [
            "/login/",
            "/api/docs/errors/",
            "/nowhere/",
            unsubscribe_path(User.objects.get(username="alice"), "orders"),
            "/unsubscribe/nothing/",
        ],
        "alice": [
            "/",
            "/?show=all",
            "/ports/",
            *(f"/ports/{port.pk}/" for port in Port.objects.filter(router__name="rhino")),
            "/orders/",
            "/orders/new/",
            "/holds/",
            f"/orders/new/?hold={Reservation.objects.get().pk}",
            "/search/",
            "/search/?q=nothing+like+it",
            "/search/?q=host",
            "/shortcuts/",
            "/account/",
            "/nowhere/",
            *(f"/vlls/{vll.pk}/" for vll in lines.values()),
            f"/vlls/{lines['active'].pk}/remove/",
            f"/vlls/{lines['active'].pk}/suspend/",
            f"/vlls/{lines['active'].pk}/bandwidth/",
            f"/vlls/{lines['active'].pk}/change/",
            f"/vlls/{lines['active'].pk}/months/",
            f"/vlls/{lines['active'].pk}/test/",
            f"/vlls/{lines['active'].pk}/diagnosis/",
            *(f"/vlls/{test.vll_id}/tests/{test.pk}/" for test in lines["active"].activation_tests.all()),
        ],
        "ada": [
            "/account/notifications/",
            "/webhooks/",
            "/webhooks/add/",
            *(f"/webhooks/{Webhook.objects.get().pk}/{page}" for page in ("", "change/", "remove/")),
            f"/account/tokens/{ApiToken.objects.get().pk}/revoke/",
            f"/team/{ada.customer_id}/members/{ada.pk}/remove/",
        ],
        "bob": ["/", "/orders/new/", "/webhooks/", "/team/"],
        "charlie": ["/", "/ports/", "/orders/", "/orders/new/", "/holds/"],
        "nora": [
            "/",
            "/search/?q=rhino",
            "/ports/",
            "/orders/",
            "/orders/new/",
            "/routers/",
            f"/ports/{Port.objects.all()[0].pk}/",
            f"/noc/customers/{ada.customer_id}/",
            f"/noc/customers/{ada.customer_id}/lines/",
            f"/noc/customers/{ada.customer_id}/lines/?health=unknown",
            f"/vlls/{lines['active'].pk}/",
            f"/vlls/{lines['active'].pk}/diagnosis/",
            "/noc/",
            "/noc/wall/",
            "/noc/alarms/history/",
            "/noc/alarms/history/?state=up&kind=no-such&since=2099-01-01T00:00",
            "/noc/alarms/history/?router=no-such-router",
            *(
                f"/noc/alarms/{Alarm.objects.get(kind=kind).pk}/"
                for kind in ("router_silent", "trouble", "losses", "withheld")
            ),
            "/noc/map/",
            "/noc/map/?q=nothing",
            "/noc/map/?link=0",
            f"/noc/map/?line={lines['active'].pk}",
            f"/noc/map/?link={BackboneLink.objects.get(a_router__name='rhino').pk}",
            f"/noc/map/?router={Router.objects.get(name='rhino').pk}",
            "/noc/found-lines/",
            "/noc/imports/",
            *(f"/noc/imports/{each.pk}/" for each in Import.objects.all()),
            "/noc/pools/",
            "/noc/netbox/",
            "/noc/trouble/",
            "/account/",
            "/noc/audit/",
            "/noc/audit/?what=authenticator",
            "/noc/audit/?by=nobody",
            f"/noc/routers/{Router.objects.get(name='rhino').pk}/",
            f"/noc/routers/{Router.objects.get(name='rhino').pk}/drain/",
            f"/noc/routers/{Router.objects.get(name='hippo').pk}/",
            *(f"/noc/{kind.slug}/" for kind in KINDS),
            *(f"/noc/{kind.slug}/add/" for kind in KINDS),
            *(f"/noc/{slug}/{pk}/history/" for slug, pk in a_row_of_each_kind().items()),
            "/noc/staff/",
            f"/noc/people/{User.objects.get(username='alice').pk}/",
            f"/noc/people/{User.objects.get(username='alice').pk}/history/",
            f"/webhooks/{Webhook.objects.get().pk}/",
            f"/noc/webhooks/{Webhook.objects.get().pk}/history/",
            "/noc/ports/?q=nothing&assigned=yes",
            "/noc/orders/",
            f"/noc/orders/{lines['pending'].orders.get().pk}/",
            f"/noc/orders/{lines['failed'].orders.get().pk}/",
        ],
        "nina": [
            "/noc/imports/?kind=lines",
            "/noc/found-lines/adopt/",
            f"/noc/found-lines/{ObservedCircuit.objects.earliest('pk').pk}/adopt/",
            f"/vlls/{lines['active'].pk}/let-go/",
            "/noc/netbox/",
            "/noc/staff/",
            f"/noc/people/{ada.user_id}/close/",
            f"/noc/people/{ada.user_id}/second-factor/",
            f"/noc/customers/{Customer.objects.create(name='Chur & Co.', created_at=clock.now()).pk}/",
            *(f"/noc/people/{user.pk}/" for user in User.objects.filter(username__in=["alice", "nora"])),
            *(
                f"/noc/{slug}/{pk}/{page}/"
                for slug, pk in a_row_of_each_kind().items()
                for page in ("change", "remove")
            ),
        ],
    }


def a_row_of_each_kind() -> dict[str, int]:
    """Return the id of one row of each kind, by the kind's name in addresses."""
    return {
        "sites": Site.objects.all()[0].pk,
        "routers": Router.objects.get(name="rhino").pk,
        "ports": Port.objects.all()[0].pk,
        "links": BackboneLink.objects.all()[0].pk,
        "customers": Customer.objects.get(name="Alpine Dairy").pk,
        "vni-ranges": ReservedVniRange.objects.get().pk,
    }


def _names(below: Any, space: str = "") -> Iterator[str]:
    for each in below.url_patterns:
        if isinstance(each, URLResolver):
            yield from _names(each, f"{space}{each.namespace}:" if each.namespace else space)
        elif each.name:
            yield f"{space}{each.name}"


def test_every_page_is_in_the_list_of_visits(
    lines: dict[str, Vll], bob: User, charlie: User, nora: User, nina: User
) -> None:
    """test_account_pages.py reads the pages around signing in, teams and tokens."""
    read = {
        resolve(address.split("?")[0]).view_name
        for addresses in visits(lines).values()
        for address in addresses
        if address != "/nowhere/"
    }
    pages = {name for name in _names(get_resolver()) if name.startswith("web:")}
    assert pages - read == _BUTTONS_AND_PARTS | _READ_ELSEWHERE


@pytest.mark.parametrize("in_turns", [True, pytest.param(False, marks=pytest.mark.release)])
def test_every_page_is_accessible_fits_and_works_without_javascript(
    live_server: Any,
    lines: dict[str, Vll],
    bob: User,
    charlie: User,
    nora: User,
    nina: User,
    reader: Callable[..., Reader],
    in_turns: bool,
) -> None:
    """Load each page once, wide and light, then show it narrow and dark, in German because German is longer.

    axe checks each page in one of the two, by turns; before a release in both. The page from the server has
    the same headings as the page that scripts made of it. Headings that only scripts fill are listed above.
    """
    found = {}
    for who, addresses in visits(lines).items():
        person = reader(live_server.url, **({} if who else {"locale": "de-CH"}))
        if who:
            person.be_signed_in(who, language="de")
        for number, address in enumerate(addresses):
            person.set_appearance(LIGHT_AND_WIDE)
            sent = person.open_and_read(address)
            wrong = []
            for turn, appearance in enumerate((LIGHT_AND_WIDE, DARK_AND_NARROW)):
                person.set_appearance(appearance)
                wrong += _too_wide(person)
                if not in_turns or turn == number % 2:
                    wrong += person.accessibility_violations()
            wrong += person.complaints
            missing = headings(person) - headings_in(sent) - {german(text) for text in _FILLED_BY_SCRIPTS}
            if missing:
                # A script has requested a plan from the routers, which the server now has.
                missing -= headings_in(person.source(address))
            wrong += sorted(missing)
            if wrong:
                found[who, address] = wrong
            person.complaints.clear()
    assert found == {}


@pytest.mark.parametrize(
    "groups",
    [[next(iter(GROUPS))], pytest.param(list(GROUPS), marks=pytest.mark.release)],
    ids=["one", "all"],
)
def test_the_pages_of_the_api_are_accessible_fit_and_work_without_javascript(
    live_server: Any, alice: User, reader: Callable[..., Reader], groups: list[str]
) -> None:
    """Read the index and groups as a user who may try operations, with all folded parts open."""
    person = reader(live_server.url)
    person.be_signed_in("alice", language="de")
    found = {}
    for address in ["/api/docs/", *(f"/api/docs/{slug}/" for slug in groups)]:
        sent = person.open_and_read(address)
        person.page.evaluate(
            "() => document.querySelectorAll('details').forEach((part) => { part.open = true; })"
        )
        wrong = sorted(headings(person) ^ headings_in(sent))
        for appearance in (LIGHT_AND_WIDE, DARK_AND_NARROW):
            person.set_appearance(appearance)
            wrong += person.accessibility_violations() + _too_wide(person)
        if wrong:
            found[address] = wrong
    assert found == {}
    assert person.complaints == []


def _too_wide(person: Reader) -> list[str]:
    return [f"{person.overflow()} px too wide"] if person.overflow() > 0 else []


def headings(person: Reader) -> set[str]:
    """Return the headings of the page after its scripts have run."""
    return {_plain(each) for each in person.page.locator("h1, h2").all_text_contents()}


def headings_in(source: str) -> set[str]:
    """Return the headings in the server's HTML, which is all that a browser without scripts has."""
    found = re.findall(r"<h([12])\b[^>]*>(.*?)</h\1>", source, re.DOTALL)
    return {_plain(html.unescape(re.sub(r"<[^>]+>", "", inner))) for _, inner in found}


def _plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_form_with_mistakes_is_accessible(
    live_server: Any, lines: dict[str, Vll], reader: Callable[..., Reader], scheme: str
) -> None:
    alice = reader(live_server.url, color_scheme=scheme)
    alice.be_signed_in("alice")
    alice.open("/orders/new/")
    alice.page.get_by_role("button", name="Order this line").click()
    alice.page.get_by_role("alert").wait_for()
    assert alice.accessibility_violations() == []
    assert alice.complaints == []


def test_the_choice_of_light_or_dark_is_remembered(
    live_server: Any, transactional_db: None, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url, color_scheme="light")
    person.open("/login/")
    shown = person.page.locator("html")
    assert shown.get_attribute("data-bs-theme") == "light"
    person.page.get_by_role("button", name="Switch between light and dark").click()
    person.open("/login/")
    assert shown.get_attribute("data-bs-theme") == "dark"


def test_a_slash_moves_to_the_search_except_in_a_field(
    live_server: Any, lines: dict[str, Vll], reader: Callable[..., Reader]
) -> None:
    alice = reader(live_server.url)
    alice.be_signed_in("alice")
    alice.open("/orders/new/")
    name = alice.page.get_by_label("Name or reference")
    name.press("/")
    expect(name).to_have_value("/")
    alice.page.get_by_role("heading", name="Order a line").click()
    alice.page.keyboard.press("/")
    alice.page.keyboard.type("active")
    alice.page.keyboard.press("Enter")
    alice.page.get_by_role("heading", name="Search").wait_for()
    expect(alice.page.get_by_role("link", name="active")).to_be_visible()
    assert alice.complaints == []


def test_the_order_form_offers_only_the_vlans_that_the_tagging_needs(
    live_server: Any, lines: dict[str, Vll], reader: Callable[..., Reader]
) -> None:
    alice = reader(live_server.url)
    alice.be_signed_in("alice")
    alice.open("/orders/new/")
    end_a = alice.page.get_by_role("group", name="A end")
    offered = {}
    for tagging in ("untagged", "dot1q", "qinq", "dot1ad"):
        end_a.get_by_label("What it carries").select_option(tagging)
        offered[tagging] = [end_a.get_by_label(f"{which} VLAN").is_visible() for which in ("Outer", "Inner")]
    assert offered == {
        "untagged": [False, False],
        "dot1q": [True, False],
        "qinq": [True, True],
        "dot1ad": [True, True],
    }


def test_a_lost_connection_is_shown_until_it_is_restored(
    live_server: Any, lines: dict[str, Vll], reader: Callable[..., Reader]
) -> None:
    alice = reader(live_server.url)
    alice.be_signed_in("alice")
    alice.open(f"/vlls/{lines['new'].pk}/")
    note = alice.page.get_by_text("The portal does not answer at the moment")
    assert not note.is_visible()
    alice.page.route("**/status/**", lambda route: route.abort())
    note.wait_for(state="visible")
    alice.page.unroute("**/status/**")
    note.wait_for(state="hidden")


def test_a_reservation_is_made_only_by_its_button_and_counts_down(
    live_server: Any, lines: dict[str, Vll], reader: Callable[..., Reader]
) -> None:
    Reservation.objects.all().delete()
    alice = reader(live_server.url)
    alice.be_signed_in("alice")
    alice.open("/orders/new/")
    for side, router in (("A end", "rhino:host-cust1"), ("Z end", "hippo:host-cust1")):
        fields = alice.page.get_by_role("group", name=side)
        fields.get_by_label("Port").select_option(
            str(Port.objects.get(router__name=router[:5], interface=router[6:]).pk)
        )
        fields.get_by_label("Outer VLAN").fill("any")
    alice.page.get_by_label("Name or reference").press("Enter")
    alice.page.get_by_role("alert").wait_for()
    assert not Reservation.objects.exists()
    alice.page.get_by_label("Bandwidth", exact=True).fill("10")
    alice.page.get_by_role("button", name="Reserve for 15 minutes").click()
    expect(alice.page.get_by_role("timer")).to_have_text(re.compile("^14:"))
    assert alice.accessibility_violations() == []
    alice.page.get_by_role("button", name="Release").click()
    alice.page.get_by_role("button", name="Reserve for 15 minutes").wait_for()
    assert not Reservation.objects.exists()
    assert alice.complaints == []


def test_the_overview_follows_an_order_until_it_is_completed(
    live_server: Any, transactional_db: None, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    vll = order(isp, alice, description="new").vll
    person = reader(live_server.url)
    person.be_signed_in("alice")
    person.open("/")
    page = person.page
    row = page.locator(".ll-table tr", has=page.get_by_role("link", name="new")).last
    expect(row.get_by_text("Setting up")).to_be_visible()
    link = row.get_by_role("link", name="new")
    link.focus()
    activate(vll)
    expect(row.get_by_text("Unknown", exact=True)).to_be_visible()
    # A reader who uses the keyboard keeps the focus in the table.
    expect(link).to_be_focused()
    expect(page.locator("#overview")).to_have_attribute("hx-trigger", "live, every 30s")
    assert person.complaints == []


def test_drift_is_repaired_from_the_routers_page(
    live_server: Any, lines: dict[str, Vll], nora: User, reader: Callable[..., Reader]
) -> None:
    rhino = Router.objects.get(name="rhino")
    drift = [{"object": "host-cust1.101", "field": "admin_up", "desired": "true", "actual": "false"}]
    VllEnd.objects.filter(vll=lines["active"], side="a").update(drift=drift)
    person = reader(live_server.url)
    person.be_signed_in("nora")
    person.open(f"/noc/routers/{rhino.pk}/")
    assert person.accessibility_violations() == []
    row = person.page.get_by_role("row", name="active host-cust1, VLAN 101")
    expect(row.get_by_role("cell").nth(2)).to_have_text("true")
    message = ("provisioning.converge_router", [rhino.pk])
    before = requested().count(message)
    person.page.get_by_role("button", name="Repair now").click()
    expect(person.page.get_by_text("is being queried again. Its answer appears below.")).to_be_visible()
    assert requested().count(message) == before + 1
    assert person.complaints == []


def choose_a_day(page: Page) -> None:
    page.get_by_role("button", name="Day", exact=True).click()


def choose_a_window(page: Page) -> None:
    page.get_by_text("Packets, and other periods").click()
    page.locator("#graph-from").fill("2026-01-01T00:00")
    page.locator("#graph-to").fill("2026-01-01T01:00")
    page.get_by_role("button", name="Show", exact=True).click()


@pytest.mark.parametrize("choose", [choose_a_day, choose_a_window])
def test_a_graph_also_shows_a_lost_connection(
    live_server: Any, lines: dict[str, Vll], reader: Callable[..., Reader], choose: Callable[[Page], None]
) -> None:
    alice = reader(live_server.url)
    alice.be_signed_in("alice")
    alice.open(f"/vlls/{lines['active'].pk}/")
    note = alice.page.get_by_text("The portal does not answer at the moment")
    # No other request may succeed, because the page would then hide the note.
    alice.page.route("**/status/**", lambda route: None)
    alice.page.route("**/throughput?*", lambda route: route.abort())
    choose(alice.page)
    note.wait_for(state="visible")
    failed = alice.page.get_by_text("The figures cannot be loaded at the moment")
    failed.wait_for(state="visible")
    alice.page.unroute("**/throughput?*")
    # The page retries automatically, although a day's graph has no new values yet and a past one never has.
    failed.wait_for(state="hidden")
    note.wait_for(state="hidden")
