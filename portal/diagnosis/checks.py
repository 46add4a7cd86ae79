"""Checks from one customer port to the other, with findings and evidence. All functions are pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.core.reader_texts import grouped_text, rate_text
from portal.diagnosis.line_facts import EndFacts, LineFacts
from portal.inventory.models import Port
from portal.vll.activation_test_procedure import Finding as FramesFinding
from portal.vll.operations.link_loss_forwarding import other
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
        replace(_service(line), code="service"),
        replace(_portal(line), code="portal"),
        *_each_end(line, "work", _work),
        *_each_end(line, "router", _router),
        *_each_end(line, "port_link", _port_link),
        *_each_end(line, "configuration", _configuration),
        *([replace(_path(line), code="path")] if line.tunnelled else []),
        *(
            [replace(_path_mtu(line), code="path_mtu")]
            if line.tunnelled or line.not_carried_since is not None
            else []
        ),
        *_each_end(line, "policer", _policer),
        *_each_end(line, "vlan", _vlan),
        *_each_end(line, "frames_in", _frames_in),
        *([replace(_last_test(line), code="last_test")] if line.tunnelled else []),
    ]


def _each_end(
    line: LineFacts, code: str, check: Callable[[LineFacts, str, EndFacts], Check]
) -> Iterator[Check]:
    for side, end in line.ends.items():
        yield replace(check(line, side, end), code=f"{side}_{code}", side=side)


def _ok(text: str, at: datetime | None, detail: str = "") -> Check:
    return Check("", CheckState.OK, text, at, detail=detail)


def _unknown(text: str, at: datetime | None = None, detail: str = "") -> Check:
    return Check("", CheckState.UNKNOWN, text, at, detail=detail)


def _broken(finding: Finding, text: str, at: datetime | None, detail: str = "") -> Check:
    return Check("", CheckState.BROKEN, text, at, finding, detail=detail)


def _service(line: LineFacts) -> Check:
    order = line.order
    if order is not None and order.state != OrderState.PENDING_APPROVAL:
        detail = f"{order.action}: {order.state}"
        if order.action == OrderAction.TEST:
            return _broken(Finding.BEING_TESTED, _("A test is under way."), order.state_at, detail)
        return _broken(Finding.ORDER_UNDER_WAY, _("An order is under way."), order.state_at, detail)
    if order is not None and line.lifecycle == Lifecycle.PENDING_ACTIVE:
        text = _("The line's order is pending the NOC's approval.")
        return _broken(Finding.AWAITS_APPROVAL, text, order.state_at)
    if line.lifecycle not in (*IN_SERVICE, Lifecycle.PENDING_TERMINATE):
        return _broken(Finding.NOT_IN_SERVICE, _("The line is not in service."), None)
    if line.admin_status != AdminStatus.UP:
        return _broken(Finding.SUSPENDED, _("The line is suspended."), None)
    return _ok(_("The line is in service, and nobody is changing it."), None)


def _portal(line: LineFacts) -> Check:
    if line.portal_listens:
        return _ok(_("The portal receives reports from its routers."), line.at)
    text = _("The portal is not receiving reports at the moment, so nothing below is up to date.")
    return _broken(Finding.PORTAL_AWAY, text, line.at)


def _work(line: LineFacts, side: str, end: EndFacts) -> Check:
    since = end.locked_since or end.maintenance_since
    if since is None or end.dead_since is not None:
        return _ok(_("No work on {router} is announced.").format(router=end.router), line.at)
    return _broken(Finding.MAINTENANCE, _("The NOC is working on {router}.").format(router=end.router), since)


def _router(line: LineFacts, side: str, end: EndFacts) -> Check:
    if end.dead_since is not None:
        text = _("The NOC has taken {router} out of service.").format(router=end.router)
        return _broken(Finding.ROUTER_DEAD, text, end.dead_since)
    if end.reported_at is None:
        return _unknown(_("{router} has never reported.").format(router=end.router))
    if end.silent_since is not None:
        text = _("{router} has not reported since then.").format(router=end.router)
        return _broken(Finding.ROUTER_SILENT, text, end.silent_since)
    if end.vpp_away:
        text = _("{router} reports that its packet forwarding is not running.").format(router=end.router)
        return _broken(Finding.VPP_DOWN, text, end.reported_at)
    return _ok(_("{router} reports.").format(router=end.router), end.reported_at)


def _port_link(line: LineFacts, side: str, end: EndFacts) -> Check:
    if end.link_up is None or not end.is_fresh:
        return _no_fresh_report(end)
    if end.shut_down:
        text = _("Port {port} of {router} is shut down, because the other end has lost its link.")
        if line.ends[other(side)].dead_since is not None:
            text = _(
                "Port {port} of {router} is shut down, because the router at the other end is out of service."
            )
        text = text.format(port=end.port, router=end.router)
        return _broken(Finding.LINK_SHUT_DOWN, text, end.reported_at)
    if end.link_up and end.slow_port is not None:
        return _slow_port(end, end.slow_port)
    if end.link_up:
        return _ok(_("Port {port} has a link.").format(port=end.port), end.reported_at)
    text = _("Port {port} of {router} has no link.").format(port=end.port, router=end.router)
    return _broken(Finding.PORT_DOWN, text, end.reported_at)


def _slow_port(end: EndFacts, slow: Port) -> Check:
    """A slow link affects lines only if the lines on the port have booked more than the link can carry."""
    rates = {
        "port": end.port,
        "runs": rate_text(slow.link_bps or 0),
        "agreed": rate_text(slow.speed_bps),
        "booked": rate_text(slow.booked_bps),
        "left": rate_text(slow.bookable_now_bps),
    }
    if slow.booked_bps <= slow.bookable_now_bps:
        text = _(
            "The link of port {port} runs at {runs} instead of {agreed}. This is enough for the booked"
            " bandwidth."
        )
        return _ok(text.format(**rates), end.reported_at)
    text = _(
        "The link of port {port} runs at {runs} instead of {agreed}. Its lines have booked {booked}, but "
        "only {left} can be kept."
    )
    return _broken(Finding.PORT_SLOW, text.format(**rates), end.reported_at)


def _configuration(line: LineFacts, side: str, end: EndFacts) -> Check:
    if end.as_ordered is None or not end.is_fresh:
        return _no_fresh_report(end)
    if end.as_ordered:
        return _ok(_("{router} is configured as ordered.").format(router=end.router), end.status_at)
    text = _("{router} is not configured as ordered.").format(router=end.router)
    detail = f"{end.status}: {end.reason or end.drift or ''}"
    return _broken(Finding.NOT_AS_WANTED, text, end.status_at, detail)


def _path(line: LineFacts) -> Check:
    """Return the check of the path. If nobody watches the path, the check depends on the route."""
    path, fresh = line.path, [end for end in line.ends.values() if end.is_fresh]
    at = min((end.reported_at for end in fresh if end.reported_at), default=None)
    if path is not None and path.state == "down":
        return _broken(Finding.PATH_DOWN, path.message, path.since)
    if any(end.reachable is False for end in fresh):
        routers = " – ".join(end.router for end in line.ends.values())
        text = _("The path between {routers} is down.").format(routers=routers)
        return _broken(Finding.PATH_DOWN, text, at)
    if path is None or len(fresh) < len(line.ends):
        return _unknown(_("Nothing is known about the path."))
    if path.state == "up":
        return _ok(path.message, at, path.hint)
    return _unknown(path.message, at, path.hint)


def _path_mtu(line: LineFacts) -> Check:
    """Return the check of frame sizes: the result of probes between the routers, and the links' MTUs.

    If the path only loses frames that are larger than this line's frames, the check is not broken.
    """
    probed = line.path_mtu
    lost = probed is not None and probed.loses_its_frames
    if line.not_carried_since is not None and not lost:
        text = _("Links or ports of the network are too small for this line's largest frames.")
        return _broken(Finding.NOT_CARRIED, text, line.not_carried_since)
    if probed is None:
        return _unknown(_("The largest packet that the path carries has not been measured yet."))
    if not lost:
        return _ok(_("Test packets as large as this line's get through in both directions."), probed.at)
    if probed.finding is FramesFinding.LARGE_FRAMES_LOST:
        text = _(
            "The path carries packets of {proven} bytes; the largest packets of this line need {needed}."
        ).format(proven=grouped_text(probed.verified or 0), needed=grouped_text(probed.needed))
        return _broken(Finding.LARGE_FRAMES_LOST, text, probed.at, probed.detail)
    text = _("Test packets are lost on the path, even small ones.")
    return _broken(Finding.PATH_LOSES, text, probed.at, probed.detail)


def _policer(line: LineFacts, side: str, end: EndFacts) -> Check:
    counted = end.counted
    if counted is None or counted.dropped is None:
        return _unknown(
            _("The number of frames dropped for exceeding the bandwidth is not known at the moment.")
        )
    text = ngettext(
        "{n} frame was dropped in {s} s for exceeding the bandwidth.",
        "{n} frames were dropped in {s} s for exceeding the bandwidth.",
        counted.dropped,
    ).format(n=grouped_text(counted.dropped), s=round((counted.until - counted.since).total_seconds()))
    return _broken(Finding.POLICED, text, counted.until) if counted.dropped else _ok(text, counted.until)


def _vlan(line: LineFacts, side: str, end: EndFacts) -> Check:
    if end.vlan_restored_at is None:
        text = _("Nobody has recently blocked the line's VLAN on {router}.").format(router=end.router)
        if not end.by_vlan:
            text = _("The line uses all of port {port}.").format(port=end.port)
        return _ok(text, line.at)
    text = _("Until then nothing arrived with the line's VLAN, because somebody else had tried to use it.")
    detail = _(
        "VPP refuses a second sub-interface with the same tags, and the first one then accepts no"
        " frames. The first one was created again. Look for another program that configures {port} of"
        " {router} in addition to the agent."
    ).format(port=end.port, router=end.router)
    return _broken(Finding.VLAN_WAS_TAKEN, text, end.vlan_restored_at, detail)


def _frames_in(line: LineFacts, side: str, end: EndFacts) -> Check:
    counted = end.counted
    if counted is None:
        return _no_fresh_report(end)
    if end.shut_down:
        text = _("No frames can arrive while port {port} is shut down.").format(port=end.port)
        return _unknown(text, counted.until)
    text = ngettext(
        "{n} frame arrived from you in {s} s.", "{n} frames arrived from you in {s} s.", counted.frames_in
    ).format(n=grouped_text(counted.frames_in), s=round((counted.until - counted.since).total_seconds()))
    if counted.frames_in:
        return _ok(text, counted.until)
    if not counted.settled:
        # The first report may cover a time in which the customer's device had not begun to send again.
        text = _("The line has just changed; two reports are needed to see whether anything arrives.")
        return _unknown(text, counted.until)
    if end.by_vlan and end.port_drops:
        text = _("Frames arrive at port {port}, but none of them with this line's VLAN.")
        return _broken(Finding.OTHER_FRAMES_IN, text.format(port=end.port), counted.until)
    return _broken(Finding.NO_FRAMES_IN, text, counted.until)


def _last_test(line: LineFacts) -> Check:
    test = line.last_test
    if test is None:
        return _unknown(_("No test has sent frames through this line yet."))
    if test.passed:
        return _ok(test.sentence, test.at)
    return _broken(Finding.TEST_FAILED, test.sentence, test.at)


def _no_fresh_report(end: EndFacts) -> Check:
    return _unknown(_("{router} says nothing about it at the moment.").format(router=end.router))
