"""Imports of customers' users. Each user is invited, as on the team page. Tables contain no passwords."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from portal.accounts.invitations import invite, open_invitations
from portal.accounts.models import Customer, Membership, Scope
from portal.core import clock
from portal.imports import cells
from portal.imports.kinds.kind import Actor, Batch, Claim, Column, Kind, RowValues, named, names
from portal.inventory.kinds import check_not_retired


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
        """Return whether the actor is a NOC admin. A token also needs the scope team."""
        return actor.user.is_noc_admin and (actor.token is None or Scope.TEAM in actor.token.scopes)

    def name(self, values: RowValues) -> str:
        return str(values["email"])

    def claims(self, values: RowValues) -> Iterator[Claim]:
        yield Claim("email", f"{values['customer']} {values['email'].lower()}")

    def open(self, rows: Sequence[RowValues]) -> Batch:
        return _Batch(rows)


class _Batch(Batch):
    def __init__(self, rows: Sequence[RowValues]) -> None:
        of_rows = Customer.objects.filter(name__in=names(rows, "customer"))
        locked = of_rows.select_for_update(no_key=True).order_by("pk")
        self._customers = {customer.name: customer for customer in locked}
        addresses = {address.lower() for address in names(rows, "email")}
        invited = open_invitations(clock.now()).annotate(address=Lower("email"))
        members = Membership.objects.annotate(address=Lower("user__email"))
        self._there: dict[tuple[str, str], str] = {}
        # Read memberships after invitations: a membership replaces an open invitation of the same person.
        for found in (invited, members):
            of_batch = found.filter(customer__in=self._customers.values(), address__in=addresses)
            for customer, address, role in of_batch.values_list("customer__name", "address", "role"):
                self._there[customer, address] = role

    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        role = self._there.get((values["customer"], values["email"].lower()))
        return None if role is None else {**values, "role": role}

    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        customer = named(self._customers, values, "customer", "customer")
        check_not_retired(customer, field="customer")
        invite(
            by=actor.user,
            customer=customer,
            email=values["email"],
            role=values["role"],
            made_with=actor.token,
            now=now,
        )
