"""The names that the portal and the schedule send are tasks that a worker has."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.conf import settings

from portal import celery_tasks
from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import ObservedRouter
from portal.telemetry import tasks as telemetry_tasks
from portal.vll.models import RouterConvergence, Vll
from provisioning import tasks
from tests.integration.certificates import certificates
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.router_answers import activate

NAMES = {value for name, value in vars(celery_tasks).items() if name.isupper() and isinstance(value, str)}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_is_that_of_a_task(name: str) -> None:
    current_app.loader.import_default_modules()
    assert name in current_app.tasks


def test_only_tasks_with_a_name_are_scheduled() -> None:
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert scheduled
    assert scheduled <= NAMES


def test_no_message_is_delivered_again_while_its_first_delivery_may_still_run() -> None:
    current_app.loader.import_default_modules()
    again_after = current_app.conf.broker_transport_options["visibility_timeout"]
    limits = {
        name: task.time_limit or current_app.conf.task_time_limit for name, task in current_app.tasks.items()
    }
    assert {name: limit for name, limit in limits.items() if limit is None or limit >= again_after} == {}


@pytest.mark.parametrize(
    ("task", "queue"),
    [
        (celery_tasks.WATCH_ALARMS, "sweepers"),
        (celery_tasks.FAN_OUT, "sweepers"),
        (celery_tasks.WEBHOOK_TURN, "webhooks"),
        (celery_tasks.DOUBTFUL_WEBHOOK_TURN, "webhooks_doubtful"),
        (celery_tasks.SEND_INVITATION, "notifications"),
        (celery_tasks.RESEND_INVITATIONS, "notifications"),
    ],
)
def test_slow_task_has_a_separate_queue(task: str, queue: str) -> None:
    assert current_app.amqp.router.route({}, task)["queue"].name == queue


def test_telemetry_has_a_separate_queue() -> None:
    route = current_app.amqp.router.route({}, celery_tasks.ROLL_UP)
    assert route["queue"].name == "telemetry"


# Each ends within seconds with any backlog, or works in portions between which other tasks run.
BOUNDED = {
    "provisioning": {celery_tasks.EXPIRE_RESERVATIONS},
    "sweepers": {
        celery_tasks.SWEEP_LOST_WORK,
        celery_tasks.MARK_STALE,
        celery_tasks.FORWARD_LINK_LOSSES,
        celery_tasks.WATCH_ALARMS,
        celery_tasks.FAN_OUT,
        celery_tasks.WATCH_SILENCES,
    },
    "telemetry": {
        celery_tasks.KEEP_TUNNEL_PATHS,
        celery_tasks.TIME_PATHS,
        celery_tasks.PROBE_PATHS,
        celery_tasks.ROLL_UP,
        celery_tasks.SWEEP_IMPORTS,
    },
    "notifications": {celery_tasks.RESEND_INVITATIONS},
}


def test_urgent_work_shares_no_queue_with_unbounded_work() -> None:
    """A new task of the schedule goes to the queue "batch", unless it is added here because it is bounded."""
    queues: dict[str, set[str]] = {}
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        queue = current_app.amqp.router.route({}, entry["task"])["queue"].name
        queues.setdefault(queue, set()).add(entry["task"])
    urgent = {queue: names for queue, names in queues.items() if queue not in ("batch", "netbox")}
    assert urgent == BOUNDED
    current_app.loader.import_default_modules()
    limits = {current_app.tasks[name].time_limit for names in BOUNDED.values() for name in names}
    assert limits <= {None, settings.CELERY_TASK_TIME_LIMIT}


@pytest.mark.parametrize(
    ("task", "failing", "other"),
    [
        (tasks.keep_tunnel_paths, "provisioning.tasks.tunnel_paths_keep", "lines_not_carried_keep"),
        (telemetry_tasks.roll_up, "portal.telemetry.tasks.samples_roll_up", "losses_roll_up"),
        (telemetry_tasks.watch_silences, "portal.telemetry.tasks.silences_begin", "silences_due"),
    ],
)
def test_a_part_of_a_task_that_fails_keeps_no_other_from_its_turn(
    task: Callable[[], None], failing: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _dot, _name = failing.rpartition(".")
    done: list[str] = []

    def fail(**_: Any) -> None:
        raise ValueError("of this part alone")

    def note(**_: Any) -> list[int]:
        done.append(other)
        return []

    monkeypatch.setattr(failing, fail)
    monkeypatch.setattr(f"{module}.{other}", note)
    with pytest.raises(ExceptionGroup, match="failed for 1 of 2"):
        task()
    assert done == [other]


@pytest.mark.django_db
class TestTasks:
    def test_converge_router_works_on_that_router(self, isp: Isp) -> None:
        isp.routers["rhino"].agent_url = "https://127.0.0.1:1"
        isp.routers["rhino"].save()
        certificates()
        tasks.converge_router(isp.routers["rhino"].pk)
        assert RouterConvergence.objects.get().router_id == isp.routers["rhino"].pk

    def test_sweep_resends(self, isp: Isp, alice: User) -> None:
        order(isp, alice)
        forget_requests()
        tasks.sweep()
        assert len(requested()) == 2

    def test_mark_stale_turns_silent_vlls_unknown(self, isp: Isp, alice: User) -> None:
        vll = order(isp, alice).vll
        activate(vll)
        Vll.objects.filter(pk=vll.pk).update(oper_status="op-up")
        ObservedRouter.objects.update(reported_at=clock.now() - timedelta(seconds=36))
        tasks.mark_stale()
        assert Vll.objects.get(pk=vll.pk).oper_status == "op-unknown"
