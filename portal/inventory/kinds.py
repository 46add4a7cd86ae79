"""The kinds of inventory rows, each declared once.

Forms, API serializers, columns of imports, limits, filters and searches are derived from these declarations.
The columns of the models determine the lengths of texts, the defaults and whether a value may be missing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar

from django.db import models
from django.db.models import Q, QuerySet
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Customer
from portal.inventory.errors import NotAnInterfaceName, OutOfRange, Retired
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.inventory.models.link import MAX_OVERSUBSCRIPTION
from portal.inventory.queries import Filter, RouterStatus, Text, at_site, links_touching, routers_with_status

_MAX_RATE = 10**15
_INTERFACE = re.compile(r"[\x21-\x7e]{1,63}\Z")


# The types of fields. A type determines the unit in which each interface reads and shows the value:
# * RATE is stored in bit/s, and in Mbit/s on forms; SIZE is in bytes.
# * DURATION is stored in seconds, and in days on forms.
# * DEGREES have six decimal places.
# * INTERFACE is an interface as VPP names it, and ROW is another row by its name.
Type = Enum(
    "Type",
    "TEXT CHOICE BOOLEAN NUMBER RATE SIZE DURATION DEGREES IPV4 IPV6 HTTPS_URL ROUTER_NAME INTERFACE ROW",
)
_UNITS = {
    Type.RATE: _("bit/s"),
    Type.SIZE: _("bytes"),
    Type.DURATION: _("seconds"),
    Type.DEGREES: _("degrees"),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A fact about a row that the NOC declares. ``name``: the column of the model.

    * ``label``, ``help``: the texts on the form.
    * ``meaning``, ``example``, ``unit``: the texts of the column in imports. By default, the type determines
      the unit.
    * ``limits``: the smallest and the largest number, in stored units.
    * ``is_fixed``: the value cannot be changed after the creation.
    * ``may_be_empty``: an empty value means the default; if there is none, the operation computes the value.
    """

    name: str
    type: Type
    label: Text
    meaning: Text
    example: str = ""
    help: Text = ""
    unit: Text = ""
    limits: tuple[int, int] | None = None
    is_fixed: bool = False
    may_be_empty: bool = False
    column: Any = None

    @property
    def default(self) -> Any:
        """The value that the database uses if none is given; None if there is no such value."""
        return self.column.default if self.column.has_default() else None

    @property
    def is_required(self) -> bool:
        """Whether a value must be given to create a row."""
        return not (self.column.blank or self.column.has_default() or self.may_be_empty)

    @property
    def may_be_null(self) -> bool:
        """Whether null is a value, or makes the operation compute the value."""
        return self.column.null or (self.may_be_empty and self.default is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryKind:
    """A kind of row. ``name``: in events and as the operations' parameter. ``slug``: in addresses.

    * ``about``: what a user should know before importing rows.
    * ``key``: the fields by which people identify a row.
    * ``unique``: the fields whose values differ between all rows.
    * ``search``: the lookups in which a search looks for its text. ``searched``: their description in the
      API's schema.
    * ``filters``: the filters of the list, in addition to the search.
    * ``acceptance``: the label and the help of the member ``accept_affected``, with which the user accepts
      the effect of a change on lines. ``creation_affects``: a creation can affect lines, too.
    """

    name: str
    slug: str
    model: type[models.Model]
    title: Text
    about: Text
    fields: tuple[Field, ...]
    key: tuple[str, ...] = ("name",)
    unique: tuple[str, ...] = ("name",)
    search: tuple[str, ...] = ("name",)
    searched: str = "Part of the name."
    filters: tuple[Filter, ...] = ()
    acceptance: tuple[Text, Text] | None = None
    creation_affects: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the fields."""
        return [each.name for each in self.fields]

    def written(self, *, changes: bool) -> list[Field]:
        """Return the fields of a creation or a change."""
        return [each for each in self.fields if not (changes and each.is_fixed)]

    def acceptance_of(self, *, changes: bool) -> tuple[Text, Text] | None:
        """Return ``acceptance`` if a creation or a change can affect lines."""
        return self.acceptance if changes or self.creation_affects else None


def _kind(*, model: type[models.Model], fields: tuple[Field, ...], **more: Any) -> InventoryKind:
    """Return a kind whose fields know their columns and units."""
    bound = tuple(
        replace(each, column=model._meta.get_field(each.name), unit=each.unit or _UNITS.get(each.type, ""))
        for each in fields
    )
    return InventoryKind(model=model, fields=bound, **more)


_LINES_AFFECTED = (
    _("Even if lines in service are affected"),
    _("They are listed if there are any, and their customers are notified"),
)
SITE = _kind(
    name="site",
    slug="sites",
    model=Site,
    title=_("Sites"),
    about=_("Points of presence: the locations of routers."),
    fields=(
        Field("name", Type.TEXT, _("Name"), _("The site’s name"), "Zürich"),
        Field(
            "latitude",
            Type.DEGREES,
            _("Latitude (degrees)"),
            _("North is positive; enter latitude and longitude, or neither"),
            "47.3769",
            help=_("North is positive; Zurich is 47.3769. The map shows sites where they are"),
            limits=(-90, 90),
        ),
        Field(
            "longitude",
            Type.DEGREES,
            _("Longitude (degrees)"),
            _("East is positive"),
            "8.5417",
            help=_("East is positive; Zurich is 8.5417"),
            limits=(-180, 180),
        ),
    ),
)
ROUTER = _kind(
    name="router",
    slug="routers",
    model=Router,
    title=_("Routers"),
    about=_("Import their sites first. Enrol each router afterwards, on its page."),
    unique=("name", "loopback4", "loopback6", "agent_url"),
    acceptance=(
        _("Even if fewer cores remain than are booked"),
        _("The form says so if this is the case"),
    ),
    search=("name", "site__name"),
    searched="Part of the name of a router or site.",
    filters=(
        at_site("site"),
        Filter(name="status", value_type=RouterStatus, label=_("Status"), narrow=routers_with_status),
    ),
    fields=(
        Field(
            "name",
            Type.ROUTER_NAME,
            _("Name"),
            _("Cannot be changed: certificates are issued to this name"),
            "rhino",
            help=_("Cannot be changed: certificates are issued to this name"),
            is_fixed=True,
        ),
        Field("site", Type.ROW, _("Site"), _("The site’s name"), "Zürich"),
        Field(
            "loopback4",
            Type.IPV4,
            _("IPv4 loopback"),
            _("Where tunnels end, without prefix length"),
            "10.255.0.1",
        ),
        Field(
            "loopback6",
            Type.IPV6,
            _("IPv6 loopback"),
            _("Where tunnels end, without prefix length"),
            "2001:db8:255::1",
        ),
        Field(
            "underlay_table",
            Type.NUMBER,
            _("Underlay table"),
            _("VPP’s table with loopbacks and backbone links; empty: 0"),
            "0",
            help=_("VPP's FIB table with the loopbacks and the links, 0 unless they are in a VRF"),
            limits=(0, 2**32 - 2),
            may_be_empty=True,
        ),
        Field(
            "agent_url",
            Type.HTTPS_URL,
            _("Agent's URL"),
            _("Empty for a router that only carries traffic"),
            "https://rhino.example.net:9443",
            help=_("https://…; empty for a router that only carries traffic"),
        ),
        Field("cpu", Type.TEXT, _("CPU"), _("CPU model, used to estimate capacity"), "EPYC 7313P"),
        Field(
            "cores", Type.NUMBER, _("Cores"), _("Cores that forward packets; empty: 1"), "4", limits=(1, 1024)
        ),
        Field(
            "line_test_pps",
            Type.NUMBER,
            _("Test frames a second"),
            _("The most that an activation test sends; empty: the portal’s default"),
            "10000",
            help=_("The most that an activation test sends to or from it; empty: the portal's default"),
            unit=_("frames/s"),
            limits=(100, 10**6),
        ),
    ),
)


def _of_side(text: Text, letter: str) -> Text:
    return lazy(lambda: str(text) % {"side": letter.upper()}, str)()


def _side(letter: str, router: str, interface: str) -> tuple[Field, ...]:
    return (
        Field(
            f"{letter}_router",
            Type.ROW,
            _of_side(_("%(side)s router"), letter),
            _("The router’s name"),
            router,
        ),
        Field(
            f"{letter}_interface",
            Type.INTERFACE,
            _of_side(_("%(side)s interface"), letter),
            _("As VPP names it"),
            interface,
        ),
        Field(
            f"{letter}_metric",
            Type.NUMBER,
            _of_side(_("%(side)s metric"), letter),
            _("The metric of this side, as in the IGP; empty: 10"),
            "10",
            limits=(1, 2**24 - 1),
        ),
        Field(
            f"{letter}_ip_mtu",
            Type.SIZE,
            _of_side(_("%(side)s IP MTU (bytes)"), letter),
            _("The IP MTU of this side; empty: not known, and no line can be ordered over the link"),
            "9000",
            help=_("Empty: unknown"),
            limits=(68, 65535),
        ),
    )


LINK = _kind(
    name="link",
    slug="links",
    model=BackboneLink,
    title=_("Backbone links"),
    about=_("Import their routers first. Which side is A and which is Z makes no difference."),
    key=("a_router", "a_interface", "z_router", "z_interface"),
    unique=(),
    acceptance=_LINES_AFFECTED,
    creation_affects=True,
    search=("a_router__name", "a_interface", "z_router__name", "z_interface"),
    searched="Part of the name of a router or an interface at either end.",
    filters=(
        Filter(name="router", about="The name of a router at either end.", narrow=links_touching),
        Filter(
            name="in_service",
            value_type=bool,
            label=_("In service"),
            narrow=lambda links, value: links.filter(in_service=value),
        ),
    ),
    fields=(
        *_side("a", "rhino", "TenGigabitEthernet3/0/0"),
        *_side("z", "hippo", "TenGigabitEthernet3/0/1"),
        Field("ipv4", Type.BOOLEAN, _("Carries IPv4"), _("Carries IPv4; empty: yes"), "yes"),
        Field("ipv6", Type.BOOLEAN, _("Carries IPv6"), _("Carries IPv6; empty: yes"), "yes"),
        Field("in_service", Type.BOOLEAN, _("In service"), _("Used for path calculation; empty: yes"), "yes"),
    ),
)
CUSTOMER = _kind(
    name="customer",
    slug="customers",
    model=Customer,
    title=_("Customers"),
    about=_("Their ports and people are tables of their own."),
    filters=(
        Filter(
            name="retired",
            value_type=bool,
            label=_("Retired"),
            options=lambda: [("no", _("no")), ("yes", _("yes"))],
            narrow=lambda customers, value: customers.filter(retired_at__isnull=not value),
        ),
    ),
    fields=(
        Field("name", Type.TEXT, _("Name"), _("The customer’s name"), "Alpine Dairy"),
        Field(
            "approve_up_to_bps",
            Type.RATE,
            _("Approved automatically up to (Mbit/s)"),
            _("Larger orders wait for the NOC; empty: every order is approved automatically"),
            "1000000000",
            help=_("Larger orders wait for the NOC; empty: every order is approved automatically"),
            limits=(0, _MAX_RATE),
        ),
        Field(
            "cooling_off_s",
            Type.DURATION,
            _("Cooling-off (days)"),
            _("How long a removal can be undone; empty: the portal’s default"),
            "604800",
            help=_("How long a removal can be undone; empty: the portal's default"),
            limits=(0, 90 * 86400),
        ),
    ),
)
PORT = _kind(
    name="port",
    slug="ports",
    model=Port,
    title=_("Ports"),
    about=_("Import their routers and customers first."),
    key=("router", "interface"),
    unique=(),
    acceptance=_LINES_AFFECTED,
    search=("interface", "description", "router__name", "router__site__name"),
    searched="Part of the name of an interface, router or site, or of a description.",
    filters=(
        Filter(
            name="router",
            about="A router's name.",
            narrow=lambda ports, name: ports.filter(router__name=name),
        ),
        at_site("router__site"),
        Filter(
            name="assigned",
            value_type=bool,
            in_api=False,
            label=_("Assigned to a customer"),
            narrow=lambda ports, value: ports.filter(customer__isnull=not value),
        ),
    ),
    fields=(
        Field("router", Type.ROW, _("Router"), _("The router’s name"), "rhino", is_fixed=True),
        Field(
            "interface",
            Type.INTERFACE,
            _("Interface"),
            _("As VPP names it"),
            "TenGigabitEthernet3/0/2",
            is_fixed=True,
        ),
        Field(
            "customer",
            Type.ROW,
            _("Customer"),
            _("The customer that it belongs to; empty: none yet"),
            "Alpine Dairy",
        ),
        Field("description", Type.TEXT, _("Description"), _("Free text"), "Rack 7, port 3"),
        Field("kind", Type.CHOICE, _("Kind"), _("uni or enni; empty: uni"), "uni"),
        Field(
            "speed_bps",
            Type.RATE,
            _("Speed (Mbit/s)"),
            _("Interface speed"),
            "10000000000",
            limits=(1, _MAX_RATE),
        ),
        Field(
            "oversubscription_percent",
            Type.NUMBER,
            _("Bookable part of the speed (%)"),
            _("Part of the speed that may be booked; empty: the policy or the next column applies"),
            "100",
            help=_("200 means an oversubscription of 2 to 1; empty: the policy or the rate below applies"),
            unit="%",
            limits=(1, MAX_OVERSUBSCRIPTION),
        ),
        Field(
            "bookable_bps",
            Type.RATE,
            _("Bookable (Mbit/s)"),
            _("Bookable rate, instead of a percentage"),
            help=_("Instead of a part of the speed"),
            limits=(0, _MAX_RATE),
            may_be_empty=True,
        ),
        Field(
            "max_frame",
            Type.SIZE,
            _("Largest frame (bytes)"),
            _("The largest frame, without FCS; empty: 9022"),
            "9022",
            help=_("Without FCS"),
            limits=(64, 65535),
        ),
    ),
)
KINDS = (SITE, ROUTER, LINK, CUSTOMER, PORT)
KIND_OF = {kind.model: kind for kind in KINDS}
# Rates in bit/s, sizes in bytes, coordinates in degrees. The database has the same limits as constraints.
LIMITS = {field.name: field.limits for kind in KINDS for field in kind.fields if field.limits is not None}
_INTERFACES = {field.name for kind in KINDS for field in kind.fields if field.type is Type.INTERFACE}


Row = TypeVar("Row", bound=models.Model)


def found(rows: QuerySet[Row], text: str) -> QuerySet[Row]:
    """Return rows with ``text`` in a name of the row or of its parents; case does not matter."""
    anywhere = port_as_shown(text) if rows.model is Port else Q()
    for place in KIND_OF[rows.model].search:
        anywhere |= Q(**{f"{place}__icontains": text})
    return rows.filter(anywhere)


def port_as_shown(text: str) -> Q:
    """Match a port by the form in which pages show ports: ``rhino:host-cust1``.

    Before the colon, the text has the name of the router or the last part of it. After the colon, it has the
    name of the interface or the first part of it. A text without a colon matches nothing.
    """
    router, colon, interface = (part.strip() for part in text.partition(":"))
    if not colon or not (router or interface):
        return Q(pk__in=())
    return Q(router__name__iendswith=router, interface__istartswith=interface)


def is_interface_name(name: str) -> bool:
    """Return whether a port or a link can have this name: 1 to 63 visible ASCII characters."""
    return _INTERFACE.match(name) is not None


def check_not_retired(row: Any, *, field: str = "") -> None:
    """Raise Retired if the row is kept for the record only. ``field``: the parameter that names the row."""
    if row.retired_at is not None:
        raise Retired(what=KIND_OF[type(row)].name, name=str(row), field=field)


def check_limits(values: Mapping[str, Any]) -> None:
    """Check all values. Raises OutOfRange or NotAnInterfaceName for the first invalid one."""
    for field, value in values.items():
        if value is not None and field in LIMITS:
            minimum, maximum = LIMITS[field]
            if not minimum <= value <= maximum:
                number = float(value) if isinstance(value, Decimal) else value
                raise OutOfRange(field=field, value=number, minimum=minimum, maximum=maximum)
        if field in _INTERFACES and not is_interface_name(value):
            raise NotAnInterfaceName(field=field, value=value)
