"""Ranges of VNIs that the operator reserves for other uses."""

from datetime import datetime

from django.db import connection, transaction

from portal.accounts.models import User
from portal.allocation.errors import VniRangeBackwards, VniRangeInUse
from portal.allocation.models import ReservedVniRange, VniLease
from portal.allocation.vni_leases import FIRST_VNI, LAST_VNI
from portal.events.outbox import announce


@transaction.atomic
def vni_range_create(*, first: int, last: int, reason: str, user: User, now: datetime) -> ReservedVniRange:
    """Reserve ``first`` to ``last``, both included. Raises VniRangeBackwards, VniRangeInUse."""
    _check(first, last)
    row = ReservedVniRange.objects.create(first=first, last=last, reason=reason)
    announce("vni_range.created", now=now, actor=user.username, data={"id": row.pk, "name": str(row)})
    return row


@transaction.atomic
def vni_range_change(
    *, vni_range: ReservedVniRange, user: User, now: datetime, **changes: int | str
) -> ReservedVniRange:
    """Change ``first``, ``last`` or ``reason`` of a range. Raises the errors of ``vni_range_create``."""
    row = ReservedVniRange.objects.select_for_update().get(pk=vni_range.pk)
    before = str(row)
    for name in ("first", "last", "reason"):
        setattr(row, name, changes.get(name, getattr(row, name)))
    # The text of a row contains all three fields.
    if str(row) == before:
        return row
    _check(row.first, row.last)
    row.save()
    data = {"id": row.pk, "name": str(row), "before": before}
    announce("vni_range.changed", now=now, actor=user.username, data=data)
    return row


@transaction.atomic
def vni_range_remove(*, vni_range: ReservedVniRange, user: User, now: datetime) -> None:
    """End the reservation of a range. Lines can then lease its VNIs."""
    data = {"id": vni_range.pk, "name": str(vni_range)}
    vni_range.delete()
    announce("vni_range.removed", now=now, actor=user.username, data=data)


def _check(first: int, last: int) -> None:
    if not FIRST_VNI <= first <= last <= LAST_VNI:
        raise VniRangeBackwards(first=first, last=last, minimum=FIRST_VNI, maximum=LAST_VNI)
    # Concurrent leases wait until this transaction ends, and then read the range.
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE allocation_vnilease IN SHARE MODE")
    leased = VniLease.objects.filter(vni__range=(first, last))
    if (count := leased.count()) > 0:
        example = leased.order_by("vni").values_list("vni", flat=True)[0]
        raise VniRangeInUse(first=first, last=last, count=count, example=example)
