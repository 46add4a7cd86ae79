"""Open pages receive notifications of committed changes that their readers may know, and of nothing else."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from portal.accounts.models import Customer, User
from portal.alarms.models import Alarm
from portal.alarms.operations import alarm_acknowledge
from portal.alarms.rounds import alarms_watch
from portal.core import clock
from portal.inventory.models import ObservedInterface, ObservedRouter, Port, Router, RouterSilence
from portal.netbox_sync.models import NetboxRun, NetboxState
from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_operations import webhook_test
from portal.vll.models import PlanResult, Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.modify_line import vll_describe
from portal.vll.router_operations.actions import router_maintenance_set
from tests.integration.isp import Isp
from tests.integration.live_process import LiveProcess, eventually, live_process
from tests.integration.orders import end, order
from tests.integration.router_answers import activate, answer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def live(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[LiveProcess]:
    """Start one process for all these tests, because the start takes seconds."""
    with django_db_blocker.unblock(), live_process() as process:
        yield process


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    return order(isp, alice, description="Milk run").vll


def another(isp: Isp, user: User) -> Vll:
    a_end, z_end = (end(isp, f"{router}:host-cust2") for router in ("rhino", "hippo"))
    return order(isp, user, a_end=a_end, z_end=z_end).vll


def test_lines_page_is_notified_only_of_its_line(live: LiveProcess, isp: Isp, alice: User, vll: Vll) -> None:
    other = another(isp, alice)
    page = live.page(alice, f"line:{vll.pk}").follows()
    answer(other, "a", "verified")
    answer(vll, "a", "verified")
    assert page.event() == ("changed", f"line:{vll.pk}")
    both = live.page(alice, f"line:{other.pk}", "lines").follows()
    answer(vll, "z", "verified")
    assert both.event() == ("changed", "lines")


def test_each_shown_change_is_notified(live: LiveProcess, isp: Isp, alice: User, vll: Vll) -> None:
    page = live.page(alice, f"line:{vll.pk}").follows()
    expected = ("changed", f"line:{vll.pk}")
    activate(vll)
    assert page.event() == expected
    for _ in range(2):
        vll.refresh_from_db()
        vll_describe(user=alice, vll=vll, description=f"Milk {_}", now=clock.now())
        assert page.event() == expected
    vll.ends.filter(side="a").update(link_up=False)
    assert page.event() == expected
    order_delete(user=alice, vll=Vll.objects.get(pk=vll.pk), now=clock.now())
    assert page.event() == expected


def test_uncommitted_change_is_not_notified(live: LiveProcess, alice: User, vll: Vll) -> None:
    page = live.page(alice, f"line:{vll.pk}", "ports").follows()
    with transaction.atomic():
        Vll.objects.update(description="never")
        transaction.set_rollback(True)
    Port.objects.filter(customer__isnull=False).update(description="at last")
    assert page.event() == ("changed", "ports")


def test_routine_writes_of_reports_are_not_notified(
    live: LiveProcess, isp: Isp, nora: User, vll: Vll
) -> None:
    page = live.page(nora, "network", "lines", "ports").follows()
    ObservedRouter.objects.update(reported_at=clock.now(), sent_ms=7, digests={"ends": "other"})
    Router.objects.update(generation=700)
    vll.ends.update(status_observation=7, changed_since_report=False)
    ObservedInterface.objects.filter(router__name="rhino").update(link_up=True)
    router_maintenance_set(router=isp.routers["rhino"], on=True, user=nora, now=clock.now())
    assert page.event() == ("changed", "network")


def test_noc_is_notified_of_all_lines_and_of_the_network(
    live: LiveProcess, isp: Isp, nora: User, vll: Vll
) -> None:
    page = live.page(nora, "lines", "network", "ports").follows()
    answer(vll, "a", "verified")
    assert page.event() == ("changed", "lines")
    ObservedInterface.objects.filter(name="host-cust1", router__name="rhino").update(link_up=False)
    assert {page.event(), page.event()} == {("changed", "network"), ("changed", "ports")}


def test_stranger_is_not_notified_of_foreign_changes(
    live: LiveProcess, isp: Isp, charlie: User, nora: User, vll: Vll
) -> None:
    page = live.page(charlie, "lines", "ports").follows()
    answer(vll, "a", "verified")
    Port.objects.filter(customer=vll.customer).update(description="changed")
    bakery = charlie.memberships.get().customer
    Port.objects.filter(interface="host-cust2", router__name="hippo").update(customer=bakery)
    assert page.event() == ("changed", "ports")


def test_foreign_line_is_404_like_an_absent_one(live: LiveProcess, charlie: User, vll: Vll) -> None:
    assert live.page(charlie, f"line:{vll.pk}").status == 404
    assert live.page(charlie, "lines", f"line:{vll.pk}").status == 404


def test_noc_is_notified_of_alarms_and_acknowledgements(live: LiveProcess, isp: Isp, nora: User) -> None:
    alarms_watch(now=clock.now())
    page = live.page(nora, "alarms").follows()
    RouterSilence.objects.create(router=isp.routers["rhino"], since=clock.now())
    alarms_watch(now=clock.now())
    assert page.event() == ("changed", "alarms")
    page = live.page(nora, "alarms").follows()
    alarm_acknowledge(alarm=Alarm.objects.get(), user=nora, now=clock.now())
    assert page.event() == ("changed", "alarms")


def test_noc_is_notified_of_netbox_runs_but_not_of_claims(live: LiveProcess, nora: User) -> None:
    state = NetboxState.objects.create(pk=1)
    page = live.page(nora, "netbox").follows()
    NetboxState.objects.update(claim=uuid4(), claimed_until=clock.now())
    NetboxRun.objects.create(why="person", requested_at=clock.now())
    assert page.event() == ("changed", "netbox")
    NetboxRun.objects.update(finished_at=clock.now())
    assert page.event() == ("changed", "netbox")
    NetboxState.objects.filter(pk=state.pk).update(imported_at=clock.now())
    assert page.event() == ("changed", "netbox")


def test_webhooks_page_is_notified_only_of_deliveries_of_its_customer(
    live: LiveProcess, isp: Isp, ada: User, dairy: Customer, bakery: Customer
) -> None:
    own, foreign = (
        Webhook.objects.create(
            customer=customer,
            url="https://hooks.example.net/in",
            secret="s",
            secret_set_at=clock.now(),
            created_at=clock.now(),
        )
        for customer in (dairy, bakery)
    )
    page = live.page(ada, "webhooks", "ports").follows()
    webhook_test(webhook=foreign, now=clock.now())
    Port.objects.filter(customer=dairy).update(description="in between")
    assert page.event() == ("changed", "ports")
    webhook_test(webhook=own, now=clock.now())
    assert page.event() == ("changed", "webhooks")
    Webhook.objects.update(claim=uuid4(), claimed_until=clock.now())
    Delivery.objects.update(state="delivered", next_try_at=None, tries=1)
    assert page.event() == ("changed", "webhooks")


def test_noc_is_notified_of_the_plan_of_an_order(live: LiveProcess, nora: User, vll: Vll) -> None:
    page = live.page(nora, f"line:{vll.pk}").follows()
    PlanResult.objects.create(order=vll.orders.get(), requested_by="nora", requested_at=clock.now())
    assert page.event() == ("changed", f"line:{vll.pk}")
    PlanResult.objects.update(finished_at=clock.now())
    assert page.event() == ("changed", f"line:{vll.pk}")


@pytest.mark.parametrize("topic", ["network", "alarms", "netbox"])
def test_network_alarms_and_netbox_are_the_nocs(live: LiveProcess, alice: User, topic: str) -> None:
    assert live.page(alice, topic).status == 403


def test_streams_require_sign_in(live: LiveProcess, vll: Vll) -> None:
    assert live.page(None, "lines").status == 401


@pytest.mark.parametrize(
    "about", [[], ["everything"], ["line:7"], ["line:"], ["lines\n"], [f"line:{n:032x}" for n in range(21)]]
)
def test_unknown_topic_is_refused(live: LiveProcess, alice: User, about: list[str]) -> None:
    assert live.page(alice, *about).status == 400


def test_page_is_notified_immediately_of_a_change_during_its_loading(
    live: LiveProcess, alice: User, vll: Vll
) -> None:
    answer(vll, "a", "verified")
    watching = live.page(alice, f"line:{vll.pk}").follows()
    answer(vll, "z", "verified")
    watching.event()
    assert live.page(alice, "lines", age_ms=1000).follows().event() == ("changed", "lines")
    # The age is either older than the remembered changes, or invalid.
    for age_ms in (10**8, -1):
        assert live.page(alice, "ports", age_ms=age_ms).follows().event() == ("changed", "ports")


def test_stream_is_neither_cached_nor_buffered(live: LiveProcess, alice: User) -> None:
    page = live.page(alice, "lines")
    assert page.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["X-Accel-Buffering"] == "no"


def test_closed_pages_free_their_place(alice: User) -> None:
    with live_process({"LONGLINE_LIVE_PAGES_EACH": "2"}) as live:
        first, _ = live.page(alice, "lines").follows(), live.page(alice, "lines").follows()
        refused = live.page(alice, "lines")
        assert (refused.status, refused.headers["Retry-After"]) == (503, "60")
        first.close()
        eventually(lambda: live.page(alice, "lines").status == 200)
