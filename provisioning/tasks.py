"""What Celery runs: names and ids only; each task makes one call."""

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.conf import settings

from portal.accounts.invitations import invitation_send, invitations_resend
from portal.core import clock
from portal.netbox_sync.sync_round import sync_due as netbox_sync_due
from portal.telemetry.month_close import months_freeze
from portal.telemetry.partitions import partitions_keep
from portal.telemetry.rollups import roll_up as telemetry_roll_up
from portal.telemetry.router_silences import silences_forget, silences_watch
from portal.telemetry.sample_quarantine_accept import accepted_count
from portal.telemetry.sample_quarantine_decisions import COUNT_ACCEPTED, quarantines_expire
from portal.vll.operations import attempts_forget, holds_expire, stale_vlls_mark
from provisioning import converge_job
from provisioning import lost_work_sweep as sweeper
from provisioning.adopt_generation import generation_adopt
from provisioning.plan_preview import plan_make
from provisioning.unresponsive_routers import CONVERGE_DOUBTFUL

# Past every timeout of the two exchanges of a run (agent_client.TOTAL_S); a task that hangs beyond it is
# killed, and the sweeper resumes.
_HARD_LIMIT_S = 90


@shared_task(name="provisioning.converge_router", time_limit=_HARD_LIMIT_S)
def converge_router(router_id: int) -> None:
    converge_job.converge_promptly(router_id)


@shared_task(name=CONVERGE_DOUBTFUL, time_limit=_HARD_LIMIT_S)
def converge_doubtful_router(router_id: int) -> None:
    converge_job.converge_router(router_id)


@shared_task(name="provisioning.adopt_generation", time_limit=_HARD_LIMIT_S)
def adopt_generation(router_id: int, actor: str) -> None:
    generation_adopt(router_id=router_id, actor=actor, now=clock.now())


@shared_task(name="provisioning.plan_order", time_limit=_HARD_LIMIT_S)
def plan_order(plan_id: str) -> None:
    plan_make(UUID(plan_id))


@shared_task(name="provisioning.sweep", time_limit=_HARD_LIMIT_S)
def sweep() -> None:
    sweeper.sweep(now=clock.now())


@shared_task(name="provisioning.mark_stale", time_limit=_HARD_LIMIT_S)
def mark_stale() -> None:
    stale_vlls_mark(now=clock.now())
    silences_watch(now=clock.now())


@shared_task(name="provisioning.free_holds", time_limit=_HARD_LIMIT_S)
def free_holds() -> None:
    holds_expire(now=clock.now())


@shared_task(name="telemetry.keep_partitions", time_limit=_HARD_LIMIT_S)
def keep_partitions() -> None:
    quarantines_expire(now=clock.now())
    partitions_keep(now=clock.now())
    silences_forget(before=clock.now() - timedelta(days=settings.LONGLINE_ROUTER_EVENT_DAYS))
    attempts_forget(before=clock.now() - timedelta(days=settings.LONGLINE_ATTEMPT_DAYS))


@shared_task(name="telemetry.freeze_percentiles", time_limit=1800)
def freeze_percentiles() -> None:
    months_freeze(now=clock.now())


@shared_task(name=COUNT_ACCEPTED, time_limit=1800)
def count_accepted() -> None:
    accepted_count(now=clock.now())


@shared_task(name="telemetry.roll_up", time_limit=_HARD_LIMIT_S)
def roll_up() -> None:
    telemetry_roll_up(now=clock.now())


@shared_task(name="notifications.send_invitation", time_limit=_HARD_LIMIT_S)
def send_invitation(invitation_id: int) -> None:
    invitation_send(invitation_id=invitation_id, now=clock.now())


@shared_task(name="notifications.sweep", time_limit=_HARD_LIMIT_S)
def sweep_notifications() -> None:
    invitations_resend(now=clock.now())


# Whole imports take as long as NetBox does; another worker that gets the message again finds it claimed.
@shared_task(name="netbox.sync", time_limit=settings.LONGEST_TASK_S)
def sync_netbox() -> None:
    netbox_sync_due(now=clock.now())
