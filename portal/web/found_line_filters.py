"""The filters of the list of found lines. The same filters select the lines to adopt together."""

from typing import Any

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from portal.inventory.found_lines import (
    Standing,
    circuits_named,
    circuits_touching,
    circuits_where,
    found_circuits,
)
from portal.web.list_filters import Choice, ListFilters, filtered

_LONGEST_NAME = 100
_ADOPTABLE = "adoptable"
STANDINGS: dict[Standing, Any] = {
    Standing.ONE_SIDED: _("One-sided"),
    Standing.ONE_DIRECTIONAL: _("One direction only"),
    Standing.MISMATCHED: _("Mismatched"),
    Standing.COMPLETE: _("Complete"),
}


def found_line_filters(query: QueryDict) -> ListFilters:
    """Return the filters of a request.

    ``?q=`` (search) and ``?standing=`` (status) come from the form. ``?router=`` selects the lines with an
    end on the router with that name.
    """
    router = query.get("router", "").replace("\0", "")[:_LONGEST_NAME]
    choices = [Choice("standing", _("Status"), _options, _narrowed)]
    if router:
        choices.append(Choice("router", _("Router"), lambda: [(router, router)], circuits_touching))
    return filtered(found_circuits(), query, tuple(choices), search=circuits_named)


def _options() -> list[tuple[str, Any]]:
    return [(_ADOPTABLE, _("Can be taken over")), *STANDINGS.items()]


def _narrowed(circuits: QuerySet[Any], value: str) -> QuerySet[Any]:
    if value == _ADOPTABLE:
        return circuits_where(circuits, lambda line: line.may_be_adopted)
    return circuits_where(circuits, lambda line: line.standing == value)
