from portal.inventory.models.interface_use import InterfaceUse
from portal.inventory.models.link import BackboneLink
from portal.inventory.models.observation import (
    FRESH,
    ObservedCircuit,
    ObservedInterface,
    ObservedLoad,
    ObservedPath,
    ObservedRoute,
    ObservedRouter,
    RouterSilence,
    TunnelAddress,
)
from portal.inventory.models.port import Port
from portal.inventory.models.router import Router, RouterCertificate, RouterEnrolment
from portal.inventory.models.router_freeze import RouterFreeze
from portal.inventory.models.site import Site
from portal.inventory.models.topology import TopologyVersion

__all__ = [
    "FRESH",
    "BackboneLink",
    "InterfaceUse",
    "ObservedCircuit",
    "ObservedInterface",
    "ObservedLoad",
    "ObservedPath",
    "ObservedRoute",
    "ObservedRouter",
    "Port",
    "Router",
    "RouterCertificate",
    "RouterEnrolment",
    "RouterFreeze",
    "RouterSilence",
    "Site",
    "TopologyVersion",
    "TunnelAddress",
]
