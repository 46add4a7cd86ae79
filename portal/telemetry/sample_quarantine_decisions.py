"""The NOC's decisions about quarantined samples, and their expiry without a decision."""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from portal.accounts.models import User
from portal.core.db.each_row import each_row
from portal.events.outbox import announce, send_task
from portal.telemetry.errors import DecidedOtherwise, TimeUnknown
from portal.telemetry.models import (
    Quarantine,
    QuarantinedFiveMinutes,
    QuarantinedRun,
    QuarantinedSample,
)
from portal.telemetry.rollup_tables import SAMPLES
from portal.telemetry.task_names import COUNT_ACCEPTED
from portal.telemetry.time_spans import month_span

log = logging.getLogger(__name__)

_State = Quarantine.State


@transaction.atomic
def quarantine_accept(*, quarantine: Quarantine, user: User, now: datetime) -> None:
    """Accept the samples of a quarantine with their corrected times. The decision is final.

    A task adds the samples and corrects frozen months. Has no effect on an accepted quarantine. Raises
    TimeUnknown or DecidedOtherwise.
    """
    locked = _locked(quarantine.pk)
    if locked.state == _State.ACCEPTED:
        return
    _check_undecided(locked)
    if locked.month is None:
        raise TimeUnknown(reason=locked.reason)
    _decide(locked, _State.ACCEPTED, user, now)
    send_task(COUNT_ACCEPTED, now=now)


@transaction.atomic
def quarantine_discard(*, quarantine: Quarantine, user: User, reason: str, now: datetime) -> None:
    """Discard the samples of a quarantine. The decision is final.

    Has no effect on a discarded quarantine. Raises DecidedOtherwise.
    """
    locked = _locked(quarantine.pk)
    if locked.state == _State.DISCARDED:
        return
    _check_undecided(locked)
    _decide(locked, _State.DISCARDED, user, now, why=reason)
    _forget(locked)


def quarantines_expire(*, now: datetime) -> int:
    """Expire quarantines that nobody decided in time, and delete data that is no longer needed.

    Return the number of expired quarantines. The time is LONGLINE_QUARANTINE_DAYS (``given_up_at``).
    """
    kept = timedelta(days=settings.LONGLINE_QUARANTINE_DAYS)
    old = Q(month=None, last_received_at__lt=now - kept) | Q(month__lt=(now - kept).date())
    undecided = Quarantine.objects.filter(old, state=_State.UNDECIDED).values_list("pk", flat=True)
    given_up = sum(each_row(undecided, lambda pk: _expire(pk, now), what="the expiry of a quarantine"))
    QuarantinedRun.objects.filter(last_received_at__lt=now - kept).delete()
    with connection.cursor() as cursor:
        cursor.execute(_FORGET_ROLLED_UP, [now - SAMPLES.retention - timedelta(days=1)])
    return given_up


def given_up_at(quarantine: Quarantine) -> datetime:
    """Return the time when an undecided quarantine expires.

    The quarantine expires LONGLINE_QUARANTINE_DAYS after the end of its month. If it has no month, the days
    count from the arrival of the last sample.
    """
    since = month_span(quarantine.month)[1] if quarantine.month else quarantine.last_received_at
    return since + timedelta(days=settings.LONGLINE_QUARANTINE_DAYS)


@transaction.atomic
def _expire(pk: int, now: datetime) -> bool:
    found = _locked(pk)
    if found.state != _State.UNDECIDED or now < given_up_at(found):
        return False
    _decide(found, _State.EXPIRED, None, now)
    _forget(found)
    log.warning("%s: nobody decided about %d quarantined samples in time", found.router, found.samples)
    return True


# Deletes accepted counts of 5-minute buckets that are rolled up and too old for further samples.
_FORGET_ROLLED_UP = """
DELETE FROM telemetry_quarantinedfiveminutes AS five
WHERE five.accepted AND five.start_at < %s AND NOT EXISTS (
    SELECT FROM telemetry_stale_bucket AS mark
    WHERE mark.vll_id = five.vll_id AND mark.step_s = 300 AND mark.start_at = five.start_at)
"""


def _locked(pk: int) -> Quarantine:
    return Quarantine.objects.select_for_update(of=("self",)).select_related("router").get(pk=pk)


def _check_undecided(found: Quarantine) -> None:
    if found.state != _State.UNDECIDED:
        raise DecidedOtherwise(state=found.state)


def _decide(found: Quarantine, state: str, user: User | None, now: datetime, why: str = "") -> None:
    found.state, found.decided_at, found.decided_by, found.why = state, now, user, why
    found.save(update_fields=["state", "decided_at", "decided_by", "why"])
    details: dict[str, Any] = {"quarantine": found.pk, "samples": found.samples, "reason": why}
    if found.month:
        details["month"] = f"{found.month:%Y-%m}"
    announce(
        f"router.samples_{state}",
        now=now,
        router_id=found.router_id,
        actor=user.username if user else "",
        data={name: value for name, value in details.items() if value != ""},
    )


def _forget(found: Quarantine) -> None:
    QuarantinedFiveMinutes.objects.filter(quarantine=found).delete()
    QuarantinedSample.objects.filter(quarantine=found).delete()
