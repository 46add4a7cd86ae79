"""Lines that the network no longer carries as sold.

They are marked from the change of the network until the network carries them again.
"""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import transaction

from portal.core.db.each_row import each_row
from portal.events.outbox import announce
from portal.underlay.topology_cache import topology_when_all_report
from portal.vll.line_mtu_check import lines_off_the_path, lines_too_large_for_their_ports
from portal.vll.models import Vll
from portal.vll.states import TERMINAL_LIFECYCLES


@transaction.atomic
def carried_again(*, off: Collection[UUID], now: datetime) -> None:
    """Unmark the marked lines that are carried again. The caller has locked the marked lines.

    ``off``: the lines that do not fit their paths.
    """
    for line in _carried(off):
        _carried_again(line, now)


def lines_not_carried_keep(*, now: datetime) -> None:
    """Check the marked lines again: links, routers and the lines themselves may have changed since.

    Each line has its own transaction.
    """
    if Vll.objects.filter(not_carried_since__isnull=False).exists():
        lines = _carried(lines_off_the_path(topology_when_all_report()))
        each_row(lines, lambda line: _carried_again(line, now), what="a line that is carried again")


def _carried(off: Collection[UUID]) -> list[UUID]:
    """Return the ids of the marked lines that fit their paths and their ports again."""
    noted = Vll.objects.filter(not_carried_since__isnull=False).exclude(pk__in=off)
    still = lines_too_large_for_their_ports(noted)
    return list(noted.exclude(pk__in=still).order_by("pk").values_list("pk", flat=True))


@transaction.atomic
def _carried_again(vll_id: UUID, now: datetime) -> None:
    """Unmark the line. If the line is not being removed, announce this."""
    noted = Vll.objects.locked().filter(pk=vll_id, not_carried_since__isnull=False)
    line = noted.first()
    if line is None:
        return
    Vll.objects.filter(pk=line.pk).update(not_carried_since=None)
    if line.wanted_present and line.lifecycle not in TERMINAL_LIFECYCLES:
        announce("vll.carried", now=now, customer_id=line.customer_id, vll_id=line.pk)
