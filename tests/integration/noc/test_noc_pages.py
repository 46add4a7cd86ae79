"""The NOC's pages manage every kind of object without the API, and a router's page shows its state."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from portal.accounts.models import Customer, User
from portal.celery_tasks import REBUILD_END
from portal.core import clock
from portal.events.models import Event
from portal.inventory.models import (
    BackboneLink,
    ObservedInterface,
    ObservedRouter,
    Port,
    Router,
    RouterEnrolment,
    RouterSilence,
    Site,
)
from portal.inventory.reported_observation import Contest, VlanLoss
from portal.notifications.models import Mail, Webhook
from portal.notifications.webhook_operations import webhook_create
from portal.telemetry.oper_status import ends_observed
from portal.vll.models import Attempt, Order, Vll, VllEnd
from portal.vll.router_operations.actions import end_rebuild_request, rebuilds_resend
from provisioning.agent_client import Refused, Unreachable
from provisioning.tasks import rebuild_end
from tests.integration.api.test_api_v1 import client
from tests.integration.certificates import register
from tests.integration.isp import GBIT, Isp
from tests.integration.observed_reports import observed_end
from tests.integration.orders import order
from tests.integration.raised_alarms import noc_page
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import save, signed_in, text

pytestmark = pytest.mark.django_db
KINDS = ["sites", "routers", "ports", "links", "customers", "vni-ranges"]


def filled(isp: Isp) -> dict[str, dict[str, Any]]:
    """Return a complete valid form of each kind."""
    rhino, panda = isp.routers["rhino"].pk, isp.routers["panda"].pk
    sides = {"a_router": rhino, "a_interface": "x1", "z_router": panda, "z_interface": "x1"}
    return {
        "sites": {"name": "Bern"},
        "routers": {"name": "koala", "site": Site.objects.get().pk, "cores": 8},
        "ports": {"router": rhino, "interface": "x2", "kind": "uni", "speed_bps": "1000", "max_frame": 9022},
        "links": {**sides, "a_metric": 10, "z_metric": 10, "ipv4": "on", "in_service": "on"},
        "customers": {"name": "Basel Bakery", "approve_up_to_bps": "0.5"},
        "vni-ranges": {"first": 1, "last": 9, "reason": "lab"},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_noc_adds_an_object_through_its_page(isp: Isp, nora: User, kind: str) -> None:
    page, sent = signed_in(nora), filled(isp)[kind]
    assert page.get(f"/noc/{kind}/add/").status_code == 200
    assert page.post(f"/noc/{kind}/add/", sent).status_code == 302
    shown = text(page.get(f"/noc/{kind}/"))
    name = {"ports": "rhino:x2", "links": "rhino:x1", "vni-ranges": "1-9: lab"}
    assert name.get(kind, sent.get("name")) in shown


@pytest.mark.parametrize("kind", KINDS)
def test_empty_form_is_422_and_creates_nothing(isp: Isp, nora: User, kind: str) -> None:
    answer = signed_in(nora).post(f"/noc/{kind}/add/", {"nothing": ""})
    assert answer.status_code == 422
    assert "This field is required." in text(answer)


def test_rates_are_written_in_mbit(isp: Isp, nora: User) -> None:
    signed_in(nora).post("/noc/ports/add/", filled(isp)["ports"])
    port = Port.objects.get(interface="x2")
    assert (port.speed_bps, port.bookable_bps) == (GBIT, GBIT)
    assert 'value="1000"' in signed_in(nora).get(f"/noc/ports/{port.pk}/change/").content.decode()


def test_coordinates_of_a_site_are_shown_as_typed_and_both_are_required(isp: Isp, nora: User) -> None:
    page, site = signed_in(nora), isp.routers["rhino"].site
    address = f"/noc/sites/{site.pk}/change/"
    sent = {"name": "Zürich", "latitude": "47.3769", "longitude": "8.5417"}
    assert save(page, address, sent).status_code == 302
    shown = page.get(address).content.decode()
    assert 'value="47.3769"' in shown
    assert 'value="8.5417"' in shown
    assert "Zürich 47.3769, 8.5417" in text(page.get("/noc/sites/"))
    refused = save(page, address, {**sent, "longitude": ""})
    assert refused.status_code == 422
    assert "A site has a latitude and a longitude, or neither." in text(refused)


def test_port_that_its_router_does_not_report_is_accepted_with_a_warning(isp: Isp, nora: User) -> None:
    warning = "rhino reports no interface x2. A line there would wait until it has one."
    page, sent = signed_in(nora), filled(isp)["ports"]
    assert warning in text(page.post("/noc/ports/add/", sent, follow=True))
    Port.objects.get(interface="x2").delete()
    ObservedInterface.objects.create(router=isp.routers["rhino"], name="x2", admin_up=True, link_up=True)
    assert warning not in text(page.post("/noc/ports/add/", sent, follow=True))


def test_change_is_saved_and_absent_checkboxes_are_off(isp: Isp, nora: User) -> None:
    link = isp.links["rhino-hippo"]
    address = f"/noc/links/{link.pk}/change/"
    form = signed_in(nora).get(address).context["form"]
    sent = {name: form[name].value() for name in form.fields} | {"a_ip_mtu": 1600, "ipv4": "on", "ipv6": "on"}
    sent.pop("in_service")
    assert save(signed_in(nora), address, sent).status_code == 302
    link.refresh_from_db()
    assert (link.a_ip_mtu, link.ipv4, link.in_service) == (1600, True, False)


def test_refusal_is_shown_next_to_its_field(isp: Isp, nora: User) -> None:
    answer = signed_in(nora).post("/noc/sites/add/", {"name": "Zürich"})
    assert answer.status_code == 422
    assert "Zürich already belongs to another site" in text(answer)
    assert "name" in answer.context["form"].errors


def test_only_an_admin_removes(isp: Isp, nora: User, nina: User, bakery: Customer) -> None:
    address = f"/noc/customers/{bakery.pk}/remove/"
    assert signed_in(nora).post(address).status_code == 403
    assert "Remove Basel Bakery?" in text(signed_in(nina).get(address))
    assert signed_in(nina, reauthenticated=True).post(address).status_code == 302
    assert not Customer.objects.filter(pk=bakery.pk).exists()


def test_refused_removal_names_the_users_of_the_object(isp: Isp, alice: User, nina: User) -> None:
    order(isp, alice, description="Milk run")
    answer = signed_in(nina).post(f"/noc/ports/{isp.ports['rhino:host-cust1'].pk}/remove/")
    assert answer.status_code == 409
    assert "in use by line Milk run" in text(answer)


def test_only_the_noc_reads_its_pages(isp: Isp, alice: User, charlie: User) -> None:
    rhino = isp.routers["rhino"].pk
    pages = ["/noc/", f"/noc/routers/{rhino}/", *(f"/noc/{kind}/" for kind in KINDS)]
    posts = [f"/noc/routers/{rhino}/{action}/" for action in ("actions", "enrolment", "revoke")]
    for user in (alice, charlie):
        assert {signed_in(user).get(page).status_code for page in pages} == {403}
        assert {signed_in(user).post(page).status_code for page in posts} == {403}
    assert not RouterEnrolment.objects.exists()


def test_routers_page_shows_agent_attempts_ends_drift_and_mtus(isp: Isp, alice: User, nora: User) -> None:
    rhino, now = isp.routers["rhino"], clock.now()
    order(isp, alice, description="Milk run")
    VllEnd.objects.filter(side="a").update(
        status="conflict",
        reason={"message": "VLAN 100 is taken"},
        drift=[{"object": "host-cust1.100", "field": "admin_up", "desired": "true", "actual": "false"}],
    )
    ObservedRouter.objects.filter(router=rhino).update(
        vpp_version="25.10", generation_stored=9, vpp_plugins=["linux_cp", "vxlan"]
    )
    Attempt.objects.create(
        router=rhino,
        generation=7,
        started_at=now,
        finished_at=now,
        outcome="refused",
        answer={"type": "busy"},
        times=25,
    )
    ObservedInterface.objects.filter(router=rhino, name="bb-next").update(ip_mtu=1500, linux_cp="e0")
    shown = text(signed_in(nora).get(f"/noc/routers/{rhino.pk}/"))
    for fact in (
        "25.10",
        "a backup was restored",
        "Milk run",
        "VLAN 100 is taken",
        "host-cust1.100 admin_up true false",
        "Repair now",
        "Foreign conflicts Milk run (host-cust1, VLAN 100): VLAN 100 is taken",
        "generation 7: Refused 25 times, last at",
        "busy",
        "9000 / 9000 1500 / – Mismatch",
        "2 loaded linux_cp, vxlan",
        "Linux CP bb-next e0",
    ):
        assert fact in shown


@pytest.mark.parametrize(
    ("do", "kind"),
    [
        ("maintenance-begin", "router.maintenance_began"),
        ("hold", "router.held"),
        ("retry", "router.retried"),
        ("reconcile", "router.reconcile_asked"),
    ],
)
def test_each_button_does_its_action(isp: Isp, nora: User, do: str, kind: str) -> None:
    rhino = isp.routers["rhino"]
    assert signed_in(nora).post(f"/noc/routers/{rhino.pk}/actions/", {"do": do}).status_code == 302
    assert Event.objects.get(router_id=rhino.pk).kind == kind


def test_unknown_button_does_nothing(isp: Isp, nora: User) -> None:
    answer = signed_in(nora).post(f"/noc/routers/{isp.routers['rhino'].pk}/actions/", {"do": "explode"})
    assert answer.status_code == 400
    assert not requested()


def test_started_states_can_be_ended_on_the_page(isp: Isp, nora: User) -> None:
    rhino = isp.routers["rhino"]
    page, address = signed_in(nora), f"/noc/routers/{rhino.pk}/actions/"
    for do in ("maintenance-begin", "hold"):
        page.post(address, {"do": do})
    shown = text(page.get(f"/noc/routers/{rhino.pk}/"))
    assert "Under maintenance" in shown
    assert "Locked by the NOC" in shown
    for do in ("maintenance-end", "release"):
        page.post(address, {"do": do})
    rhino.refresh_from_db()
    assert (rhino.maintenance_since, rhino.locked_since) == (None, None)


def test_only_noc_admins_enrol_routers(isp: Isp, nora: User, nina: User) -> None:
    """A certificate outlives the token and the person who requested it."""
    rhino = isp.routers["rhino"]
    page = signed_in(nora)
    assert page.post(f"/noc/routers/{rhino.pk}/enrolment/").status_code == 403
    assert client(nora).post(f"/api/v1/routers/{rhino.pk}/enrolment").status_code == 403
    assert not RouterEnrolment.objects.exists()
    assert "New enrolment token" not in text(page.get(f"/noc/routers/{rhino.pk}/"))
    assert "New enrolment token" in text(signed_in(nina).get(f"/noc/routers/{rhino.pk}/"))
    assert client(nina).post(f"/api/v1/routers/{rhino.pk}/enrolment").status_code == 201


def test_enrolment_token_is_shown_once(isp: Isp, nina: User) -> None:
    rhino = isp.routers["rhino"]
    page = signed_in(nina)
    shown = text(page.post(f"/noc/routers/{rhino.pk}/enrolment/"))
    assert "lle_" in shown
    assert "lle_" not in text(page.get(f"/noc/routers/{rhino.pk}/"))


def test_certificate_is_revoked_from_the_page(isp: Isp, nora: User) -> None:
    rhino = isp.routers["rhino"]
    certificate = register(rhino)
    signed_in(nora).post(f"/noc/routers/{rhino.pk}/revoke/", {"serial": certificate.serial})
    certificate.refresh_from_db()
    assert certificate.revoked_at is not None


def test_alarms_name_only_real_problems(isp: Isp, alice: User, nora: User) -> None:
    page = signed_in(nora)
    quiet = noc_page(page)
    assert "Nothing is wrong at the moment." in quiet
    assert "Routers silent: none" in quiet
    vll = order(isp, alice, description="Milk run").vll
    Order.objects.update(alarmed_at=clock.now())
    assert "The order for Milk run is overdue" in noc_page(page)
    activate(vll)
    Vll.objects.update(oper_status="op-down", in_sync=False)
    ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(
        reported_at=clock.now() - timedelta(minutes=5),
        generation_stored=99,
        set_aside=[{"file": "/state/intent.json.set-aside", "why": "it is torn"}],
    )
    BackboneLink.objects.filter(pk=isp.links["zebra-panda"].pk).update(a_ip_mtu=1500)
    ObservedInterface.objects.filter(router=isp.routers["rhino"], name="bb-next").delete()
    Router.objects.filter(name="rhino").update(locked_since=clock.now())
    RouterSilence.objects.create(router=isp.routers["hippo"], since=clock.now() - timedelta(minutes=5))
    loud = noc_page(page)
    for alarm in (
        "Overdue orders: none",
        "Critical hippo is silent Its lines may be down. Line Milk run of Alpine Dairy",
        "The agent of hippo is ahead of the database",
        "The agent of hippo could not use its files /state/intent.json.set-aside: it is torn",
        "Warning rhino is locked, frozen or under maintenance Nothing is sent to it.",
        "Major Milk run is not configured as ordered Line Milk run of Alpine Dairy",
        "Minor The MTUs of zebra:bb-next — panda:bb-prev conflict",
        "rhino:bb-next — hippo:bb-prev: an interface is missing",
    ):
        assert alarm in loud
    assert "Milk run is down" not in loud, "a silent router explains it"


def test_quarantine_of_a_router_ahead_of_the_database_is_not_shown_as_empty(isp: Isp, nora: User) -> None:
    address = f"/noc/routers/{isp.routers['hippo'].pk}/"
    assert "Quarantined none" in text(signed_in(nora).get(address))
    ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(generation_stored=99)
    shown = text(signed_in(nora).get(address))
    assert "Quarantined unknown until it is reconciled" in shown
    assert "manage.py reconcile --dry-run hippo" in shown


def test_hanging_vpp_is_an_alarm_while_its_agent_reports_it(isp: Isp, nora: User) -> None:
    page, title = signed_in(nora), "Routers whose VPP hangs and must be restarted"
    observed = ObservedRouter.objects.filter(router=isp.routers["rhino"])
    observed.update(vpp_connected=False, vpp_away_since=clock.now())
    shown = noc_page(page)
    assert f"{title}: none" in shown, "a lost connection is not a hang"
    assert "Critical rhino has no VPP" in shown
    observed.update(vpp_hangs=True)
    shown = noc_page(page)
    assert "Critical VPP hangs on rhino It accepts connections but does not answer." in shown
    assert "rhino has no VPP" not in shown
    for address in ("/routers/", f"/noc/routers/{isp.routers['rhino'].pk}/"):
        assert "Hangs" in text(page.get(address))
    observed.update(reported_at=clock.now() - timedelta(minutes=5))
    assert f"{title}: none" in noc_page(page), "its agent is silent, which is another alarm"


def test_repeated_foreign_changes_are_an_alarm(isp: Isp, alice: User, nora: User) -> None:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    fight = Contest("host-cust1.100", "admin_up", "true", "false", since_ms=1_790_000_000_000, repairs=7)
    seen = observed_end(vll.pk, "a", revision=vll.revision, contested=(fight,))
    rhino, page = isp.routers["rhino"], signed_in(nora)
    ends_observed(router=rhino, ends=[seen], now=clock.now())
    sentence = "admin_up of host-cust1.100 keeps being changed to “false”; repairs so far: 7"
    assert f"Somebody else is changing lines on rhino {sentence} Line Milk run of Alpine Dairy" in noc_page(
        page
    )
    shown = text(page.get(f"/noc/routers/{rhino.pk}/"))
    assert "host-cust1.100 admin_up true false 7" in shown
    ends_observed(router=rhino, ends=[observed_end(vll.pk, "a", revision=vll.revision)], now=clock.now())
    assert sentence not in noc_page(page)


@pytest.mark.parametrize("state", ["dropped", "not_restored", "not_examined"])
def test_line_with_dropped_frames_is_an_alarm_with_the_operators_command(
    isp: Isp, alice: User, nora: User, state: Any
) -> None:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    rhino, page = isp.routers["rhino"], signed_in(nora)

    def reported(loss: VlanLoss | None) -> None:
        seen = observed_end(vll.pk, "a", revision=vll.revision, vlan_loss=loss)
        ends_observed(router=rhino, ends=[seen], now=clock.now())

    command = f"longline-agent rebuild -vll {vll.pk} -end a"
    reported(VlanLoss(state, since_ms=1_790_000_000_000, detail="seen 7 times"))
    shown = noc_page(page)
    assert "A router drops frames of Milk run" in shown
    assert "seen 7 times" in shown
    assert command in shown
    reported(VlanLoss("rebuilt", since_ms=1_790_000_000_000, detail="seen 7 times"))
    assert command not in noc_page(page), "the line has some minutes to receive frames"
    reported(VlanLoss(state, since_ms=1_790_000_000_000, detail="seen 7 times"))
    assert command in noc_page(page)
    reported(None)
    assert command not in noc_page(page)


class _Agent:
    """An agent that gives this answer to a rebuild."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.rebuilds = answer, []

    def __call__(self, router: Router) -> "_Agent":
        return self

    def __enter__(self) -> "_Agent":
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def rebuild(self, *, vll: Any, side: str) -> Any:
        self.rebuilds.append((vll, side))
        return self.answer


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        ("accepted", None),
        (Refused(409, {"type": "urn:longline:error:frozen", "detail": "it is frozen"}), "it is frozen"),
        (Unreachable("no route to host"), "no route to host"),
    ],
)
def test_operator_rebuilds_a_sub_interface_and_sees_a_failure(
    isp: Isp, alice: User, nora: User, monkeypatch: pytest.MonkeyPatch, answer: Any, failed: str | None
) -> None:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    rhino, page = isp.routers["rhino"], signed_in(nora)
    address = f"/noc/routers/{rhino.pk}/rebuild/{vll.pk}/a/"
    loss = VlanLoss("not_restored", since_ms=1_790_000_000_000, detail="seen 7 times")
    seen = observed_end(vll.pk, "a", revision=vll.revision, vlan_loss=loss)
    ends_observed(router=rhino, ends=[seen], now=clock.now())
    shown = page.get(f"/noc/routers/{rhino.pk}/")
    assert address in shown.text
    assert "Delete the sub-interface of Milk run on rhino and create it again?" in text(shown)
    assert signed_in(alice).post(address).status_code in (403, 404)
    assert page.post(f"/noc/routers/{rhino.pk}/rebuild/{vll.pk}/z/").status_code == 404, (
        "the Z end is on another router"
    )
    forget_requests()
    assert page.post(address, {"sure": "1"}).status_code == 302
    rebuilds_resend(now=clock.now())
    forget_requests()
    rebuilds_resend(now=clock.now())
    [(_, [line, side, requested_at])] = requested(REBUILD_END)
    agent = _Agent(answer)
    monkeypatch.setattr("provisioning.convergence.agent_of", agent)
    for _ in range(2):
        rebuild_end(line, side, requested_at)
    assert agent.rebuilds == [(vll.pk, "a")], "a message that is delivered twice has one effect"
    forget_requests()
    rebuilds_resend(now=clock.now())
    assert requested(REBUILD_END) == []
    events = Event.objects.filter(router_id=rhino.pk, kind__startswith="router.rebuild_").order_by("pk")
    assert [event.kind for event in events] == ["router.rebuild_requested"] + (
        ["router.rebuild_failed"] if failed else []
    )
    assert events[0].actor == nora.username
    assert events.last().data.get("detail") == failed


def test_a_rebuild_that_no_worker_begins_fails(isp: Isp, alice: User, nora: User) -> None:
    end = order(isp, alice).vll.ends.select_related("port").get(side="a")
    now = clock.now()
    end_rebuild_request(end=end, user=nora, now=now)
    forget_requests()
    rebuilds_resend(now=now + timedelta(minutes=14))
    assert len(requested(REBUILD_END)) == 1
    forget_requests()
    for _ in range(2):
        rebuilds_resend(now=now + timedelta(minutes=16))
    assert requested(REBUILD_END) == []
    failed = Event.objects.get(kind="router.rebuild_failed")
    assert failed.data["detail"] == "no worker has begun the rebuild in time"


def test_a_rebuild_of_the_previous_release_is_carried_out(
    isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages contain no time, and it stores no request."""
    vll = order(isp, alice).vll
    agent = _Agent("accepted")
    monkeypatch.setattr("provisioning.convergence.agent_of", agent)
    rebuild_end(str(vll.pk), "a")
    assert agent.rebuilds == [(vll.pk, "a")]


@pytest.mark.parametrize(
    ("age_h", "retried", "loud"), [(23, False, True), (25, False, False), (1, True, False)]
)
def test_failed_order_is_an_alarm_for_a_day_or_until_it_is_retried(
    isp: Isp, alice: User, nora: User, age_h: int, retried: bool, loud: bool
) -> None:
    failed = order(isp, alice, description="Milk run")
    Order.objects.update(state="failed", state_at=clock.now() - timedelta(hours=age_h))
    if retried:
        again = Order.objects.get(pk=failed.pk)
        again.pk, again.retry_of, again.state = uuid4(), failed, "completed"
        again.save(force_insert=True)
    shown = noc_page(signed_in(nora))
    assert ("The order for Milk run failed Alpine Dairy: Add" in shown) is loud


def test_pending_approval_is_listed_among_the_nocs_work(
    isp: Isp, alice: User, dairy: Customer, nora: User
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
    alice.refresh_from_db()
    pending = order(isp, alice, description="Milk run")
    browser = signed_in(nora)
    assert "The order for Milk run is pending approval Alpine Dairy: Add" in noc_page(browser)
    assert f'href="/noc/orders/{pending.pk}/"' in browser.get("/noc/").content.decode()


@pytest.mark.parametrize(("booked", "loud"), [(79, False), (80, True)])
def test_port_is_an_alarm_from_80_per_cent(isp: Isp, nora: User, booked: int, loud: bool) -> None:
    port = isp.ports["rhino:host-cust1"]
    Port.objects.filter(pk=port.pk).update(bookable_bps=100 * GBIT, booked_bps=booked * GBIT)
    shown = noc_page(signed_in(nora))
    assert (f"rhino:host-cust1 is almost fully booked {booked} Gbit/s of 100 Gbit/s" in shown) is loud


@pytest.mark.parametrize(("because", "loud"), [("gone", True), ("failing", True), ("byHand", False)])
def test_automatically_disabled_webhook_is_an_alarm(
    isp: Isp, ada: User, dairy: Customer, nora: User, because: str, loud: bool
) -> None:
    made, _ = webhook_create(
        user=ada, customer=dairy, url="https://hooks.example.net/a", description="Tickets", now=clock.now()
    )
    Webhook.objects.filter(pk=made.pk).update(disabled_at=clock.now(), disabled_because=because)
    page = signed_in(nora)
    sentence = "The webhook Tickets was disabled Alpine Dairy. Disabled: "
    assert (sentence in noc_page(page)) is loud
    assert page.get(f"/webhooks/{made.pk}/").status_code == 200


@pytest.mark.parametrize(("tries", "loud"), [(3, False), (4, True)])
def test_mail_refused_by_the_server_is_an_alarm(
    isp: Isp, alice: User, nora: User, tries: int, loud: bool
) -> None:
    Mail.objects.create(
        user=alice,
        group="orders",
        kind="order.completed",
        event_id=1,
        created_at=clock.now(),
        tries=tries,
        next_try_at=clock.now(),
        error="ConnectionRefusedError: no",
    )
    shown = noc_page(signed_in(nora))
    sentence = "Mails waiting: 1. The first is to alice. ConnectionRefusedError: no"
    assert (sentence in shown) is loud


def test_alarm_about_mail_names_the_whole_reader(isp: Isp, alice: User, nora: User) -> None:
    User.objects.filter(pk=alice.pk).update(username="alice → bob")
    Mail.objects.create(
        user=alice,
        group="orders",
        kind="order.completed",
        event_id=1,
        created_at=clock.now(),
        tries=4,
        next_try_at=clock.now(),
        error="refused",
    )
    assert "The first is to alice → bob. refused" in noc_page(signed_in(nora))
