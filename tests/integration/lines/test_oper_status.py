"""op-up needs link at both UNIs, a route that is no drop, and fresh reports (RFC 9181)."""

from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.events.models import Event
from portal.inventory.models import ObservedRouter
from portal.inventory.reported_observation import Difference
from portal.telemetry.oper_status import ends_observed, stale_vlls_mark
from portal.vll.models import EndMove, Order, Vll
from portal.vll.operations.modify_line import order_modify
from tests.integration.isp import Isp
from tests.integration.observed_reports import observed_end
from tests.integration.orders import order
from tests.integration.router_answers import activate, answer, refuse

pytestmark = pytest.mark.django_db


@pytest.fixture
def line(isp: Isp, alice: User) -> Vll:
    vll = order(isp, alice).vll
    activate(vll)
    return vll


def observe(isp: Isp, vll: Vll, side: str, *, look: int | None = None, **facts: Any) -> None:
    router = isp.routers["rhino" if side == "a" else "hippo"]
    ends_observed(
        router=router, ends=[observed_end(vll.pk, side, **facts)], observation_number=look, now=clock.now()
    )
    vll.refresh_from_db()


def test_unknown_until_both_routers_have_reported(isp: Isp, line: Vll) -> None:
    observe(isp, line, "a")
    assert line.oper_status == "op-unknown"
    observe(isp, line, "z")
    assert line.oper_status == "op-up"


@pytest.mark.parametrize("fault", [{"link_up": False}, {"reachable": False}])
def test_a_lost_link_or_route_at_either_end_is_down_and_it_heals(isp: Isp, line: Vll, fault: dict) -> None:
    observe(isp, line, "a")
    observe(isp, line, "z", **fault)
    assert line.oper_status == "op-down"
    observe(isp, line, "z")
    assert line.oper_status == "op-up"
    kinds = Event.objects.filter(vll_id=line.pk, kind__startswith="vll.op-").order_by("id")
    assert [e.kind for e in kinds] == ["vll.op-down", "vll.op-up"]


def test_a_report_that_was_on_its_way_when_the_agent_answered_changes_nothing(isp: Isp, line: Vll) -> None:
    for side in "az":
        observe(isp, line, side, look=1000)
    # The answer is newer than the report, which may still describe another revision.
    answer(line, "a", "verified", policed=True, look=2000)
    observe(isp, line, "a", look=1999, policed=False, link_up=False)
    observe(isp, line, "a", look=1999, revision=7)
    assert (line.oper_status, line.ends.get(side="a").policed) == ("op-up", True)
    # The answer itself rests on look 2000, and what was seen later counts.
    observe(isp, line, "a", look=2000, policed=True, link_up=False)
    assert line.oper_status == "op-down"
    observe(isp, line, "a", look=2001, policed=False)
    assert (line.oper_status, line.ends.get(side="a").policed) == ("op-up", False)


def test_the_other_routers_reports_and_older_agents_are_not_concerned(isp: Isp, line: Vll) -> None:
    answer(line, "a", "verified", policed=True, look=2000)
    observe(isp, line, "z", look=5)
    assert line.ends.get(side="z").link_up is True
    observe(isp, line, "a")
    assert line.ends.get(side="a").policed is False


def test_a_clock_that_was_set_back_silences_an_agent_for_a_while_only(isp: Isp, line: Vll) -> None:
    answer(line, "a", "verified", policed=True, look=2000)
    observe(isp, line, "a", look=1000)
    assert line.ends.get(side="a").link_up is None
    line.ends.filter(side="a").update(status_at=clock.now() - timedelta(seconds=36))
    observe(isp, line, "a", look=1001)
    assert line.ends.get(side="a").link_up is True


def test_an_end_that_the_agent_no_longer_mentions_is_unknown(isp: Isp, line: Vll) -> None:
    observe(isp, line, "a")
    observe(isp, line, "z")
    ends_observed(router=isp.routers["hippo"], ends=[], now=clock.now())
    line.refresh_from_db()
    assert line.oper_status == "op-unknown"


def test_report_of_the_previous_state_does_not_make_a_changing_line_unknown(
    isp: Isp, alice: User, line: Vll
) -> None:
    for side in "az":
        observe(isp, line, side)
    changes = {"cir_bps": 2 * line.cir_bps}
    changing = order_modify(user=alice, vll=line, changes=changes, now=clock.now())
    line.refresh_from_db()
    observe(isp, line, "a", revision=line.revision - 1, link_up=False)
    observe(isp, line, "z", revision=line.revision - 1)
    assert line.oper_status == "op-up"
    activate(line)
    # It was not forgotten: the next report counts, even one that says nothing of the line.
    ends_observed(router=isp.routers["hippo"], ends=[], now=clock.now())
    line.refresh_from_db()
    assert (Order.objects.get(pk=changing.pk).state, line.oper_status) == ("completed", "op-unknown")


def test_a_change_that_takes_long_hides_nothing(isp: Isp, alice: User, line: Vll) -> None:
    for side in "az":
        observe(isp, line, side)
    late = clock.now() - timedelta(seconds=36)
    order_modify(user=alice, vll=line, changes={"cir_bps": 2 * line.cir_bps}, now=late)
    observe(isp, line, "a", revision=1)
    assert line.oper_status == "op-unknown"


def test_without_a_vpp_nothing_is_forwarded(isp: Isp, line: Vll) -> None:
    observe(isp, line, "a")
    observe(isp, line, "z")
    hippo = ObservedRouter.objects.filter(router=isp.routers["hippo"])
    hippo.update(vpp_absent=True)
    ends_observed(router=isp.routers["hippo"], ends=[], now=clock.now())
    line.refresh_from_db()
    # Of its port nobody says anything.
    assert (line.oper_status, line.ends.get(side="z").link_up) == ("op-down", None)
    observe(isp, line, "a")
    assert line.oper_status == "op-down"
    hippo.update(vpp_absent=False)
    observe(isp, line, "z")
    assert line.oper_status == "op-up"


def test_silence_makes_unknown(isp: Isp, line: Vll) -> None:
    observe(isp, line, "a")
    observe(isp, line, "z")
    now = clock.now()
    assert stale_vlls_mark(now=now) == 0
    ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(reported_at=now - timedelta(seconds=36))
    assert stale_vlls_mark(now=now) == 1
    line.refresh_from_db()
    assert line.oper_status == "op-unknown"
    assert stale_vlls_mark(now=now) == 0


def test_a_line_is_not_unknown_since_before_its_end_came_to_the_silent_router(isp: Isp, line: Vll) -> None:
    observe(isp, line, "a")
    observe(isp, line, "z")
    now = clock.now()
    silent = ObservedRouter.objects.filter(router=isp.routers["hippo"])
    silent.update(reported_at=now - timedelta(hours=1))
    EndMove.objects.create(
        vll=line, side="z", router=isp.routers["rhino"], left_at=now - timedelta(minutes=5)
    )
    assert stale_vlls_mark(now=now) == 1
    assert Event.objects.get(vll_id=line.pk, kind="vll.op-unknown").at == now - timedelta(minutes=5)


def test_a_router_that_is_back_marks_its_own_lines_alone(isp: Isp, line: Vll) -> None:
    observe(isp, line, "a")
    observe(isp, line, "z")
    now = clock.now()
    an_hour_ago = now - timedelta(hours=1)
    ObservedRouter.objects.update(reported_at=an_hour_ago)
    for router, status in (("zebra", "op-up"), ("rhino", "op-unknown")):
        ends_observed(
            router=isp.routers[router], ends=[], router_changed=True, unknown_after=an_hour_ago, now=now
        )
        assert Vll.objects.get(pk=line.pk).oper_status == status


def test_drift_is_out_of_sync_and_repair_is_in_sync_again(isp: Isp, line: Vll) -> None:
    drift = (Difference("host-cust1.100", "admin_up", "true", "false"),)
    observe(isp, line, "a", in_sync=False, drift=drift)
    assert not line.in_sync
    observe(isp, line, "a")
    assert line.in_sync


def test_an_end_that_is_blocked_without_drift_is_out_of_sync_too(isp: Isp, line: Vll) -> None:
    observe(isp, line, "a", in_sync=False)
    observe(isp, line, "z")
    assert not line.in_sync
    assert Event.objects.filter(vll_id=line.pk, kind="vll.drift").count() == 1


def test_a_line_in_service_that_loses_an_end_raises_the_same_alarm(isp: Isp, line: Vll) -> None:
    refuse(line, "a")
    assert (line.lifecycle, line.in_sync) == ("active", False)
    answer(line, "a", "verified")
    kinds = Event.objects.filter(vll_id=line.pk, kind__in=["vll.drift", "vll.in_sync"]).order_by("id")
    assert [event.kind for event in kinds] == ["vll.drift", "vll.in_sync"]
