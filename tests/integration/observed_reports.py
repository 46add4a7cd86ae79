"""Reports of routers as an agent may send them, and copies with changes."""

from typing import Any

from msgspec.structs import replace

from portal.core.network.encapsulations import Encapsulation
from portal.inventory.reported_observation import (
    EndObservation,
    GenerationReport,
    InterfaceReport,
    ObservedReport,
    VppReport,
)

BOOT = "d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10"


def observed_report(**changes: Any) -> ObservedReport:
    """Return the report of a router that has only a VPP; ``changes`` are those of ``changed``."""
    report = ObservedReport(
        boot_id=BOOT,
        sent_ms=1,
        agent_version="0.1.0",
        vpp=VppReport(
            connected=True, version="25.10-release", boot_ms=1_790_000_000_000, simulated=False, workers=2
        ),
        encapsulations=[Encapsulation.L2XC, Encapsulation.VXLAN],
        generation=GenerationReport(stored=3, applied=3),
        interfaces=(),
        routes=(),
        ends=(),
    )
    return changed(report, **changes)


def changed(report: ObservedReport, **changes: Any) -> ObservedReport:
    """Return a changed copy; ``vpp_...`` and ``generation_...`` name fields within these members."""
    for part in ("vpp", "generation"):
        inner = {name: changes.pop(name) for name in list(changes) if name.startswith(f"{part}_")}
        members = {name.removeprefix(f"{part}_"): value for name, value in inner.items()}
        report = replace(report, **{part: replace(getattr(report, part), **members)})
    return replace(report, **changes)


def interface(name: str, *addresses: str, **otherwise: Any) -> InterfaceReport:
    """Return an interface that is up, with an IP MTU of 9,000 bytes."""
    said = {"sw_if_index": 1, "admin_up": True, "link_up": True, "ip_mtu": 9000, "tag": None} | otherwise
    return InterfaceReport(name=name, addresses=addresses, **said)


def observed_end(vll: Any, side: str, **otherwise: Any) -> EndObservation:
    """Return an end with this id that matches its intent at the first revision."""
    said = {"revision": 1, "link_up": True, "reachable": True, "in_sync": True, "drift": ()} | otherwise
    return EndObservation(vll=str(vll), side=side, **said)
