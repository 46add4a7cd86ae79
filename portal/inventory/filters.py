"""The filters of lists, each declared once: pages show a filter as a select, the API as a parameter."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet, TextChoices
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.inventory.models import Site

Text = str | Promise


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter of a list. ``narrow``: returns the rows that have a value.

    * ``value_type``: the type of the values. The API refuses any other value, and pages ignore it.
    * ``about``: the description of a text in the API's schema. ``in_api``: False for a filter of pages only.
    * ``label``: the label of the select; "" for a filter of the API only.
    * ``options``: returns the values and labels of the select, if the type does not determine them.
    """

    name: str
    narrow: Callable[[QuerySet[Any], Any], QuerySet[Any]]
    value_type: type[str] | type[bool] | type[TextChoices] = str
    about: str = ""
    in_api: bool = True
    label: Text = ""
    options: Callable[[], Iterable[tuple[str, Text]]] | None = None

    def choices(self) -> list[tuple[str, Text]]:
        """Return the values of the select, with their labels. Pages write booleans as ``yes`` and ``no``."""
        if self.options is not None:
            return list(self.options())
        if self.value_type is bool:
            return [("yes", _("yes")), ("no", _("no"))]
        return list(self.value_type.choices) if issubclass(self.value_type, TextChoices) else []


def at_site(path: str) -> Filter:
    """Return a filter by the name of a site. ``path``: the lookup from a row to its site."""
    return Filter(
        name="site",
        about="A site's name.",
        label=_("Site"),
        options=lambda: Site.objects.order_by("name").values_list("name", "name"),
        narrow=lambda rows, name: rows.filter(**{f"{path}__name": name}),
    )


class RouterStatus(TextChoices):
    """The operational status of a router, set by the NOC."""

    IN_SERVICE = "in-service", _("in service")
    MAINTENANCE = "maintenance", _("under maintenance")
    LOCKED = "held", _("locked")
    FROZEN = "frozen", _("frozen")


def routers_with_status(rows: QuerySet[Any], status: str) -> QuerySet[Any]:
    """Return the routers that have ``status``. A router is ``in-service`` if no other status applies."""
    match RouterStatus(status):
        case RouterStatus.LOCKED:
            return rows.filter(locked_since__isnull=False)
        case RouterStatus.FROZEN:
            return rows.filter(frozen_since__isnull=False)
        case RouterStatus.MAINTENANCE:
            return rows.filter(maintenance_since__isnull=False)
        case _:
            return rows.filter(locked_since=None, frozen_since=None, maintenance_since=None)


def links_touching(rows: QuerySet[Any], router: str) -> QuerySet[Any]:
    """Return the links with an end on the router of that name."""
    return rows.filter(Q(a_router__name=router) | Q(z_router__name=router))
