"""Routers that nobody hears from: a silence begins with the last report, once one was missed while the portal
listened, and ends with the next. What it was is judged (portal.telemetry.line_status_in_silence)."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Coalesce, Greatest

from portal.events.outbox import announce
from portal.inventory.models import ObservedRouter, Router, RouterSilence
from portal.telemetry.agent_api_uptime import listened
from portal.telemetry.line_status_in_silence import silence_judge
from portal.telemetry.time_spans import length
from portal.vll.operations.oper_status import FRESH

SILENT, REPORTING = "router.silent", "router.reporting"


def silences_watch(*, now: datetime) -> None:
    """Find the routers that have fallen silent, and judge what has to be. Each is its own transaction."""
    heard = ObservedRouter.objects.filter(reported_at__lt=now - FRESH).exclude(router__agent_url="")
    known = RouterSilence.objects.filter(until__isnull=True).values("router")
    for router_id, at in (
        heard.exclude(router__in=known).order_by("router").values_list("router", "reported_at")
    ):
        _begin(router_id, at, now)
    last_word = Greatest("since", Coalesce("forwarded_at", "since"))
    unheard_for = timedelta(seconds=settings.LONGLINE_SILENCE_IS_DOWN_S)
    going_on = Q(until__isnull=True, counts_as_down=False, last_word__lt=now - unheard_for)
    due = RouterSilence.objects.annotate(last_word=last_word).filter(Q(judge_again=True) | going_on)
    for pk in due.order_by("pk").values_list("pk", flat=True):
        silence_judge(silence_id=pk, now=now)


def silence_end(*, router: Router, heard: datetime, now: datetime) -> bool:
    """The router reports again, after ``heard``; whether its silence had counted as down until now.

    Whoever calls has locked what was observed of it, and none of its lines.
    """
    silence = RouterSilence.objects.select_for_update().filter(router=router, until__isnull=True).first()
    if silence is not None:
        RouterSilence.objects.filter(pk=silence.pk).update(until=now, counts_as_down=False, judge_again=True)
        announce(REPORTING, now=now, router_id=router.pk)
        return silence.counts_as_down
    if length(listened(heard, now)) > FRESH:
        # Nobody watched, though the agent API was there.
        RouterSilence.objects.create(router=router, since=heard, until=now, judge_again=True)
    return False


@transaction.atomic
def _begin(router_id: int, heard: datetime, now: datetime) -> None:
    # A report that comes meanwhile waits for this, and then finds the silence that it ends.
    still = ObservedRouter.objects.select_for_update().filter(router=router_id, reported_at=heard).exists()
    if still and length(listened(heard, now)) > FRESH:
        _, is_new = RouterSilence.objects.get_or_create(
            router_id=router_id, until=None, defaults={"since": heard}
        )
        if is_new:
            announce(SILENT, now=heard, router_id=router_id)


def silences_forget(*, before: datetime) -> int:
    """Delete what was over long ago: nothing can be judged anew of it; how many."""
    return RouterSilence.objects.filter(until__lt=before).delete()[0]
