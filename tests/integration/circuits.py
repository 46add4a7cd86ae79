"""Foreign circuits in the form in which agents report them."""

from typing import Any, Literal

from portal.inventory.models import ObservedCircuit
from portal.inventory.observation_store import circuits_store
from portal.inventory.reported_observation import AttachmentReport, CircuitReport, CircuitSide, TunnelReport
from tests.integration.isp import Isp

LOOPBACKS = {"rhino": "10.255.0.1", "hippo": "10.255.0.2", "zebra": "10.255.0.3"}
_POPS = (0, 3, 4)


def attachment(port: str, *tags: int, rewrite: int | None = None, **otherwise: Any) -> CircuitSide:
    """Return an attachment circuit with these VLANs, the outer one first; VPP pops its tags on ingress."""
    outer, inner = (*tags, 0, 0)[:2]
    said = {"link_up": True, "dot1ad": False, "exact": True, "wide": False, "policed": False} | otherwise
    picks = AttachmentReport(port=port, tags=len(tags), outer=outer, inner=inner, **said)
    interface = f"{port}.{outer}" if tags else port
    return CircuitSide(
        interface=interface,
        tag=None,
        admin_up=True,
        rewrite=_POPS[len(tags)] if rewrite is None else rewrite,
        attachment=picks,
        tunnel=None,
    )


def tunnel(
    local: str, remote: str, key: int, of: Literal["vxlan", "geneve", "gre"] = "vxlan", **otherwise: Any
) -> CircuitSide:
    """Return a tunnel from one router to another, by their names."""
    by_vni = of != "gre"
    said = {"standard": True, "local": LOOPBACKS[local], "remote": LOOPBACKS[remote]} | otherwise
    made = TunnelReport(
        encapsulation=of, vni=key if by_vni else None, gre_key=None if by_vni else key, **said
    )
    return CircuitSide(
        interface=f"{of}_tunnel{key}", tag=None, admin_up=True, rewrite=0, attachment=None, tunnel=made
    )


def circuit(
    near: CircuitSide, far: CircuitSide | None, *, out: bool = True, back: bool = True
) -> CircuitReport:
    """Return a circuit; its cross-connects lead in both directions unless the caller passes others."""
    return CircuitReport(near=near, far=far, out=out and far is not None, back=back and far is not None)


def found_line(isp: Isp) -> int:
    """Return the id of a complete found line from rhino to hippo."""
    for here, there in (("rhino", "hippo"), ("hippo", "rhino")):
        circuits_store(isp.routers[here], [circuit(attachment("host-cust1", 900), tunnel(here, there, 900))])
    return int(ObservedCircuit.objects.earliest("pk").pk)
