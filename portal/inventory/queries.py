"""Reading the inventory: which router a certificate speaks for, and what its agent is to watch."""

from portal.inventory.identity import Identity
from portal.inventory.models import Router, RouterCertificate, TunnelAddress


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
