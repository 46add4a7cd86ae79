"""The health of a line: the result of its facts, and its presentation."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.diagnosis.health import (
    Health,
    health_counts,
    in_service_counts,
    known_health,
    with_health,
    with_health_state,
)
from portal.inventory.models import ObservedRouter
from portal.telemetry.oper_status import Turn, statuses_write
from portal.vll.models import TunnelPath, Vll
from portal.vll.operations.line_removal import order_delete, order_restore
from portal.vll.operations.modify_line import order_modify, order_resume, order_suspend
from portal.vll.operations.order_approval import order_approve
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.state_compare_and_swap import lines_lock, sync_move
from portal.vll.states import Lifecycle, OperStatus
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, modify, order
from tests.integration.router_answers import activate, answer, refuse
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    """Return a line in service and up."""
    placed = order(isp, alice, description="Milk run").vll
    activate(placed)
    set_status(placed, OperStatus.UP)
    return placed


def set_status(vll: Vll, status: OperStatus, **of_its_ends: Any) -> None:
    vll.ends.update(**of_its_ends)
    lines_lock([vll.pk])
    statuses_write([Turn(vll.pk, status, clock.now())])


def health(vll: Vll) -> Health | None:
    """Return the health of the line, and check that lists and the overview show the same health."""
    found = known_health(Vll.objects.get(pk=vll.pk))
    line = Vll.objects.filter(pk=vll.pk)
    queried = with_health_state(line).values_list("health_state", flat=True)
    assert list(queried) == ([] if found is None else [found.state.value])
    in_service = line.filter(lifecycle=Lifecycle.ACTIVE).exists()
    assert in_service_counts(line) == ({found.state: 1} if found and in_service else {})
    return found


def state_and_cause(vll: Vll) -> tuple[str, str]:
    found = health(vll)
    assert found is not None
    return found.state.value, found.cause


def test_carrying_line_is_up_since_its_time(vll: Vll) -> None:
    found = health(vll)
    assert found is not None
    assert (found.state, found.cause) == ("up", "")
    assert found.since is not None
    assert clock.now() - found.since < timedelta(minutes=1)


def test_first_order_is_set_up_waiting_or_removed(isp: Isp, alice: User, dairy: Customer) -> None:
    building = order(isp, alice)
    assert state_and_cause(building.vll) == ("setting_up", "It is being set up and tested.")
    refuse(building.vll, "a")
    assert state_and_cause(building.vll)[1] == "Its order failed, and what was set up is being removed."
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    alice.refresh_from_db()
    ends = {f"{side}_end": each for side, each in zip("az", _others(isp), strict=True)}
    pending = order(isp, alice, cir_bps=2 * GBIT, **ends)
    assert state_and_cause(pending.vll) == ("setting_up", "It is waiting for the NOC's approval.")
    order_cancel(user=alice, order=pending, now=clock.now())
    assert health(pending.vll) is None


def _others(isp: Isp) -> list[Any]:
    return [end(isp, f"{name}:host-cust2") for name in ("rhino", "hippo")]


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"link_up": False}, "The port host-cust1 at the A end has no link."),
        ({"path_state": "down"}, "The network's path between the two ends is down."),
        ({"reachable": False}, "The network's path between the two ends is down."),
        ({}, "rhino, at the A end, is not reporting; the line may still be up."),
    ],
)
def test_line_that_is_down_shows_the_reason(vll: Vll, facts: dict[str, Any], cause: str) -> None:
    set_status(vll, OperStatus.DOWN, **facts)
    assert state_and_cause(vll) == ("down", cause)


def test_missing_vpp_is_the_nearest_cause(isp: Isp, vll: Vll) -> None:
    ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(vpp_connected=False)
    set_status(vll, OperStatus.DOWN, link_up=False)
    assert state_and_cause(vll) == ("down", "hippo, at the Z end, is not forwarding anything.")


def test_down_outweighs_a_change_and_a_change_outweighs_the_rest(alice: User, vll: Vll) -> None:
    modify(alice, vll, cir_bps=2 * GBIT)
    assert state_and_cause(vll) == ("changing", "An order for this line is under way.")
    set_status(vll, OperStatus.UNKNOWN)
    assert state_and_cause(vll)[0] == "changing"
    set_status(vll, OperStatus.DOWN, link_up=False)
    assert state_and_cause(vll)[0] == "down"
    activate(vll)
    set_status(vll, OperStatus.UP, link_up=True)
    assert state_and_cause(vll) == ("up", "")


def test_change_pending_approval_does_not_affect_the_line(
    alice: User, nora: User, dairy: Customer, vll: Vll
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    alice.refresh_from_db()
    pending = modify(alice, vll, cir_bps=2 * GBIT)
    assert (pending.state, state_and_cause(vll)[0]) == ("held", "up")
    order_approve(user=nora, order=pending, now=clock.now())
    assert state_and_cause(vll)[0] == "changing"


def test_suspended_line_is_never_up(alice: User, vll: Vll) -> None:
    order_suspend(user=alice, vll=vll, now=clock.now())
    assert state_and_cause(vll)[0] == "changing"
    activate(vll)
    assert vll.oper_status == "op-up"
    assert state_and_cause(vll) == ("suspended", "This line is suspended, so it carries nothing.")
    order_resume(user=alice, vll=vll, now=clock.now())
    assert state_and_cause(vll)[0] == "changing"


def test_removal_shows_until_when_it_can_be_undone(alice: User, vll: Vll) -> None:
    order_delete(user=alice, vll=vll, now=clock.now(), cooling_off=timedelta(days=7))
    activate(vll)
    until = f"{vll.decommission_at:%Y-%m-%d %H:%M}"
    assert state_and_cause(vll) == (
        "removing",
        f"Its removal is ordered and can be undone until {until} UTC.",
    )
    order_restore(user=alice, vll=vll, now=clock.now())
    activate(vll)
    assert state_and_cause(vll)[0] == "up"
    order_delete(user=alice, vll=vll, now=clock.now(), cooling_off=timedelta(0))
    assert state_and_cause(vll) == ("removing", "It is being removed from its routers.")
    for side in "az":
        answer(vll, side, "removed")
    assert health(vll) is None


def test_line_without_reports_is_unknown(vll: Vll) -> None:
    set_status(vll, OperStatus.UNKNOWN)
    assert state_and_cause(vll) == ("unknown", "Its routers have not reported on it recently.")


def test_drift_on_a_router_degrades_the_line(vll: Vll) -> None:
    vll.ends.filter(side="z").update(drift=[{"object": "x", "field": "y", "desired": "1", "actual": "2"}])
    sync_move(vll.pk, False, now=clock.now())
    assert state_and_cause(vll) == ("degraded", "hippo, at the Z end, is not configured as ordered.")


class TestPathWithLosses:
    @pytest.fixture
    def path(self, vll: Vll) -> TunnelPath:
        a, z = sorted(end.port.router_id for end in vll.ends.select_related("port"))
        return TunnelPath.objects.create(
            a_router_id=a, z_router_id=z, family=4, round_trips_due_at=clock.now(), probed_at=clock.now()
        )

    def test_loss_of_large_frames_degrades_the_lines_that_use_them(self, vll: Vll, path: TunnelPath) -> None:
        now, packet = clock.now(), vll.frame + 36
        for verified, state in ((packet - 1, "degraded"), (packet, "up")):
            TunnelPath.objects.update(
                finding="large_frames_lost", verified_ip_mtu=verified, verified_at=now, black_hole_since=now
            )
            assert state_and_cause(vll)[0] == state
        TunnelPath.objects.update(verified_ip_mtu=1500)
        assert (
            state_and_cause(vll)[1] == "The network loses this line's large frames; smaller ones get through."
        )

    def test_loss_of_any_frames_degrades_all_lines(self, vll: Vll, path: TunnelPath) -> None:
        TunnelPath.objects.update(finding="lossy")
        assert state_and_cause(vll) == ("degraded", "The network loses frames between the two ends.")


def test_health_of_many_lines_costs_three_statements(
    isp: Isp, alice: User, vll: Vll, django_assert_num_queries: Any
) -> None:
    order(isp, alice, **{f"{side}_end": each for side, each in zip("az", _others(isp), strict=True)})
    lines = list(Vll.objects.prefetch_related("ends__port__router__observed").order_by("created_at"))
    with django_assert_num_queries(3):
        with_health(lines)
        assert [known_health(line).state for line in lines] == ["up", "setting_up"]  # type: ignore[union-attr]


def test_lines_are_counted_by_health(isp: Isp, alice: User, vll: Vll, django_assert_num_queries: Any) -> None:
    order(isp, alice, **{f"{side}_end": each for side, each in zip("az", _others(isp), strict=True)})
    with django_assert_num_queries(2):
        counts = health_counts(Vll.objects.all())
    assert {state.value: count for state, count in counts.items()} == {"up": 1, "setting_up": 1}


def test_api_and_pages_show_the_health(alice: User, vll: Vll) -> None:
    set_status(vll, OperStatus.DOWN, link_up=False)
    [listed] = client(alice).get("/api/v1/vlls").json()["results"]
    one = client(alice).get(f"/api/v1/vlls/{vll.pk}").json()
    vll.refresh_from_db()
    assert vll.oper_since is not None
    assert listed["health"] == one["health"]
    assert (one["health"]["state"], one["health"]["cause"]) == (
        "down",
        "The port host-cust1 at the A end has no link.",
    )
    assert one["health"]["since"] is not None
    for address in ("/", f"/vlls/{vll.pk}/", "/search/?q=Milk"):
        assert "The port host-cust1 at the A end has no link." in text(signed_in(alice).get(address)), address


def test_order_response_contains_the_health_without_a_query(isp: Isp, alice: User, vll: Vll) -> None:
    response = client(alice).patch(
        f"/api/v1/vlls/{vll.pk}", {"cir_bps": 2 * GBIT}, format="json", headers={"If-Match": "*"}
    )
    assert response.status_code == 202
    assert response.json()["vll"]["health"]["state"] == "changing"


@pytest.mark.parametrize(
    "changes",
    [{"cir_bps": 2 * GBIT}, {"svc_mtu": 1400}, {"eir_bps": GBIT}],
    ids=lambda changes: next(iter(changes)),
)
def test_lossless_change_keeps_the_time_since_the_line_is_up(
    alice: User, vll: Vll, changes: dict[str, Any]
) -> None:
    since = up_since(vll)
    order_modify(user=alice, vll=vll, changes=changes, now=clock.now())
    activate(vll)
    assert up_since(vll) == since


def test_undone_lossless_change_keeps_the_time_since_the_line_is_up(alice: User, vll: Vll) -> None:
    since = up_since(vll)
    order_modify(user=alice, vll=vll, changes={"cir_bps": 2 * GBIT}, now=clock.now())
    refuse(vll, "a")
    vll.refresh_from_db()
    activate(vll)
    assert up_since(vll) == since


@pytest.mark.parametrize(
    "changes",
    [{"a_end": {"outer_vlan": 200}}, {"transport": "geneve4"}],
    ids=lambda changes: next(iter(changes)),
)
def test_interrupting_change_restarts_the_time_since_the_line_is_up(
    alice: User, vll: Vll, changes: dict[str, Any]
) -> None:
    since = up_since(vll)
    order_modify(user=alice, vll=vll, changes=changes, now=clock.now())
    activate(vll)
    assert up_since(vll) > since


def test_line_is_up_since_a_drift_ended_despite_a_lossless_change(alice: User, vll: Vll) -> None:
    sync_move(vll.pk, False, now=clock.now())
    vll.refresh_from_db()
    order_modify(user=alice, vll=vll, changes={"cir_bps": 2 * GBIT}, now=clock.now())
    ordered = vll.orders.latest("ordered_at").ordered_at
    activate(vll)
    assert up_since(vll) > ordered


def up_since(vll: Vll) -> datetime:
    vll.refresh_from_db()
    found = health(vll)
    assert found is not None
    assert found.state == "up"
    assert found.since is not None
    return found.since
