"""Link loss forwarding: who may order it, and which intents the routers get and when."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import F

from portal.accounts.models import User
from portal.core import clock
from portal.core.network.vlan_tags import Tagging
from portal.diagnosis.health import known_health
from portal.events.models import Event
from portal.inventory.models import ObservedInterface, ObservedRouter, Port, Router, RouterSilence
from portal.notifications.line_fault_causes import causes_of_down
from portal.telemetry.oper_status import ends_observed
from portal.vll.convergence.requests import intent_is_wanted
from portal.vll.errors import (
    LinkLossNeedsUni,
    LinkLossNeedsWholePorts,
    LinkLossPortInUse,
    LinkLossUnsupported,
    PortShutDown,
)
from portal.vll.models import ForwardedLinkLoss, RouterConvergence, Vll
from portal.vll.operations.line_removal import line_let_go, order_delete
from portal.vll.operations.link_loss_forwarding import link_losses_forward
from portal.vll.operations.modify_line import order_resume, order_suspend
from provisioning.intent_document import intent_for
from provisioning.intent_rows import router_rows
from tests.integration.api.test_api_lifecycle import patch
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.observed_reports import observed_end
from tests.integration.orders import end, modify, order
from tests.integration.raised_alarms import alarms_raised
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import CONFLICT, activate, answer
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
ROUTERS = {"a": "rhino", "z": "hippo"}


class Clock:
    """The time of the test. ``after`` lets time pass in which all routers report no changes."""

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
        report(isp, placed, side, at)
    return placed


def report(isp: Isp, line: Vll, side: str, at: Clock, **facts: Any) -> None:
    """Store a report about that end, and let the portal evaluate it."""
    line.refresh_from_db()
    observed = observed_end(line.pk, side, revision=line.revision, **facts)
    ends_observed(router=isp.routers[ROUTERS[side]], ends=[observed], now=at.now)
    link_losses_forward(now=at.now)
    line.refresh_from_db()


def evaluate(at: Clock, seconds: float) -> int:
    return link_losses_forward(now=at.after(seconds))


def ends_shut_down(isp: Isp) -> str:
    """Return the ends that the intents keep down."""
    sides = ""
    for name in ROUTERS.values():
        intent = intent_for(router=name, generation=1, rows=list(router_rows(isp.routers[name]).ends))
        present = json.loads(intent.document())["present"]
        sides += "".join(each["end"] for each in present if each.get("uni_link_down"))
    return sides


def lose(isp: Isp, line: Vll, at: Clock) -> None:
    """Let A lose its link, and let Hippo shut Z down."""
    report(isp, line, "a", at, link_up=False)
    assert evaluate(at, 10) == 1
    report(isp, line, "z", at, link_up=False, shut_down=True)


def test_forwarding_is_off_by_default_and_can_be_ordered(isp: Isp, alice: User, at: Clock) -> None:
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


def test_only_unshared_whole_customer_ports_of_capable_agents_are_accepted(
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
    # A foreign port whose name begins with the same text does not matter.
    ObservedInterface.objects.create(name="host-cust10.7", **cust1)
    placed = order(isp, alice, **whole(isp)).vll
    activate(placed)
    # Changes that keep the forwarding need no support of the agent; impossible changes are refused.
    ObservedRouter.objects.update(link_loss_forwarding=False)
    modify(alice, placed, cir_bps=2 * placed.cir_bps)
    activate(placed)
    with pytest.raises(LinkLossNeedsWholePorts):
        modify(alice, placed, a_end={"tagging": Tagging.DOT1Q, "outer_vlan": 7})


def test_lasting_loss_takes_the_far_end_down_until_the_link_is_back(isp: Isp, line: Vll, at: Clock) -> None:
    report(isp, line, "a", at, link_up=False)
    assert (evaluate(at, 9), ends_shut_down(isp)) == (0, "")
    messages = len(requested())
    assert (evaluate(at, 1), ends_shut_down(isp)) == (1, "z")
    assert len(requested()) == messages + 1
    report(isp, line, "z", at, link_up=False, shut_down=True)
    # The port is shut down, so its missing link does not count.
    assert (evaluate(at, 3600), ends_shut_down(isp)) == (0, "z")
    report(isp, line, "a", at)
    assert (evaluate(at, 9), ends_shut_down(isp)) == (0, "z")
    assert (evaluate(at, 1), ends_shut_down(isp)) == (1, "")
    # The port is up again, and negotiating the link takes most of a minute.
    report(isp, line, "z", at, link_up=False)
    assert (evaluate(at, 50), ends_shut_down(isp)) == (0, "")
    report(isp, line, "z", at)
    assert (evaluate(at, 60), line.oper_status) == (0, "op-up")
    kinds = Event.objects.filter(vll_id=line.pk, kind__startswith="vll.link_loss").order_by("id")
    assert [(each.kind, each.data["end"]) for each in kinds] == [
        ("vll.link_loss_forwarded", "z"),
        ("vll.link_loss_over", "z"),
    ]


def test_loss_behind_a_port_that_was_shut_down_is_forwarded_in_the_other_direction(
    isp: Isp, line: Vll, at: Clock
) -> None:
    lose(isp, line, at)
    report(isp, line, "a", at)
    evaluate(at, 10)
    report(isp, line, "z", at, link_up=False)
    assert (evaluate(at, 59), ends_shut_down(isp)) == (0, "")
    assert (evaluate(at, 1), ends_shut_down(isp)) == (1, "a")


def test_port_has_a_minute_after_its_router_sets_it_up_late(isp: Isp, line: Vll, at: Clock) -> None:
    lose(isp, line, at)
    report(isp, line, "a", at)
    evaluate(at, 10)
    for _ in range(20):
        evaluate(at, 30)  # hippo still has Z shut down
    report(isp, line, "z", at, link_up=False)
    assert (evaluate(at, 59), ends_shut_down(isp)) == (0, "")
    report(isp, line, "z", at)
    # A loss long after that counts after the usual time.
    at.after(120)
    report(isp, line, "z", at, link_up=False)
    assert (evaluate(at, 9), ends_shut_down(isp)) == (0, "")
    assert (evaluate(at, 1), ends_shut_down(isp)) == (1, "a")


def test_silent_router_takes_nothing_down_and_keeps_nothing_down_permanently(
    isp: Isp, line: Vll, at: Clock
) -> None:
    rhino = isp.routers["rhino"]
    report(isp, line, "a", at, link_up=False)
    silence = RouterSilence.objects.create(router=rhino, since=at.now)
    # The last report had a lost link, but the present state is unknown.
    assert (evaluate(at, 60), ends_shut_down(isp)) == (0, "")
    silence.delete()
    assert (evaluate(at, 1), ends_shut_down(isp)) == (1, "z")
    RouterSilence.objects.create(router=rhino, since=at.now)
    assert (evaluate(at, 300), ends_shut_down(isp)) == (0, "z")
    assert (evaluate(at, 1), ends_shut_down(isp)) == (1, "")


def test_dead_router_counts_as_a_loss_immediately_and_as_long_as_it_is_dead(
    isp: Isp, line: Vll, at: Clock
) -> None:
    rhino = Router.objects.filter(pk=isp.routers["rhino"].pk)
    RouterSilence.objects.create(router=isp.routers["rhino"], since=at.now)
    rhino.update(dead_since=at.now, maintenance_since=at.now)
    assert (evaluate(at, 1), ends_shut_down(isp)) == (1, "z")
    assert (evaluate(at, 86_400), ends_shut_down(isp)) == (0, "z")
    report(isp, line, "z", at, link_up=False, shut_down=True)
    found = known_health(Vll.objects.get(pk=line.pk))
    assert found is not None
    assert found.cause == (
        "rhino, at the A end, is out of service. The link at the Z end has been taken down to signal to your "
        "equipment there that the line is interrupted."
    )
    rhino.update(dead_since=None)
    RouterSilence.objects.all().delete()
    assert (evaluate(at, 10), ends_shut_down(isp)) == (1, "")


@pytest.mark.parametrize("mark", ["locked_since", "frozen_since"])
def test_nothing_is_taken_down_through_a_router_without_intents(
    isp: Isp, line: Vll, at: Clock, mark: str
) -> None:
    Router.objects.filter(pk=isp.routers["hippo"].pk).update(**{mark: at.now})
    report(isp, line, "a", at, link_up=False)
    assert evaluate(at, 10) == 0
    Router.objects.update(**{mark: None})
    assert evaluate(at, 1) == 1


def test_router_that_missed_the_decision_gets_it_again_unless_it_gives_a_reason(
    isp: Isp, line: Vll, at: Clock
) -> None:
    report(isp, line, "a", at, link_up=False)
    RouterConvergence.objects.create(router=isp.routers["hippo"])
    evaluate(at, 10)

    def intent_requested() -> bool:
        wanted = RouterConvergence.objects.filter(intent_is_wanted())
        return bool(wanted.update(answered=F("wanted"), intent_requested=False))

    assert intent_requested()
    evaluate(at, 14)
    assert not intent_requested()
    evaluate(at, 1)
    assert intent_requested()
    answer(line, "z", "conflict", reason=CONFLICT)
    evaluate(at, 60)
    assert not intent_requested()
    answer(line, "z", "verified")
    report(isp, line, "z", at, link_up=False, shut_down=True)
    evaluate(at, 60)
    assert not intent_requested()


def test_suspended_removed_or_changed_line_keeps_no_port_down(
    isp: Isp, alice: User, line: Vll, at: Clock
) -> None:
    lose(isp, line, at)
    order_suspend(user=alice, vll=line, now=at.now)
    assert ends_shut_down(isp) == ""
    assert (evaluate(at, 1), ForwardedLinkLoss.objects.get().shut_side) == (1, "")
    activate(line)
    Vll.objects.filter(pk=line.pk).update(lifecycle="active", admin_status="admin-up")
    evaluate(at, 60)
    report(isp, line, "z", at)
    assert ends_shut_down(isp) == "z"
    modify(alice, line, link_loss_forwarding=False)
    assert (ends_shut_down(isp), evaluate(at, 1)) == ("", 1)
    activate(line)
    order_delete(user=alice, vll=line, now=at.now, cooling_off=timedelta(0))
    for side in "az":
        answer(line, side, "removed")
    assert line.lifecycle == "terminated"
    assert evaluate(at, 3600) == 0


def test_ports_of_a_resumed_line_have_a_minute_for_their_links(
    isp: Isp, alice: User, line: Vll, at: Clock
) -> None:
    order_suspend(user=alice, vll=line, now=at.now)
    activate(line)
    for side in "az":
        report(isp, line, side, at, link_up=False)
    order_resume(user=alice, vll=line, now=at.now)
    activate(line)
    at.now = clock.now()
    report(isp, line, "z", at)
    report(isp, line, "a", at, link_up=False)
    assert (evaluate(at, 55), ends_shut_down(isp)) == (0, "")
    assert (evaluate(at, 10), ends_shut_down(isp)) == (1, "z")


def test_moving_end_stays_down_and_a_lost_one_is_judged_again(
    isp: Isp, alice: User, line: Vll, at: Clock
) -> None:
    lose(isp, line, at)
    modify(alice, line, z_end={"port": isp.ports["hippo:host-cust2"].pk})
    activate(line)
    moved = line.ends.get(side="z")
    assert (moved.shut_down, moved.link_up, ends_shut_down(isp)) == (False, None, "z")
    report(isp, line, "z", at, link_up=False, shut_down=True)
    modify(alice, line, a_end={"port": isp.ports["rhino:host-cust2"].pk})
    activate(line)
    assert (evaluate(at, 60), ends_shut_down(isp)) == (0, "z")
    report(isp, line, "a", at)
    assert (evaluate(at, 10), ends_shut_down(isp)) == (1, "")


def test_line_with_a_port_shut_down_is_not_released(isp: Isp, nina: User, line: Vll, at: Clock) -> None:
    lose(isp, line, at)
    with pytest.raises(PortShutDown):
        line_let_go(user=nina, vll=line, now=at.now)
    modify(nina, line, link_loss_forwarding=False)
    evaluate(at, 1)
    activate(line)
    with pytest.raises(PortShutDown):  # no report has the port up yet
        line_let_go(user=nina, vll=line, now=at.now)
    report(isp, line, "z", at, link_up=True)
    line_let_go(user=nina, vll=line, now=at.now)


def test_port_that_becomes_an_enni_is_set_up_and_not_taken_down(isp: Isp, line: Vll, at: Clock) -> None:
    lose(isp, line, at)
    Port.objects.filter(pk=isp.ports["hippo:host-cust1"].pk).update(kind=Port.Kind.ENNI)
    assert (evaluate(at, 1), ends_shut_down(isp)) == (1, "")
    report(isp, line, "z", at)
    assert evaluate(at, 60) == 0


def test_mail_does_not_name_the_port_shut_down_as_the_cause(isp: Isp, line: Vll, at: Clock) -> None:
    report(isp, line, "z", at, link_up=False)
    evaluate(at, 10)
    report(isp, line, "a", at, link_up=False, shut_down=True)
    assert ends_shut_down(isp) == "a"
    lost = isp.ports["hippo:host-cust1"].pk
    assert causes_of_down({line.pk}, now=at.now) == {line.pk: f"port:{lost}"}


def test_loss_is_one_fault_with_one_alarm_and_the_page_explains_the_measure(
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
    assert "hippo:host-cust1 is being taken down, because rhino:host-cust1 has lost its link" in page
    # A is back, but Z waits until the link has lasted.
    report(isp, line, "a", at)
    assert alarms_raised() == []
    # The decision creates an event, but Z is still down.
    evaluate(at, 10)
    page = text(signed_in(alice).get(f"/vlls/{line.pk}/"))
    assert "hippo:host-cust1 is being brought up again" in page
    assert "link taken down" in page
    # The router does not set Z up.
    ForwardedLinkLoss.objects.update(shut_side="", turned_at=clock.now() - timedelta(seconds=61))
    assert alarms_raised() == ["ZRH-AMS is down"]


@pytest.mark.parametrize("back_for", [359, 361, None])
def test_missing_decision_to_set_a_port_up_is_an_alarm(
    isp: Isp, line: Vll, at: Clock, back_for: int | None
) -> None:
    lose(isp, line, at)
    report(isp, line, "a", at)
    since = None if back_for is None else at.now - back_for * SECOND
    line.ends.filter(side="a").update(link_since=since)
    assert alarms_raised(now=at.now) == ([] if back_for == 359 else ["ZRH-AMS is down"])
    # The link of a dead router is unknown, despite its last report.
    Router.objects.filter(name="rhino").update(dead_since=clock.now(), maintenance_since=clock.now())
    assert "ZRH-AMS is down" not in alarms_raised()
