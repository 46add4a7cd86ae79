"""The configuration that both VPPs should have, derived only from the database, and its comparison with the
real configuration.

The module does not use the product's code. It can therefore find a mistake that both the portal and the agent
make.
"""

from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from drills.checks.vpptestctl import VppConfig

# The tag rewrite operation in VPP for each tagging: the number of tags that VPP removes from arriving frames.
POPS = {"untagged": 0, "dot1q": 3, "qinq": 4, "dot1ad": 4}
TAGS = {"untagged": 0, "dot1q": 1, "qinq": 2, "dot1ad": 2}

_WANTED = "v.wanted_present AND v.lifecycle NOT IN ('terminated', 'cancelled')"
# Ends that the portal has released. A router may still forward frames at such an end.
_RELEASED = "v.handover = 'release' AND v.lifecycle = 'terminated'"
_ENDS = """
SELECT v.id AS vll, e.side, v.revision, v.lifecycle, v.admin_status, r.name AS router, p.interface,
       e.tagging, e.outer_vlan AS outer, e.inner_vlan AS inner, v.encapsulation, v.vni, v.gre_key,
       host(e.tunnel_address) AS local, host(far.tunnel_address) AS remote
FROM vll_vll v
JOIN vll_vllend e ON e.vll_id = v.id
JOIN vll_vllend far ON far.vll_id = v.id AND far.side <> e.side
JOIN inventory_port p ON p.id = e.port_id
JOIN inventory_router r ON r.id = p.router_id
WHERE {}
"""


@dataclass(frozen=True, slots=True)
class End:
    vll: UUID
    side: str
    revision: int
    lifecycle: str
    admin_status: str
    router: str
    interface: str
    tagging: str
    outer: int | None
    inner: int | None
    encapsulation: str
    vni: int | None
    gre_key: int | None
    local: str | None
    remote: str | None

    @property
    def tag(self) -> str:
        return f"longline:{self.vll}:{self.side}:{self.revision}"

    def flaws(self, config: VppConfig, far: "End") -> list[str]:
        """Return the errors of this end in its VPP. `far` is the other end of the VLL."""
        who = f"{self.router}: {self.vll} {self.side} revision {self.revision}"
        access = self.access(config)
        if access is None:
            return [f"{who} has no access interface"]
        found = []
        if access["tag"] != self.tag:
            found.append(f"{who}: {access['name']} bears {access['tag']!r}")
        if access["rewrite"] != POPS[self.tagging]:
            found.append(f"{who}: {access['name']} rewrites tags by operation {access['rewrite']}")
        if access["admin_up"] != (self.admin_status == "admin-up"):
            found.append(f"{who}: {access['name']} has admin_up {access['admin_up']}")
        other = far.access(config) if self.encapsulation == "l2xc" else self.tunnel(config)
        if other is None:
            return [*found, f"{who} has no {self.encapsulation}"]
        if self.encapsulation != "l2xc" and other["tag"] != self.tag:
            found.append(f"{who}: {other['name']} bears {other['tag']!r}")
        for one, two in ((access, other), (other, access)):
            if config.connects.get(one["index"]) != two["index"]:
                found.append(f"{who}: {one['name']} is not connected to {two['name']}")
        return found

    def access(self, config: VppConfig) -> dict[str, Any] | None:
        port = config.named(self.interface)
        if port is None or self.tagging == "untagged":
            return port
        for each in config.interfaces.values():
            if (
                each["parent"] == port["index"] != each["index"]
                and each["tags"] == TAGS[self.tagging]
                and each["dot1ad"] == (self.tagging == "dot1ad")
                and each["outer"] == self.outer
                and each["inner"] == (self.inner or 0)
            ):
                return each
        return None

    def tunnel(self, config: VppConfig) -> dict[str, Any] | None:
        for each in config.shown["tunnels"]:
            if (each["kind"], each["local"], each["remote"], each["vni"], each["gre_key"]) == (
                self.encapsulation,
                self.local,
                self.remote,
                self.vni or 0,
                self.gre_key or 0,
            ):
                return config.interfaces[each["index"]]
        return None


def expected_ends(database: psycopg.Connection[Any]) -> list[End]:
    return _ends(database, _WANTED)


def released_ends(database: psycopg.Connection[Any]) -> list[End]:
    """Return the ends that the portal has released, as they were at the time of the release."""
    return _ends(database, _RELEASED)


def _ends(database: psycopg.Connection[Any], which: LiteralString) -> list[End]:
    with database.cursor(row_factory=class_row(End)) as cursor:
        return cursor.execute(_ENDS.format(which)).fetchall()


def flaws(ends: list[End], configs: dict[str, VppConfig]) -> list[str]:
    """Return the differences between these ends and the configurations of the VPPs."""
    by_key = {(end.vll, end.side): end for end in ends}
    found = []
    for end in ends:
        far = by_key[end.vll, "z" if end.side == "a" else "a"]
        found += end.flaws(configs[end.router], far)
    return found


def strays(ends: list[End], configs: dict[str, VppConfig]) -> list[str]:
    """Return interfaces that carry a tag of an end that the database does not have on this router."""
    wanted = {(end.router, end.tag) for end in ends}
    return [
        f"{router}: {each['name']} bears {each['tag']} and is wanted by nobody"
        for router, config in configs.items()
        for each in config.tagged()
        if (router, each["tag"]) not in wanted
    ]
