"""The filters and the pages of a list."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.core.db.row_conditions import CursorInvalid, Page, page_of
from portal.core.quantities import row_id
from portal.inventory.kinds import found
from portal.inventory.queries import Filter

LONGEST_SEARCH = 100


@dataclass(frozen=True, slots=True)
class ListFilters:
    """The result of filtering a list.

    ``rows``: the matching rows. ``q``: the search text. ``selects``: the name, label, options and chosen
    value of each select. ``keep``: the query string that keeps the filters in links.
    """

    rows: QuerySet[Any]
    q: str
    selects: list[dict[str, Any]]
    keep: str

    @property
    def is_filtered(self) -> bool:
        return bool(self.keep)


def filtered(
    rows: QuerySet[Any],
    query: QueryDict,
    filters: Iterable[Filter] = (),
    search: Callable[[QuerySet[Any], str], QuerySet[Any]] = found,
) -> ListFilters:
    """Filter ``rows`` by the query of a request. An empty or unknown value of a select does not filter."""
    q = query.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH]
    kept = {"q": q} if q else {}
    if q:
        rows = search(rows, q)
    selects = []
    for each in filters:
        if not each.label:
            continue
        options = each.choices()
        value = query.get(each.name, "")
        chosen = value if value in dict(options) else ""
        if chosen:
            rows = each.narrow(rows, chosen == "yes" if each.value_type is bool else chosen)
            kept[each.name] = chosen
        selects.append({"name": each.name, "label": each.label, "options": options, "chosen": chosen})
    return ListFilters(rows=rows, q=q, selects=selects, keep=urlencode(kept))


def of_customer(user: User, query: QueryDict) -> Customer | None:
    """Return the customer with the id in ``?customer=``; None if the user may see no such customer."""
    number = row_id(query.get("customer"))
    return None if number is None else permissions.visible_customers(user).filter(pk=number).first()


def only_of(customer: Customer) -> Filter:
    """Return a select with only this customer. A select with all customers may be too long to use."""
    return Filter(
        name="customer",
        label=_("Customer"),
        options=lambda: [(str(customer.pk), customer.name)],
        narrow=lambda rows, value: rows.filter(customer=value),
    )


PAGE_SIZE = 50


def newest_first(rows: QuerySet[Any], *, by: str, after: str) -> Page:
    """Return the page after the cursor ``after``. ``by``: the name of a column with a time."""
    return in_order(rows, by=(f"-{by}", "-id"), after=after, size=PAGE_SIZE)


def in_order(rows: QuerySet[Any], *, by: tuple[str, ...], after: str, size: int = PAGE_SIZE) -> Page:
    """Return the page after the cursor ``after``; the first page if the cursor is invalid.

    ``by``: the ordering of portal.core.db.row_conditions.
    """
    try:
        return page_of(rows, by, after=after, size=size)
    except CursorInvalid:
        return page_of(rows, by, after="", size=size)
