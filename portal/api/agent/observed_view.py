"""POST /api/agent/v1/observed (docs/agent-api.md)."""

from typing import Any

from portal.api.agent.client_certificate import report_endpoint
from portal.api.agent.strict_json import (
    address,
    array,
    boolean,
    document,
    foreign_text,
    integer,
    lazily,
    name,
    nullable,
    one_of,
    prefixed_address,
    record,
    text,
    uuid,
)
from portal.core import clock
from portal.core.bandwidth_profile import Policing
from portal.core.encapsulations import Encapsulation
from portal.inventory.field_limits import is_interface_name
from portal.inventory.models import Router
from portal.inventory.observation_report import (
    InterfaceReport,
    LoadReport,
    ObservedReport,
    RouteReport,
    SetAsideReport,
)
from portal.inventory.queries import watch_routes
from portal.telemetry.observation_ingest import observation_take
from portal.vll.operations.router_answers import EndObservation

_MS = integer(0, 2**53)
_GENERATION = nullable(integer(1))
_DRIFT = record({each: foreign_text(maximum=1000) for each in ("object", "field", "desired", "actual")})
_CONTESTED = record(
    {each: foreign_text(maximum=1000) for each in ("object", "field", "desired", "actual")}
    | {"since_ms": _MS, "repairs": integer(1, 2**31 - 1)}
)
_SET_ASIDE = record({"file": foreign_text(maximum=1000), "why": foreign_text(maximum=1000)})
_BPS = integer(0, 2**53)
_LOAD = record({"rx_bps": _BPS, "tx_bps": _BPS, "speed_bps": nullable(integer(1, 2**53))})
_ROUTE = record({"address": address, "reachable": boolean})
_END = record(
    {
        "vll": uuid,
        "end": one_of("a", "z"),
        "revision": integer(1, 2**31 - 1),
        "link_up": boolean,
        "reachable": nullable(boolean),
        "in_sync": boolean,
        "drift": array(_DRIFT, maximum=1000),
    },
    later={"policed": (boolean, False), "contested": (array(_CONTESTED, maximum=1000), ())},
)


def _observation(end: dict[str, Any]) -> EndObservation:
    return EndObservation(
        vll=end["vll"],
        side=end["end"],
        revision=end["revision"],
        link_up=end["link_up"],
        reachable=end["reachable"],
        in_sync=end["in_sync"],
        policed=end["policed"],
        drift=list(end["drift"]),
        contested=list(end["contested"]),
    )


_REPORT = record(
    {
        "schema": one_of(1),
        "boot_id": uuid,
        "sent_ms": _MS,
        "agent_version": text(maximum=50),
        "vpp": record(
            {
                "connected": boolean,
                "version": nullable(foreign_text(maximum=100)),
                "boot_ms": nullable(_MS),
                "simulated": nullable(boolean),
                "workers": nullable(integer(0, 1024)),
            },
            later={
                "plugins": (nullable(array(foreign_text(maximum=64), maximum=1000)), None),
                "absent": (boolean, False),
                "hangs": (boolean, False),
            },
        ),
        "encapsulations": array(one_of(*(each.value for each in Encapsulation)), maximum=len(Encapsulation)),
        "generation": record({"held": _GENERATION, "applied": _GENERATION}),
        "interfaces": array(
            record(
                {
                    "name": name,
                    "sw_if_index": integer(0, 2**32 - 1),
                    "admin_up": boolean,
                    "link_up": boolean,
                    "ip_mtu": nullable(integer(0, 2**31 - 1)),
                    "addresses": array(prefixed_address, maximum=1000),
                    "tag": nullable(foreign_text(maximum=63)),
                },
                later={
                    "linux_cp": (nullable(foreign_text(maximum=63)), None),
                    "load": (nullable(_LOAD), None),
                },
            ),
            maximum=100_000,
            unique="name",
        ),
        "routes": lazily(_ROUTE, lambda route: RouteReport(**route), maximum=100_000),
        "ends": lazily(_END, _observation, maximum=100_000),
    },
    later={
        "policing": (one_of(*(each.value for each in Policing)), Policing.NONE.value),
        "look": (integer(0, 2**53), None),
        "set_aside": (array(_SET_ASIDE, maximum=100), ()),
        "watch_etag": (nullable(text(maximum=64)), None),
    },
)


@report_endpoint(document(_REPORT))
def observed(router: Router, body: dict[str, Any]) -> dict[str, Any]:
    """Take the report in, and say which routes the next one is to name.

    Neither side says again what the other has: the etags name what was told last.
    """
    observation_take(router=router, report=_report(body), ends=body["ends"], now=clock.now())
    etag, addresses = watch_routes(router, known=body["watch_etag"])
    etags = {"watch_routes": etag, "routes": body["routes"].digest, "ends": body["ends"].digest}
    return {"watch_routes": addresses, "etags": etags}


def _report(body: dict[str, Any]) -> ObservedReport:
    vpp, generation = body["vpp"], body["generation"]
    return ObservedReport(
        boot_id=body["boot_id"],
        sent_ms=body["sent_ms"],
        look=body["look"],
        agent_version=body["agent_version"],
        vpp_connected=vpp["connected"],
        vpp_absent=vpp["absent"],
        vpp_hangs=vpp["hangs"],
        vpp_version=vpp["version"],
        vpp_boot_ms=vpp["boot_ms"],
        vpp_workers=vpp["workers"],
        vpp_plugins=vpp["plugins"],
        simulated=bool(vpp["simulated"]),
        encapsulations=body["encapsulations"],
        policing=body["policing"],
        generation_held=generation["held"],
        generation_applied=generation["applied"],
        interfaces=tuple(
            InterfaceReport(
                name=interface["name"],
                admin_up=interface["admin_up"],
                link_up=interface["link_up"],
                ip_mtu=interface["ip_mtu"],
                addresses=interface["addresses"],
                linux_cp=interface["linux_cp"] or "",
                load=None if interface["load"] is None else LoadReport(**interface["load"]),
            )
            for interface in body["interfaces"]
            # No port and no link can have another name, so nobody would ever look for it.
            if is_interface_name(interface["name"])
        ),
        set_aside=tuple(SetAsideReport(**each) for each in body["set_aside"]),
        routes=body["routes"],
    )
