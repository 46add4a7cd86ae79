"""Repair of work that a lost message, a killed worker or an ended cool-down left behind.

It is safe to run it twice.
"""

from contextlib import ExitStack
from datetime import datetime, timedelta

from django.db import transaction

from portal.allocation.tunnel_leases import cooled_down_leases_free
from portal.core.background_work import each_row
from portal.events.models import Outbox
from portal.inventory.models import Router
from portal.vll.convergence.due import routers_behind_agent, routers_resend
from portal.vll.convergence.reconciliation import reconciliations_resend
from portal.vll.operations import (
    activation_tests_give_up,
    activation_tests_resend,
    coolings_off_end,
    dead_routers_settle,
    orders_overdue_alarm,
    scheduled_activation_tests_begin,
)
from portal.vll.operations.tombstones import tombstones_of_retired_routers_settle
from provisioning.intent_generations import behind_agent_announce

KEEP_PUBLISHED = timedelta(days=1)
FORGOTTEN_TOGETHER = 10_000


def sweep(*, now: datetime) -> None:
    """Run one round. Each part has its own transactions, and a failed part does not stop the other parts."""
    parts = (
        orders_overdue_alarm,
        coolings_off_end,
        dead_routers_settle,
        tombstones_of_retired_routers_settle,
        activation_tests_give_up,
        activation_tests_resend,
        scheduled_activation_tests_begin,
        routers_resend,
        reconciliations_resend,
        behind_agents_announce,
        cooled_down_leases_free,
        published_forget,
    )
    with ExitStack() as round_:
        # ExitStack calls the last callback first, so the parts run in the order above. It raises their errors
        # after all parts have run.
        for part in reversed(parts):
            round_.callback(part, now=now)


def published_forget(*, now: datetime) -> None:
    """Delete messages that were published long ago.

    At most FORGOTTEN_TOGETHER are deleted, because a sweep must end soon.
    """
    old = Outbox.objects.filter(published_at__lt=now - KEEP_PUBLISHED).order_by("pk").values("pk")
    Outbox.objects.filter(pk__in=old[:FORGOTTEN_TOGETHER]).delete()


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
