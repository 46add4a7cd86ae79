"""Link loss forwarding: who may order it, and which intents the routers get and when."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import F

from portal.accounts.models import User
from portal.core import clock
from portal.core.vlan_tags import Tagging
from portal.diagnosis.health import known_health
from portal.events.models import Event, Outbox
from portal.inventory.models import ObservedInterface, ObservedRouter, Port, Router, RouterSilence
from portal.notifications.line_fault_causes import causes_of_down
from portal.vll.errors import (
    LinkLossNeedsUni,
    LinkLossNeedsWholePorts,
    LinkLossPortInUse,
    LinkLossUnsupported,
    PortKeptDown,
)
from portal.vll.models import ForwardedLinkLoss, RouterConvergence, Vll, intent_is_wanted
from portal.vll.operations import (
    ends_observed,
    line_let_go,
    link_losses_forward,
    order_delete,
    order_resume,
    order_suspend,
)
from provisioning.intent_document import intent_for
from provisioning.intent_rows import end_rows
from tests.integration.isp import Isp
from tests.integration.observed_reports import observed_end
from tests.integration.orders import end, modify, order
from tests.integration.raised_alarms import alarms_raised, relay_sends
from tests.integration.router_answers import CONFLICT, activate, answer
from tests.integration.test_api_lifecycle import patch
from tests.integration.test_api_v1 import client
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
ROUTERS = {"a": "rhino", "z": "hippo"}


class Clock:
    """The time of the test; ``after`` lets some pass, in which all routers report nothing new."""

    def __init__(self) -> None:
        self.now: datetime = clock.now()

    def after(self, seconds: float) -> datetime:
        self.now += seconds * SECOND
        ObservedRouter.objects.exclude(router__in=RouterSilence.objects.values("router")).update(
            reported_at=self.now
        )
        return self.now


@pytest.fixture
def at(isp: Isp) -> Clock:
    ObservedRouter.objects.update(link_loss_forwarding=True, adoption="allowed")
    return Clock()


def whole(isp: Isp, **more: Any) -> dict[str, Any]:
    return {
        "a_end": end(isp, "rhino:host-cust1", "untagged"),
        "z_end": end(isp, "hippo:host-cust1", "untagged"),
        "link_loss_forwarding": True,
    } | more


@pytest.fixture
def line(isp: Isp, alice: User, at: Clock) -> Vll:
    placed = order(isp, alice, **whole(isp)).vll
    activate(placed)
    at.now = clock.now()
    for side in "az":
        see(isp, placed, side, at)
    return placed


def see(isp: Isp, line: Vll, side: str, at: Clock, **facts: Any) -> None:
    """That end's router reports this, and the portal looks at it."""
    line.refresh_from_db()
    said = observed_end(line.pk, side, revision=line.revision, **facts)
    ends_observed(router=isp.routers[ROUTERS[side]], ends=[said], now=at.now)
    link_losses_forward(now=at.now)
    line.refresh_from_db()


def look(at: Clock, seconds: float) -> int:
    return link_losses_forward(now=at.after(seconds))


def told(isp: Isp) -> str:
    """The ends that intents want kept down."""
    sides = ""
    for name in ROUTERS.values():
        intent = intent_for(router=name, generation=1, rows=end_rows(isp.routers[name]))
        present = json.loads(intent.document())["present"]
        sides += "".join(each["end"] for each in present if each.get("uni_link_down"))
    return sides


def lose(isp: Isp, line: Vll, at: Clock) -> None:
    """A loses its link, and hippo keeps Z down for it."""
    see(isp, line, "a", at, link_up=False)
    assert look(at, 10) == 1
    see(isp, line, "z", at, link_up=False, held_down=True)


def test_it_is_off_unless_somebody_orders_it_and_is_part_of_what_is_ordered(
    isp: Isp, alice: User, at: Clock
) -> None:
    plain = order(isp, alice, **whole(isp, link_loss_forwarding=False)).vll
    activate(plain)
    assert client(alice).get(f"/api/v1/vlls/{plain.pk}").json()["link_loss_forwarding"] is False
    assert patch(alice, plain, {"link_loss_forwarding": True}).status_code == 202
    activate(plain)
    assert plain.link_loss_forwarding
    document = client(alice).get(f"/api/v1/vlls/{plain.pk}").json()
    assert (document["link_loss_forwarding"], document["a_end"]["held_down"]) == (True, False)
    page = text(signed_in(alice).get(f"/vlls/{plain.pk}/"))
    assert "on: when one end loses its link, the other end's is taken down" in page


def test_only_whole_ports_of_customers_that_nobody_else_uses_and_whose_agents_know_it(
    isp: Isp, alice: User, nora: User, at: Clock
) -> None:
    def refused(error: type[Exception], **changes: Any) -> None:
        with pytest.raises(error):
            order(isp, nora, **whole(isp, **changes))

    refused(LinkLossNeedsWholePorts, z_end=end(isp, "hippo:host-cust1"))
    Port.objects.filter(pk=isp.ports["hippo:host-cust1"].pk).update(kind=Port.Kind.ENNI)
    refused(LinkLossNeedsUni)
    Port.objects.update(kind=Port.Kind.UNI)
    ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(link_loss_forwarding=False)
    refused(LinkLossUnsupported)
    ObservedRouter.objects.update(link_loss_forwarding=True)
    cust1 = {"router": isp.routers["rhino"], "admin_up": True, "link_up": True}
    sub = ObservedInterface.objects.create(name="host-cust1.7", **cust1)
    refused(LinkLossPortInUse)
    sub.delete()
    ObservedInterface.objects.filter(router=isp.routers["rhino"], name="host-cust1").update(linux_cp="e1")
    refused(LinkLossPortInUse)
    ObservedInterface.objects.update(linux_cp="")
    # Of a port with a like name that is somebody's, nothing follows.
    ObservedInterface.objects.create(name="host-cust10.7", **cust1)
    placed = order(isp, alice, **whole(isp)).vll
    activate(placed)
    # What goes on as it is needs no router's word; what no longer can go on is refused.
    ObservedRouter.objects.update(link_loss_forwarding=False)
    modify(alice, placed, cir_bps=2 * placed.cir_bps)
    activate(placed)
    with pytest.raises(LinkLossNeedsWholePorts):
        modify(alice, placed, a_end={"tagging": Tagging.DOT1Q, "outer_vlan": 7})


def test_a_loss_that_lasts_takes_the_far_end_down_and_a_link_that_is_back_sets_it_up(
    isp: Isp, line: Vll, at: Clock
) -> None:
    see(isp, line, "a", at, link_up=False)
    assert (look(at, 9), told(isp)) == (0, "")
    asked = Outbox.objects.count()
    assert (look(at, 1), told(isp)) == (1, "z")
    assert Outbox.objects.count() == asked + 1
    see(isp, line, "z", at, link_up=False, held_down=True)
    # Z's own link is not seen now, and counts for nothing, however long.
    assert (look(at, 3600), told(isp)) == (0, "z")
    see(isp, line, "a", at)
    assert (look(at, 9), told(isp)) == (0, "z")
    assert (look(at, 1), told(isp)) == (1, "")
    # The port is up again, and its link takes most of a minute to negotiate.
    see(isp, line, "z", at, link_up=False)
    assert (look(at, 50), told(isp)) == (0, "")
    see(isp, line, "z", at)
    assert (look(at, 60), line.oper_status) == (0, "op-up")
    kinds = Event.objects.filter(vll_id=line.pk, kind__startswith="vll.link_loss").order_by("id")
    assert [(each.kind, each.data["end"]) for each in kinds] == [
        ("vll.link_loss_forwarded", "z"),
        ("vll.link_loss_over", "z"),
    ]


def test_what_is_lost_behind_a_port_that_was_kept_down_is_forwarded_the_other_way(
    isp: Isp, line: Vll, at: Clock
) -> None:
    lose(isp, line, at)
    see(isp, line, "a", at)
    look(at, 10)
    see(isp, line, "z", at, link_up=False)
    assert (look(at, 59), told(isp)) == (0, "")
    assert (look(at, 1), told(isp)) == (1, "a")


def test_a_port_has_a_minute_from_when_its_router_that_heard_late_set_it_up(
    isp: Isp, line: Vll, at: Clock
) -> None:
    lose(isp, line, at)
    see(isp, line, "a", at)
    look(at, 10)
    for _ in range(20):
        look(at, 30)  # hippo still keeps Z down
    see(isp, line, "z", at, link_up=False)
    assert (look(at, 59), told(isp)) == (0, "")
    see(isp, line, "z", at)
    # A loss long after that is one as ever.
    at.after(120)
    see(isp, line, "z", at, link_up=False)
    assert (look(at, 9), told(isp)) == (0, "")
    assert (look(at, 1), told(isp)) == (1, "a")


def test_silent_router_takes_nothing_down_and_keeps_nothing_down_permanently(
    isp: Isp, line: Vll, at: Clock
) -> None:
    rhino = isp.routers["rhino"]
    see(isp, line, "a", at, link_up=False)
    silence = RouterSilence.objects.create(router=rhino, since=at.now)
    # Its last word was a lost link; by now nobody knows.
    assert (look(at, 60), told(isp)) == (0, "")
    silence.delete()
    assert (look(at, 1), told(isp)) == (1, "z")
    RouterSilence.objects.create(router=rhino, since=at.now)
    assert (look(at, 300), told(isp)) == (0, "z")
    assert (look(at, 1), told(isp)) == (1, "")


def test_a_dead_router_is_a_loss_at_once_and_for_as_long_as_it_is_dead(
    isp: Isp, line: Vll, at: Clock
) -> None:
    rhino = Router.objects.filter(pk=isp.routers["rhino"].pk)
    RouterSilence.objects.create(router=isp.routers["rhino"], since=at.now)
    rhino.update(dead_since=at.now, maintenance_since=at.now)
    assert (look(at, 1), told(isp)) == (1, "z")
    assert (look(at, 86_400), told(isp)) == (0, "z")
    see(isp, line, "z", at, link_up=False, held_down=True)
    found = known_health(Vll.objects.get(pk=line.pk))
    assert found is not None
    assert found.cause == (
        "rhino, at the A end, is out of service. The link at the Z end has been taken down to signal to your "
        "equipment there that the line is interrupted."
    )
    rhino.update(dead_since=None)
    RouterSilence.objects.all().delete()
    assert (look(at, 10), told(isp)) == (1, "")


@pytest.mark.parametrize("mark", ["held_since", "frozen_since"])
def test_nothing_is_taken_down_through_a_router_without_intents(
    isp: Isp, line: Vll, at: Clock, mark: str
) -> None:
    Router.objects.filter(pk=isp.routers["hippo"].pk).update(**{mark: at.now})
    see(isp, line, "a", at, link_up=False)
    assert look(at, 10) == 0
    Router.objects.update(**{mark: None})
    assert look(at, 1) == 1


def test_router_that_missed_the_decision_gets_it_again_unless_it_gives_a_reason(
    isp: Isp, line: Vll, at: Clock
) -> None:
    see(isp, line, "a", at, link_up=False)
    RouterConvergence.objects.create(router=isp.routers["hippo"])
    look(at, 10)

    def asked() -> bool:
        wanted = RouterConvergence.objects.filter(intent_is_wanted())
        return bool(wanted.update(answered=F("wanted"), intent_requested=False))

    assert asked()
    look(at, 14)
    assert not asked()
    look(at, 1)
    assert asked()
    answer(line, "z", "conflict", reason=CONFLICT)
    look(at, 60)
    assert not asked()
    answer(line, "z", "verified")
    see(isp, line, "z", at, link_up=False, held_down=True)
    look(at, 60)
    assert not asked()


def test_a_line_that_is_suspended_removed_or_turned_off_keeps_no_port_down(
    isp: Isp, alice: User, line: Vll, at: Clock
) -> None:
    lose(isp, line, at)
    order_suspend(user=alice, vll=line, now=at.now)
    assert told(isp) == ""
    assert (look(at, 1), ForwardedLinkLoss.objects.get().held) == (1, "")
    activate(line)
    Vll.objects.filter(pk=line.pk).update(lifecycle="active", admin_status="admin-up")
    look(at, 60)
    see(isp, line, "z", at)
    assert told(isp) == "z"
    modify(alice, line, link_loss_forwarding=False)
    assert (told(isp), look(at, 1)) == ("", 1)
    activate(line)
    order_delete(user=alice, vll=line, now=at.now, cooling_off=timedelta(0))
    for side in "az":
        answer(line, side, "removed")
    assert line.lifecycle == "terminated"
    assert look(at, 3600) == 0


def test_ports_that_a_resumed_line_sets_up_have_a_minute_for_their_links(
    isp: Isp, alice: User, line: Vll, at: Clock
) -> None:
    order_suspend(user=alice, vll=line, now=at.now)
    activate(line)
    for side in "az":
        see(isp, line, side, at, link_up=False)
    order_resume(user=alice, vll=line, now=at.now)
    activate(line)
    at.now = clock.now()
    see(isp, line, "z", at)
    see(isp, line, "a", at, link_up=False)
    assert (look(at, 55), told(isp)) == (0, "")
    assert (look(at, 10), told(isp)) == (1, "z")


def test_moving_end_stays_down_and_a_lost_one_is_judged_again(
    isp: Isp, alice: User, line: Vll, at: Clock
) -> None:
    lose(isp, line, at)
    modify(alice, line, z_end={"port": isp.ports["hippo:host-cust2"].pk})
    activate(line)
    moved = line.ends.get(side="z")
    assert (moved.held_down, moved.link_up, told(isp)) == (False, None, "z")
    see(isp, line, "z", at, link_up=False, held_down=True)
    modify(alice, line, a_end={"port": isp.ports["rhino:host-cust2"].pk})
    activate(line)
    assert (look(at, 60), told(isp)) == (0, "z")
    see(isp, line, "a", at)
    assert (look(at, 10), told(isp)) == (1, "")


def test_a_line_with_a_port_that_is_kept_down_is_not_let_go(
    isp: Isp, nina: User, line: Vll, at: Clock
) -> None:
    lose(isp, line, at)
    with pytest.raises(PortKeptDown):
        line_let_go(user=nina, vll=line, now=at.now)
    modify(nina, line, link_loss_forwarding=False)
    look(at, 1)
    activate(line)
    with pytest.raises(PortKeptDown):  # nobody has seen it up yet
        line_let_go(user=nina, vll=line, now=at.now)
    see(isp, line, "z", at, link_up=True)
    line_let_go(user=nina, vll=line, now=at.now)


def test_a_port_that_becomes_another_operators_is_set_up_and_not_taken_down(
    isp: Isp, line: Vll, at: Clock
) -> None:
    lose(isp, line, at)
    Port.objects.filter(pk=isp.ports["hippo:host-cust1"].pk).update(kind=Port.Kind.ENNI)
    assert (look(at, 1), told(isp)) == (1, "")
    see(isp, line, "z", at)
    assert look(at, 60) == 0


def test_the_port_that_is_kept_down_is_not_what_a_mail_says_is_the_cause(
    isp: Isp, line: Vll, at: Clock
) -> None:
    see(isp, line, "z", at, link_up=False)
    look(at, 10)
    see(isp, line, "a", at, link_up=False, held_down=True)
    assert told(isp) == "a"
    lost = isp.ports["hippo:host-cust1"].pk
    assert causes_of_down({line.pk}, now=at.now) == {line.pk: f"port:{lost}"}


def test_it_is_one_fault_with_one_alarm_and_its_page_says_what_is_done_for_it(
    isp: Isp, alice: User, line: Vll, at: Clock
) -> None:
    lose(isp, line, at)
    found = known_health(Vll.objects.get(pk=line.pk))
    assert found is not None
    assert (found.state, found.cause) == (
        "down",
        "The port host-cust1 at the A end has no link. The link at the Z end has been taken down to signal "
        "to your equipment there that the line is interrupted.",
    )
    assert alarms_raised() == ["rhino:host-cust1 has no link"]
    page = text(signed_in(alice).get(f"/vlls/{line.pk}/"))
    assert "link taken down" in page
    assert "hippo:host-cust1 is to be taken down, because rhino:host-cust1 has lost its link" in page
    # A is back, and Z waits for it to last.
    see(isp, line, "a", at)
    relay_sends()
    assert alarms_raised() == []
    # The decision is an event, but Z is still down.
    look(at, 10)
    page = text(signed_in(alice).get(f"/vlls/{line.pk}/"))
    assert "hippo:host-cust1 is to be set up again" in page
    assert "link taken down" in page
    # Nobody sets Z up.
    ForwardedLinkLoss.objects.update(held="", turned_at=clock.now() - timedelta(seconds=61))
    relay_sends()
    assert alarms_raised() == ["ZRH-AMS is down"]


@pytest.mark.parametrize("back_for", [359, 361, None])
def test_nobody_deciding_that_a_port_be_set_up_again_is_an_alarm(
    isp: Isp, line: Vll, at: Clock, back_for: int | None
) -> None:
    lose(isp, line, at)
    see(isp, line, "a", at)
    since = None if back_for is None else at.now - back_for * SECOND
    line.ends.filter(side="a").update(link_since=since)
    relay_sends()
    assert alarms_raised(now=at.now) == ([] if back_for == 359 else ["ZRH-AMS is down"])
    # The link of a dead router is unknown, despite its last report.
    Router.objects.filter(name="rhino").update(dead_since=clock.now(), maintenance_since=clock.now())
    assert "ZRH-AMS is down" not in alarms_raised()
