"""Imports of customers."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Customer
from portal.imports import cells
from portal.imports.kinds.kind import Actor, Batch, Column, Kind, RowValues, names
from portal.inventory.operations import customer_create


class Customers(Kind):
    slug = "customers"
    title = _("Customers")
    about = _("Their ports and people are tables of their own.")
    columns = (
        Column(
            name="name",
            read=cells.text(),
            meaning=_("The customer’s name"),
            example="Alpine Dairy",
            required=True,
        ),
        Column(
            name="approve_up_to_bps",
            read=cells.rate,
            meaning=_("Larger orders wait for the NOC; empty: every order is approved automatically"),
            unit=_("bit/s"),
            example="1000000000",
        ),
        Column(
            name="cooling_off_s",
            read=cells.whole,
            meaning=_("How long a removal can be undone; empty: the portal’s default"),
            unit=_("seconds"),
            example="604800",
        ),
    )

    def open(self, rows: Sequence[RowValues]) -> Batch:
        return _Batch(rows)


class _Batch(Batch):
    def __init__(self, rows: Sequence[RowValues]) -> None:
        there = Customer.objects.filter(name__in=names(rows, "name"), retired_at__isnull=True)
        self._there = {customer.name: customer for customer in there}

    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        customer = self._there.get(values["name"])
        facts = ("name", "approve_up_to_bps", "cooling_off_s")
        return None if customer is None else {name: getattr(customer, name) for name in facts}

    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        customer_create(**values, user=actor.user, now=now)
