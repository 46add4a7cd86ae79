"""From events to deliveries and mails: each public event is told once to each webhook and each reader.

Accepting an order writes nothing for this but the event itself. Events are taken by their state, never by
"id greater than the last", because ids commit out of order; and in one transaction an event is marked and its
deliveries are made: whoever is killed when, it is told exactly once.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from portal.accounts.models import Customer
from portal.core.each_row import each_row
from portal.events.models import Event
from portal.inventory.models import Router
from portal.notifications.event_catalogue import BY_ANNOUNCED
from portal.notifications.mail_batching import SAID, lines_collect
from portal.notifications.mail_recipients import Recipients
from portal.notifications.models import Delivery, Mail, Webhook
from portal.notifications.webhook_payloads import payload
from portal.vll.models import Vll

log = logging.getLogger(__name__)

BATCH = 500
# After so many batches others have their turn.
_ROUNDS = 20


def events_fan_out(*, now: datetime) -> int:
    """Make the deliveries and mails of events that have none yet; return the number of events.

    Where a batch fails, its events are taken one by one: the event at fault delays no other.
    """
    told = 0
    for _ in range(_ROUNDS):
        waiting = list(Event.objects.filter(untold=True).order_by("id").values_list("pk", flat=True)[:BATCH])
        try:
            count = _batch_tell(waiting, now=now)
        except Exception:
            log.exception("a batch of events failed; its events are taken one by one")
            return told + sum(
                each_row(waiting, lambda pk: _batch_tell([pk], now=now), what="telling of an event")
            )
        told += count
        if len(waiting) < BATCH:
            break
    return told


@transaction.atomic
def _batch_tell(waiting: Sequence[int], *, now: datetime) -> int:
    untold = Event.objects.filter(pk__in=waiting, untold=True).order_by("id")
    events = list(untold.select_for_update(skip_locked=True))
    if not events:
        return 0
    known = _Known(events)
    Delivery.objects.bulk_create(
        [delivery for event in events for delivery in _deliveries_or_none(event, known, now)], batch_size=1000
    )
    readers = Recipients(events, {event.pk: known.customer_id(event) for event in events})
    about_lines = [event for event in events if event.kind in SAID]
    others = [event for event in events if event.kind not in SAID]
    mails = [mail for event in others for mail in readers.mails(event, now=now)]
    Mail.objects.bulk_create(mails, batch_size=1000)
    lines_collect(about_lines, {event.pk: readers.of(event) for event in about_lines}, now=now)
    Event.objects.filter(pk__in=[event.pk for event in events]).update(untold=False)
    return len(events)


class _Known:
    """The rows that a batch of events is about, read at once."""

    def __init__(self, events: Iterable[Event]) -> None:
        events = list(events)
        lines = {event.vll_id for event in events if event.vll_id}
        self.lines = Vll.objects.select_related("customer").in_bulk(lines)
        self.routers = Router.objects.in_bulk({event.router_id for event in events if event.router_id})
        customers = {self.customer_id(event) for event in events} - {None}
        self.customers = Customer.objects.in_bulk(customers)
        self.webhooks: dict[int | None, list[Webhook]] = defaultdict(list)
        theirs = Q(customer__in=customers, customer__retired_at__isnull=True) | Q(customer__isnull=True)
        for webhook in Webhook.objects.filter(theirs, disabled_at__isnull=True).order_by("id"):
            self.webhooks[webhook.customer_id].append(webhook)

    def customer_id(self, event: Event) -> int | None:
        """Its customer: where an event does not say it, as agents' observations do not, its line does."""
        line = self.lines.get(event.vll_id) if event.vll_id else None
        return line.customer_id if line else event.customer_id


def _deliveries_or_none(event: Event, known: _Known, now: datetime) -> list[Delivery]:
    """None for an event that cannot be told: it would keep all later ones from being told."""
    try:
        return _deliveries(event, known, now)
    except Exception:
        log.exception("nobody is told of event %s (%s)", event.pk, event.kind)
        return []


def _deliveries(event: Event, known: _Known, now: datetime) -> list[Delivery]:
    customer_id = known.customer_id(event)
    public = BY_ANNOUNCED.get(event.kind)
    if public is None:
        return []
    owners = [None] if customer_id is None else [customer_id, None]
    wanting = [
        webhook
        for owner in owners
        for webhook in known.webhooks[owner]
        if webhook.created_at <= event.at and (not webhook.types or public.name in webhook.types)
    ]
    if not wanting:
        return []
    customer = known.customers.get(customer_id) if customer_id else None
    line = known.lines.get(event.vll_id) if event.vll_id else None
    router = known.routers.get(event.router_id) if event.router_id else None
    body = payload(event, line=line, router=router, customer=customer.name if customer else None)
    if body is None:
        return []
    return [
        Delivery(
            webhook=webhook, event_id=event.pk, type=public.name, body=body, created_at=now, next_try_at=now
        )
        for webhook in wanting
    ]
