"""Lists: their pages (portal.core.db.row_conditions) and filters, and lists that are read in parts.

Unknown filters are refused: if the portal ignored a filter, the client would get too many rows.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date
from functools import partial
from typing import Any, TypeVar

import django_filters
from django import forms
from django.db.models import Exists, Model, OuterRef, Q, QuerySet, TextChoices
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.mixins import ListModelMixin
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from portal.accounts.language import in_readers_language
from portal.accounts.models import Membership
from portal.allocation.models import LAST_GRE_KEY
from portal.api.rest.access_control import caller
from portal.api.rest.request_bodies import MAX_SAFE_INTEGER
from portal.core import clock
from portal.core.db.row_conditions import CursorInvalid, Page, page_of
from portal.core.network.vlan_tags import MAX_VLAN, MIN_VLAN
from portal.core.quantities import WholeNumberField, whole_number
from portal.inventory.found_lines import FOUND_LINE_FILTERS, circuits_named
from portal.inventory.kinds import InventoryKind, found
from portal.inventory.queries import Filter
from portal.telemetry.monthly_figures import in_service_in
from portal.telemetry.time_spans import last_month
from portal.vll.models import Vll, VllEnd
from portal.vll.queries import vlls_found
from portal.vll.states import Lifecycle, OperStatus, OrderAction, OrderState

CURSOR, LIMIT = "cursor", "limit"
DEFAULT_LIMIT, LARGEST_LIMIT = 50, 200
Row = TypeVar("Row", bound=Model)


class KeysetPagination(BasePagination):
    """Responds with ``{"results": [...], "next": url or null}``.

    ``ordering`` must be a total order: its last field must be unique.
    """

    ordering: tuple[str, ...] = ("id",)
    default_limit = DEFAULT_LIMIT
    largest_limit = LARGEST_LIMIT

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        limit = self._limit(request)
        after = request.query_params.get(CURSOR, "")
        try:
            page = page_of(queryset, self.ordering, after=after, size=limit)
        except CursorInvalid as error:
            raise NotFound(gettext_noop("This cursor is not valid. Start again without one.")) from error
        here = request.build_absolute_uri()
        self._next = replace_query_param(here, CURSOR, page.after) if page.after else None
        return page.rows

    def _limit(self, request: Request) -> int:
        requested = request.query_params.get(LIMIT, str(self.default_limit))
        limit = whole_number(requested, most=self.largest_limit)
        if not limit:
            with in_readers_language():
                text = _("Give a whole number from 1 to %(most)s.") % {"most": self.largest_limit}
            raise ValidationError({LIMIT: [text]}, code="limit")
        return limit

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self._next})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["results", "next"],
            "properties": {
                "results": schema,
                "next": {
                    "type": ["string", "null"],
                    "format": "uri",
                    "description": "The address of the next page; null on the last page.",
                },
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": CURSOR,
                "in": "query",
                "description": "The start of the page. Use the address in `next` unchanged.",
                "schema": {"type": "string", "minLength": 1},
            },
            {
                "name": LIMIT,
                "in": "query",
                "description": "The maximum number of results.",
                "schema": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": self.largest_limit,
                    "default": self.default_limit,
                },
            },
        ]


def parts_of(
    rows: QuerySet[Row],
    ordering: tuple[str, ...],
    *,
    at_a_time: int = LARGEST_LIMIT,
    read: Callable[[Callable[[], Page]], Page] = lambda read_part: read_part(),
) -> Iterator[list[Row]]:
    """Yield all rows in parts of ``at_a_time`` rows. No database cursor stays open for a slow client.

    Each part starts after the key of the last row of the previous part. If a row is created during the
    iteration and sorts before this key, it is left out. ``ordering`` must be a total order. ``read`` calls
    the function that reads a part, for example on a replica.

    Larger parts are not faster. A thread keeps the memory of its largest part: 180 MB for 1,000 lines, and 45
    MB for 200 lines.
    """
    after = ""
    while True:
        page = read(partial(page_of, rows, ordering, after=after, size=at_a_time))
        if page.rows:
            yield page.rows
        if not page.after:
            return
        after = page.after


class NewestVllFirst(KeysetPagination):
    ordering = ("-created_at", "-id")


class NewestOrderFirst(KeysetPagination):
    ordering = ("-ordered_at", "-id")


LARGEST_VNI = 2**24 - 1


class StrictFilterBackend(DjangoFilterBackend):
    """Extends django-filter's backend: unknown names and empty values are refused instead of ignored."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        of_pages = {CURSOR, LIMIT} if view.pagination_class else set()
        if not isinstance(view, ListModelMixin):
            return queryset
        filters = getattr(view, "filterset_class", None)
        known = {*of_pages, *(filters.base_filters if filters else ())}
        with in_readers_language():
            if errors := _errors(request, known):
                raise ValidationError({name: [text] for name, text in errors.items()}, code="unknown_filter")
            narrowed: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return narrowed


def _errors(request: Request, known: set[str]) -> dict[str, str]:
    errors = {}
    for name, values in request.query_params.lists():
        if name not in known:
            names = ", ".join(sorted(known))
            errors[name[:100]] = _("There is no such filter here. Choose from: %(names)s.") % {"names": names}
        elif len(values) > 1 or not values[0]:
            errors[name] = _("Give one value.")
    return errors


@extend_schema_field({"type": "boolean"})
class BooleanFilter(django_filters.TypedChoiceFilter):
    """A filter with the values ``true`` and ``false``."""

    def __init__(self, **kwargs: Any) -> None:
        choices = [("true", "true"), ("false", "false")]
        super().__init__(choices=choices, coerce=lambda text: text == "true", **kwargs)


class FilterNumberField(WholeNumberField):
    """A field that accepts only digits, without sign and spaces."""

    pattern = re.compile("[0-9]+")


class WholeNumberFilter(django_filters.Filter):
    field_class = FilterNumberField


def number_filter(minimum: int, maximum: int, *, about: str = "", **kwargs: Any) -> django_filters.Filter:
    """Return a filter by a whole number from ``minimum`` to ``maximum``. The schema contains these bounds."""
    schema = {"type": "integer", "minimum": minimum, "maximum": maximum, "description": about}
    kind = extend_schema_field(schema)(type("BoundedNumberFilter", (WholeNumberFilter,), {}))
    return kind(min_value=minimum, max_value=maximum, **kwargs)


def text_filter(*, about: str, **kwargs: Any) -> django_filters.CharFilter:
    """Return a filter by a text of 1 to 100 characters."""
    schema = {"type": "string", "minLength": 1, "maxLength": 100, "description": about}
    kind = extend_schema_field(schema)(type("BoundedTextFilter", (django_filters.CharFilter,), {}))
    return kind(max_length=100, strip=False, **kwargs)


def filters_of(filters: Iterable[Filter], **more: django_filters.Filter) -> type[django_filters.FilterSet]:
    """Return the parameters of a list for declared filters, and ``more`` parameters."""
    declared = {each.name: _parameter(each) for each in filters if each.in_api}
    return type("ListFilters", (django_filters.FilterSet,), declared | more)


def filters_of_kind(kind: InventoryKind) -> type[django_filters.FilterSet]:
    """Return the parameters of the list of a kind."""
    return filters_of(kind.filters, q=_search(found, about=kind.searched))


def _parameter(of: Filter) -> django_filters.Filter:
    # The schema takes the type of choices from the annotation of ``value``.
    def narrow(rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        return of.narrow(rows, value)

    if issubclass(of.value_type, TextChoices):
        # The labels equal the values, because programs read them.
        return django_filters.ChoiceFilter(
            choices=[(each, each) for each in of.value_type.values], method=narrow
        )
    return (
        BooleanFilter(method=narrow) if of.value_type is bool else text_filter(about=of.about, method=narrow)
    )


def _search(search: Callable[[QuerySet[Any], str], QuerySet[Any]], *, about: str) -> django_filters.Filter:
    return text_filter(about=about, method=lambda rows, name, value: search(rows, value))


class VllFilters(django_filters.FilterSet):
    lifecycle = django_filters.ChoiceFilter(choices=Lifecycle.choices)
    oper_status = django_filters.ChoiceFilter(choices=OperStatus.choices)
    in_sync = BooleanFilter()
    port = number_filter(1, MAX_SAFE_INTEGER, method="at_port", about="The id of a port at either end.")
    router = text_filter(method="at_router", about="The name of a router at either end.")
    customer = text_filter(field_name="customer__name", about="A customer's name.")
    vni = number_filter(1, LARGEST_VNI, about="The VNI of the line.")
    gre_key = number_filter(1, LAST_GRE_KEY, about="The GRE key of the line.")
    vlan = number_filter(MIN_VLAN, MAX_VLAN, method="at_vlan", about="An outer or inner VLAN of either end.")
    q = text_filter(
        method="found",
        about="Part of a description (below three characters: the beginning of a word) or of a port's name;"
        " a VNI, a GRE key, a VLAN; the id of a VLL or an order.",
    )

    def at_port(self, rows: QuerySet[Vll], name: str, value: int) -> QuerySet[Vll]:
        return rows.filter(_with_end(port=value))

    def at_router(self, rows: QuerySet[Vll], name: str, value: str) -> QuerySet[Vll]:
        return rows.filter(_with_end(port__router__name=value))

    def at_vlan(self, rows: QuerySet[Vll], name: str, value: int) -> QuerySet[Vll]:
        return rows.filter(_with_end(Q(outer_vlan=value) | Q(inner_vlan=value)))

    def found(self, rows: QuerySet[Vll], name: str, value: str) -> QuerySet[Vll]:
        return rows.filter(vlls_found(value, user=caller(self.request)))


class MonthField(forms.RegexField):
    """A calendar month (UTC) that has begun, such as ``2026-10``. Default: the last complete month.

    The value is the first day of the month.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(regex=r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])\Z", **kwargs)
        self.error_messages["invalid"] = gettext_lazy("Write a month as in 2026-10.")

    def clean(self, value: Any) -> date:
        written = super().clean(value)
        if not written:
            return last_month(clock.now())
        first = date.fromisoformat(f"{written}-01")
        if first > clock.now().astimezone(UTC).date():
            raise forms.ValidationError(_("That month has not begun."), code="invalid")
        return first


@extend_schema_field(
    {
        "type": "string",
        "pattern": "^[0-9]{4}-[0-9]{2}$",
        "description": "A month such as 2026-10; by default the last complete month.",
    }
)
class MonthFilter(django_filters.Filter):
    field_class = MonthField


class MonthFilters(VllFilters):
    month = MonthFilter(method="in_service_in")

    def in_service_in(self, rows: QuerySet[Vll], name: str, value: date) -> QuerySet[Vll]:
        return in_service_in(rows, value)


class OrderFilters(django_filters.FilterSet):
    state = django_filters.ChoiceFilter(choices=OrderState.choices)
    action = django_filters.ChoiceFilter(choices=OrderAction.choices)
    vll = django_filters.UUIDFilter(field_name="vll")


class InvitationFilters(django_filters.FilterSet):
    customer = text_filter(field_name="customer__name", about="A customer's name.")


class MemberFilters(InvitationFilters):
    role = django_filters.ChoiceFilter(choices=Membership.Role.choices)


FoundLineFilters = filters_of(
    FOUND_LINE_FILTERS,
    key=number_filter(1, LAST_GRE_KEY, about="The VNI or GRE key of the line."),
    q=_search(
        circuits_named, about="Part of the name of a router or an interface at either end, or of a tag."
    ),
)


def _with_end(*conditions: Q, **more: Any) -> Exists:
    """Return a condition for VLLs that have an end with these conditions.

    This is a subquery, because a join would list a VLL twice if both of its ends match.
    """
    return Exists(VllEnd.objects.filter(*conditions, vll=OuterRef("pk"), **more))
