"""Silences of routers: times without reports while the portal listened.

A silence lasts from a router's last report to its next report. The portal stores a silence when it has
listened for longer than FRESH without a report. portal.telemetry.line_status_in_silence judges silences.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce, Greatest

from portal.core.db.each_row import each_row
from portal.events.outbox import announce
from portal.inventory.models import FRESH, ObservedRouter, Router, RouterSilence
from portal.telemetry.agent_api_uptime import listened
from portal.telemetry.models import UnjudgedFiveMinutes
from portal.telemetry.time_spans import length

SILENT, REPORTING = "router.silent", "router.reporting"


def silences_begin(*, now: datetime) -> None:
    """Store a silence for each router that has stopped reporting. Each router has its own transaction."""
    reported_before = ObservedRouter.objects.filter(reported_at__lt=now - FRESH).exclude(router__agent_url="")
    known = RouterSilence.objects.filter(until__isnull=True).values("router")
    fallen_silent = (
        reported_before.exclude(router__in=known).order_by("router").values_list("router", "reported_at")
    )
    each_row(fallen_silent, lambda row: _begin(*row, now), what="the begin of a router's silence")


def silences_due(*, now: datetime) -> list[int]:
    """Return the ids of the silences to judge, least recently judged first.

    A silence is due in each of these cases:

    * it is to be judged again from its beginning;
    * the roll-up has counted a 5-minute bucket of it since the last judgement;
    * it has ended, and its end is not yet judged;
    * it continues, and has lasted long enough without evidence to count as down.
    """
    last_sign_of_life = Greatest("since", Coalesce("forwarded_at", "since"))
    silent_for = timedelta(seconds=settings.LONGLINE_SILENCE_IS_DOWN_S)
    going_on = Q(until__isnull=True, counts_as_down=False, last_sign_of_life__lt=now - silent_for)
    counted = Exists(UnjudgedFiveMinutes.objects.filter(silence=OuterRef("pk")))
    due = RouterSilence.objects.annotate(last_sign_of_life=last_sign_of_life).filter(
        Q(judge_again=True) | going_on | Q(judged_until__lt=F("until")) | counted
    )
    return list(due.order_by(F("judged_until").asc(nulls_first=True), "pk").values_list("pk", flat=True))


def silence_end(*, router: Router, last_report: datetime, now: datetime) -> bool:
    """End the silence of a router that reports again. Return whether the silence counted as down until now.

    The caller must have locked the router's ObservedRouter, and must not have locked any of its lines.
    """
    silence = (
        RouterSilence.objects.select_for_update(no_key=True).filter(router=router, until__isnull=True).first()
    )
    if silence is not None:
        RouterSilence.objects.filter(pk=silence.pk).update(
            until=now, counts_as_down=False, judge_again=silence.judge_again or silence.judged_until is None
        )
        announce(REPORTING, now=now, router_id=router.pk)
        return silence.counts_as_down
    if length(listened(last_report, now)) > FRESH:
        # The silence was not noticed, although the agent API was running.
        RouterSilence.objects.create(router=router, since=last_report, until=now, judge_again=True)
    return False


@transaction.atomic
def _begin(router_id: int, last_report: datetime, now: datetime) -> None:
    # The lock makes a concurrent report wait for this transaction. The report then ends the silence.
    still = (
        ObservedRouter.objects.select_for_update().filter(router=router_id, reported_at=last_report).exists()
    )
    if still and length(listened(last_report, now)) > FRESH:
        _, is_new = RouterSilence.objects.get_or_create(
            router_id=router_id, until=None, defaults={"since": last_report}
        )
        if is_new:
            announce(SILENT, now=last_report, router_id=router_id)


def silences_forget(*, before: datetime) -> int:
    """Delete silences that ended before that time. Return the number of deleted rows.

    ``before`` must be so long ago that these silences will not be judged again.
    """
    return RouterSilence.objects.filter(until__lt=before).delete()[0]
