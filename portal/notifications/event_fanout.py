"""Creation of deliveries and mails from events. Each webhook and each reader gets each public event once.

The transaction that causes an event stores only the event. Events are selected by their state and not by "id
greater than the last id", because transactions do not commit in the order of ids. One transaction marks an
event as done and creates its deliveries and mails. Therefore a crash neither loses nor repeats a delivery.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db import Error, connection, transaction
from django.db.models import Q

from portal.accounts.models import Customer
from portal.events.models import Event
from portal.inventory.models import Router
from portal.notifications.event_catalogue import BY_ANNOUNCED, payload
from portal.notifications.line_mails import STATUS_OF, lines_collect
from portal.notifications.mail_recipients import Recipients
from portal.notifications.models import Delivery, Mail, Webhook
from portal.vll.models import Vll

log = logging.getLogger(__name__)

BATCH = 500
# The most batches of one task, so that other tasks of the queue are not delayed.
_ROUNDS = 20
# If an event fails, the pause before the retry equals the age of the event, within these limits.
_FIRST_RETRY = timedelta(seconds=10)
_LONGEST_RETRY = timedelta(hours=1)


def events_fan_out(*, now: datetime) -> int:
    """Create the deliveries and mails of all events that are not done yet. Return the number of events.

    If a batch fails, it is divided repeatedly, until each event that fails is alone. Such an event gets
    deliveries and mails only when a retry succeeds. All other events get them now. Then all failures are
    raised as one ExceptionGroup.
    """
    total = 0
    failures: list[Exception] = []
    due = Event.objects.filter(
        Q(fan_out_retry_at=None) | Q(fan_out_retry_at__lte=now), pending_notification=True
    )
    for _ in range(_ROUNDS):
        waiting = list(due.order_by("id").values_list("pk", flat=True)[:BATCH])
        if not waiting:
            break
        total += _fan_out(waiting, failures, now=now)
        if failures:
            raise ExceptionGroup(f"no notifications of {len(failures)} events were created", failures)
    return total


def _fan_out(waiting: Sequence[int], failures: list[Exception], *, now: datetime) -> int:
    """Process these events together. After a failure, process each half separately.

    Return the number of processed events. If a single event fails, add its error to ``failures`` and postpone
    the event. If the database connection is lost, raise the error, because all events would fail.
    """
    try:
        return _fan_out_batch(waiting, now=now)
    except Exception as failure:
        if isinstance(failure, Error) and not connection.is_usable():
            raise
        if len(waiting) == 1:
            log.exception("no notifications of event %s were created", waiting[0])
            failures.append(failure)
            _postpone(waiting[0], now=now)
            return 0
    middle = len(waiting) // 2
    return sum(_fan_out(half, failures, now=now) for half in (waiting[:middle], waiting[middle:]))


def _postpone(pk: int, *, now: datetime) -> None:
    event = Event.objects.get(pk=pk)
    pause = min(max(now - event.at, _FIRST_RETRY), _LONGEST_RETRY)
    Event.objects.filter(pk=pk).update(fan_out_retry_at=now + pause)


@transaction.atomic
def _fan_out_batch(waiting: Sequence[int], *, now: datetime) -> int:
    pending = Event.objects.filter(pk__in=waiting, pending_notification=True).order_by("id")
    events = list(pending.select_for_update(skip_locked=True))
    if not events:
        return 0
    rows = _BatchRows(events)
    Delivery.objects.bulk_create(
        [delivery for event in events for delivery in _deliveries(event, rows, now)], batch_size=1000
    )
    readers = Recipients(events, {event.pk: rows.customer_id(event) for event in events})
    about_lines = [event for event in events if event.kind in STATUS_OF]
    others = [event for event in events if event.kind not in STATUS_OF]
    mails = [mail for event in others for mail in readers.mails(event, now=now)]
    Mail.objects.bulk_create(mails, batch_size=1000)
    lines_collect(about_lines, {event.pk: readers.of(event) for event in about_lines}, now=now)
    Event.objects.filter(pk__in=[event.pk for event in events]).update(pending_notification=False)
    return len(events)


class _BatchRows:
    """The rows of a batch of events, read with a fixed number of queries."""

    def __init__(self, events: Iterable[Event]) -> None:
        events = list(events)
        lines = {event.vll_id for event in events if event.vll_id}
        self.lines = Vll.objects.select_related("customer").in_bulk(lines)
        self.routers = Router.objects.in_bulk({event.router_id for event in events if event.router_id})
        customers = {self.customer_id(event) for event in events} - {None}
        self.customers = Customer.objects.in_bulk(customers)
        self.webhooks: dict[int | None, list[Webhook]] = defaultdict(list)
        recipients = Q(customer__in=customers, customer__retired_at__isnull=True) | Q(customer__isnull=True)
        for webhook in Webhook.objects.filter(recipients, disabled_at__isnull=True).order_by("id"):
            self.webhooks[webhook.customer_id].append(webhook)

    def customer_id(self, event: Event) -> int | None:
        """Return the customer of the event's line. If the event has no line, return the event's own customer.

        Events that agents report have no customer.
        """
        line = self.lines.get(event.vll_id) if event.vll_id else None
        return line.customer_id if line else event.customer_id


def _deliveries(event: Event, rows: _BatchRows, now: datetime) -> list[Delivery]:
    customer_id = rows.customer_id(event)
    public = BY_ANNOUNCED.get(event.kind)
    if public is None:
        return []
    owners = [None] if customer_id is None else [customer_id, None]
    wanting = [
        webhook
        for owner in owners
        for webhook in rows.webhooks[owner]
        if webhook.created_at <= event.at and (not webhook.types or public.name in webhook.types)
    ]
    if not wanting:
        return []
    customer = rows.customers.get(customer_id) if customer_id else None
    line = rows.lines.get(event.vll_id) if event.vll_id else None
    router = rows.routers.get(event.router_id) if event.router_id else None
    body = payload(event, line=line, router=router, customer=customer.name if customer else None)
    if body is None:
        return []
    return [
        Delivery(
            webhook=webhook, event_id=event.pk, type=public.name, body=body, created_at=now, next_try_at=now
        )
        for webhook in wanting
    ]
