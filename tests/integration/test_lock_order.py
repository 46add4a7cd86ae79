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
from portal.accounts.team import role_change
from portal.allocation.errors import VlanTaken
from portal.core import clock
from portal.core.encapsulations import Transport
from portal.inventory.calibration_document import Calibration
from portal.inventory.models import BackboneLink, ObservedRouter, Port, Router
from portal.vll.calibration_rebooking import router_calibration_set
from portal.vll.guarded_inventory_changes import port_change, router_change
from portal.vll.guarded_inventory_deletion import customer_remove, port_remove, router_remove
from portal.vll.models import Vll, VllEnd, VllTombstone
from portal.vll.operations import add_line, ends_observed, order_delete, stale_vlls_mark
from portal.vll.operations.dead_router_removals import dead_routers_settle
from portal.vll.router_operations.actions import router_declare_dead
from portal.vll.router_operations.drain import drain_begin
from provisioning.intent_generations import next_intent
from tests.integration.imports.files import refusals, staged, work
from tests.integration.isp import GBIT, Isp, member
from tests.integration.leases import sums_are_right
from tests.integration.observed_reports import observed_end
from tests.integration.orders import modify, order
from tests.integration.router_answers import answer
from tests.integration.test_api_v1 import client

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def a_thread(work: Callable[[], object]) -> Iterator[Callable[[], None]]:
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
        while not _somebody_waits():
            assert thread.is_alive(), failures
            assert time.monotonic() < deadline
            time.sleep(0.01)

    yield start
    thread.join()
    assert failures == []


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_a_vlan_may_be_ordered_at_the_moment_it_is_given_back(isp: Isp, alice: User, vll: Vll) -> None:
    order_delete(user=alice, vll=vll, now=clock.now())
    answer(vll, "a", "removed")
    removed = partial(answer, Vll.objects.get(pk=vll.pk), "z", "removed")
    with a_thread(removed) as start, transaction.atomic():
        list(Port.objects.filter(vll_ends__vll=vll).order_by("pk").select_for_update(of=("self",)))
        start()
        with pytest.raises(VlanTaken):
            order(isp, alice)
    order(isp, alice)


def test_an_import_of_lines_may_meet_an_order_of_the_same_tunnel(
    isp: Isp, alice: User, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GRE is leased by pairs of routers, one line each, before the cores that all lines there share."""
    table = "description,a_port,a_outer_vlan,z_port,z_outer_vlan,svc_mtu,cir_bps,transport\n"
    table += "imported,rhino:host-cust2,100,hippo:host-cust2,any,1400,1000000,gre4\n"
    this, book = staged(nora, "lines", table, at_once=True), add_line.cores_lease
    with a_thread(partial(work, this)) as start:
        waits = iter([start])

        def after_the_import_waits(**more: Any) -> None:
            next(waits, lambda: None)()
            book(**more)

        monkeypatch.setattr(add_line, "cores_lease", after_the_import_waits)
        order(isp, alice, transport="gre4", svc_mtu=1400)
    assert refusals(this) == [(2, "transport", "gre-pairs-exhausted")]


def test_two_changes_of_one_member_may_meet(ada: User, bob: User) -> None:
    of_bob = bob.memberships.select_related("customer").get()
    page = partial(role_change, membership=of_bob, role="operator", now=clock.now())
    with a_thread(page) as start, transaction.atomic():
        # As the API's conditional writes begin.
        Membership.objects.select_for_update().get(pk=of_bob.pk)
        start()
        role_change(membership=of_bob, role="admin", now=clock.now())
    assert bob.memberships.get().role == "operator"


@pytest.mark.parametrize("surface", ["page", "api"])
def test_a_customer_may_be_removed_while_its_team_changes(
    surface: str, bakery: Customer, charlie: User, nina: User
) -> None:
    dora = member("dora", bakery, "viewer")
    of_dora = dora.memberships.select_related("customer").get()
    page = partial(customer_remove, customer=bakery, user=nina, now=clock.now())
    api = partial(client(nina).delete, f"/api/v1/customers/{bakery.pk}")
    with a_thread(page if surface == "page" else api) as start, transaction.atomic():
        # As the API's conditional writes begin.
        Membership.objects.select_for_update().get(pk=of_dora.pk)
        start()
        role_change(membership=of_dora, role="operator", now=clock.now())
    assert not Customer.objects.filter(pk=bakery.pk).exists()


def test_a_report_and_an_answer_may_meet_at_one_end(isp: Isp, vll: Vll) -> None:
    seen = observed_end(vll.pk, "a", in_sync=False)
    report = partial(ends_observed, router=isp.routers["rhino"], ends=[seen], now=clock.now())
    with a_thread(report) as start, transaction.atomic():
        # As an answer is taken in: the VLL first, then its ends.
        Vll.objects.select_for_update().get(pk=vll.pk)
        start()
        VllEnd.objects.filter(vll=vll, side="a").update(status="pending")
    assert vll.ends.get(side="a").link_up is True


def test_an_answer_that_comes_while_an_older_report_is_taken_in_is_not_undone(isp: Isp, vll: Vll) -> None:
    seen = observed_end(vll.pk, "a")
    report = partial(
        ends_observed, router=isp.routers["rhino"], ends=[seen], observation_number=1000, now=clock.now()
    )
    with a_thread(report) as start, transaction.atomic():
        Vll.objects.select_for_update().get(pk=vll.pk)
        start()
        VllEnd.objects.filter(vll=vll, side="a").update(
            status_observation=2000, status_at=clock.now(), policed=True
        )
    end = vll.ends.get(side="a")
    assert (end.policed, end.link_up) == (True, None)


def test_a_report_that_comes_while_silence_is_being_marked_stands(isp: Isp, vll: Vll) -> None:
    Vll.objects.update(oper_status="op-up")
    ObservedRouter.objects.update(reported_at=clock.now() - timedelta(hours=1))
    with a_thread(partial(stale_vlls_mark, now=clock.now())) as start, transaction.atomic():
        Vll.objects.select_for_update().get(pk=vll.pk)
        start()
        ObservedRouter.objects.update(reported_at=clock.now())
    assert Vll.objects.get(pk=vll.pk).oper_status == "op-up"


def test_a_document_with_a_higher_number_never_knows_less(isp: Isp, alice: User) -> None:
    rhino, documents = isp.routers["rhino"], []
    with a_thread(lambda: documents.append(next_intent(rhino))) as start, transaction.atomic():
        # As whoever takes the number before: what is committed until then belongs into the next document.
        Router.objects.select_for_update().get(pk=rhino.pk)
        start()
        placed = order(isp, alice)
    assert [end.vll for end in documents[0].present] == [placed.vll_id]


def test_two_routers_that_answer_at_the_same_moment_complete_the_order(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    answer(placed.vll, "a", "pending", reason={"code": "vpp_unavailable"})
    with a_thread(partial(answer, placed.vll, "z", "verified")) as start, transaction.atomic():
        answer(Vll.objects.get(pk=placed.vll_id), "a", "verified")
        start()
    placed.refresh_from_db()
    assert (placed.state, placed.vll.lifecycle) == ("completed", "active")


def test_what_was_measured_may_be_taken_while_a_line_of_that_router_changes(
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
    with a_thread(take) as start, transaction.atomic():
        # As an order begins.
        Vll.objects.select_for_update().get(pk=vll.pk)
        start()
        modify(alice, vll, cir_bps=2 * GBIT)
    assert Router.objects.get(name="rhino").calibration is not None
    assert sums_are_right()


@pytest.fixture
def noted_line(vll: Vll, isp: Isp) -> Vll:
    """A line that is no longer carried: each change of the network locks it. Its routers are calibrated."""
    clocks = {Transport.L2XC: 25.0, Transport.VXLAN4: 400.0}
    measured = Calibration(
        measured_at=clock.now(), vpp_version="25.10", cpu="", clock_hz=2.6e9, rounds=41, clocks=clocks
    )
    Router.objects.update(calibration=measured.kept())
    Vll.objects.update(not_carried_since=clock.now())
    return vll


def _take_no_figures(router: Router, user: User) -> None:
    router_calibration_set(router=router, calibration=None, user=user, now=clock.now(), accept_affected=True)


def _change_the_cpu(router: Router, user: User) -> None:
    router_change(router=router, user=user, now=clock.now(), accept_affected=True, cpu="another")


def _begin_a_drain(router: Router, user: User) -> None:
    drain_begin(router=router, user=user, now=clock.now(), accept_affected=True)


@pytest.mark.parametrize("change", [_take_no_figures, _change_the_cpu, _begin_a_drain])
def test_a_router_may_be_drained_while_it_is_changed_otherwise(
    change: Callable[[Router, User], None], isp: Isp, nora: User, noted_line: Vll
) -> None:
    rhino = Router.objects.get(name="rhino")
    with a_thread(partial(change, rhino, nora)) as start, transaction.atomic():
        # As a drain begins, and as the API's conditional writes begin.
        Router.objects.select_for_update(no_key=True).get(pk=rhino.pk)
        start()
        drain_begin(router=rhino, user=nora, now=clock.now(), accept_affected=True)
    assert Router.objects.get(name="rhino").drained_since is not None


def test_a_dead_router_may_be_removed_while_the_network_changes(
    isp: Isp, alice: User, nina: User, noted_line: Vll
) -> None:
    rhino = Router.objects.get(name="rhino")
    order_delete(user=alice, vll=noted_line, now=clock.now())
    answer(noted_line, "z", "removed")
    router_declare_dead(router=rhino, user=nina, now=clock.now(), reason="burnt down")
    dead_routers_settle(now=clock.now())
    BackboneLink.objects.filter(Q(a_router=rhino) | Q(z_router=rhino)).delete()
    for port in Port.objects.filter(router=rhino):
        port_remove(port=port, user=nina, now=clock.now())
    assert VllTombstone.objects.filter(router=rhino, vll=noted_line).exists()
    with (
        a_thread(partial(router_remove, router=rhino, user=nina, now=clock.now())) as start,
        transaction.atomic(),
    ):
        # As a drain or a change of a link does: its routers, and then the noted lines.
        Router.objects.select_for_update(no_key=True).get(pk=rhino.pk)
        start()
        Vll.objects.select_for_update(no_key=True).get(pk=noted_line.pk)
    assert not VllTombstone.objects.exists()


@pytest.mark.parametrize("surface", ["page", "api"])
def test_a_port_may_take_smaller_frames_while_a_line_on_it_changes(
    surface: str, isp: Isp, alice: User, nora: User, vll: Vll
) -> None:
    port, changes = isp.ports["hippo:host-cust1"], {"max_frame": 1517, "accept_affected": True}
    page = partial(port_change, port=port, user=nora, now=clock.now(), **changes)
    api = partial(
        client(nora).patch, f"/api/v1/ports/{port.pk}", changes, format="json", headers={"If-Match": "*"}
    )
    with a_thread(page if surface == "page" else api) as start, transaction.atomic():
        # As an order begins.
        Vll.objects.select_for_update().get(pk=vll.pk)
        start()
        modify(alice, vll, cir_bps=2 * GBIT)
    assert Vll.objects.get(pk=vll.pk).not_carried_since is not None


def test_a_line_that_becomes_active_while_its_removal_is_ordered_is_removed(isp: Isp, alice: User) -> None:
    placed, removals = order(isp, alice), []
    answer(placed.vll, "a", "verified")
    vll = Vll.objects.get(pk=placed.vll_id)

    def remove() -> None:
        removals.append(order_delete(user=alice, vll=vll, now=clock.now()))

    with a_thread(remove) as start, transaction.atomic():
        answer(Vll.objects.get(pk=vll.pk), "z", "verified")
        start()
    # Not the add called off, which has been completed meanwhile.
    assert [removal.action for removal in removals] == ["delete"]
    placed.refresh_from_db()
    assert (placed.state, placed.vll.lifecycle) == ("completed", "pendingTerminate")
