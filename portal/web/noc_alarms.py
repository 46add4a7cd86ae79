"""The NOC's alarms: every kind of alarm, each until its cause is gone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.allocation.cpu_core_usage import CoreUse, core_use_of
from portal.allocation.models import RouterLoad
from portal.core.path_watch import LISTENING, PathState
from portal.core.units import rate_text
from portal.core.unix_time import to_time
from portal.diagnosis.models import TroubleReport
from portal.events.models import Outbox
from portal.inventory.models import ObservedPath, Port, Router, RouterSilence
from portal.inventory.queries import interface_missing, links_with_observed_mtu, mtu_mismatch
from portal.netbox_sync.models import ExportedVll
from portal.netbox_sync.status import lines_in_error, standing
from portal.netbox_sync.user_messages import error_sentence
from portal.notifications.models import Mail, Webhook
from portal.telemetry.losses import (
    FewBuffers,
    Loss,
    losing,
    recent_buffers,
    recent_losses,
    short_of_buffers,
)
from portal.telemetry.models import Quarantine
from portal.telemetry.sample_quarantine_texts import offset_text, reason_text
from portal.vll import queries
from portal.vll.line_test_sentences import line_test_sentence
from portal.vll.models import LineTest, Order, TunnelPath, Vll, VllEnd
from portal.vll.operations.oper_status import FRESH
from portal.vll.path_sentences import black_hole_sentence
from portal.vll.paths_in_use import lines_beyond
from portal.vll.states import (
    IN_SERVICE,
    TERMINAL_LIFECYCLES,
    TERMINAL_ORDER_STATES,
    Lifecycle,
    OperStatus,
    OrderState,
)
from portal.web.templatetags.units import frames, part
from portal.web.templatetags.webhooks import why_disabled

Text = str | Promise

# More than these do not help anybody at once; the counts are whole.
SHOWN = 50
# From this part of what may be booked on a port or a router, more has to be built.
NEARLY_FULL = 0.8
# Tried so often, a mail has been waiting for twenty minutes; receivers that greylist take it by then.
TRIES_OF_A_MAIL = 4
# A link that was mended shows by the next test that passes; a line's own test by then is history.
FAILED_TESTS_FOR = timedelta(days=7)
# The relay sends a message within a second.
UNSENT_AFTER = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an alarm: its text, its page ("" for none), and what more there is to say of it."""

    name: Any
    address: str = ""
    note: Text = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Alarm:
    """``rows``: the first ``SHOWN`` of ``count``."""

    title: Text
    count: int
    rows: list[Row]


def alarms(now: datetime) -> list[Alarm]:
    """All kinds, worst first, those without any row too."""
    return [
        *_of_orders(now),
        *_of_routers(now),
        *_of_lines(now),
        *_of_paths(),
        *_of_links(),
        _full_ports(),
        _full_routers(),
        _unsent(now),
        *_of_notifications(),
        *_of_netbox(now),
    ]


def _of_orders(now: datetime) -> Iterator[Alarm]:
    orders = Order.objects.select_related("vll", "customer")
    overdue = orders.exclude(state__in=TERMINAL_ORDER_STATES).filter(alarmed_at__isnull=False)
    yield _alarm(_("Orders overdue"), overdue.order_by("ordered_at"), _order_to_decide)
    failed = queries.failed_lately(orders, now=now)
    yield _alarm(_("Orders failed in the last day and not retried"), failed.order_by("-state_at"), _order)
    held = orders.filter(state=OrderState.HELD)
    yield _alarm(_("Orders that wait for approval"), held.order_by("ordered_at"), _order_to_decide)


def _of_routers(now: datetime) -> Iterator[Alarm]:
    routers = Router.objects.order_by("name")
    with_agent = routers.exclude(agent_url="")
    silent = with_agent.exclude(observed__reported_at__gte=now - FRESH).select_related("observed")
    going_on = RouterSilence.objects.filter(until__isnull=True)
    silent = silent.prefetch_related(Prefetch("silences", going_on, to_attr="going_on"))
    yield _alarm(_("Routers silent"), silent, _silent_router)
    hanging = with_agent.filter(observed__vpp_hangs=True, observed__reported_at__gte=now - FRESH)
    title = _("Routers whose VPP hangs and has to be restarted")
    yield _alarm(title, hanging.select_related("observed"), _hanging)
    ahead = with_agent.filter(observed__generation_held__gt=F("generation"))
    yield _alarm(_("Agents ahead of the database"), ahead, _router)
    unread = with_agent.filter(observed__isnull=False).exclude(observed__set_aside=[])
    title = _("Agents with files that they could not use")
    yield _alarm(title, unread.select_related("observed"), _router_with_files_aside)
    aside = Quarantine.objects.filter(state=Quarantine.State.UNDECIDED).select_related("router")
    aside = aside.annotate(lines=Count("ends__vll_id", distinct=True)).order_by("first_received_at", "pk")
    title = _("Samples with a wrong time or count that wait for a decision")
    yield _alarm(title, aside, _quarantine)
    yield _lossy_interfaces(now)
    yield _routers_short_of_buffers(now)
    withheld = routers.exclude(held_since=None, maintenance_since=None)
    yield _alarm(_("Routers held or under maintenance"), withheld, _router)


def _lossy_interfaces(now: datetime) -> Alarm:
    lossy = losing(recent_losses(now))
    title = _("Backbone interfaces that lose more than %(limit)s of their frames") % {
        "limit": part(settings.LONGLINE_LOSS_ALARM_RATIO)
    }
    return Alarm(title, len(lossy), [_lossy_interface(each) for each in lossy[:SHOWN]])


def _routers_short_of_buffers(now: datetime) -> Alarm:
    short = short_of_buffers(recent_buffers(now))
    title = _("Routers whose VPP had %(limit)s of its buffers left, or less") % {
        "limit": part(settings.LONGLINE_BUFFER_ALARM_RATIO)
    }
    return Alarm(title, len(short), [_short_of_buffers(each) for each in short[:SHOWN]])


def _of_lines(now: datetime) -> Iterator[Alarm]:
    active = Vll.objects.filter(lifecycle=Lifecycle.ACTIVE).select_related("customer").order_by("-created_at")
    yield _alarm(_("Lines down"), active.filter(oper_status=OperStatus.DOWN), _line)
    yield _alarm(_("Lines that differ from what is wanted"), active.filter(in_sync=False), _line)
    trouble = TroubleReport.objects.filter(closed_at__isnull=True).select_related("vll", "customer")
    yield _alarm(_("Trouble that customers report"), trouble.order_by("reported_at"), _trouble)
    yield _alarm(_("Line tests that failed"), _failed_tests(now), _line_test)
    contested = VllEnd.objects.exclude(contested=[]).filter(vll__lifecycle__in=IN_SERVICE)
    by_router = contested.select_related("vll", "port__router").order_by("port__router__name", "pk")
    yield _alarm(_("Somebody else changes what routers hold of lines"), by_router, _contested)
    # Their orders were ended by force; their leases wait.
    under_way = Order.objects.filter(vll=OuterRef("pk")).exclude(state__in=TERMINAL_ORDER_STATES)
    left = Vll.objects.filter(~Exists(under_way), wanted_present=False).exclude(
        lifecycle__in=TERMINAL_LIFECYCLES
    )
    title = _("Lines that no router has confirmed to be gone")
    yield _alarm(title, left.select_related("customer").order_by("-created_at"), _line)


def _of_paths() -> Iterator[Alarm]:
    """Where both routers have a session, as they see it (is_path_down)."""
    mirrored = ObservedPath.objects.filter(
        local=OuterRef("remote"), remote=OuterRef("local"), state__in=LISTENING
    )
    paths = ObservedPath.objects.filter(Exists(mirrored)).select_related("router")
    paths = paths.order_by("router__name", "remote")
    yield _alarm(_("Paths that are down"), paths.filter(state=PathState.DOWN), _path)
    title = _("Paths that nobody can watch: UDP port 4784 may be filtered")
    yield _alarm(title, paths.filter(state=PathState.UNHEARD), _path)


def _failed_tests(now: datetime) -> QuerySet[LineTest]:
    """The latest between two routers, until one of as large frames passes between them, either way round."""
    a, z = "conditions__routers__a__router", "conditions__routers__z__router"
    passed = LineTest.objects.filter(
        Q(**{a: OuterRef(a), z: OuterRef(z)}) | Q(**{a: OuterRef(z), z: OuterRef(a)}),
        state=LineTest.State.PASSED,
        finished_at__gt=OuterRef("finished_at"),
        frame__gte=OuterRef("frame"),
    )
    failed = LineTest.objects.filter(state=LineTest.State.FAILED, finished_at__gte=now - FAILED_TESTS_FOR)
    return failed.filter(~Exists(passed)).order_by("-finished_at")


def _of_links() -> Iterator[Alarm]:
    holes = TunnelPath.objects.filter(in_use=True, black_hole_since__isnull=False)
    worst_first = holes.select_related("a_router", "z_router").order_by("proven_ip_mtu", "pk")
    yield _alarm(_("MTU black holes"), worst_first, _black_hole)
    links = list(links_with_observed_mtu())
    for title, is_wrong in (
        (_("Links whose MTUs contradict each other"), mtu_mismatch),
        (_("Links with an interface that its router does not have"), interface_missing),
    ):
        wrong = [_link(link) for link in links if is_wrong(link)]
        yield Alarm(title, len(wrong), wrong[:SHOWN])


def _full_ports() -> Alarm:
    ports = Port.objects.filter(booked_bps__gte=F("bookable_bps") * NEARLY_FULL, booked_bps__gt=0)
    fullest_first = ports.select_related("router").order_by(F("booked_bps") - F("bookable_bps"), "pk")
    title = _("Ports booked to %(percent)d %% or more") % {"percent": round(NEARLY_FULL * 100)}
    return _alarm(title, fullest_first, _port)


def _full_routers() -> Alarm:
    booked = Router.objects.filter(pk__in=RouterLoad.objects.filter(booked__gt=0).values("router"))
    routers = list(booked.select_related("observed"))
    use = core_use_of(routers)
    full = [router for router in routers if use[router.pk].part >= NEARLY_FULL]
    full.sort(key=lambda router: (-use[router.pk].part, router.name))
    title = _("Routers with %(percent)d %% or more of their cores booked") % {
        "percent": round(NEARLY_FULL * 100)
    }
    return Alarm(title, len(full), [_full_router(router, use[router.pk]) for router in full[:SHOWN]])


def _unsent(now: datetime) -> Alarm:
    """Nothing is lost by these: the sweeper does in the end what they would have hurried."""
    unsent = Outbox.objects.filter(published_at__isnull=True, created_at__lt=now - UNSENT_AFTER)
    return _alarm(_("Messages that the relay has not sent"), unsent.order_by("id"), _message)


def _of_notifications() -> Iterator[Alarm]:
    """Mails and deliveries wanted and not sent. Webhooks that somebody disabled are no alarm."""
    disabled = Webhook.objects.filter(disabled_because__in=(Webhook.Disabled.GONE, Webhook.Disabled.FAILING))
    newest_first = disabled.select_related("customer").order_by("-disabled_at", "-pk")
    yield _alarm(_("Webhooks that were disabled"), newest_first, _webhook)
    waiting = Mail.objects.filter(next_try_at__isnull=False, tries__gte=TRIES_OF_A_MAIL)
    yield _alarm(
        _("Mails that the mail server does not take"),
        waiting.select_related("user").order_by("created_at"),
        _mail,
    )


def _of_netbox(now: datetime) -> Iterator[Alarm]:
    """Orders do not wait for NetBox; what the inventory knows gets older."""
    stands = standing(now)
    if stands is None:
        return
    state, page = stands.state, reverse("web:noc-netbox")
    since = state.failing_since or state.imported_at
    rows = [Row("NetBox", page, stands.error, since)] if stands.error or stands.stale else []
    yield Alarm(_("NetBox does not answer or has not been read for long"), len(rows), rows)
    yield _alarm(_("Lines that NetBox does not take"), lines_in_error(), _line_not_in_netbox)


def _alarm(title: Text, rows: QuerySet[Any], shown_as: Callable[[Any], Row]) -> Alarm:
    first = list(rows[: SHOWN + 1])
    count = rows.count() if len(first) > SHOWN else len(first)
    return Alarm(title, count, [shown_as(row) for row in first[:SHOWN]])


def _order(order: Order) -> Row:
    note = f"{order.customer}: {order.get_action_display()}, {order.get_state_display()}"
    return Row(order.vll, reverse("web:vll", args=[order.vll_id]), note, order.ordered_at)


def _order_to_decide(order: Order) -> Row:
    """It leads to where the NOC can press on, or end it."""
    return replace(_order(order), address=reverse("web:noc-order", args=[order.pk]))


def _router(router: Router) -> Row:
    return Row(router, reverse("web:noc-router", args=[router.pk]))


def _hanging(router: Router) -> Row:
    note = _("It takes connections and answers nothing. What it forwards may go on.")
    return replace(_router(router), note=note, since=router.observed.vpp_away_since)


def _router_with_files_aside(router: Router) -> Row:
    files = router.observed.set_aside
    return replace(_router(router), note="; ".join(f"{each['file']}: {each['why']}" for each in files))


def _quarantine(aside: Any) -> Row:
    """It leads to where the NOC sees what they would do to the month, and decides."""
    facts = {
        "samples": aside.samples,
        "lines": aside.lines,
        "clock": offset_text(aside.offset_ms),
        "month": f"{aside.month:%Y-%m}" if aside.month else "",
        "reason": reason_text(aside),
    }
    if aside.month:
        note = _("its clock was %(clock)s; %(samples)d samples of %(month)s, lines: %(lines)d") % facts
    else:
        note = _("%(samples)d samples, lines: %(lines)d. %(reason)s") % facts
    address = reverse("web:noc-quarantine", args=[aside.pk])
    return Row(aside.router, address, note, aside.first_received_at)


def _silent_router(router: Any) -> Row:
    """Since when, and what is known of its VPP meanwhile."""
    note: Text = ""
    for silence in router.going_on:
        if silence.counts_as_down:
            note = _("nothing speaks for it: its lines are down")
        elif silence.forwarded_at is not None:
            note = _("its VPP forwards all the same: look at the agent")
        else:
            note = _("its lines may be down")
    observed = getattr(router, "observed", None)
    return replace(_router(router), note=note, since=observed.reported_at if observed else None)


def _line(vll: Vll) -> Row:
    return Row(vll, reverse("web:vll", args=[vll.pk]), str(vll.customer))


def _trouble(report: TroubleReport) -> Row:
    said = f"{report.customer}: {report.finding['verdict']['sentence']} {report.note}".strip()
    return Row(report.vll, reverse("web:diagnosis", args=[report.vll_id]), said, report.reported_at)


def _line_test(test: LineTest) -> Row:
    routers = " – ".join(test.conditions["routers"][side]["router"] for side in "az")
    address = reverse("web:line-test", args=[test.vll_id, test.pk])
    return Row(routers, address, line_test_sentence(test), test.finished_at)


_LOSSES = {
    "rx_miss": _("missed: %(frames)s"),
    "rx_errors": _("broken: %(frames)s"),
    "rx_no_buffer": _("no buffer: %(frames)s"),
    "tx_errors": _("not sent: %(frames)s"),
}


def _lossy_interface(loss: Loss) -> Row:
    why = ", ".join(str(_LOSSES[name] % {"frames": frames(count)}) for name, count in loss.reasons.items())
    note = _("%(percent)s in the last 10 minutes: %(why)s. Received %(rx)s, sent %(tx)s.") % {
        "percent": part(loss.ratio),
        "why": why,
        "rx": frames(loss.rx_packets),
        "tx": frames(loss.tx_packets),
    }
    address = reverse("web:noc-router", args=[loss.router_id]) + "#losses"
    return Row(f"{loss.router}:{loss.interface}", address, note)


def _short_of_buffers(short: FewBuffers) -> Row:
    note = _("%(free)s of %(all)s were left in the last 10 minutes; without one nothing is received") % {
        "free": frames(short.free),
        "all": frames(short.buffers),
    }
    return Row(short.router, reverse("web:noc-router", args=[short.router_id]) + "#losses", note)


def _contested(end: VllEnd) -> Row:
    """It leads to the router, where the other writer is to be looked for."""
    changes = [
        _("%(field)s of %(object)s is changed to “%(actual)s”, repairs so far: %(repairs)d") % each
        for each in end.contested
    ]
    return Row(
        f"{end.port.router}: {end.vll}",
        reverse("web:noc-router", args=[end.port.router_id]),
        "; ".join(changes),
        to_time(min(each["since_ms"] for each in end.contested)),
    )


def _path(path: ObservedPath) -> Row:
    note = f"{path.local} → {path.remote}"
    return Row(path.router, reverse("web:noc-router", args=[path.router_id]), note, path.since)


def _black_hole(path: TunnelPath) -> Row:
    concerned = len(lines_beyond(path, path.proven_ip_mtu or 0))
    note = _("%(sentence)s Lines concerned: %(lines)d") % {
        "sentence": black_hole_sentence(path),
        "lines": concerned,
    }
    return Row(f"{path.a_router} – {path.z_router}", reverse("web:noc-map"), note, path.black_hole_since)


def _link(link: Any) -> Row:
    return Row(link, reverse("web:noc-links-change", args=[link.pk]))


def _port(port: Port) -> Row:
    note = _("%(booked)s of %(all)s") % {
        "booked": rate_text(port.booked_bps),
        "all": rate_text(port.bookable_bps),
    }
    return Row(port, reverse("web:noc-ports-change", args=[port.pk]), note)


def _full_router(router: Router, use: CoreUse) -> Row:
    note = _("%(percent)d %%: %(booked)g of %(all)g cores") % {
        "percent": use.percent,
        "booked": use.booked_cores,
        "all": use.bookable_cores,
    }
    return Row(router, reverse("web:noc-router", args=[router.pk]), note)


def _line_not_in_netbox(line: ExportedVll) -> Row:
    return Row(line.vll, reverse("web:vll", args=[line.vll_id]), error_sentence(line.error or {}))


def _webhook(webhook: Webhook) -> Row:
    name = webhook.description or webhook.url
    whose = webhook.customer or _("NOC")
    note = f"{whose}. {why_disabled(webhook)}"
    return Row(name, reverse("web:webhook", args=[webhook.pk]), note, webhook.disabled_at)


def _mail(mail: Mail) -> Row:
    return Row(f"{mail.kind} → {mail.user}", note=mail.error, since=mail.created_at)


def _message(message: Outbox) -> Row:
    return Row(message, since=message.created_at)
