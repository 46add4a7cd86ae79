"""Events become deliveries: each once, to whom it belongs, with what its schema says."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import jsonschema
import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from portal.accounts.models import Customer, User
from portal.accounts.own_account import (
    ACCOUNT_OPENED,
    EMAIL_CHANGE_REQUESTED,
    EMAIL_CHANGED,
    PASSWORD_RESET_REQUESTED,
)
from portal.core import clock
from portal.diagnosis.trouble_reports import trouble_close, trouble_report
from portal.events.announcements import NOTIFIED_KINDS, announce
from portal.events.models import Event
from portal.notifications import event_fanout
from portal.notifications.event_catalogue import BY_ANNOUNCED, BY_NAME, TYPES, EventType
from portal.notifications.event_fanout import events_fan_out
from portal.notifications.mail_recipients import RECEIVER_CHANGED
from portal.notifications.models import Delivery, Mail, Webhook
from portal.notifications.webhook_operations import webhook_create, webhook_disable, webhook_test
from portal.telemetry.oper_status import Turn, statuses_write
from portal.telemetry.router_silences import REPORTING, SILENT
from portal.vll.models import Order, Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.link_loss_forwarding import FORWARDED, FORWARDED_NO_LONGER
from portal.vll.operations.modify_line import order_resume, order_suspend, vll_describe
from portal.vll.operations.order_approval import order_reject
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.order_progress import orders_overdue_alarm
from portal.vll.operations.state_compare_and_swap import sync_move
from portal.vll.states import OperStatus
from tests.integration.isp import GBIT, Isp
from tests.integration.notifications.receiver import Receiver
from tests.integration.orders import end, order
from tests.integration.router_answers import activate, answer, refuse

pytestmark = pytest.mark.django_db
DOCS = Path(__file__).parents[3] / "docs" / "integrate" / "webhooks.md"


def deliveries_of(webhook: Webhook) -> list[tuple[str, dict[str, Any]]]:
    """Type and data of what waits for this webhook, oldest event first."""
    rows = Delivery.objects.filter(webhook=webhook).order_by("event_id")
    return [(row.type, json.loads(row.body)["data"]) for row in rows]


def types(webhook: Webhook) -> list[str]:
    return [name for name, _ in deliveries_of(webhook)]


def noc_webhook(nina: User, receiver: Receiver, **more: Any) -> Webhook:
    earlier = clock.now() - timedelta(minutes=1)
    made, _ = webhook_create(user=nina, customer=None, url=receiver.url, now=earlier, **more)
    return made


class TestFailingEvents:
    def test_a_failing_event_delays_no_other(self, webhook: Webhook, isp: Isp, alice: User) -> None:
        vll = order(isp, alice).vll
        activate(vll)
        broken = announce_black_hole_without_its_path(vll)
        another_line(isp, alice)
        with pytest.raises(ExceptionGroup):
            events_fan_out(now=clock.now())
        assert types(webhook).count("order.accepted") == 2
        assert list(Event.objects.filter(pending_notification=True).values_list("pk", flat=True)) == [broken]

    def test_a_failing_event_gets_neither_deliveries_nor_mails(
        self, webhook: Webhook, isp: Isp, alice: User
    ) -> None:
        """Neither if its mail cannot be written, nor if its payload cannot."""
        vll = order(isp, alice).vll
        activate(vll)
        Event.objects.all().delete()
        broken = {announce_black_hole_without_its_path(vll), announce_order_without_its_action(vll)}
        with pytest.raises(ExceptionGroup) as raised:
            events_fan_out(now=clock.now())
        assert len(raised.value.exceptions) == 2
        assert set(Event.objects.filter(pending_notification=True).values_list("pk", flat=True)) == broken
        assert not Delivery.objects.exists()
        assert not Mail.objects.exists()

    def test_a_failing_event_is_retried_when_its_age_has_doubled(
        self, webhook: Webhook, isp: Isp, alice: User
    ) -> None:
        vll = order(isp, alice).vll
        activate(vll)
        events_fan_out(now=clock.now())
        broken = Event.objects.get(pk=announce_black_hole_without_its_path(vll))
        age = timedelta(minutes=3)
        with pytest.raises(ExceptionGroup):
            events_fan_out(now=broken.at + age)
        assert events_fan_out(now=broken.at + 1.9 * age) == 0
        with pytest.raises(ExceptionGroup):
            events_fan_out(now=broken.at + 2 * age)
        broken.data = {"path": "x"}
        broken.save()
        assert events_fan_out(now=broken.at + 4 * age) == 1
        assert types(webhook)[-1] == "vll.black_hole"

    def test_a_failing_event_divides_its_batch(
        self, webhook: Webhook, isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        vll = order(isp, alice).vll
        activate(vll)
        events_fan_out(now=clock.now())
        for _ in range(32):
            announce("vll.op-down", now=clock.now(), vll_id=vll.pk)
        announce_black_hole_without_its_path(vll)
        for _ in range(31):
            announce("vll.op-down", now=clock.now(), vll_id=vll.pk)
        sizes = []
        process = event_fanout._fan_out_batch

        def noted(waiting: Sequence[int], *, now: datetime) -> int:
            sizes.append(len(waiting))
            return process(waiting, now=now)

        monkeypatch.setattr(event_fanout, "_fan_out_batch", noted)
        with pytest.raises(ExceptionGroup):
            events_fan_out(now=clock.now())
        assert sorted(sizes, reverse=True) == [64, 32, 32, 16, 16, 8, 8, 4, 4, 2, 2, 1, 1]

    def test_a_lost_connection_postpones_no_event(
        self, webhook: Webhook, isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        order(isp, alice)

        def lost(*_: Any, **__: Any) -> int:
            raise OperationalError("server closed the connection unexpectedly")

        with monkeypatch.context() as losing:
            losing.setattr(event_fanout, "_fan_out_batch", lost)
            losing.setattr(connection, "is_usable", lambda: False)
            with pytest.raises(OperationalError):
                events_fan_out(now=clock.now())
        events_fan_out(now=clock.now())
        assert types(webhook) == ["order.accepted"]


def another_line(isp: Isp, alice: User) -> None:
    order(
        isp,
        alice,
        a_end=end(isp, "rhino:host-cust1", outer=200),
        z_end=end(isp, "hippo:host-cust1", outer=200),
    )


def announce_black_hole_without_its_path(vll: Vll) -> int:
    """An event whose mail cannot be written."""
    announce("vll.black_hole", now=clock.now(), customer_id=vll.customer_id, vll_id=vll.pk, data={})
    return Event.objects.get(kind="vll.black_hole").pk


def announce_order_without_its_action(vll: Vll) -> int:
    """An event whose payload cannot be written, although its mail can."""
    announce("order.acknowledged", now=clock.now(), customer_id=vll.customer_id, vll_id=vll.pk, data={})
    return Event.objects.filter(kind="order.acknowledged").latest("id").pk


class TestOnce:
    def test_each_step_of_an_order_is_sent(self, webhook: Webhook, isp: Isp, alice: User) -> None:
        placed = order(isp, alice)
        assert not Delivery.objects.exists()
        events_fan_out(now=clock.now())
        activate(placed.vll)
        events_fan_out(now=clock.now())
        assert types(webhook) == ["order.accepted", "order.started", "order.completed", "vll.active"]
        _, data = deliveries_of(webhook)[0]
        assert data == {
            "order": str(placed.pk),
            "action": "add",
            "state": "acknowledged",
            "failure": None,
            "vll": str(placed.vll_id),
            "description": "ZRH-AMS",
            "customer": "Alpine Dairy",
        }

    def test_no_event_is_sent_twice(self, webhook: Webhook, isp: Isp, alice: User) -> None:
        order(isp, alice)
        assert (events_fan_out(now=clock.now()), events_fan_out(now=clock.now())) == (1, 0)
        assert Delivery.objects.count() == 1

    def test_the_database_itself_ensures_that(self, webhook: Webhook, isp: Isp, alice: User) -> None:
        order(isp, alice)
        events_fan_out(now=clock.now())
        made = Delivery.objects.get()
        made.pk = uuid4()
        with pytest.raises(IntegrityError), transaction.atomic():
            made.save(force_insert=True)

    def test_a_crash_in_between_leaves_nothing_behind(
        self, webhook: Webhook, isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        order(isp, alice)

        def die(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as dying:
            dying.setattr(Event.objects, "filter", lambda *which, **how: _Dying(which, how, die))
            with pytest.raises(KeyboardInterrupt), transaction.atomic():
                events_fan_out(now=clock.now())
        assert not Delivery.objects.exists()
        events_fan_out(now=clock.now())
        assert types(webhook) == ["order.accepted"]

    def test_an_event_that_commits_late_is_sent_after_later_ones(
        self, webhook: Webhook, isp: Isp, alice: User
    ) -> None:
        """Ids commit out of order: a query by the last id would miss it."""
        placed = order(isp, alice)
        late = Event.objects.get(kind="order.acknowledged")
        activate(placed.vll)
        Event.objects.filter(pk=late.pk).update(pending_notification=False)
        events_fan_out(now=clock.now())
        Event.objects.filter(pk=late.pk).update(pending_notification=True)
        events_fan_out(now=clock.now())
        assert types(webhook) == ["order.accepted", "order.started", "order.completed", "vll.active"]

    def test_many_events_are_sent_in_batches(
        self, webhook: Webhook, isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(event_fanout, "BATCH", 3)
        vll = order(isp, alice).vll
        for _ in range(9):
            announce("vll.op-down", now=clock.now(), vll_id=vll.pk)
        assert events_fan_out(now=clock.now()) == 10
        assert Delivery.objects.count() == 10


class _Dying:
    """Event's rows, whose marking kills."""

    def __init__(self, which: Any, how: dict[str, Any], die: Any) -> None:
        self._rows = Event._default_manager.get_queryset().filter(*which, **how)
        self.update = die

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


class TestWhom:
    def test_a_webhook_gets_events_of_its_customer_only(
        self, webhook: Webhook, receiver: Receiver, isp: Isp, alice: User, charlie: User, bakery: Customer
    ) -> None:
        theirs, _ = webhook_create(
            user=charlie, customer=bakery, url=receiver.url, now=clock.now() - timedelta(minutes=1)
        )
        vll = order(isp, alice).vll
        activate(vll)
        # Agents' observations come without a customer: the line says whose they are.
        statuses_write([Turn(vll.pk, OperStatus.DOWN, clock.now())])
        events_fan_out(now=clock.now())
        assert types(webhook)[-1] == "vll.down"
        assert deliveries_of(theirs) == []

    def test_the_nocs_own_webhook_receives_all(
        self, webhook: Webhook, receiver: Receiver, isp: Isp, alice: User, nina: User
    ) -> None:
        own = noc_webhook(nina, receiver)
        order(isp, alice)
        events_fan_out(now=clock.now())
        assert deliveries_of(own) == deliveries_of(webhook)

    def test_it_receives_only_selected_events(
        self, receiver: Receiver, isp: Isp, alice: User, nina: User
    ) -> None:
        own = noc_webhook(nina, receiver, types=["vll.active"])
        activate(order(isp, alice).vll)
        events_fan_out(now=clock.now())
        assert types(own) == ["vll.active"]

    def test_it_receives_nothing_from_before_its_time(
        self, receiver: Receiver, isp: Isp, alice: User, ada: User, dairy: Customer
    ) -> None:
        order(isp, alice)
        made, _ = webhook_create(user=ada, customer=dairy, url=receiver.url, now=clock.now())
        events_fan_out(now=clock.now())
        assert deliveries_of(made) == []

    def test_it_receives_nothing_while_it_is_disabled_or_its_customer_retired(
        self, webhook: Webhook, isp: Isp, alice: User, dairy: Customer
    ) -> None:
        webhook_disable(webhook=webhook, because="byHand", now=clock.now())
        order(isp, alice)
        events_fan_out(now=clock.now())
        Webhook.objects.update(disabled_at=None, disabled_because="")
        Customer.objects.update(retired_at=clock.now())
        announce("vll.op-down", now=clock.now(), vll_id=Vll.objects.get().pk)
        events_fan_out(now=clock.now())
        assert deliveries_of(webhook) == []


def _members(kind: EventType) -> str:
    return ", ".join(f"`{name}`" for name in kind.members)


class TestCatalogue:
    def test_exactly_the_notified_kinds_have_webhooks_or_mails(self) -> None:
        of_accounts = {PASSWORD_RESET_REQUESTED, ACCOUNT_OPENED, EMAIL_CHANGE_REQUESTED, EMAIL_CHANGED}
        assert set(BY_ANNOUNCED) | of_accounts | {RECEIVER_CHANGED} == NOTIFIED_KINDS

    def test_the_page_in_docs_lists_it(self) -> None:
        listed = [f"| `{kind.name}` | {kind.about} | {_members(kind)} |" for kind in TYPES]
        assert "\n".join(listed) in DOCS.read_text()

    @pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
    def test_an_example_is_as_its_schema_says_and_has_every_member(self, kind: Any) -> None:
        jsonschema.Draft202012Validator.check_schema(kind.schema)
        jsonschema.validate(kind.body, kind.schema, format_checker=jsonschema.FormatChecker())
        assert set(kind.example) == set(kind.members)

    def test_every_event_that_really_happens_is_as_its_schema_says(
        self, webhook: Webhook, isp: Isp, alice: User, nora: User, dairy: Customer
    ) -> None:
        """A customer's whole life with the portal; every type of the catalogue has to occur in it."""
        now = clock.now

        def line(vlan: int, **more: Any) -> Order:
            ends = {
                "a_end": end(isp, "rhino:host-cust1", outer=vlan),
                "z_end": end(isp, "hippo:host-cust1", outer=vlan),
            }
            return order(isp, alice, **ends, **{"cir_bps": 10**6, **more})

        active = line(100).vll
        activate(active)
        for status in (OperStatus.UP, OperStatus.DOWN, OperStatus.UNKNOWN):
            statuses_write([Turn(active.pk, status, now())])
        sync_move(active.pk, False, now=now())
        sync_move(active.pk, True, now=now())
        # Only the NOC's own webhooks get events of routers.
        webhook_create(user=nora, customer=None, url=webhook.url, now=now() - timedelta(minutes=1))
        for kind in (SILENT, REPORTING):
            announce(kind, now=now(), router_id=isp.routers["hippo"].pk)
        announce("vll.not_carried", now=now(), customer_id=dairy.pk, vll_id=active.pk, data={"because": "x"})
        for kind in ("black_hole", "black_hole_gone"):
            announce(f"vll.{kind}", now=now(), customer_id=dairy.pk, vll_id=active.pk, data={"path": "x"})
        for kind in (FORWARDED, FORWARDED_NO_LONGER):
            announce(kind, now=now(), customer_id=dairy.pk, vll_id=active.pk, data={"end": "z"})
        for state, code, largest in (
            ("scheduled", "", None),
            ("passed", "", 1514),
            ("failed", "frames-lost", 64),
            ("not_tested", "no-tunnel", None),
        ):
            said = {"line_test": str(uuid4()), "code": code, "reason": "In words.", "frame": 1514}
            about = {"customer_id": dairy.pk, "vll_id": active.pk, "order_id": active.orders.get().pk}
            announce(f"line_test.{state}", now=now(), data={**said, "largest_passed": largest}, **about)
        report = trouble_report(user=alice, vll=active, note="It stutters", now=now())
        trouble_close(user=nora, report=report, now=now())
        vll_describe(user=alice, vll=active, description="ZRH – “AMS” \U0001f9c0", now=now())
        order_suspend(user=alice, vll=active, now=now())
        activate(active)
        order_resume(user=alice, vll=active, now=now())
        activate(active)
        order_delete(user=alice, vll=active, now=now())
        answer(active, "a", "removed")
        answer(active, "z", "removed")
        failed = line(101).vll
        refuse(failed, "a")
        answer(failed, "a", "removed")
        answer(failed, "z", "removed")
        Customer.objects.update(approve_up_to_bps=GBIT)
        alice.refresh_from_db()
        order_reject(user=nora, order=line(102, cir_bps=2 * GBIT), reason="no", now=now())
        order_cancel(user=alice, order=line(103, cir_bps=2 * GBIT), now=now())
        overdue = line(104)
        orders_overdue_alarm(now=now() + timedelta(hours=1))
        assert Order.objects.get(pk=overdue.pk).alarmed_at
        announce(
            "webhook.disabled", now=now(), customer_id=dairy.pk, data={"webhook": 1, "because": "failing"}
        )
        webhook_test(webhook=webhook, now=now())
        events_fan_out(now=now())
        for row in Delivery.objects.all():
            kind, body = BY_NAME[row.type], json.loads(row.body)
            jsonschema.validate(body, kind.schema, format_checker=jsonschema.FormatChecker())
            assert set(body["data"]) == set(kind.members), row.type
        assert set(BY_NAME) - {row.type for row in Delivery.objects.all()} == set()
