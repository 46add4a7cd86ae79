"""The current topology from the database, built again only after a change.

Links of a drained router get the largest metric. The MTUs that a silent router observed are not trusted.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings

from portal.core.db.statements import execute, rows_of
from portal.core.network.encapsulations import Encapsulation, Family
from portal.core.network.required_mtu import MtuPolicy
from portal.inventory import models
from portal.inventory.models.link import link_name
from portal.underlay.path_mtu import PathPolicy
from portal.underlay.topology import Link, LinkSide, Router, Topology
from portal.underlay.transport_selection import LineEnd

# After an agent was silent or without a VPP for this time, the portal does not trust the MTUs it observed.
SILENT_AFTER = timedelta(minutes=5)
# A drained router advertises this metric for its links: the largest that still counts (IS-IS wide metrics,
# RFC 5305; for OSPF, RFC 6987 uses 0xffff). Frames cross a drained router only if there is no other path, and
# the router itself stays reachable.
STUB_METRIC = 2**24 - 2


class _Key(NamedTuple):
    """The version of a topology, and the ids of the routers whose agents are silent.

    ``version`` is None while the underlay is empty.
    """

    version: UUID | None
    silent: frozenset[int]


_built: dict[_Key, Topology] = {}
_NOW = """
SELECT (SELECT version FROM inventory_topologyversion ORDER BY id LIMIT 1),
       ARRAY(SELECT r.id FROM inventory_router r LEFT JOIN inventory_observedrouter o ON o.router_id = r.id
             WHERE r.agent_url <> ''
               AND (o.id IS NULL OR o.reported_at < %(since)s OR o.vpp_away_since < %(since)s))
"""
# Tunnel addresses that routers have in the FIB table of their underlay, and the routes to tunnel addresses
# that routers report. Only rows of routes have a value in ``reachable``.
_REPORTED = """
SELECT router_id, host(address), NULL::boolean AS reachable FROM inventory_tunneladdress t
JOIN inventory_router r ON r.id = t.router_id AND r.underlay_table = t."table"
WHERE router_id = ANY(%(routers)s) AND address = ANY(%(loopbacks)s::inet[])
UNION ALL
SELECT router_id, host(address), reachable FROM inventory_observedroute
WHERE router_id = ANY(%(routers)s) AND address = ANY(%(loopbacks)s::inet[])
"""


def current_topology(*, now: datetime) -> Topology:
    """Return routers and links with their declared and observed facts. Computed paths are cached with them.

    If nothing has changed since the last call in this process, this takes one small query.
    """
    key = _key(now)
    topology = _built.get(key)
    if topology is None:
        topology = _build(key.silent)
        # Rows may have changed after the version was read. Such a topology is used once and not cached.
        if _key(now).version == key.version:
            _built.clear()
            _built[key] = topology
    return topology


def topology_when_all_report() -> Topology:
    """Return the topology as if no agent were silent, with the last observation of each. Not cached."""
    return _build(frozenset())


def topology_lock() -> None:
    """Lock the topology's version until the transaction ends, for a caller that changes the underlay later.

    Every change of the underlay takes the same lock. Take it before locks of lines (ADR 76).
    """
    execute("SELECT FROM inventory_topologyversion FOR NO KEY UPDATE")


def path_policy() -> PathPolicy:
    """Return the policy of this installation (setting LONGLINE_MTU_POLICY)."""
    return PathPolicy(mtu=MtuPolicy(settings.LONGLINE_MTU_POLICY))


def line_ends(a_router: models.Router, z_router: models.Router) -> tuple[LineEnd, LineEnd]:
    """Return the declared and reported facts about the routers of a line, in one small query.

    Read the routers with ``select_related("observed")``.
    """
    routers = (a_router, z_router)
    loopbacks = {address for router in routers for address in (router.loopback4, router.loopback6) if address}
    reported_rows = rows_of(
        _REPORTED, {"routers": [router.pk for router in routers], "loopbacks": sorted(loopbacks)}
    )
    addresses = {(pk, address) for pk, address, reachable in reported_rows if reachable is None}
    routes = [(pk, address, reachable) for pk, address, reachable in reported_rows if reachable is not None]

    def end(router: models.Router) -> LineEnd:
        seen = getattr(router, "observed", None)
        can: list[str] | None = None if seen is None else seen.encapsulations
        reported = can is not None
        return LineEnd(
            router=Router(id=router.pk, name=router.name, agent_observed=router.has_agent),
            loopbacks={f: address for f in Family if (address := router.loopback(f)) is not None},
            # A newer release may have stored encapsulations that this release does not know or use.
            encapsulations=None if can is None else frozenset(each for each in Encapsulation if each in can),
            addresses=frozenset(a for pk, a in addresses if pk == router.pk) if reported else None,
            routes={a: reachable for pk, a, reachable in routes if pk == router.pk},
            gre_keys=seen is not None and seen.gre_keys,
            table=router.underlay_table,
            knows_tables=seen is not None and seen.underlay_tables,
        )

    return end(a_router), end(z_router)


def _key(now: datetime) -> _Key:
    [(version, silent)] = rows_of(_NOW, {"since": now - SILENT_AFTER})
    return _Key(version=version, silent=frozenset(silent))


def _build(silent: frozenset[int]) -> Topology:
    # Rows as tuples: creating thousands of model instances would take most of the time.
    observed = {
        (router, name): ip_mtu
        for router, name, ip_mtu in models.ObservedInterface.objects.values_list(
            "router_id", "name", "ip_mtu"
        )
    }

    columns = ("pk", "name", "agent_url", "drained_since")
    routers = list(models.Router.objects.order_by("pk").values_list(*columns))
    drained = {pk for pk, _name, _url, since in routers if since is not None}

    def side(router: int, interface: str, metric: int, ip_mtu: int | None) -> LinkSide:
        return LinkSide(
            router=router,
            interface=interface,
            metric=STUB_METRIC if router in drained else metric,
            declared_ip_mtu=ip_mtu,
            observed_ip_mtu=observed.get((router, interface)),
            observed_stale=router in silent,
            observed_missing=(router, interface) not in observed,
        )

    def link(
        pk: int, in_service: bool, ipv4: bool, ipv6: bool, a_name: str, z_name: str, *sides: Any
    ) -> Link:
        a, z = side(*sides[:4]), side(*sides[4:])
        carried = ((Family.V4, ipv4), (Family.V6, ipv6))
        return Link(
            id=pk,
            name=link_name(a_name, a.interface, z_name, z.interface),
            a=a,
            z=z,
            families=frozenset(family for family, does in carried if does),
            in_service=in_service,
        )

    links = models.BackboneLink.objects.order_by("pk").values_list(
        *("pk", "in_service", "ipv4", "ipv6", "a_router__name", "z_router__name"),
        *("a_router_id", "a_interface", "a_metric", "a_ip_mtu"),
        *("z_router_id", "z_interface", "z_metric", "z_ip_mtu"),
    )
    return Topology(
        routers=[Router(id=pk, name=name, agent_observed=bool(url)) for pk, name, url, _since in routers],
        links=[link(*row) for row in links],
    )
