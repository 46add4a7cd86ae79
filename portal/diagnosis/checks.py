"""The chain of checks from one customer port to the other, with findings and evidence. All
functions are pure.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.core.units import grouped_text, rate_text
from portal.diagnosis.line_facts import EndFacts, LineFacts, SlowPort
from portal.vll.activation_test_procedure import Finding as FramesFinding
from portal.vll.link_loss_decision import other
from portal.vll.states import IN_SERVICE, AdminStatus, Lifecycle, OrderAction, OrderState


class CheckState(StrEnum):
    OK = "ok"
    BROKEN = "broken"
    UNKNOWN = "unknown"


class Finding(StrEnum):
    """The problem that a check found, or "" if it found none."""

    NONE = ""
    NOT_IN_SERVICE = "not-in-service"
    AWAITS_APPROVAL = "awaits-approval"
    SUSPENDED = "suspended"
    BEING_TESTED = "being-tested"
    ORDER_UNDER_WAY = "order-under-way"
    PORTAL_AWAY = "portal-away"
    MAINTENANCE = "maintenance"
    ROUTER_SILENT = "router-silent"
    ROUTER_DEAD = "router-dead"
    VPP_DOWN = "vpp-down"
    PORT_DOWN = "port-down"
    LINK_SHUT_DOWN = "link-held-down"
    PORT_SLOW = "port-slow"
    NOT_AS_WANTED = "not-as-wanted"
    PATH_DOWN = "path-down"
    LARGE_FRAMES_LOST = "large-frames-lost"
    NOT_CARRIED = "not-carried"
    PATH_LOSES = "path-loses"
    VLAN_WAS_TAKEN = "vlan-was-taken"
    NO_FRAMES_IN = "no-frames-in"
    OTHER_FRAMES_IN = "other-frames-in"
    POLICED = "policed"
    TEST_FAILED = "test-failed"


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the chain.

    All readers get ``evidence``; only the NOC gets ``detail``. ``side`` is "a" or "z" for a check of one end,
    and "" for a check of the whole line.
    """

    code: str
    state: CheckState
    evidence: str
    at: datetime | None
    finding: Finding = Finding.NONE
    side: str = ""
    detail: str = ""


def checks_of(line: LineFacts) -> list[Check]:
    """Return the checks. A cause comes before its effects, so the first broken check is the one to repair."""
    return [
        _service(line),
        _portal(line),
        *_each_end(line, _work),
        *_each_end(line, _router),
        *_each_end(line, _port_link),
        *_each_end(line, _configuration),
        *([_path(line)] if line.tunnelled else []),
        *([_path_mtu(line)] if line.tunnelled or line.not_carried_since is not None else []),
        *_each_end(line, _policer),
        *_each_end(line, _vlan),
        *_each_end(line, _frames_in),
        *([_last_test(line)] if line.tunnelled else []),
    ]


def _each_end(line: LineFacts, check: Callable[[LineFacts, str, EndFacts], Check]) -> Iterator[Check]:
    return (check(line, side, end) for side, end in line.ends.items())


def _service(line: LineFacts) -> Check:
    code, order = "service", line.order
    if order is not None and order.state != OrderState.PENDING_APPROVAL:
        test = order.action == OrderAction.TEST
        finding = Finding.BEING_TESTED if test else Finding.ORDER_UNDER_WAY
        text = _("A test is under way.") if test else _("An order is under way.")
        return Check(
            code, CheckState.BROKEN, text, order.since, finding, detail=f"{order.action}: {order.state}"
        )
    if order is not None and line.lifecycle == Lifecycle.PENDING_ACTIVE:
        text = _("The line's order is pending the NOC's approval.")
        return Check(code, CheckState.BROKEN, text, order.since, Finding.AWAITS_APPROVAL)
    if line.lifecycle not in (*IN_SERVICE, Lifecycle.PENDING_TERMINATE):
        return Check(code, CheckState.BROKEN, _("The line is not in service."), None, Finding.NOT_IN_SERVICE)
    if line.admin_status != AdminStatus.UP:
        return Check(code, CheckState.BROKEN, _("The line is suspended."), None, Finding.SUSPENDED)
    return Check(code, CheckState.OK, _("The line is in service, and nobody is changing it."), None)


def _portal(line: LineFacts) -> Check:
    if line.portal_listens:
        return Check("portal", CheckState.OK, _("The portal receives reports from its routers."), line.at)
    text = _("The portal is not receiving reports at the moment, so nothing below is up to date.")
    return Check("portal", CheckState.BROKEN, text, line.at, Finding.PORTAL_AWAY)


def _work(line: LineFacts, side: str, end: EndFacts) -> Check:
    since = end.locked_since or end.maintenance_since
    if since is None or end.dead_since is not None:
        return Check(
            f"{side}_work",
            CheckState.OK,
            _("No work on {router} is announced.").format(router=end.router),
            line.at,
            side=side,
        )
    text = _("The NOC is working on {router}.").format(router=end.router)
    return Check(f"{side}_work", CheckState.BROKEN, text, since, Finding.MAINTENANCE, side)


def _router(line: LineFacts, side: str, end: EndFacts) -> Check:
    code = f"{side}_router"
    if end.dead_since is not None:
        text = _("The NOC has taken {router} out of service.").format(router=end.router)
        return Check(code, CheckState.BROKEN, text, end.dead_since, Finding.ROUTER_DEAD, side)
    if end.reported_at is None:
        text = _("{router} has never reported.").format(router=end.router)
        return Check(code, CheckState.UNKNOWN, text, None, side=side)
    if end.silent_since is not None:
        text = _("{router} has not reported since then.").format(router=end.router)
        return Check(code, CheckState.BROKEN, text, end.silent_since, Finding.ROUTER_SILENT, side)
    if end.vpp_away:
        text = _("{router} reports that its packet forwarding is not running.").format(router=end.router)
        return Check(code, CheckState.BROKEN, text, end.reported_at, Finding.VPP_DOWN, side)
    text = _("{router} reports.").format(router=end.router)
    return Check(code, CheckState.OK, text, end.reported_at, side=side)


def _port_link(line: LineFacts, side: str, end: EndFacts) -> Check:
    code = f"{side}_port_link"
    if end.link_up is None or not end.is_fresh:
        return _no_fresh_report(code, side, end)
    if end.shut_down:
        text = _("Port {port} of {router} is shut down, because the other end has lost its link.")
        if line.ends[other(side)].dead_since is not None:
            text = _(
                "Port {port} of {router} is shut down, because the router at the other end is out of service."
            )
        text = text.format(port=end.port, router=end.router)
        return Check(code, CheckState.BROKEN, text, end.reported_at, Finding.LINK_SHUT_DOWN, side)
    if end.link_up and end.slow_port is not None:
        return _slow_port(code, side, end, end.slow_port)
    if end.link_up:
        text = _("Port {port} has a link.").format(port=end.port)
        return Check(code, CheckState.OK, text, end.reported_at, side=side)
    text = _("Port {port} of {router} has no link.").format(port=end.port, router=end.router)
    return Check(code, CheckState.BROKEN, text, end.reported_at, Finding.PORT_DOWN, side)


def _slow_port(code: str, side: str, end: EndFacts, slow: SlowPort) -> Check:
    """Return the check of a port whose link is slower than agreed.

    The slow link affects lines only if the lines on the port have booked more than the link can carry.
    """
    rates = {
        "port": end.port,
        "runs": rate_text(slow.runs),
        "agreed": rate_text(slow.agreed),
        "booked": rate_text(slow.booked),
        "left": rate_text(slow.left),
    }
    if not slow.is_overbooked:
        text = _(
            "The link of port {port} runs at {runs} instead of {agreed}. This is enough for the booked"
            " bandwidth."
        )
        return Check(code, CheckState.OK, text.format(**rates), end.reported_at, side=side)
    text = _(
        "The link of port {port} runs at {runs} instead of {agreed}. Its lines have booked {booked}, but "
        "only {left} can be kept."
    ).format(**rates)
    return Check(code, CheckState.BROKEN, text, end.reported_at, Finding.PORT_SLOW, side)


def _configuration(line: LineFacts, side: str, end: EndFacts) -> Check:
    code = f"{side}_configuration"
    if end.as_ordered is None or not end.is_fresh:
        return _no_fresh_report(code, side, end)
    if end.as_ordered:
        text = _("{router} is configured as ordered.").format(router=end.router)
        return Check(code, CheckState.OK, text, end.status_at, side=side)
    text = _("{router} is not configured as ordered.").format(router=end.router)
    detail = f"{end.status}: {end.reason or end.drift or ''}"
    return Check(code, CheckState.BROKEN, text, end.status_at, Finding.NOT_AS_WANTED, side, detail)


def _path(line: LineFacts) -> Check:
    """Return the check of the path. If nobody watches the path, the check depends on the route."""
    path, fresh = line.path, [end for end in line.ends.values() if end.is_fresh]
    at = min((end.reported_at for end in fresh if end.reported_at), default=None)
    if path is not None and path.state == "down":
        return Check("path", CheckState.BROKEN, path.message, path.since, Finding.PATH_DOWN)
    if any(end.reachable is False for end in fresh):
        routers = " – ".join(end.router for end in line.ends.values())
        text = _("The path between {routers} is down.").format(routers=routers)
        return Check("path", CheckState.BROKEN, text, at, Finding.PATH_DOWN)
    if path is None or len(fresh) < len(line.ends):
        return Check("path", CheckState.UNKNOWN, _("Nothing is known about the path."), None)
    state = CheckState.OK if path.state == "up" else CheckState.UNKNOWN
    return Check("path", state, path.message, at, detail=path.hint)


def _path_mtu(line: LineFacts) -> Check:
    """Return the check of frame sizes: the result of the probes between the two routers, and the MTUs of the
    links.

    If the path only loses frames that are larger than this line's frames, the check is not broken.
    """
    code, probed = "path_mtu", line.path_mtu
    lost = probed is not None and probed.loses_its_frames
    if line.not_carried_since is not None and not lost:
        text = _("Links or ports of the network are too small for this line's largest frames.")
        return Check(code, CheckState.BROKEN, text, line.not_carried_since, Finding.NOT_CARRIED)
    if probed is None:
        return Check(
            code,
            CheckState.UNKNOWN,
            _("The largest packet that the path carries has not been measured yet."),
            None,
        )
    verified = probed.verified or 0
    if not lost:
        text = _("Test packets as large as this line's get through in both directions.")
        return Check(code, CheckState.OK, text, probed.at)
    if probed.finding is FramesFinding.LARGE_FRAMES_LOST:
        text = _(
            "The path carries packets of {proven} bytes; the largest packets of this line need {needed}."
        ).format(proven=grouped_text(verified), needed=grouped_text(probed.needed))
        return Check(
            code, CheckState.BROKEN, text, probed.at, Finding.LARGE_FRAMES_LOST, detail=probed.detail
        )
    text = _("Test packets are lost on the path, even small ones.")
    return Check(code, CheckState.BROKEN, text, probed.at, Finding.PATH_LOSES, detail=probed.detail)


def _policer(line: LineFacts, side: str, end: EndFacts) -> Check:
    code, counted = f"{side}_policer", end.counted
    if counted is None or counted.dropped is None:
        text = _("The number of frames dropped for exceeding the bandwidth is not known at the moment.")
        return Check(code, CheckState.UNKNOWN, text, None, side=side)
    text = ngettext(
        "{n} frame was dropped in {s} s for exceeding the bandwidth.",
        "{n} frames were dropped in {s} s for exceeding the bandwidth.",
        counted.dropped,
    ).format(n=grouped_text(counted.dropped), s=round((counted.until - counted.since).total_seconds()))
    if counted.dropped:
        return Check(code, CheckState.BROKEN, text, counted.until, Finding.POLICED, side)
    return Check(code, CheckState.OK, text, counted.until, side=side)


def _vlan(line: LineFacts, side: str, end: EndFacts) -> Check:
    code, at = f"{side}_vlan", end.vlan_restored_at
    if at is None:
        text = _("Nobody has recently blocked the line's VLAN on {router}.").format(router=end.router)
        if not end.by_vlan:
            text = _("The line uses all of port {port}.").format(port=end.port)
        return Check(code, CheckState.OK, text, line.at, side=side)
    text = _("Until then nothing arrived with the line's VLAN, because somebody else had tried to use it.")
    detail = _(
        "VPP refuses a second sub-interface with the same tags, and the first one then accepts no"
        " frames. The first one was created again. Look for another program that configures {port} of"
        " {router} in addition to the agent."
    ).format(port=end.port, router=end.router)
    return Check(code, CheckState.BROKEN, text, at, Finding.VLAN_WAS_TAKEN, side, detail)


def _frames_in(line: LineFacts, side: str, end: EndFacts) -> Check:
    code, counted = f"{side}_frames_in", end.counted
    if counted is None:
        return _no_fresh_report(code, side, end)
    if end.shut_down:
        text = _("No frames can arrive while port {port} is shut down.").format(port=end.port)
        return Check(code, CheckState.UNKNOWN, text, counted.until, side=side)
    text = ngettext(
        "{n} frame arrived from you in {s} s.", "{n} frames arrived from you in {s} s.", counted.frames_in
    ).format(n=grouped_text(counted.frames_in), s=round((counted.until - counted.since).total_seconds()))
    if counted.frames_in:
        return Check(code, CheckState.OK, text, counted.until, side=side)
    if not counted.settled:
        # The first report may cover a time in which the customer's device had not begun to send again.
        text = _("The line has just changed; two reports are needed to see whether anything arrives.")
        return Check(code, CheckState.UNKNOWN, text, counted.until, side=side)
    if end.by_vlan and end.port_drops:
        text = _("Frames arrive at port {port}, but none of them with this line's VLAN.").format(
            port=end.port
        )
        return Check(code, CheckState.BROKEN, text, counted.until, Finding.OTHER_FRAMES_IN, side)
    return Check(code, CheckState.BROKEN, text, counted.until, Finding.NO_FRAMES_IN, side)


def _last_test(line: LineFacts) -> Check:
    test = line.last_test
    if test is None:
        return Check(
            "last_test", CheckState.UNKNOWN, _("No test has sent frames through this line yet."), None
        )
    if test.passed:
        return Check("last_test", CheckState.OK, test.sentence, test.at)
    return Check("last_test", CheckState.BROKEN, test.sentence, test.at, Finding.TEST_FAILED)


def _no_fresh_report(code: str, side: str, end: EndFacts) -> Check:
    text = _("{router} says nothing about it at the moment.").format(router=end.router)
    return Check(code, CheckState.UNKNOWN, text, None, side=side)
