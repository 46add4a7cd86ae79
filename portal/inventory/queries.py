"""Reading the inventory: which router a certificate speaks for, what its agent is to watch, and the links."""

from typing import Any

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet, Subquery

from portal.inventory.identity import Identity
from portal.inventory.models import (
    BackboneLink,
    ObservedInterface,
    Router,
    RouterCertificate,
    TunnelAddress,
)


def router_of(identity: Identity) -> Router | None:
    """The router that this certificate was issued to, None when it is unknown, revoked or another's.

    Looked up at each request, so that revoking takes effect at once.
    """
    certificate = (
        RouterCertificate.objects.filter(
            serial=identity.serial, fingerprint=identity.fingerprint, revoked_at__isnull=True
        )
        .select_related("router")
        .first()
    )
    if certificate is None or certificate.router.name != identity.router:
        return None
    return certificate.router


def watch_routes(router: Router) -> list[str]:
    """The tunnel addresses of the other routers with agents: observed ones and declared loopbacks, sorted."""
    others = Router.objects.exclude(pk=router.pk).exclude(agent_url="")
    addresses = set(TunnelAddress.objects.filter(router__in=others).values_list("address", flat=True))
    for loopbacks in others.values_list("loopback4", "loopback6"):
        addresses.update(loopback for loopback in loopbacks if loopback)
    return sorted(addresses)


def links_with_observed_mtu() -> QuerySet[BackboneLink]:
    """The links, with ``a_observed_ip_mtu`` and ``z_observed_ip_mtu`` (bytes) as agents last saw them.

    ``a_missing`` and ``z_missing``: that router's agent does not see the interface.
    """
    return BackboneLink.objects.select_related("a_router", "z_router").annotate(
        a_observed_ip_mtu=_observed_ip_mtu("a"),
        z_observed_ip_mtu=_observed_ip_mtu("z"),
        a_missing=_missing("a"),
        z_missing=_missing("z"),
    )


def mtu_mismatch(link: Any) -> bool:
    """Whether the known MTUs of such a link, declared or observed, contradict each other."""
    known = {link.a_ip_mtu, link.z_ip_mtu, link.a_observed_ip_mtu, link.z_observed_ip_mtu}
    return len(known - {None}) > 1


def interface_missing(link: Any) -> bool:
    """Whether an agent does not see the interface of such a link."""
    return bool(link.a_missing or link.z_missing)


def _observed_ip_mtu(side: str) -> Subquery:
    return Subquery(_seen(side).values("ip_mtu"))


def _missing(side: str) -> "ExpressionWrapper[Any]":
    has_agent = ~Q(**{f"{side}_router__agent_url": ""})
    has_seen_vpp = Q(**{f"{side}_router__observed__encapsulations__isnull": False})
    return ExpressionWrapper(has_agent & has_seen_vpp & ~Exists(_seen(side)), BooleanField())


def _seen(side: str) -> QuerySet[ObservedInterface]:
    return ObservedInterface.objects.filter(
        router=OuterRef(f"{side}_router"), name=OuterRef(f"{side}_interface")
    )
