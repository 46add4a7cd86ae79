"""The kinds of inventory objects that the NOC manages, with their pages, forms and operations."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Customer
from portal.allocation.models import ReservedVniRange
from portal.allocation.tunnel_leases import vni_range_change, vni_range_create, vni_range_remove
from portal.audit.history import with_last_change
from portal.core import clock
from portal.core.reader_texts import moment_text, rate_text
from portal.inventory import kinds
from portal.inventory.kinds import InventoryKind
from portal.inventory.models import Port, Router, Site
from portal.inventory.operations import WRITES, Writes
from portal.inventory.queries import Filter, Text, links_with_observed_mtu, mtu_mismatch, reported_ip_mtu
from portal.underlay.current_topology import current_topology
from portal.vll.link_loads_and_mtus import verified_link_mtus
from portal.vll.sentences import waits_of
from portal.web.fields.base import VersionedForm
from portal.web.noc.inventory.inventory_forms import VniRangeForm, form_of
from portal.web.page.badges import router_admin_status
from portal.web.page.sparklines import link_loss_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of inventory object.

    * ``keyword``: the name of the parameter for the row in ``writes.change`` and ``writes.remove``.
    * ``columns``: the columns of the list, each with a heading and a function that returns a row's cell.
    * ``by``: the fields that order the list. The last field must be unique.
    * ``filters``: the filters of the list, in addition to the search.
    """

    slug: str
    title: Text
    add: Text
    keyword: str
    rows: Callable[[], QuerySet[Any]]
    by: tuple[str, ...]
    filters: tuple[Filter, ...] = ()
    searchable: bool = True
    # The name of the view with a row's page, by the row's id; "" if a row has only the page with its form.
    page: str = ""
    columns: tuple[tuple[Text, Callable[[Any], Any]], ...]
    # Facts about a row that the page shows in addition to the form.
    facts: Callable[[Any], list[tuple[Text, Any]]] = lambda _row: []
    create_form: type[VersionedForm]
    change_form: type[VersionedForm]
    writes: Writes
    # Whether the removal of a row ends people's access. The user then has to enter the password or a code.
    removal_ends_access: bool = False
    # Returns the address of the page that follows after a row was created; "" for the list. The arguments are
    # the form's values and the query of the form's address.
    leads_to: Callable[[dict[str, Any], QueryDict], str] = lambda _wanted, _opened: ""
    # Returns warnings about a row that was created. The argument is the form's values.
    doubts: Callable[[dict[str, Any]], list[str]] = lambda _wanted: []
    # The losses of a row (portal.web.page.sparklines), which the page shows below the form.
    losses: Callable[[Any, datetime], list[dict[str, Any]]] | None = None


def _declared(of: InventoryKind, **more: Any) -> Kind:
    """Return the pages of a kind that ``portal.inventory.kinds`` declares."""
    return Kind(
        slug=of.slug,
        title=of.title,
        keyword=of.name,
        filters=of.filters,
        create_form=form_of(of),
        change_form=form_of(of, changes=True),
        writes=WRITES[of.name],
        **more,
    )


def _rate(bps: int | None) -> str:
    return "–" if bps is None else rate_text(bps)


def _bookable(port: Port) -> str:
    percent = port.oversubscription_percent
    return _rate(port.bookable_bps) + ("" if percent in (None, 100) else f" ({percent} %)")


def _at(moment: datetime | None) -> str:
    return "–" if moment is None else moment_text(moment)


def _coordinates(site: Site) -> str:
    return "–" if site.coordinates is None else "{}, {}".format(*site.coordinates)


def _both(a: int | None, z: int | None) -> str:
    return " / ".join("–" if value is None else str(value) for value in (a, z))


def _reported_mtu(link: Any) -> Text:
    text = _both(link.a_observed_ip_mtu, link.z_observed_ip_mtu)
    return _("%(mtus)s – mismatch") % {"mtus": text} if mtu_mismatch(link) else text


def _link_facts(link: Any) -> list[tuple[Text, Any]]:
    """Return the IP MTUs of a link (bytes): declared, reported by agents, and verified by test frames."""
    declared = [mtu for mtu in (link.a_ip_mtu, link.z_ip_mtu) if mtu is not None]
    now = clock.now()
    verified = verified_link_mtus(topology=current_topology(now=now), now=now).get(link.pk)
    return [
        (_("IP MTU declared"), min(declared, default=None) or _("not known")),
        (_("IP MTU reported"), reported_ip_mtu(link) or _("not known")),
        (
            _("IP MTU verified by frames"),
            _("not verified")
            if verified is None
            else _("%(n)d, at %(at)s") % {"n": verified.ip_mtu, "at": _at(verified.at)},
        ),
    ]


SITES = _declared(
    kinds.SITE,
    add=_("Add a site"),
    rows=Site.objects.all,
    by=("name", "pk"),
    columns=((_("Latitude, longitude"), _coordinates),),
)


def _of_new_customer(wanted: dict[str, Any], _opened: QueryDict) -> str:
    return reverse("web:noc-customer", args=[Customer.objects.get(name=wanted["name"]).pk])


def _back_to_customer(wanted: dict[str, Any], opened: QueryDict) -> str:
    """Return the address of the customer's page if the user came from that page; otherwise ""."""
    customer = wanted["customer"] if "customer" in opened else None
    return reverse("web:noc-customer", args=[customer.pk]) if customer is not None else ""


def _link_doubts(wanted: dict[str, Any]) -> list[str]:
    link = links_with_observed_mtu().get(a_router=wanted["a_router"], a_interface=wanted["a_interface"])
    text = gettext("{router} reports no interface {interface}. The link carries no path until it does.")
    return [
        text.format(router=getattr(link, f"{side}_router"), interface=getattr(link, f"{side}_interface"))
        for side in ("a", "z")
        if getattr(link, f"{side}_missing")
    ]


def _port_doubts(wanted: dict[str, Any]) -> list[str]:
    port = Port.objects.select_related("router").get(router=wanted["router"], interface=wanted["interface"])
    return [wait.message for wait in waits_of([port])]


def _admin_status(router: Router) -> str:
    return ", ".join(str(label) for label, _tone in router_admin_status(router)) or gettext("in service")


ROUTERS = _declared(
    kinds.ROUTER,
    page="web:noc-router",
    add=_("Add a router"),
    rows=lambda: Router.objects.filter(retired_at__isnull=True).select_related("site"),
    by=("name", "pk"),
    columns=(
        (_("Site"), lambda router: router.site),
        (_("IPv4 loopback"), lambda router: router.loopback4 or "–"),
        (_("IPv6 loopback"), lambda router: router.loopback6 or "–"),
        (_("Underlay table"), lambda router: router.underlay_table),
        (_("Agent"), lambda router: router.agent_url or _("transit only")),
        (_("Status"), _admin_status),
    ),
)
PORTS = _declared(
    kinds.PORT,
    page="web:port",
    add=_("Add a port"),
    rows=lambda: Port.objects.filter(retired_at__isnull=True).select_related("router", "customer"),
    by=("router__name", "interface", "pk"),
    columns=(
        (_("Customer"), lambda port: port.customer or "–"),
        (_("Description"), lambda port: port.description or "–"),
        (_("Speed"), lambda port: _rate(port.speed_bps)),
        (_("Bookable"), _bookable),
        (_("Booked"), lambda port: _rate(port.booked_bps)),
    ),
    leads_to=_back_to_customer,
    doubts=_port_doubts,
)
LINKS = _declared(
    kinds.LINK,
    add=_("Add a link"),
    rows=links_with_observed_mtu,
    by=("a_router__name", "a_interface", "pk"),
    columns=(
        (_("Metric A / Z"), lambda link: f"{link.a_metric} / {link.z_metric}"),
        (_("IP MTU declared, A / Z"), lambda link: _both(link.a_ip_mtu, link.z_ip_mtu)),
        (_("IP MTU reported, A / Z"), _reported_mtu),
        (_("In service"), lambda link: _("yes") if link.in_service else _("no")),
    ),
    facts=_link_facts,
    doubts=_link_doubts,
    losses=link_loss_rows,
)


def _approval_limit(customer: Customer) -> str:
    limit = customer.approve_up_to_bps
    return gettext("no limit") if limit is None else rate_text(limit)


CUSTOMERS = _declared(
    kinds.CUSTOMER,
    page="web:noc-customer",
    leads_to=_of_new_customer,
    add=_("Add a customer"),
    rows=Customer.objects.all,
    by=("name", "pk"),
    columns=(
        (_("Approved automatically up to"), _approval_limit),
        (_("Retired"), lambda customer: _("yes") if customer.retired_at else _("no")),
    ),
    removal_ends_access=True,
)
VNI_RANGES = Kind(
    slug="vni-ranges",
    title=_("Reserved VNIs"),
    add=_("Reserve a range"),
    keyword="vni_range",
    rows=lambda: with_last_change(ReservedVniRange.objects.all()),
    by=("first", "pk"),
    searchable=False,
    columns=(
        (_("VNIs"), lambda vni_range: vni_range.last - vni_range.first + 1),
        (_("Last changed"), lambda vni_range: _at(vni_range.changed_at)),
        (_("By"), lambda vni_range: vni_range.changed_by or "–"),
    ),
    create_form=VniRangeForm,
    change_form=VniRangeForm,
    writes=Writes(vni_range_create, vni_range_change, vni_range_remove),
)
KINDS = (SITES, ROUTERS, PORTS, LINKS, CUSTOMERS, VNI_RANGES)
