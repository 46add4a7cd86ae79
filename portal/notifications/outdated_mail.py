"""The lines of a mail that are still news to its reader, asked when it is sent."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Max, QuerySet

from portal.events.models import Event
from portal.inventory.models import RouterSilence
from portal.notifications.line_fault_causes import SILENT, silent_router
from portal.notifications.mail_batching import BLACK_HOLE, DOWN, DRIFT, UP
from portal.notifications.models import Group, Mail, MailLine
from portal.telemetry.router_silences import REPORTING
from portal.telemetry.router_silences import SILENT as ROUTER_SILENT
from portal.vll.models import Vll
from portal.vll.states import IN_SERVICE, OperStatus

_Said = MailLine.Said
# What ends a status: the next one, or the end of the service that it was of.
_GONE = ("vll.suspended", "vll.pendingTerminate", "vll.terminated")
_ENDS = {
    DOWN: (DOWN, UP, "vll.op-unknown", *_GONE),
    UP: (DOWN, UP, "vll.op-unknown", *_GONE),
    DRIFT: ("vll.in_sync", "vll.pendingTerminate", "vll.terminated"),
    BLACK_HOLE: (BLACK_HOLE, "vll.black_hole_gone", *_GONE),
}
ABOUT_LINES = (DOWN, UP, DRIFT, BLACK_HOLE)
ABOUT_ROUTERS = (ROUTER_SILENT, REPORTING)


@dataclass(frozen=True, slots=True)
class Told:
    """A line, and what the reader is told of it."""

    line: Vll
    said: str
    event_id: int


def news_of(found: Mail) -> list[Told] | None:
    """The lines that a mail is about by now, by name. None: there is no reason to send it any more."""
    if found.kind in ABOUT_ROUTERS:
        return _of_router(found)
    lines = {line.vll_id: line for line in found.lines.all()}
    ended = _newest(lines, _ENDS[found.kind])
    last = _last_told(found, lines)
    silent = found.cause.startswith(f"{SILENT}:")
    told = [
        Told(vll, lines[vll.pk].said, lines[vll.pk].event_id)
        for vll in _theirs(found).filter(pk__in=lines).order_by("description", "pk")
        if ended.get(vll.pk, 0) <= lines[vll.pk].event_id
        and _is_news(found.kind, last.get(vll.pk), silent=silent)
    ]
    return told or None


def _is_news(kind: str, last: str | None, *, silent: bool) -> bool:
    """Flap damping: what its reader was told last is no news, nor what was said of the silent router."""
    if kind == DOWN:
        return last != _Said.DOWN and not (silent and last == _Said.SILENT)
    return kind != UP or last == _Said.DOWN


def _of_router(found: Mail) -> list[Told] | None:
    """With those of the reader's lines that end there, or that the reader was told of and that are not up."""
    event_id = found.event_id or 0
    router_id = int(found.cause.partition(":")[2])
    other = REPORTING if found.kind == ROUTER_SILENT else ROUTER_SILENT
    if Event.objects.filter(router_id=router_id, kind=other, id__gt=event_id).exists():
        return None
    here = _theirs(found).filter(ends__port__router=router_id, lifecycle__in=IN_SERVICE).distinct()
    if found.kind == ROUTER_SILENT:
        is_silent = RouterSilence.objects.filter(router=router_id, until__isnull=True).exists()
        told = [Told(vll, _Said.SILENT, event_id) for vll in here.order_by("description", "pk")]
        return told if is_silent and (told or found.group == Group.NOC) else None
    sent = Mail.objects.filter(
        user=found.user, kind__in=ABOUT_ROUTERS, cause=silent_router(router_id), state=Mail.State.SENT
    ).order_by("-event_id")
    if sent.values_list("kind", flat=True).first() != ROUTER_SILENT:
        return None
    return [
        Told(vll, _Said.UP if vll.oper_status == OperStatus.UP else _Said.DOWN, event_id)
        for vll in here.order_by("description", "pk")
    ]


def _theirs(found: Mail) -> QuerySet[Vll]:
    """The lines that the reader hears of: staff of all, members of their customers'."""
    lines = Vll.objects.select_related("customer")
    if found.group == Group.NOC:
        return lines
    return lines.filter(customer__memberships__user=found.user)


def _newest(vlls: Iterable[UUID], kinds: Iterable[str]) -> dict[UUID, int]:
    events = Event.objects.filter(vll_id__in=list(vlls), kind__in=kinds)
    newest = events.values("vll_id").annotate(newest=Max("id"))
    return {vll: event for vll, event in newest.values_list("vll_id", "newest") if vll is not None}


def _last_told(found: Mail, vlls: Iterable[UUID]) -> dict[UUID, str]:
    """By line, what this reader was last told of its status."""
    rows = MailLine.objects.filter(
        mail__user=found.user, mail__state=Mail.State.SENT, vll_id__in=list(vlls)
    ).exclude(said__in=(_Said.DRIFT, _Said.BLACK_HOLE))
    return dict(rows.order_by("event_id", "pk").values_list("vll_id", "said"))


def said_keep(found: Mail, told: Iterable[Told]) -> None:
    """Note what the reader is told of each line; of the others the mail says nothing.

    Staff are told of routers and of drift, and of no line's status.
    """
    if found.kind in ABOUT_ROUTERS and found.group == Group.NOC:
        return
    found.lines.all().delete()
    MailLine.objects.bulk_create(
        MailLine(mail=found, vll_id=each.line.pk, event_id=each.event_id, said=each.said) for each in told
    )
