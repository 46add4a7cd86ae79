"""All that is wrong now. Nothing here is stored: an alarm is up while its cause is there."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from portal.alarms.alarm_condition import AlarmCondition
from portal.alarms.derivation import of_inventory, of_lines, of_orders, of_portal, of_routers
from portal.alarms.kinds import Kind

log = logging.getLogger(__name__)

# Of each kind, in an order that stays: more would help nobody, and every round writes what it finds.
MOST = 1000
SOURCES: list[tuple[tuple[Kind, ...], Callable[[datetime], Iterator[AlarmCondition]]]] = [
    ((Kind.REPORTS_AWAY,), of_routers.reports_away),
    ((Kind.ROUTER_SILENT,), of_routers.silent),
    ((Kind.VPP_AWAY, Kind.VPP_HANGS), of_routers.without_vpp),
    ((Kind.PATH_DOWN, Kind.PORT_DOWN, Kind.LINE_DOWN), of_lines.down),
    ((Kind.BLACK_HOLE,), of_lines.black_holes),
    ((Kind.TROUBLE,), of_lines.trouble),
    ((Kind.ROUTER_DIFFERS, Kind.LINE_DIFFERS), of_lines.differing),
    ((Kind.CONTESTED,), of_lines.contested),
    ((Kind.LOSSES, Kind.FEW_BUFFERS), of_routers.lossy),
    ((Kind.ORDER_OVERDUE, Kind.ORDER_FAILED, Kind.ORDER_HELD), of_orders.orders),
    (
        (Kind.AGENT_AHEAD, Kind.FILES_ASIDE, Kind.CERTIFICATE_ENDS, Kind.WITHHELD),
        of_routers.agents,
    ),
    ((Kind.RELAY,), of_portal.relay),
    ((Kind.TEST_FAILED,), of_orders.failed_tests),
    ((Kind.UNCONFIRMED,), of_orders.unconfirmed),
    ((Kind.LINK_MTU, Kind.LINK_INTERFACE), of_inventory.links),
    ((Kind.QUARANTINE,), of_portal.quarantines),
    ((Kind.MAILS,), of_portal.mails),
    ((Kind.WEBHOOK,), of_portal.webhooks),
    ((Kind.NETBOX, Kind.NETBOX_LINES), of_portal.netbox),
    ((Kind.PATH_UNHEARD,), of_lines.unwatched_paths),
    ((Kind.PORT_FULL,), of_inventory.full_ports),
    ((Kind.ROUTER_FULL,), of_inventory.full_routers),
]


@dataclass(frozen=True, slots=True)
class Look:
    """``unseen``: the kinds that could not be looked for; what is up of them is not known to be gone."""

    found: list[AlarmCondition] = field(default_factory=list)
    unseen: set[Kind] = field(default_factory=set)


def look(now: datetime) -> Look:
    """A fixed number of statements for each kind. What breaks one source keeps no other from looking."""
    seen = Look()
    for kinds, source in SOURCES:
        try:
            with transaction.atomic():
                found = list(source(now))
        except Exception:
            log.exception("could not look for %s", ", ".join(kinds))
            seen.unseen.update(kinds)
        else:
            seen.found.extend(_bounded(found))
    return seen


def _bounded(found: list[AlarmCondition]) -> Iterator[AlarmCondition]:
    counts: dict[Kind, int] = {}
    for each in found:
        counts[each.kind] = counts.get(each.kind, 0) + 1
        if counts[each.kind] <= MOST:
            yield each
