"""Queries of the inventory: filters of lists, the router of a certificate, and links with MTUs and traffic.

Each filter is declared once: pages show it as a select, and the API as a parameter.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import (
    BooleanField,
    Exists,
    ExpressionWrapper,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextChoices,
)
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.core.db.statements import CompiledQuery
from portal.inventory.models import (
    BackboneLink,
    ObservedInterface,
    ObservedLoad,
    Port,
    Router,
    RouterCertificate,
    Site,
    TopologyVersion,
    TunnelAddress,
)
from portal.inventory.pki import Identity

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


def router_of(identity: Identity) -> Router | None:
    """Return the router that this certificate was issued to.

    Return None if the certificate is unknown, revoked or not a router's. The router includes the last report
    of its agent as ``observed``. The certificate is looked up at each request, so that a revocation takes
    effect immediately.
    """
    for certificate in _valid(identity.serial, identity.fingerprint):
        if certificate.router.name == identity.router:
            return certificate.router
    return None


def with_enrolment(rows: QuerySet[Router]) -> QuerySet[Router]:
    """Annotate with ``enrolled``: whether a certificate was ever issued to the router's agent.

    Without a certificate the portal refuses every report, so a missing report says nothing about the router.
    """
    return rows.annotate(enrolled=Exists(RouterCertificate.objects.filter(router=OuterRef("pk"))))


_valid = CompiledQuery[RouterCertificate](
    lambda serial, fingerprint: RouterCertificate.objects.filter(
        serial=serial, fingerprint=fingerprint, revoked_at__isnull=True
    ).select_related("router__observed")
)
_versions = CompiledQuery[TopologyVersion](TopologyVersion.objects.all)
# Cached by the version of the topology, because every report needs them.
_tunnel_ends: dict[UUID, list[tuple[str, set[int]]]] = {}


def watch_routes(router: Router, *, known: str | None = None) -> tuple[str | None, list[str] | None]:
    """Return the etag and the sorted tunnel addresses, observed and declared, of other routers with agents.

    The etag is None if the topology has no version yet. The addresses are None if ``known`` is the etag.
    """
    versions = _versions()
    version = versions[0].version if versions else None
    etag = str(version) if version else None
    if known is not None and known == etag:
        return etag, None
    ends = _tunnel_ends.get(version) if version else None
    if ends is None:
        ends = _read_tunnel_ends()
        # Rows may have changed since the version was read; then they are not cached.
        if version and TopologyVersion.objects.filter(version=version).exists():
            _tunnel_ends.clear()
            _tunnel_ends[version] = ends
    own = {router.pk}
    return etag, [address for address, routers in ends if routers != own]


def _read_tunnel_ends() -> list[tuple[str, set[int]]]:
    found: dict[str, set[int]] = {}
    with_agents = Router.objects.exclude(agent_url="")
    observed = TunnelAddress.objects.filter(router__in=with_agents).values_list("router_id", "address")
    for pk, address in observed:
        found.setdefault(address, set()).add(pk)
    for pk, *loopbacks in with_agents.values_list("pk", "loopback4", "loopback6"):
        for address in filter(None, loopbacks):
            found.setdefault(address, set()).add(pk)
    return sorted(found.items())


def links_with_observed_mtu() -> QuerySet[BackboneLink]:
    """Return the links with the MTUs that agents last reported.

    Annotations: ``a_observed_ip_mtu`` and ``z_observed_ip_mtu`` (bytes). ``a_missing`` and ``z_missing``: the
    router's agent does not report the interface.
    """
    return BackboneLink.objects.select_related("a_router", "z_router").annotate(
        a_observed_ip_mtu=_observed_ip_mtu("a_"),
        z_observed_ip_mtu=_observed_ip_mtu("z_"),
        a_missing=_missing("a_"),
        z_missing=_missing("z_"),
    )


def links_at(links: Collection[Any], router: Router | None) -> Q:
    """Match the links with these ids, and the links of ``router`` if it is given."""
    return Q(pk__in=links) | Q(a_router=router) | Q(z_router=router) if router else Q(pk__in=links)


def mtu_mismatch(link: Any) -> bool:
    """Return whether the known MTUs of a link, declared or observed, contradict each other.

    ``link`` is a row of ``links_with_observed_mtu``.
    """
    known = {link.a_ip_mtu, link.z_ip_mtu, link.a_observed_ip_mtu, link.z_observed_ip_mtu}
    return len(known - {None}) > 1


def reported_ip_mtu(link: Any) -> int | None:
    """Return the smaller MTU (bytes) that agents report for a row of ``links_with_observed_mtu``, or None."""
    mtus = [mtu for mtu in (link.a_observed_ip_mtu, link.z_observed_ip_mtu) if mtu is not None]
    return min(mtus, default=None)


def interface_missing(link: Any) -> bool:
    """Return whether an interface of the link is missing in the report of its router. ``link`` is a row of
    ``links_with_observed_mtu``.
    """
    return bool(link.a_missing or link.z_missing)


def routers_without_links() -> QuerySet[Router]:
    """Return the routers without a link, by name; most of them are new."""
    links = BackboneLink.objects.filter(Q(a_router=OuterRef("pk")) | Q(z_router=OuterRef("pk")))
    return Router.objects.filter(~Exists(links), retired_at=None).order_by("name")


def interfaces_not_reported(ports: Collection[Port]) -> list[Port]:
    """Return the ports whose router's agent has had a VPP, but does not report the interface."""
    missing = Port.objects.filter(_missing(""), pk__in=[port.pk for port in ports])
    ids = set(missing.values_list("pk", flat=True))
    return [port for port in ports if port.pk in ids]


def _observed_ip_mtu(of: str) -> Subquery:
    return Subquery(_reported_interface(of).values("ip_mtu"))


def _missing(of: str) -> "ExpressionWrapper[Any]":
    has_agent = ~Q(**{f"{of}router__agent_url": ""})
    has_had_vpp = Q(**{f"{of}router__observed__encapsulations__isnull": False})
    return ExpressionWrapper(has_agent & has_had_vpp & ~Exists(_reported_interface(of)), BooleanField())


def _reported_interface(of: str) -> QuerySet[ObservedInterface]:
    """Match the interface of a port (``of`` ""), or of a link's side ("a_", "z_")."""
    return ObservedInterface.objects.filter(router=OuterRef(f"{of}router"), name=OuterRef(f"{of}interface"))


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """The traffic of a link in each direction (bit/s); None if neither side reports it.

    ``speed_bps``: the speed of the slower side; None if unknown.
    """

    a_to_z_bps: int | None
    z_to_a_bps: int | None
    speed_bps: int | None

    @property
    def most_bps(self) -> int:
        """Return the rate of the busier direction."""
        return max(self.a_to_z_bps or 0, self.z_to_a_bps or 0)

    def percent_of(self, bps: int | None) -> int | None:
        """Return ``bps`` as a rounded percentage of the link's speed; None if one of them is unknown."""
        return None if bps is None or self.speed_bps is None else round(100 * bps / self.speed_bps)

    @property
    def percent(self) -> int | None:
        """Return ``part`` as a rounded percentage."""
        return None if self.part is None else round(self.part * 100)

    @property
    def part(self) -> float | None:
        """Return the fraction of the speed that the busier direction uses; None if the speed is unknown."""
        return None if self.speed_bps is None else self.most_bps / self.speed_bps


def link_traffic(links: Iterable[int], *, since: datetime) -> dict[int, LinkTraffic]:
    """Return the traffic of each link for which at least one side has counts from ``since`` or later.

    For each direction, the sender's count is used, because the receiver does not count frames that the link
    lost. If the sender's side has no counts, the receiver's count is used.
    """
    sides: dict[int, dict[str, ObservedLoad]] = {}
    for load in ObservedLoad.objects.filter(link__in=list(links), at__gte=since):
        sides.setdefault(load.link_id, {})[load.side] = load
    return {link: _traffic(counted.get("a"), counted.get("z")) for link, counted in sides.items()}


def _traffic(a: ObservedLoad | None, z: ObservedLoad | None) -> LinkTraffic:
    speeds = [load.speed_bps for load in (a, z) if load is not None and load.speed_bps is not None]
    return LinkTraffic(_sent(a, z), _sent(z, a), min(speeds, default=None))


def _sent(sender: ObservedLoad | None, receiver: ObservedLoad | None) -> int | None:
    if sender is not None:
        return sender.tx_bps
    return None if receiver is None else receiver.rx_bps
