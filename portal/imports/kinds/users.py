"""Customers' people from a table: each is invited, as on the page of the team. No table has passwords."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from portal.accounts.invitations import invite, open_invitations
from portal.accounts.models import Customer, Membership, Scope
from portal.core import clock
from portal.imports import cells
from portal.imports.kinds.kind import Actor, Batch, Claim, Column, Kind, Told, named, names
from portal.inventory.errors import Retired


class Users(Kind):
    slug = "users"
    title = _("Users")
    about = _("People of customers. Each gets a mail with a link, and chooses a password of their own.")
    columns = (
        Column(
            name="customer",
            read=cells.text(),
            meaning=_("The customer’s name"),
            example="Alpine Dairy",
            required=True,
        ),
        Column(
            name="email",
            read=cells.email,
            meaning=_("Where the invitation is sent"),
            example="alice@alpine.example",
            required=True,
        ),
        Column(
            name="role",
            read=cells.one_of(*Membership.Role.values),
            meaning=_("viewer, operator or admin"),
            example="operator",
            required=True,
        ),
    )

    def may_import(self, actor: Actor) -> bool:
        """As inviting: NOC admins alone are in no team and run all of them."""
        return actor.user.is_noc_admin and (actor.token is None or Scope.TEAM in actor.token.scopes)

    def name(self, told: Told) -> str:
        return str(told["email"])

    def claims(self, told: Told) -> Iterator[Claim]:
        yield Claim("email", f"{told['customer']} {told['email'].lower()}")

    def open(self, rows: Sequence[Told]) -> Batch:
        return _Batch(rows)


class _Batch(Batch):
    def __init__(self, rows: Sequence[Told]) -> None:
        of_rows = Customer.objects.filter(name__in=names(rows, "customer"))
        locked = of_rows.select_for_update(no_key=True).order_by("pk")
        self._customers = {customer.name: customer for customer in locked}
        addresses = {address.lower() for address in names(rows, "email")}
        asked = open_invitations(clock.now()).annotate(address=Lower("email"))
        members = Membership.objects.annotate(address=Lower("user__email"))
        self._there: dict[tuple[str, str], str] = {}
        # Who is a member already has accepted.
        for found in (asked, members):
            of_batch = found.filter(customer__in=self._customers.values(), address__in=addresses)
            for customer, address, role in of_batch.values_list("customer__name", "address", "role"):
                self._there[customer, address] = role

    def find(self, told: Told) -> Mapping[str, Any] | None:
        role = self._there.get((told["customer"], told["email"].lower()))
        return None if role is None else {**told, "role": role}

    def make(self, told: Told, *, actor: Actor, now: datetime) -> None:
        customer = named(self._customers, told, "customer", "customer")
        if customer.retired_at is not None:
            raise Retired(what="customer", name=customer.name, field="customer")
        invite(
            by=actor.user,
            customer=customer,
            email=told["email"],
            role=told["role"],
            made_with=actor.token,
            now=now,
        )
