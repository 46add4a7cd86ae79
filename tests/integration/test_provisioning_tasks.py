"""The names that the portal and the schedule send are tasks that a worker has."""

from datetime import timedelta

import pytest
from celery import current_app
from django.conf import settings

from portal.accounts.invitations import SEND_INVITATION
from portal.accounts.models import User
from portal.core import clock
from portal.events.models import Outbox
from portal.inventory.models import ObservedRouter
from portal.notifications.mail_delivery import SEND_MAIL
from portal.notifications.webhook_delivery import DOUBTFUL_WEBHOOK_TURN, WEBHOOK_TURN
from portal.vll.models import RouterConvergence, Vll
from portal.vll.operations.convergence_requests import CONVERGE_ROUTER
from portal.vll.operations.order_plan import PLAN_ORDER
from provisioning import tasks
from tests.integration.certificates import certificates
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

SCHEDULED = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}


SENT = {
    CONVERGE_ROUTER,
    PLAN_ORDER,
    SEND_INVITATION,
    WEBHOOK_TURN,
    DOUBTFUL_WEBHOOK_TURN,
    SEND_MAIL,
}


@pytest.mark.parametrize("name", sorted(SCHEDULED | SENT))
def test_every_name_that_is_sent_is_registered(name: str) -> None:
    current_app.loader.import_default_modules()
    assert name in current_app.tasks


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
        ("notifications.tell", "sweepers"),
        (WEBHOOK_TURN, "webhooks"),
        (DOUBTFUL_WEBHOOK_TURN, "webhooks_doubtful"),
        (SEND_INVITATION, "notifications"),
    ],
)
def test_what_others_make_slow_waits_in_a_queue_of_its_own(task: str, queue: str) -> None:
    assert current_app.amqp.router.route({}, task)["queue"].name == queue


def test_telemetry_has_a_queue_of_its_own() -> None:
    route = current_app.amqp.router.route({}, "telemetry.keep_partitions")
    assert route["queue"].name == "telemetry"


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
        Outbox.objects.all().delete()
        tasks.sweep()
        assert Outbox.objects.count() == 2

    def test_mark_stale_turns_silent_vlls_unknown(self, isp: Isp, alice: User) -> None:
        vll = order(isp, alice).vll
        activate(vll)
        Vll.objects.filter(pk=vll.pk).update(oper_status="op-up")
        ObservedRouter.objects.update(reported_at=clock.now() - timedelta(seconds=36))
        tasks.mark_stale()
        assert Vll.objects.get(pk=vll.pk).oper_status == "op-unknown"
