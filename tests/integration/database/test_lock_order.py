"""Operations on the same rows take their locks in one order, so that none ends in a deadlock."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Q

from portal.accounts.models import Customer, Membership, User
from portal.accounts.people import role_change
from portal.allocation.errors import VlanTaken
from portal.allocation.packet_capacity import Calibration
from portal.core import clock
from portal.core.network.encapsulations import Transport
from portal.inventory.models import BackboneLink, ObservedRouter, Port, Router
from portal.inventory.operations import (
    customer_remove,
    port_change,
    port_remove,
    router_change,
    router_remove,
)
from portal.telemetry.oper_status import ends_observed, stale_vlls_mark
from portal.vll import quote
from portal.vll.models import Vll, VllEnd, VllTombstone
from portal.vll.operations.line_removal import dead_routers_settle, order_delete
from portal.vll.router_operations.actions import router_calibration_set, router_declare_dead
from portal.vll.router_operations.drain import drain_begin
from provisioning.intent_generations import next_intent
from tests.integration.api.test_api_v1 import client
from tests.integration.awaited_locks import lock_is_awaited
from tests.integration.imports.files import refusals, staged, work
from tests.integration.isp import GBIT, Isp, member
from tests.integration.leases import sums_are_right
from tests.integration.observed_reports import observed_end
from tests.integration.orders import modify, order
from tests.integration.router_answers import answer

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def thread_of(work: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """Yield a function that starts ``work`` in a thread and returns once it waits for a lock of the test."""
    failures: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)

    def start() -> None:
        thread.start()
        deadline = time.monotonic() + 20
        while not lock_is_awaited():
            assert thread.is_alive(), failures
            assert time.monotonic() < deadline
            time.sleep(0.01)

    yield start
    thread.join()
    assert failures == []


def test_vlan_may_be_ordered_at_the_moment_of_its_release(isp: Isp, alice: User, vll: Vll) -> None:
    order_delete(user=alice, vll=vll, now=clock.now())
    answer(vll, "a", "removed")
    removed = partial(answer, Vll.objects.get(pk=vll.pk), "z", "removed")
    with thread_of(removed) as start, transaction.atomic():
        list(Port.objects.filter(vll_ends__vll=vll).order_by("pk").select_for_update(of=("self",)))
        start()
        with pytest.raises(VlanTaken):
            order(isp, alice)
    order(isp, alice)


def test_import_of_lines_may_run_during_an_order_of_the_same_tunnel(
    isp: Isp, alice: User, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GRE pairs are leased per pair of routers, one line each, before the cores that all lines share."""
    table = "description,a_port,a_outer_vlan,z_port,z_outer_vlan,svc_mtu,cir_bps,transport\n"
    table += "imported,rhino:host-cust2,100,hippo:host-cust2,any,1400,1000000,gre4\n"
    this, book = staged(nora, "lines", table, at_once=True), quote.cores_book
    with thread_of(partial(work, this)) as start:
        waits = iter([start])

        def after_the_import_waits(**more: Any) -> None:
            next(waits, lambda: None)()
            book(**more)

        monkeypatch.setattr(quote, "cores_book", after_the_import_waits)
        order(isp, alice, transport="gre4", svc_mtu=1400)
    assert refusals(this) == [(2, "transport", "gre-pairs-exhausted")]


def test_two_changes_of_one_member_may_run_together(ada: User, bob: User) -> None:
    of_bob = bob.memberships.select_related("customer").get()
    page = partial(role_change, membership=of_bob, role="operator", now=clock.now())
    with thread_of(page) as start, transaction.atomic():
        # The API's conditional writes begin with this lock.
        Membership.objects.select_for_update().get(pk=of_bob.pk)
        start()
        role_change(membership=of_bob, role="admin", now=clock.now())
    assert bob.memberships.get().role == "operator"


@pytest.mark.parametrize("surface", ["page", "api"])
def test_customer_may_be_removed_during_a_change_of_its_team(
    surface: str, bakery: Customer, charlie: User, nina: User
) -> None:
    dora = member("dora", bakery, "viewer")
    of_dora = dora.memberships.select_related("customer").get()
    page = partial(customer_remove, customer=bakery, user=nina, now=clock.now())
    api = partial(client(nina).delete, f"/api/v1/customers/{bakery.pk}")
    with thread_of(page if surface == "page" else api) as start, transaction.atomic():
        # The API's conditional writes begin with this lock.
        Membership.objects.select_for_update().get(pk=of_dora.pk)
        start()
        role_change(membership=of_dora, role="operator", now=clock.now())
    assert not Customer.objects.filter(pk=bakery.pk).exists()


def test_report_and_answer_about_one_end_may_be_stored_together(isp: Isp, vll: Vll) -> None:
    seen = observed_end(vll.pk, "a", in_sync=False)
    report = partial(ends_observed, router=isp.routers["rhino"], ends=[seen], now=clock.now())
    with thread_of(report) as start, transaction.atomic():
        # An answer locks first the VLL, then its ends.
        Vll.objects.select_for_update().get(pk=vll.pk)
        start()
        VllEnd.objects.filter(vll=vll, side="a").update(status="pending")
    assert vll.ends.get(side="a").link_up is True


def test_answer_stored_during_an_older_report_is_not_undone(isp: Isp, vll: Vll) -> None:
    seen = observed_end(vll.pk, "a")
    report = partial(
        ends_observed, router=isp.routers["rhino"], ends=[seen], observation_number=1000, now=clock.now()
    )
    with thread_of(report) as start, transaction.atomic():
        Vll.objects.select_for_update().get(pk=vll.pk)
        start()
        VllEnd.objects.filter(vll=vll, side="a").update(
            status_observation=2000, status_at=clock.now(), policed=True
        )
    end = vll.ends.get(side="a")
    assert (end.policed, end.link_up) == (True, None)


def test_report_during_the_marking_of_silent_lines_counts(isp: Isp, vll: Vll) -> None:
    Vll.objects.update(oper_status="op-up")
    ObservedRouter.objects.update(reported_at=clock.now() - timedelta(hours=1))
    with thread_of(partial(stale_vlls_mark, now=clock.now())) as start, transaction.atomic():
        Vll.objects.select_for_update().get(pk=vll.pk)
        start()
        ObservedRouter.objects.update(reported_at=clock.now())
    assert Vll.objects.get(pk=vll.pk).oper_status == "op-up"


def test_intent_with_a_higher_generation_is_never_older(isp: Isp, alice: User) -> None:
    rhino, documents = isp.routers["rhino"], []
    with thread_of(lambda: documents.append(next_intent(rhino))) as start, transaction.atomic():
        # The next generation is taken under this lock, so the intent has every earlier commit.
        Router.objects.select_for_update().get(pk=rhino.pk)
        start()
        placed = order(isp, alice)
    assert [end.vll for end in documents[0].present] == [placed.vll_id]


def test_two_routers_that_answer_together_complete_the_order(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    answer(placed.vll, "a", "pending", reason={"code": "vpp_unavailable"})
    with thread_of(partial(answer, placed.vll, "z", "verified")) as start, transaction.atomic():
        answer(Vll.objects.get(pk=placed.vll_id), "a", "verified")
        start()
    placed.refresh_from_db()
    assert (placed.state, placed.vll.lifecycle) == ("completed", "active")


def test_calibration_may_be_set_during_a_change_of_a_line(
    isp: Isp, alice: User, nora: User, vll: Vll
) -> None:
    clocks = {Transport.L2XC: 25.0, Transport.VXLAN4: 400.0}
    measured = Calibration(
        measured_at=clock.now(), vpp_version="25.10", cpu="", clock_hz=2.6e9, rounds=41, clocks=clocks
    )
    take = partial(
        router_calibration_set,
        router=isp.routers["rhino"],
        calibration=measured,
        user=nora,
        now=clock.now(),
        accept_affected=True,
    )
    with thread_of(take) as start, transaction.atomic():
        # An order begins with this lock.
        Vll.objects.select_for_update().get(pk=vll.pk)
        start()
        modify(alice, vll, cir_bps=2 * GBIT)
    assert Router.objects.get(name="rhino").calibration is not None
    assert sums_are_right()


@pytest.fixture
def line_not_carried(vll: Vll, isp: Isp) -> Vll:
    """Return a line that is no longer carried, so that each network change locks it, on calibrated
    routers.
    """
    clocks = {Transport.L2XC: 25.0, Transport.VXLAN4: 400.0}
    measured = Calibration(
        measured_at=clock.now(), vpp_version="25.10", cpu="", clock_hz=2.6e9, rounds=41, clocks=clocks
    )
    Router.objects.update(calibration=measured.kept())
    Vll.objects.update(not_carried_since=clock.now())
    return vll


def _delete_calibration(router: Router, user: User) -> None:
    router_calibration_set(router=router, calibration=None, user=user, now=clock.now(), accept_affected=True)


def _change_cpu(router: Router, user: User) -> None:
    router_change(router=router, user=user, now=clock.now(), accept_affected=True, cpu="another")


def _begin_drain(router: Router, user: User) -> None:
    drain_begin(router=router, user=user, now=clock.now(), accept_affected=True)


@pytest.mark.parametrize("change", [_delete_calibration, _change_cpu, _begin_drain])
def test_router_may_be_drained_during_another_change_of_it(
    change: Callable[[Router, User], None], isp: Isp, nora: User, line_not_carried: Vll
) -> None:
    rhino = Router.objects.get(name="rhino")
    with thread_of(partial(change, rhino, nora)) as start, transaction.atomic():
        # A drain and the API's conditional writes begin with this lock.
        Router.objects.select_for_update(no_key=True).get(pk=rhino.pk)
        start()
        drain_begin(router=rhino, user=nora, now=clock.now(), accept_affected=True)
    assert Router.objects.get(name="rhino").drained_since is not None


def test_dead_router_may_be_removed_during_a_change_of_the_network(
    isp: Isp, alice: User, nina: User, line_not_carried: Vll
) -> None:
    rhino = Router.objects.get(name="rhino")
    order_delete(user=alice, vll=line_not_carried, now=clock.now())
    answer(line_not_carried, "z", "removed")
    router_declare_dead(router=rhino, user=nina, now=clock.now(), reason="burnt down")
    dead_routers_settle(now=clock.now())
    BackboneLink.objects.filter(Q(a_router=rhino) | Q(z_router=rhino)).delete()
    for port in Port.objects.filter(router=rhino):
        port_remove(port=port, user=nina, now=clock.now())
    assert VllTombstone.objects.filter(router=rhino, vll=line_not_carried).exists()
    with (
        thread_of(partial(router_remove, router=rhino, user=nina, now=clock.now())) as start,
        transaction.atomic(),
    ):
        # A drain or a change of a link locks its routers, and then the lines that are not carried.
        Router.objects.select_for_update(no_key=True).get(pk=rhino.pk)
        start()
        Vll.objects.select_for_update(no_key=True).get(pk=line_not_carried.pk)
    assert not VllTombstone.objects.exists()


@pytest.mark.parametrize("surface", ["page", "api"])
def test_port_mtu_may_be_lowered_during_a_change_of_a_line(
    surface: str, isp: Isp, alice: User, nora: User, vll: Vll
) -> None:
    port, changes = isp.ports["hippo:host-cust1"], {"max_frame": 1517, "accept_affected": True}
    page = partial(port_change, port=port, user=nora, now=clock.now(), **changes)
    api = partial(
        client(nora).patch, f"/api/v1/ports/{port.pk}", changes, format="json", headers={"If-Match": "*"}
    )
    with thread_of(page if surface == "page" else api) as start, transaction.atomic():
        # An order begins with this lock.
        Vll.objects.select_for_update().get(pk=vll.pk)
        start()
        modify(alice, vll, cir_bps=2 * GBIT)
    assert Vll.objects.get(pk=vll.pk).not_carried_since is not None


def test_line_that_becomes_active_during_its_removal_is_removed(isp: Isp, alice: User) -> None:
    placed, removals = order(isp, alice), []
    answer(placed.vll, "a", "verified")
    vll = Vll.objects.get(pk=placed.vll_id)

    def remove() -> None:
        removals.append(order_delete(user=alice, vll=vll, now=clock.now()))

    with thread_of(remove) as start, transaction.atomic():
        answer(Vll.objects.get(pk=vll.pk), "z", "verified")
        start()
    # The removal does not cancel the add, which has been completed meanwhile.
    assert [removal.action for removal in removals] == ["delete"]
    placed.refresh_from_db()
    assert (placed.state, placed.vll.lifecycle) == ("completed", "pendingTerminate")
