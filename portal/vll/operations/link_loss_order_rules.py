"""The rules of link loss forwarding: the conditions under which a line may take a port down."""

from collections.abc import Iterator, Mapping

from portal.core.errors import DomainError
from portal.core.vlan_tags import Tagging
from portal.inventory.models import ObservedInterface, ObservedRouter, Port
from portal.vll.errors import (
    LinkLossNeedsUni,
    LinkLossNeedsWholePorts,
    LinkLossPortInUse,
    LinkLossUnsupported,
)
from portal.vll.operations.end_validation import EndRequest
from portal.vll.revision_content import Content


def link_loss_refusals(
    *, ends: Mapping[str, EndRequest], ports: Mapping[str, Port], in_service: Content | None
) -> Iterator[DomainError]:
    """Return all obstacles to forwarding link losses between these ports.

    The rules use the routers' reports when the line is ordered and when the order is approved. They do not
    use reports about a port where the line forwards losses already (``in_service``). An agent checks its VPP
    again before it takes a port down.
    """
    for side, end in ends.items():
        if end.tagging is not Tagging.UNTAGGED:
            yield LinkLossNeedsWholePorts(field=_FIELD, side=side.upper())
    for side, port in ports.items():
        if port.kind != Port.Kind.UNI:
            yield LinkLossNeedsUni(field=_FIELD, port=str(port))
        goes_on = (
            in_service is not None
            and in_service.link_loss_forwarding
            and in_service.ends[side].port == port.pk
        )
        if goes_on or not port.router.has_agent:
            continue
        if not ObservedRouter.objects.filter(router=port.router_id, link_loss_forwarding=True).exists():
            yield LinkLossUnsupported(field=_FIELD, router=port.router.name)
        if (use := _other_use(port)) is not None:
            yield LinkLossPortInUse(field=_FIELD, port=str(port), interface=use)


_FIELD = "link_loss_forwarding"


def _other_use(port: Port) -> str | None:
    """Return the name of a foreign sub-interface or Linux interface on the port."""
    seen = ObservedInterface.objects.filter(router=port.router_id)
    sub = seen.filter(name__startswith=f"{port.interface}.").order_by("name").values_list("name", flat=True)
    paired = seen.filter(name=port.interface).exclude(linux_cp="").values_list("linux_cp", flat=True)
    return sub.first() or paired.first()
