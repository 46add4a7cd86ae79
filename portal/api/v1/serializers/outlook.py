"""Serviceability as it goes out. Sizes in bytes, rates in bit/s."""

from dataclasses import asdict
from typing import Any

from portal.core.errors import DomainError
from portal.vll.outlook import EndOutlook, LinkOutlook, Outlook
from portal.vll.words import assumed, code, facts, sentence


def outlook_json(outlook: Outlook) -> dict[str, Any]:
    """The answer of ``POST /api/v1/vlls/validate``."""
    serviceable = outlook.serviceable
    path = serviceable.path if serviceable else None
    return {
        "feasible": outlook.feasible,
        "reasons": [_reason(refusal) for refusal in outlook.refusals],
        "transport": serviceable.transport.value if serviceable else None,
        "frame": serviceable.frame if serviceable else None,
        "required_ip_mtu": serviceable.required if serviceable else None,
        "path": None
        if path is None
        else {
            "family": path.family.value,
            "ip_mtu": path.path_mtu,
            "links": [_link(link) for link in outlook.links],
        },
        "options": [
            {
                "transport": option.transport.value,
                "overhead": option.overhead,
                "largest_svc_mtu": option.largest_svc_mtu,
                "mpps_per_core": option.cost.mpps_per_core,
                "cycles_per_packet": option.cost.cycles_per_packet,
                "reasons": [_reason(refusal) for refusal in option.barred],
            }
            for option in outlook.options
        ],
        "largest_svc_mtu": outlook.largest_svc_mtu,
        "a_end": _end(outlook.ends.get("a")),
        "z_end": _end(outlook.ends.get("z")),
        "routers": [asdict(router) for router in outlook.routers],
        "assumptions": [
            {"router": each.router.name, "about": each.what, "detail": assumed(each)}
            for each in outlook.assumptions
        ],
    }


def _reason(refusal: DomainError) -> dict[str, Any]:
    """As in the ``errors`` of a problem document."""
    return {
        "field": refusal.field,
        "code": code(refusal),
        "detail": sentence(refusal),
        "facts": facts(refusal),
    }


def _link(link: LinkOutlook) -> dict[str, Any]:
    return {"name": link.link.name, "ip_mtu": link.ip_mtu, "backup": link.backup}


def _end(end: EndOutlook | None) -> dict[str, Any] | None:
    if end is None:
        return None
    return {
        "port": end.port.pk,
        "port_name": str(end.port),
        "speed_bps": end.port.speed_bps,
        "bookable_bps": end.port.bookable_bps,
        "oversubscription_percent": end.port.oversubscription_percent,
        "free_bps": end.free_bps,
        "max_frame": end.port.max_frame,
        "free_outer_vlans": end.vlans_free,
        "outer_vlans": end.vlans,
    }
