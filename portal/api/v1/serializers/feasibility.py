"""The feasibility of an order, as JSON. Sizes in bytes, rates in bit/s."""

from dataclasses import asdict
from typing import Any

from portal.api.problem_details import entry
from portal.vll.feasibility import EndFeasibility, Feasibility, LinkFeasibility


def feasibility_json(feasibility: Feasibility) -> dict[str, Any]:
    """Return the response of ``POST /api/v1/vlls/validate``."""
    selected = feasibility.selected
    path = selected.path if selected else None
    return {
        "feasible": feasibility.feasible,
        "reasons": [entry(refusal) for refusal in feasibility.refusals],
        "transport": selected.transport.value if selected else None,
        "frame": selected.frame if selected else None,
        "required_ip_mtu": selected.required if selected else None,
        "path": None
        if path is None
        else {
            "family": path.family.value,
            "ip_mtu": path.path_mtu,
            "links": [_link(link) for link in feasibility.links],
        },
        "options": [
            {
                "transport": option.transport.value,
                "overhead": option.overhead,
                "largest_svc_mtu": option.largest_svc_mtu,
                "mpps_per_core": option.cost.mpps_per_core,
                "cycles_per_packet": option.cost.cycles_per_packet,
                "reasons": [entry(refusal) for refusal in option.barred],
            }
            for option in feasibility.options
        ],
        "largest_svc_mtu": feasibility.largest_svc_mtu,
        "a_end": _end(feasibility.ends.get("a")),
        "z_end": _end(feasibility.ends.get("z")),
        "routers": [asdict(router) for router in feasibility.routers],
        "assumptions": [
            {"router": each.router.name, "about": each.what, "detail": each.sentence}
            for each in feasibility.assumptions
        ],
        "waits": [asdict(wait) for wait in feasibility.waits],
    }


def _link(link: LinkFeasibility) -> dict[str, Any]:
    return {"name": link.link.name, "ip_mtu": link.ip_mtu, "backup": link.backup}


def _end(end: EndFeasibility | None) -> dict[str, Any] | None:
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
