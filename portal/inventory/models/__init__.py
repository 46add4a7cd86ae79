from portal.inventory.models.link import BackboneLink, InterfaceUse, Port, TopologyVersion
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
from portal.inventory.models.router import Router, RouterCertificate, RouterEnrolment, RouterFreeze, Site

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
