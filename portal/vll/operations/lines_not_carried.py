"""Lines that the network no longer carries as sold: a change notes them, until they are carried again."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import transaction

from portal.events.outbox import announce
from portal.underlay.topology_cache import topology_when_all_report
from portal.vll.line_mtu_check import lines_off_the_path, lines_too_large_for_their_ports
from portal.vll.models import Vll
from portal.vll.states import TERMINAL_LIFECYCLES


@transaction.atomic
def carried_again(*, off: Collection[UUID], now: datetime) -> None:
    """Note that the noted lines that are not in ``off`` are carried again.

    Of a line that is being removed nothing is announced: the network carries none of its frames.
    """
    noted = Vll.objects.filter(not_carried_since__isnull=False).exclude(pk__in=off)
    still = lines_too_large_for_their_ports(noted)
    for line in noted.exclude(pk__in=still).order_by("pk").select_for_update(no_key=True):
        Vll.objects.filter(pk=line.pk).update(not_carried_since=None)
        if line.wanted_present and line.lifecycle not in TERMINAL_LIFECYCLES:
            announce("vll.carried", now=now, customer_id=line.customer_id, vll_id=line.pk)


def lines_not_carried_keep(*, now: datetime) -> None:
    """Look at the noted lines again: links, routers and the lines themselves may have changed since."""
    if Vll.objects.filter(not_carried_since__isnull=False).exists():
        carried_again(off=lines_off_the_path(topology_when_all_report()), now=now)
