"""After a restored backup: let the portal speak to the agents again, on a human's word."""

from datetime import datetime

from django.db import transaction

from portal.events.operations import announce, send_task
from portal.inventory.models import Router
from portal.vll.models import RouterConvergence
from portal.vll.operations.converging import CONVERGE_ROUTER


@transaction.atomic
def generation_reconcile(*, router: Router, held: int, actor: str, now: datetime) -> int:
    """Count on from what the agent holds; returns the generation to count from.

    Whoever calls this has looked at what the agent owns and the database does not know: the next intent
    makes the database's view the wanted one. What it does not name stays forwarding, quarantined.
    """
    locked = Router.objects.select_for_update().get(pk=router.pk)
    if held > locked.generation:
        Router.objects.filter(pk=locked.pk).update(generation=held)
        announce(
            "router.reconciled",
            now=now,
            router_id=locked.pk,
            actor=actor,
            data={"from": locked.generation, "to": held},
        )
    RouterConvergence.objects.filter(router=locked).update(failures=0, retry_at=None, last_error="")
    send_task(CONVERGE_ROUTER, locked.pk, now=now)
    return max(held, locked.generation)
