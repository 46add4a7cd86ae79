"""A large network that is written directly into the tables, its certificates, and its simulated agents.

Call the functions that write rows after Django has been set up. The simulated agents report over persistent
connections with mutual TLS. One event loop serves all agents. Texts are built only once, because the load and
the portal share the processors.
"""

import asyncio
import json
import ssl
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from devstack.process import LOOPBACK

_TABLES = """
INSERT INTO inventory_site (id, name) VALUES (1, 'site');
INSERT INTO accounts_customer (id, name, created_at)
SELECT n, 'customer-' || n, now() FROM generate_series(1, {customers}) n;
INSERT INTO inventory_router (id, name, site_id, loopback4, agent_url, cpu, cores, generation)
SELECT n, 'router-' || n, 1, inet '10.255.0.0' + n, 'https://router-' || n, '', 4, 0
FROM generate_series(1, {routers}) n;
INSERT INTO inventory_backbonelink (a_router_id, a_interface, a_metric, z_router_id, z_interface, z_metric,
                                    ipv4, ipv6, in_service)
SELECT n, 'bb0', 10, 1 + n % {routers}, 'bb1', 10, true, true, true FROM generate_series(1, {routers}) n;
INSERT INTO inventory_port (id, router_id, interface, description, kind, customer_id, speed_bps, bookable_bps,
                            booked_bps, max_frame)
SELECT n, n, 'eth0', '', 'uni', 1, 1e11, 1e11, 0, 9022 FROM generate_series(1, {routers}) n;
-- Earlier reports of the routers. The first reports of a new network would take longer.
INSERT INTO inventory_topologyversion (id, version) VALUES (1, gen_random_uuid());
INSERT INTO inventory_observedinterface (router_id, name, admin_up, link_up, ip_mtu, linux_cp)
SELECT n, name, true, true, 9000, ''
FROM generate_series(1, {routers}) n, unnest(ARRAY['bb0', 'bb1', 'eth0', 'loop0']) AS name;
INSERT INTO inventory_tunneladdress (router_id, address) SELECT id, loopback4 FROM inventory_router;
INSERT INTO inventory_observedroute (router_id, address, reachable)
SELECT one.id, other.loopback4, true
FROM inventory_router one JOIN inventory_router other ON other.id <> one.id;
-- Far in the future, so that no router becomes silent before its first report.
INSERT INTO inventory_observedrouter (router_id, reported_at, boot_id, sent_ms, agent_version, vpp_connected,
                                      vpp_version, simulated, policing)
SELECT id, now() + interval '1 hour', gen_random_uuid(), 0, 'bench', true, '25.10', true, 'none'
FROM inventory_router;
CREATE TEMPORARY TABLE made AS
SELECT n, gen_random_uuid() AS id, 1 + n % {customers} AS customer, 1 + n % {routers} AS a,
       1 + (n + 1 + n / {routers} % {peers} * 13) % {routers} AS z
FROM generate_series(0, {lines} - 1) n;
INSERT INTO vll_vll (id, customer_id, description, created_at, lifecycle, admin_status, oper_status, in_sync,
                     svc_mtu, cir_bps, eir_bps, requested_transport, encapsulation, family, vni, frame,
                     revision, wanted_present)
SELECT id, customer, 'line ' || n, now(), 'active', 'admin-up', 'op-up', true, 1500, 1e6,
       0, 'auto', 'vxlan', 4, 1 + n, 1514, 1, true FROM made;
INSERT INTO vll_vllend (vll_id, side, port_id, tagging, requested_outer_vlan, outer_vlan, exact_match,
                        tunnel_address, status, status_revision, status_at, link_up, reachable,
                        observed_in_sync, policed, drift)
SELECT id, side, CASE side WHEN 'a' THEN a ELSE z END, 'dot1q', vlan, vlan, true,
       '10.255.0.1', 'verified', 1, now(), true, true, true, false, '[]'
FROM made
CROSS JOIN LATERAL (VALUES ('a', 1 + n / {routers}), ('z', 2001 + n / {routers})) AS ends (side, vlan);
"""


def network_fill(
    *, routers: int, lines: int, peers: int | None = None, customers: int = 1
) -> dict[int, list[tuple[str, str]]]:
    """Fill the database with a network. Return the ends, (line, side), keyed by the router's id.

    The database must be empty and migrated. The routers form a ring; their loopbacks begin with 10.255.0.1.
    Each router has the same number of lines in service. The lines whose A end is on one router lead to
    ``peers`` other routers. If ``peers`` is None, each of these lines leads to a different router. In the
    result, A ends come before Z ends, so that the first ends of two routers belong to different lines.
    """
    from django.db import connection, transaction

    from portal.core.clock import now
    from portal.telemetry.partitioned_tables import partitions_keep

    with connection.cursor() as cursor:
        with transaction.atomic():
            # The rows satisfy all constraints and triggers, but checking them would take minutes.
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(
                _TABLES.format(routers=routers, lines=lines, peers=peers or lines, customers=customers)
            )
            cursor.execute(
                "SELECT port_id, vll_id::text, side FROM vll_vllend ORDER BY port_id, side, vll_id"
            )
            rows = cursor.fetchall()
        cursor.execute("VACUUM ANALYZE")
    partitions_keep(now=now())
    ends: dict[int, list[tuple[str, str]]] = {number: [] for number in range(1, routers + 1)}
    for router, vll, side in rows:
        ends[router].append((vll, side))
    return ends


def certificates_issue(folder: Path, *, routers: int) -> None:
    """Issue certificates: ca, portal, and ``router-<id>.pem`` for each router.

    Register the routers' certificates. All routers share one key, ``router.key``, so that a measurement does
    not include the generation of keys.
    """
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

    from portal.core.clock import now
    from portal.inventory import pki
    from portal.inventory.models import RouterCertificate
    from portal.inventory.pki import PORTAL_URI, identity_of, router_uri

    at = now()
    authority = pki.authority_create(folder, now=at)
    for name, uri in (("portal", PORTAL_URI), ("router", router_uri("router"))):
        pki.certificate_issue(folder, authority=authority, file_name=name, uri=uri, now=at)
    rows = []
    key = load_pem_private_key((folder / "router.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)  # noqa: S101 - we made it
    for number in range(1, routers + 1):
        certificate = pki.certificate_sign(
            key.public_key(),
            authority=authority,
            common_name=f"router-{number}",
            uri=router_uri(f"router-{number}"),
            now=at,
        )
        identity = identity_of(certificate.public_bytes(Encoding.DER))
        rows.append(
            RouterCertificate(
                router_id=number,
                serial=identity.serial,
                fingerprint=identity.fingerprint,
                issued_at=at,
                expires_at=at + pki.LIFETIME,
            )
        )
        (folder / f"router-{number}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    RouterCertificate.objects.bulk_create(rows)


EVERY_S = 10.0
KINDS = ("observed", "counters")
# The capabilities of an early release of the agent.
_PLAIN: dict[str, Any] = {"encapsulations": ["l2xc", "vxlan"]}


class End(NamedTuple):
    """An end of a line on the agent's router."""

    vll: str
    side: str
    revision: int = 1
    policed: bool = False


@dataclass
class ReportingAgent:
    """One router and its two kinds of report, observed and counters.

    ``capabilities``: the members of a report that announce capabilities. ``path``: the state that the agent
    reports for the path of each end. ``every_s``: the seconds that a sample covers.
    """

    name: str
    context: ssl.SSLContext
    interfaces: bytes
    routes: bytes
    capabilities: dict[str, Any] = field(default_factory=lambda: dict(_PLAIN))
    path: dict[str, Any] | None = None
    every_s: float = EVERY_S
    generation: int = 1
    boot_id: str = field(default_factory=lambda: str(uuid4()))
    # Whether the customer's link at the first end is down.
    turned: bool = False
    sampled: int = 0
    # The etags that the portal returned for parts that it has stored (docs/reference/agent-reports.md).
    # Agents keep these etags.
    etags: dict[str, str] = field(default_factory=dict)
    first: End | None = None
    # The number of changes of the list of ends.
    changes: int = 0
    _ends: list[bytes] = field(default_factory=list)
    counts: bytes = b"[]"

    def carries(self, ends: Sequence[End]) -> None:
        """Replace the ends.

        ``turn`` changes the link of the first end that the agent had at the first call of this method.
        """
        self.first = self.first or next(iter(ends), None)
        ends = sorted(ends, key=lambda end: self.first is None or end[:2] != self.first[:2])
        state = {"link_up": True, "reachable": True, "in_sync": True, "drift": []}
        state |= {"path": self.path} if self.path else {}
        counts = {
            "in_bytes": 12_500_000,
            "in_packets": 10_000,
            "out_bytes": 1,
            "out_packets": 1,
            "policer": None,
        }
        self._ends = [
            json.dumps(
                {"vll": end.vll, "end": end.side, "revision": end.revision, "policed": end.policed, **state}
            ).encode()
            for end in ends
        ]
        self.counts = json.dumps([{"vll": end.vll, "end": end.side, **counts} for end in ends]).encode()
        self._changed()

    def turn(self) -> None:
        """Set the customer's link at the first end down, or up again."""
        self.turned = not self.turned
        self._changed()

    def _changed(self) -> None:
        self.changes += 1
        self.etags.pop("ends", None)

    def observed(self, *, whole: bool) -> bytes:
        now_ms = int(time.time() * 1000)
        if whole:
            self.etags = {}
        head = {
            "schema": 1,
            "boot_id": self.boot_id,
            "sent_ms": now_ms,
            "look": now_ms * 1000,
            "agent_version": "bench",
            "vpp": {"connected": True, "version": "25.10", "boot_ms": 1, "simulated": True, "workers": 1},
            "generation": {"held": self.generation, "applied": self.generation},
            "watch_etag": self.etags.get("watch_routes"),
            **self.capabilities,
        }
        return b'%s, "interfaces": %s, "routes": %s, "ends": %s}' % (
            json.dumps(head)[:-1].encode(),
            self.interfaces,
            self._named("routes") or self.routes,
            self._named("ends") or b"[%s]" % b", ".join(self._reported_ends()),
        )

    def _reported_ends(self) -> Iterable[bytes]:
        if not self.turned:
            return self._ends
        return [self._ends[0].replace(b'"link_up": true', b'"link_up": false'), *self._ends[1:]]

    def _named(self, part: str) -> bytes | None:
        return b'{"etag": "%s"}' % self.etags[part].encode() if part in self.etags else None

    def counters(self) -> bytes:
        now_ms = int(time.time() * 1000)
        self.sampled += 1
        sample = {"seq": self.sampled, "from_ms": now_ms - int(self.every_s * 1000), "to_ms": now_ms}
        head = {"schema": 1, "boot_id": self.boot_id, "sent_ms": now_ms, "simulated": True, "dropped": 0}
        return b'%s, "samples": [%s, "ends": %s}]}' % (
            json.dumps(head)[:-1].encode(),
            json.dumps(sample)[:-1].encode(),
            self.counts,
        )


def agents_of(ends: dict[int, list[tuple[str, str]]], folder: Path, **more: Any) -> dict[int, ReportingAgent]:
    """Return an agent for each router of `devstack.large_network`, keyed by the router's id.

    ``folder`` contains the certificates.
    """
    agents = {number: _agent(number, len(ends), folder, **more) for number in ends}
    for number, agent in agents.items():
        agent.carries([End(vll, side) for vll, side in ends[number]])
    return agents


def _agent(number: int, routers: int, folder: Path, **more: Any) -> ReportingAgent:
    loopbacks = {other: str(IPv4Address("10.255.0.0") + other) for other in range(1, routers + 1)}
    own = loopbacks.pop(number)
    load = {"rx_bps": 5_012_344, "tx_bps": 812, "speed_bps": 10**10}
    observed = {"admin_up": True, "link_up": True, "ip_mtu": 9000, "tag": None, "linux_cp": None}
    interfaces = [
        {"name": name, "sw_if_index": index, "addresses": addresses, "load": load, **observed}
        for index, (name, addresses) in enumerate(
            {"bb0": [], "bb1": [], "eth0": [], "loop0": [f"{own}/32"]}.items(), start=1
        )
    ]
    routes = [{"address": address, "reachable": True} for address in loopbacks.values()]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(folder / f"router-{number}.pem", folder / "router.key")
    return ReportingAgent(
        name=f"router-{number}",
        context=context,
        interfaces=json.dumps(interfaces).encode(),
        routes=json.dumps(routes).encode(),
        **more,
    )


async def send(connection: "Connection", agent: ReportingAgent, kind: str) -> int:
    """Send a report and return the status of the last response.

    If the portal needs a complete report, send that report immediately.
    """
    if kind == "counters":
        status, _ = await connection.post(kind, agent.counters())
        return status
    changes = agent.changes
    status, response = await connection.post(kind, agent.observed(whole=False))
    if status == 412:
        changes = agent.changes
        status, response = await connection.post(kind, agent.observed(whole=True))
    if status == 200:
        agent.etags = json.loads(response)["etags"]
        if changes != agent.changes:
            del agent.etags["ends"]
    return status


async def send_at(due: float, connection: "Connection", agent: ReportingAgent, kind: str) -> int:
    """Call ``send`` at the time ``due`` (``time.perf_counter``). If this time has passed, call it
    immediately.
    """
    await asyncio.sleep(max(0.0, due - time.perf_counter()))
    return await send(connection, agent, kind)


@dataclass
class Connection:
    """A persistent connection. If it was closed, the next document opens it again."""

    port: int
    context: ssl.SSLContext
    host: str = LOOPBACK
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, kind: str, body: bytes) -> tuple[int, bytes]:
        """Send a document. Return the status and the body of the response.

        If an existing connection fails, send the document again over a new connection. If that fails too, the
        status is 0.
        """
        was_open = self.streams is not None
        try:
            if self.streams is None:
                self.streams = await asyncio.open_connection(self.host, self.port, ssl=self.context)
            status, response, closes = await _post(*self.streams, kind, body)
        except (OSError, asyncio.IncompleteReadError):
            status, response, closes = 0, b"", True
        if closes:
            self.drop()
        # An existing connection may have been idle for longer than the portal keeps it open, so try again.
        return await self.post(kind, body) if status == 0 and was_open else (status, response)

    def drop(self) -> None:
        """Close the connection. The next document opens a new connection."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def _post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: str, body: bytes
) -> tuple[int, bytes, bool]:
    """Return the status, the body, and whether the server will close the connection."""
    writer.write(
        b"POST /api/agent/v1/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (kind.encode(), len(body), body)
    )
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head.split(b" ", 2)[1])
    if b"content-length:" not in head:
        return status, b"", True
    response = await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
    return status, response, b"connection: close" in head
