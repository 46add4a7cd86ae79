"""A frozen router is only read: it gets no intent before an operator has acknowledged the end of the
freeze.
"""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from portal.accounts.models import User
from portal.audit.history import router_history
from portal.core import clock
from portal.core.clock import to_ms
from portal.events.models import Event
from portal.inventory.models import ObservedRouter, Router, RouterFreeze
from portal.inventory.reported_observation import FreezeReport
from portal.vll.convergence.claims import routers_due
from portal.vll.convergence.requests import intent_is_wanted
from portal.vll.errors import (
    AdoptionWhileFrozen,
    ChangeWhileFrozen,
    FreezeNotOver,
    FreezeTooLong,
    RouterCannotBeFrozen,
    RouterIsNotFrozen,
)
from portal.vll.models import RouterConvergence
from portal.vll.router_operations.freeze import (
    freeze_acknowledge,
    freeze_of,
    freeze_reported,
    freeze_wanted,
    last_acknowledged_freeze,
    router_freeze,
    router_unfreeze,
)
from provisioning.convergence import converge_router
from tests.integration.allocation.test_adopt_several import found_on
from tests.integration.allocation.test_adoption import adopt
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import modify, order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def rhino(isp: Isp) -> Router:
    ObservedRouter.objects.update(freezes=True, reported_at=clock.now(), adoption="allowed")
    return isp.routers["rhino"]


def freeze(router: Router, user: User, **otherwise: Any) -> RouterFreeze:
    values = {"reason": "new line cards", "until": clock.now() + timedelta(hours=1)} | otherwise
    return router_freeze(router=router, user=user, now=clock.now(), **values)


def report_freeze(router: Router, freeze_id: Any = None, *, by: str = "portal", over: bool = False) -> None:
    """Store the agent's report of its freeze. None: the agent has no freeze."""
    report = None
    if freeze_id is not None:
        now = to_ms(clock.now())
        report = FreezeReport(str(freeze_id), by, "line cards", now - 1000, now + 10**6, over)  # type: ignore[arg-type]
    freeze_reported(router=router, report=report, now=clock.now())
    router.refresh_from_db()


def kinds() -> list[str]:
    return list(
        Event.objects.filter(kind__startswith="router.f").order_by("id").values_list("kind", flat=True)
    )


def test_frozen_router_gets_no_intent_and_orders_show_that_they_wait(
    isp: Isp, rhino: Router, nora: User, alice: User
) -> None:
    freeze(rhino, nora)
    placed = order(isp, alice)
    assert rhino.pk not in routers_due(now=clock.now())
    assert not converge_router(rhino.pk)
    page = text(signed_in(alice).get(f"/vlls/{placed.vll_id}/"))
    assert "rhino has been frozen since" in page


def test_agent_gets_the_freeze_until_its_end(rhino: Router, nora: User) -> None:
    made = freeze(rhino, nora)
    rhino.refresh_from_db()
    wanted = freeze_wanted(rhino, now=clock.now())
    assert wanted == {"id": str(made.pk), "reason": "new line cards", "until_ms": to_ms(made.until)}
    assert freeze_wanted(rhino, now=made.until) is None
    router_unfreeze(router=rhino, user=nora, now=clock.now())
    assert freeze_wanted(Router.objects.get(pk=rhino.pk), now=clock.now()) is None


def test_differences_are_acknowledged_before_an_intent_is_sent(rhino: Router, nora: User) -> None:
    made = freeze(rhino, nora)
    report_freeze(rhino, made.pk)
    with pytest.raises(FreezeNotOver):
        freeze_acknowledge(router=rhino, user=nora, now=clock.now())
    router_unfreeze(router=rhino, user=nora, now=clock.now())
    report_freeze(rhino, made.pk, over=True)
    assert rhino.frozen_since
    assert "The freeze has ended" in text(signed_in(nora).get(f"/noc/routers/{rhino.pk}/"))
    RouterConvergence.objects.get_or_create(router=rhino)
    freeze_acknowledge(router=rhino, user=nora, now=clock.now())
    rhino.refresh_from_db()
    made.refresh_from_db()
    assert (rhino.frozen_since, made.acknowledged_by) == (None, nora.username)
    assert RouterConvergence.objects.filter(intent_is_wanted(), router=rhino).exists()
    report_freeze(rhino, made.pk, over=True)
    assert rhino.frozen_since is None
    assert kinds() == ["router.frozen", "router.freeze_ended", "router.freeze_looked"]
    assert last_acknowledged_freeze(rhino) == str(made.pk)
    acknowledged, _, ended, _ = [each for each in router_history(rhino.pk) if each.what == "routerfreeze"]
    # The audit trail and the API keep the names of the columns.
    assert acknowledged.after["looked_by"] == nora.username
    assert ended.after["end_asked_at"]


def test_unchanged_router_needs_no_acknowledgement(rhino: Router, nora: User) -> None:
    made = freeze(rhino, nora)
    report_freeze(rhino, made.pk)
    router_unfreeze(router=rhino, user=nora, now=clock.now())
    report_freeze(rhino, made.pk)
    assert rhino.frozen_since
    report_freeze(rhino)
    made.refresh_from_db()
    assert (rhino.frozen_since, made.acknowledged_by) == (None, "")


def test_freeze_that_the_agent_never_received_ends_immediately(rhino: Router, nora: User) -> None:
    freeze(rhino, nora)
    report_freeze(rhino)
    assert rhino.frozen_since
    router_unfreeze(router=rhino, user=nora, now=clock.now())
    rhino.refresh_from_db()
    assert rhino.frozen_since is None


def test_freeze_that_the_agent_received_late_lasts_until_its_end(rhino: Router, nora: User) -> None:
    made = freeze(rhino, nora)
    router_unfreeze(router=rhino, user=nora, now=clock.now())
    report_freeze(rhino, made.pk)
    assert rhino.frozen_since
    assert freeze_wanted(rhino, now=clock.now()) is None
    report_freeze(rhino, made.pk, over=True)
    assert rhino.frozen_since
    freeze_acknowledge(router=rhino, user=nora, now=clock.now())
    report_freeze(rhino, made.pk, over=True)
    assert rhino.frozen_since is None


def test_agent_that_lost_the_freeze_gets_it_again(rhino: Router, nora: User) -> None:
    made = freeze(rhino, nora)
    report_freeze(rhino, made.pk)
    report_freeze(rhino)
    assert (freeze_wanted(rhino, now=clock.now()) or {})["id"] == str(made.pk)


def test_end_of_a_freeze_can_change_and_another_freeze_follows(rhino: Router, nora: User) -> None:
    made = freeze(rhino, nora)
    report_freeze(rhino, made.pk)
    later = clock.now() + timedelta(hours=5)
    assert freeze(rhino, nora, until=later, reason="more cards") == made
    assert (freeze_wanted(rhino, now=clock.now()) or {})["until_ms"] == to_ms(later)
    router_unfreeze(router=rhino, user=nora, now=clock.now())
    following = freeze(rhino, nora)
    assert following != made
    report_freeze(rhino, made.pk, over=True)
    report_freeze(rhino, following.pk)
    assert freeze_of(rhino) == following
    assert RouterFreeze.objects.filter(closed_at__isnull=True).count() == 1


def test_freeze_of_a_silent_router_can_be_acknowledged(rhino: Router, nora: User) -> None:
    made = freeze(rhino, nora)
    report_freeze(rhino, made.pk)
    router_unfreeze(router=rhino, user=nora, now=clock.now())
    freeze_acknowledge(router=rhino, user=nora, now=clock.now())
    rhino.refresh_from_db()
    assert rhino.frozen_since is None
    report_freeze(rhino, made.pk)
    assert rhino.frozen_since


def test_acknowledgement_is_sent_until_the_agent_has_received_it(rhino: Router) -> None:
    # All other requests for the router were sent long ago.
    ObservedRouter.objects.filter(router=rhino).update(generation_stored=rhino.generation)
    RouterConvergence.objects.update_or_create(
        router=rhino,
        defaults={
            "last_answered_at": clock.now() - timedelta(minutes=5),
            "next_query_at": clock.now() + timedelta(hours=1),
        },
    )
    assert rhino.pk not in routers_due(now=clock.now())
    ObservedRouter.objects.filter(router=rhino).update(freeze={"id": str(uuid4()), "over": True})
    assert rhino.pk in routers_due(now=clock.now())


def test_operator_on_the_router_begins_and_ends_a_freeze_there(rhino: Router, nora: User) -> None:
    own = uuid4()
    report_freeze(rhino, own, by="router")
    assert rhino.frozen_since
    assert "Frozen by an operator on the router" in text(signed_in(nora).get(f"/noc/routers/{rhino.pk}/"))
    with pytest.raises(RouterIsNotFrozen):
        router_unfreeze(router=rhino, user=nora, now=clock.now())
    made = freeze(rhino, nora)
    report_freeze(rhino, own, by="router", over=True)
    report_freeze(rhino, made.pk)
    assert rhino.frozen_since
    assert RouterFreeze.objects.get(pk=own).closed_at


def test_impossible_freezes_are_refused(isp: Isp, rhino: Router, nora: User, nina: User) -> None:
    for until in (clock.now(), clock.now() + timedelta(days=31)):
        with pytest.raises(FreezeTooLong):
            freeze(rhino, nora, until=until)
    [line, *_] = found_on(isp, "host-cust1")
    freeze(rhino, nora)
    with pytest.raises(AdoptionWhileFrozen):
        adopt(nina, line)
    ObservedRouter.objects.update(freezes=False)
    with pytest.raises(RouterCannotBeFrozen):
        freeze(isp.routers["hippo"], nora)
    with pytest.raises(RouterIsNotFrozen):
        freeze_acknowledge(router=isp.routers["hippo"], user=nora, now=clock.now())


def test_change_that_needs_both_routers_is_refused(isp: Isp, rhino: Router, nora: User, alice: User) -> None:
    placed = order(isp, alice)
    line = placed.vll
    activate(line)
    freeze(rhino, nora)
    with pytest.raises(ChangeWhileFrozen):
        modify(alice, line, transport="geneve4")
    assert not line.orders.exclude(pk=placed.pk).exists()
    modify(alice, line, cir_bps=line.cir_bps - 1_000_000)
    assert line.orders.exclude(pk=placed.pk).exists()


def test_api_and_page_freeze_routers(rhino: Router, nora: User, alice: User) -> None:
    address = f"/api/v1/routers/{rhino.pk}/actions"
    until = (clock.now() + timedelta(hours=1)).isoformat()
    lacking = client(nora).post(address, {"do": "freeze"}, content_type="application/json")
    assert {each["field"] for each in lacking.json()["errors"]} == {"reason", "until"}
    wordy = {"do": "freeze", "reason": "x" * 201, "until": until}
    refused = client(nora).post(address, wordy, content_type="application/json").json()["errors"]
    assert [(each["field"], each["code"]) for each in refused] == [("reason", "max_length")]
    document = {"do": "freeze", "reason": "cards", "until": until}
    assert client(alice).post(address, document, content_type="application/json").status_code in (403, 404)
    response = client(nora).post(address, document, content_type="application/json")
    assert response.json()["frozen_since"]
    assert client(nora).post(address, {"do": "unfreeze"}, content_type="application/json").status_code == 200
    page = signed_in(nora)
    page.post(f"/noc/routers/{rhino.pk}/freeze/", {"reason": "", "hours": "2"})
    assert not RouterFreeze.objects.filter(closed_at__isnull=True).exists()
    page.post(f"/noc/routers/{rhino.pk}/freeze/", {"reason": "cards", "hours": "2"})
    shown = page.get(f"/noc/routers/{rhino.pk}/")
    assert "End the freeze" in text(shown)
    assert b'value="cards"' in shown.content
    page.post(f"/noc/routers/{rhino.pk}/freeze/", {"reason": "power", "hours": "8"})
    changed = RouterFreeze.objects.get(closed_at__isnull=True)
    assert changed.reason == "power"
    assert changed.until > clock.now() + timedelta(hours=7)
    page.post(f"/noc/routers/{rhino.pk}/actions/", {"do": "unfreeze"})
    rhino.refresh_from_db()
    assert rhino.frozen_since is None


def test_agent_cannot_report_another_routers_freeze(isp: Isp, rhino: Router, nora: User) -> None:
    """An agent with a folder copied from the other router would do so."""
    made = freeze(rhino, nora)
    report_freeze(rhino, made.pk)
    router_unfreeze(router=rhino, user=nora, now=clock.now())
    report_freeze(rhino, made.pk, over=True)
    freeze_acknowledge(router=rhino, user=nora, now=clock.now())
    report_freeze(isp.routers["hippo"], made.pk)
    rhino.refresh_from_db()
    made.refresh_from_db()
    assert (rhino.frozen_since, made.acknowledged_by) == (None, nora.username)


def test_customer_sees_the_applied_rate_and_no_drift_while_a_change_waits_for_a_frozen_router(
    isp: Isp, alice: User, nora: User, rhino: Router
) -> None:
    line = order(isp, alice, cir_bps=10_000_000).vll
    activate(line)
    freeze(rhino, nora)
    modify(alice, line, cir_bps=20_000_000)
    overview = text(signed_in(alice).get("/"))
    assert "Configuration drift" not in overview
    row = text(signed_in(alice).get(f"/vlls/{line.pk}/"))
    assert "10 Mbit/s (20 Mbit/s ordered)" in row
    assert "10 Mbit/s" in overview
    assert "20 Mbit/s" not in overview.split("Lines", 1)[1].rsplit("Bandwidth", 1)[1]
    activate(line)
    assert "20 Mbit/s (" not in text(signed_in(alice).get(f"/vlls/{line.pk}/"))
    assert "20 Mbit/s" in text(signed_in(alice).get("/")).rsplit("Bandwidth", 1)[1]
