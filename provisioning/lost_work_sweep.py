"""Repair of work that a lost message, a killed worker or an ended cool-down left behind.

It is safe to run it twice.
"""

import json
from contextlib import ExitStack
from datetime import datetime, timedelta

from django.db import transaction

from portal.allocation.tunnel_leases import cooled_down_leases_free
from portal.core.background_work import each_row
from portal.core.db.statements import rows_of
from portal.events.task_requests import send_task
from portal.inventory.models import Router
from portal.vll.convergence.claims import routers_behind_agent, routers_resend
from portal.vll.convergence.requests import reconciliations_resend
from portal.vll.operations.activation_test_lifecycle import activation_tests_resend
from portal.vll.operations.activation_test_on_demand import (
    activation_tests_give_up,
    scheduled_activation_tests_begin,
)
from portal.vll.operations.line_removal import coolings_off_end, dead_routers_settle
from portal.vll.operations.order_progress import orders_overdue_alarm
from portal.vll.operations.tombstones import tombstones_of_retired_routers_settle
from portal.vll.router_operations.actions import rebuilds_resend
from provisioning.intent_generations import behind_agent_announce

# The relay of the previous release sends a row within a second.
_RELAY_SENDS_WITHIN = timedelta(seconds=10)
_TAKE_UNSENT = """
UPDATE events_outbox SET published_at = %(now)s WHERE id IN (
    SELECT id FROM events_outbox WHERE published_at IS NULL AND created_at < %(before)s
    ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED)
RETURNING task, args
"""


def sweep(*, now: datetime) -> None:
    """Run one round. Each part has its own transactions, and a failed part does not stop the other parts."""
    parts = (
        unsent_of_previous_release_send,
        orders_overdue_alarm,
        coolings_off_end,
        dead_routers_settle,
        tombstones_of_retired_routers_settle,
        activation_tests_give_up,
        activation_tests_resend,
        scheduled_activation_tests_begin,
        routers_resend,
        reconciliations_resend,
        rebuilds_resend,
        behind_agents_announce,
        cooled_down_leases_free,
    )
    with ExitStack() as round_:
        # ExitStack calls the last callback first, so the parts run in the order above. It raises their errors
        # after all parts have run.
        for part in reversed(parts):
            round_.callback(part, now=now)


@transaction.atomic
def unsent_of_previous_release_send(*, now: datetime) -> None:
    """Send the requests that a process of the previous release stored and that no relay has sent.

    The next release drops the table and this function.
    """
    for task, args in rows_of(_TAKE_UNSENT, {"now": now, "before": now - _RELAY_SENDS_WITHIN}):
        send_task(task, *json.loads(args))


def behind_agents_announce(*, now: datetime) -> None:
    """Announce agents that report a newer intent than the portal's, also if there is nothing to send.

    Each router has its own transaction.
    """
    routers = routers_behind_agent()
    each_row(
        routers, lambda router: _behind_agent_announce(router, now), what="an agent ahead of the database"
    )


@transaction.atomic
def _behind_agent_announce(router: Router, now: datetime) -> None:
    convergence = getattr(router, "convergence", None)
    behind_agent_announce(
        router,
        stored=router.observed.generation_stored,
        since=convergence.last_answered_at if convergence else None,
        now=now,
    )
