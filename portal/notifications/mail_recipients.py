"""The recipients of mails, by kind of event, and the mails that a user wants.

Recipients are members of a customer, the NOC, and owners of accounts. Users choose their mails on a page, or
unsubscribe in a mail program (RFC 8058).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.core import signing
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from portal.accounts.models import Membership, User
from portal.accounts.own_account import (
    ACCOUNT_OPENED,
    EMAIL_CHANGE_REQUESTED,
    EMAIL_CHANGED,
    PASSWORD_RESET_REQUESTED,
)
from portal.events.models import Event
from portal.notifications.errors import UnsubscribeLinkUnknown
from portal.notifications.line_fault_causes import silent_router
from portal.notifications.models import MONTHLY_REPORT, Group, Mail, MailOptOut
from portal.telemetry.router_silences import REPORTING, SILENT
from portal.vll.line_revision import change_kinds
from portal.vll.line_spec import ChangeKind
from portal.vll.models import Order, VllEnd
from portal.vll.states import IN_SERVICE, OrderAction

_SIGNER = signing.Signer(salt="unsubscribe")
_FOR_MEMBERS = (Group.ORDERS, Group.FAILURES, Group.LINES, Group.STATUS, Group.REPORTS)


def groups_for(user: User) -> list[Group]:
    """Return the groups of mails that this user can choose, by the user's roles."""
    roles = set(user.memberships.values_list("role", flat=True))
    found = [*_FOR_MEMBERS] if roles else []
    if Membership.Role.ADMIN in roles or user.is_noc:
        found.append(Group.WEBHOOKS)
    return [*found, Group.NOC] if user.is_noc else found


def wanted_groups(user: User) -> set[str]:
    """Return the groups of mails that this user has not disabled."""
    return set(Group.values) - set(user.mail_opt_outs.values_list("group", flat=True))


@transaction.atomic
def mails_choose(*, user: User, wanted: Collection[str], now: datetime) -> None:
    """Enable the groups in ``wanted``, and disable the other groups that this user can choose."""
    concerned = set(groups_for(user))
    user.mail_opt_outs.filter(group__in=concerned & set(wanted)).delete()
    for group in sorted(concerned - set(wanted)):
        mails_stop(user=user, group=group, now=now)


def mails_stop(*, user: User, group: str, now: datetime) -> None:
    """Disable the mails of a group for this user. A second call has no effect."""
    MailOptOut.objects.get_or_create(user=user, group=group, defaults={"since": now})


def unsubscribe_path(user: User, group: str) -> str:
    """Return the path of the unsubscribe link in a mail. The link never expires, because mails may be old."""
    return reverse("web:unsubscribe", kwargs={"signed": _SIGNER.sign(f"{user.pk}.{group}")})


def unsubscribe_of(signed: str) -> tuple[User, Group]:
    """Return the user and the group of an unsubscribe link. Raises UnsubscribeLinkUnknown."""
    try:
        number, _, group = _SIGNER.unsign(signed).partition(".")
        return User.objects.get(pk=int(number)), Group(group)
    except (signing.BadSignature, ValueError, User.DoesNotExist) as error:
        raise UnsubscribeLinkUnknown from error


# A status of a line is mailed only after it has lasted for this time. A flapping line therefore causes no
# mail (portal.notifications.line_mails).
SETTLES_IN = timedelta(minutes=2)
# The group of mails to members of the customer, by kind of event.
_MEMBERS: dict[str, Group] = {
    "order.acknowledged": Group.ORDERS,
    "order.held": Group.ORDERS,
    "order.completed": Group.ORDERS,
    "order.rejected": Group.ORDERS,
    "order.cancelled": Group.ORDERS,
    "order.failed": Group.FAILURES,
    "vll.active": Group.LINES,
    "vll.suspended": Group.LINES,
    "vll.terminated": Group.LINES,
    "vll.op-down": Group.STATUS,
    "vll.op-up": Group.STATUS,
    "vll.black_hole": Group.STATUS,
    SILENT: Group.STATUS,
    "trouble.closed": Group.FAILURES,
    "webhook.disabled": Group.WEBHOOKS,
}
_NOC: dict[str, Group] = {
    "order.held": Group.NOC,
    "order.overdue": Group.NOC,
    "vll.drift": Group.NOC,
    "trouble.reported": Group.NOC,
    "vll.black_hole": Group.NOC,
    SILENT: Group.NOC,
    "webhook.disabled": Group.WEBHOOKS,
}
# The mails about a new webhook, URL or secret. Nobody can disable them. Otherwise an attacker with a stolen
# token, or a user about to leave, would disable them first.
RECEIVER_CHANGED = "webhook.receiver_changed"
_OWNERS = {PASSWORD_RESET_REQUESTED, ACCOUNT_OPENED, EMAIL_CHANGE_REQUESTED, EMAIL_CHANGED}
# The kinds of mail that this release can write. A newer release may have stored mails of other kinds.
MAILED_KINDS = frozenset({*_MEMBERS, *_NOC, *_OWNERS, RECEIVER_CHANGED, REPORTING, MONTHLY_REPORT})
# For an order with only these changes, a mail reports the new state of the line: suspended, in service again,
# or about to be removed. No mail reports that the order is completed.
_MAILED_FOR_THE_LINE = {ChangeKind.SUSPEND, ChangeKind.RESUME, ChangeKind.COOLING_OFF}


class _Reader(NamedTuple):
    user: int
    is_admin: bool


class Recipients:
    """The recipients of a batch of events, read with a fixed number of queries.

    ``customers``: the customer of each event, by the id of the event.
    """

    def __init__(self, events: Iterable[Event], customers: Mapping[int, int | None]) -> None:
        events = list(events)
        mailed = [event for event in events if event.kind in _MEMBERS or event.kind in _NOC]
        self._customers = customers
        self._served = _served({event.router_id for event in mailed if event.kind == SILENT} - {None})
        self._silence_readers = _silence_readers(
            {event.router_id for event in events if event.kind == REPORTING} - {None}
        )
        self._pending_approval = {event.order_id for event in mailed if event.kind == "order.held"}
        orders = {event.order_id for event in mailed if event.kind == "order.completed"} - {None}
        self._orders = Order.objects.in_bulk(orders) if orders else {}
        concerned = {customer for event in mailed for customer in self._concerned(event)}
        self._members = members_of(concerned)
        self._noc = _noc() if any(event.kind in _NOC for event in mailed) else []
        everybody = {reader.user for readers in self._members.values() for reader in readers}
        everybody |= {user for readers in self._silence_readers.values() for user in readers}
        self._opted_out = opted_out(everybody | {reader.user for reader in self._noc})

    def of(self, event: Event) -> dict[int, Group]:
        """Return the recipients of an event, each with one group. For NOC staff who are members of the
        customer too, the group of members counts.
        """
        groups: dict[int, Group] = {}
        for reader in self._noc:
            # A webhook of a customer is not the NOC's concern.
            of_customer = event.kind == "webhook.disabled" and self._customers[event.pk] is not None
            if not of_customer and (group := _NOC.get(event.kind)):
                groups[reader.user] = group
        for customer in self._concerned(event):
            for reader in self._members.get(customer, []):
                if group := self._member_group(event, reader):
                    groups[reader.user] = group
        if event.kind == REPORTING and event.router_id is not None:
            groups = self._silence_readers.get(event.router_id, {})
        return {user: group for user, group in groups.items() if (user, group.value) not in self._opted_out}

    def mails(self, event: Event, *, now: datetime) -> list[Mail]:
        """Return the new mails about an event, one for each recipient. The caller must store them."""
        if event.kind in _OWNERS:
            return [_mail(event, event.data["user"], now=now, at=now)]
        if event.kind == RECEIVER_CHANGED:
            people = who_runs_it(event.customer_id).values_list("pk", flat=True)
            return [_mail(event, user, customer_id=event.customer_id, now=now, at=now) for user in people]
        is_of_router = event.kind in (SILENT, REPORTING) and event.router_id is not None
        return [
            _mail(
                event,
                user,
                customer_id=self._customers[event.pk],
                group=group,
                cause=silent_router(event.router_id) if is_of_router and event.router_id else "",
                now=now,
                at=event.at + SETTLES_IN if is_of_router else now,
            )
            for user, group in self.of(event).items()
        ]

    def _concerned(self, event: Event) -> set[int]:
        """Return the event's customer; for a silent router, the customers with lines in service there."""
        if event.kind == SILENT and event.router_id is not None:
            return self._served.get(event.router_id, set())
        customer = self._customers[event.pk]
        return set() if customer is None else {customer}

    def _member_group(self, event: Event, reader: _Reader) -> Group | None:
        if event.kind == "webhook.disabled" and not reader.is_admin:
            return None
        # The mail about the pending approval also reports that the order was accepted.
        if event.kind == "order.acknowledged" and event.order_id in self._pending_approval:
            return None
        if event.kind == "order.completed" and not self._needs_mail(event):
            return None
        return _MEMBERS.get(event.kind)

    def _needs_mail(self, event: Event) -> bool:
        """Return whether no other mail reports the line's new state after this completed order."""
        order = self._orders.get(event.order_id) if event.order_id else None
        if order is None or order.action == OrderAction.TEST:
            return order is not None
        return order.action == OrderAction.MODIFY and not set(change_kinds(order)) <= _MAILED_FOR_THE_LINE


def who_runs_it(customer_id: int | None) -> QuerySet[User]:
    """Return the users who get mails about changes of webhooks: the customer's admins.

    For the NOC's own webhooks (``customer_id`` None) these are the NOC admins.
    """
    people = User.objects.filter(is_active=True).exclude(email="")
    if customer_id is None:
        return people.filter(noc_role=User.NocRole.NOC_ADMIN)
    return people.filter(memberships__customer=customer_id, memberships__role=Membership.Role.ADMIN)


def _served(routers: Collection[int | None]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    if routers:
        ends = VllEnd.objects.filter(port__router__in=routers, vll__lifecycle__in=IN_SERVICE)
        for router, customer in ends.values_list("port__router_id", "vll__customer_id").distinct():
            found[router].add(customer)
    return found


def _silence_readers(routers: Collection[int | None]) -> dict[int, dict[int, Group]]:
    """Return, by router, the recipients of sent or pending mails about its silence, with their groups."""
    found: dict[int, dict[int, Group]] = {}
    for router in routers:
        if router is not None:
            readers = Mail.objects.filter(
                kind=SILENT, cause=silent_router(router), state__in=(Mail.State.PENDING, Mail.State.SENT)
            )
            found[router] = {user: Group(group) for user, group in readers.values_list("user_id", "group")}
    return found


def members_of(customers: Collection[int | None]) -> dict[int | None, list[_Reader]]:
    """Return, by customer, the active members with a mail address. Retired customers have no entry."""
    found: dict[int | None, list[_Reader]] = defaultdict(list)
    members = Membership.objects.filter(
        customer__in=customers, customer__retired_at__isnull=True, user__is_active=True
    )
    rows = members.exclude(user__email="").values_list("customer_id", "user_id", "role")
    for customer, user, role in rows:
        found[customer].append(_Reader(user, role == Membership.Role.ADMIN))
    return found


def opted_out(users: Collection[int]) -> set[tuple[int, str]]:
    """Return pairs of user and group: the user has disabled the mails of the group."""
    return set(MailOptOut.objects.filter(user__in=users).values_list("user_id", "group"))


def _mail(event: Event, user: int, *, now: datetime, at: datetime, **more: Any) -> Mail:
    """Return a new mail, not yet stored. ``at``: the time of the first attempt to send it."""
    return Mail(
        user_id=user,
        kind=event.kind,
        event_id=event.pk,
        vll_id=event.vll_id,
        order_id=event.order_id,
        data=event.data,
        created_at=now,
        next_try_at=at,
        **more,
    )


def _noc() -> list[_Reader]:
    staff = User.objects.filter(is_active=True).exclude(noc_role=User.NocRole.NONE).exclude(email="")
    return [_Reader(user, True) for user in staff.values_list("pk", flat=True)]
