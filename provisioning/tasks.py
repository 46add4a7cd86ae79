"""Celery tasks. Their arguments are plain values such as ids, and each task makes one call."""

from datetime import datetime
from uuid import UUID

from celery import shared_task

from portal import celery_tasks
from portal.core import clock
from portal.core.background_work import each_row
from portal.telemetry.oper_status import stale_vlls_mark
from portal.vll.lines_not_carried import lines_not_carried_keep
from portal.vll.operations.link_loss_forwarding import link_losses_forward
from portal.vll.operations.paths import CLAIM, ROUND_TRIPS_EVERY, paths_to_probe, tunnel_paths_keep
from portal.vll.operations.reservations import reservations_expire
from provisioning import convergence
from provisioning import lost_work_sweep as sweeper
from provisioning.convergence import end_rebuild
from provisioning.frame_tests import activation_test, measuring_routers, path_probe, round_trips_measure
from provisioning.intent_generations import generation_adopt_on_request
from provisioning.plan_preview import plan_make


@shared_task(name=celery_tasks.CONVERGE_ROUTER)
def converge_router(router_id: int) -> None:
    convergence.converge_promptly(router_id)


@shared_task(name=celery_tasks.CONVERGE_DOUBTFUL)
def converge_doubtful_router(router_id: int) -> None:
    convergence.converge_router(router_id)


@shared_task(name=celery_tasks.ADOPT_GENERATION)
def adopt_generation(router_id: int, actor: str, requested_at: str | None = None) -> None:
    """Carry out the request made at ``requested_at`` (ISO 8601; None in a task of the previous release)."""
    generation_adopt_on_request(
        router_id=router_id,
        actor=actor,
        requested_at=None if requested_at is None else datetime.fromisoformat(requested_at),
        now=clock.now(),
    )


@shared_task(name=celery_tasks.PLAN_ORDER)
def plan_order(plan_id: str) -> None:
    plan_make(UUID(plan_id))


@shared_task(name=celery_tasks.TEST_LINE)
def test_line(test_id: str) -> None:
    activation_test(UUID(test_id))


@shared_task(name=celery_tasks.KEEP_TUNNEL_PATHS)
def keep_tunnel_paths() -> None:
    parts = (tunnel_paths_keep, lines_not_carried_keep)
    each_row(parts, lambda part: part(now=clock.now()), what="a part of keeping the paths of tunnels")


@shared_task(name=celery_tasks.TIME_PATHS)
def time_paths() -> None:
    for router_id in measuring_routers(now=clock.now()):
        time_paths_of.apply_async((router_id,), expires=ROUND_TRIPS_EVERY.total_seconds())


@shared_task(name=celery_tasks.TIME_PATHS_OF)
def time_paths_of(router_id: int) -> None:
    round_trips_measure(router_id)


@shared_task(name=celery_tasks.REBUILD_END)
def rebuild_end(vll_id: str, side: str, requested_at: str | None = None) -> None:
    """Carry out the request made at ``requested_at`` (ISO 8601; None in a task of the previous release)."""
    end_rebuild(
        UUID(vll_id),
        side,
        requested_at=None if requested_at is None else datetime.fromisoformat(requested_at),
    )


@shared_task(name=celery_tasks.PROBE_PATHS)
def probe_paths() -> None:
    for path_id in paths_to_probe(now=clock.now()):
        probe_path.apply_async((str(path_id),), expires=CLAIM.total_seconds())


@shared_task(name=celery_tasks.PROBE_PATH)
def probe_path(path_id: str) -> None:
    path_probe(UUID(path_id))


@shared_task(name=celery_tasks.SWEEP_LOST_WORK)
def sweep() -> None:
    sweeper.sweep(now=clock.now())


@shared_task(name=celery_tasks.MARK_STALE)
def mark_stale() -> None:
    stale_vlls_mark(now=clock.now())


@shared_task(name=celery_tasks.FORWARD_LINK_LOSSES)
def forward_link_losses() -> None:
    link_losses_forward(now=clock.now())


@shared_task(name=celery_tasks.EXPIRE_RESERVATIONS)
def expire_reservations() -> None:
    reservations_expire(now=clock.now())
