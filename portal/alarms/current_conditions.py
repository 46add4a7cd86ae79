"""All current problems. Each round derives them from the database: an alarm is up as long as its
cause exists.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from portal.alarms.derivation import inventory_alarms, line_alarms, order_alarms, portal_alarms, router_alarms
from portal.alarms.kinds import AlarmCondition, Kind

log = logging.getLogger(__name__)

SOURCES: list[tuple[tuple[Kind, ...], Callable[[datetime], Iterator[AlarmCondition]]]] = [
    ((Kind.REPORTS_AWAY,), router_alarms.reports_away),
    ((Kind.ROUTER_SILENT,), router_alarms.silent),
    ((Kind.VPP_AWAY, Kind.VPP_HANGS), router_alarms.without_vpp),
    ((Kind.PATH_DOWN, Kind.PORT_DOWN, Kind.LINE_DOWN), line_alarms.down),
    ((Kind.BLACK_HOLE,), line_alarms.black_holes),
    ((Kind.TROUBLE,), line_alarms.trouble),
    ((Kind.ROUTER_DIFFERS, Kind.LINE_DIFFERS), line_alarms.differing),
    ((Kind.CONTESTED,), line_alarms.contested),
    ((Kind.VLAN_LOSS,), line_alarms.vlan_losses),
    ((Kind.LOSSES, Kind.FEW_BUFFERS), router_alarms.lossy),
    ((Kind.ORDER_OVERDUE, Kind.ORDER_FAILED, Kind.ORDER_PENDING_APPROVAL), order_alarms.orders),
    (
        (Kind.AGENT_AHEAD, Kind.FILES_ASIDE, Kind.CERTIFICATE_ENDS, Kind.WITHHELD),
        router_alarms.agents,
    ),
    ((Kind.RELAY,), portal_alarms.relay),
    ((Kind.QUEUE_UNSERVED,), portal_alarms.queues_without_worker),
    ((Kind.TEST_FAILED,), order_alarms.failed_tests),
    ((Kind.UNCONFIRMED,), order_alarms.unconfirmed),
    ((Kind.LINK_MTU, Kind.LINK_INTERFACE), inventory_alarms.links),
    ((Kind.CLOCK_WRONG,), router_alarms.wrong_clocks),
    ((Kind.MAILS,), portal_alarms.mails),
    ((Kind.WEBHOOK,), portal_alarms.webhooks),
    ((Kind.NETBOX, Kind.NETBOX_LINES), portal_alarms.netbox),
    ((Kind.PATH_UNHEARD,), line_alarms.unwatched_paths),
    ((Kind.PORT_SLOW,), inventory_alarms.slow_ports),
    ((Kind.PORT_FULL,), inventory_alarms.full_ports),
    ((Kind.ROUTER_FULL,), inventory_alarms.full_routers),
]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check of all conditions.

    ``unchecked``: the kinds that could not be checked because of an error. Their alarms stay up.
    """

    found: list[AlarmCondition] = field(default_factory=list)
    unchecked: set[Kind] = field(default_factory=set)


def find_conditions(now: datetime) -> CheckResult:
    """Find all current problems, with a fixed number of SQL statements for each kind.

    If one source fails, the others still run.
    """
    result = CheckResult()
    for kinds, source in SOURCES:
        try:
            with transaction.atomic():
                found = list(source(now))
        except Exception:
            log.exception("cannot check the conditions of %s", ", ".join(kinds))
            result.unchecked.update(kinds)
        else:
            result.found.extend(found)
    return result
