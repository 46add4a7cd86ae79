"""Reports of a large network: every router tells what it sees and what it counts every 10 s, over mutual TLS.

The load has a timetable and waits for nobody: what is answered late is late from the moment it was due.
"""

import asyncio
import json
import os
import random
import resource
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from bench.cpu import cpu_s
from bench.database import migrated
from bench.figures import Figure, percentile
from devstack.paths import ROOT, VENV_BIN
from devstack.ports import LOOPBACK, accepts, free_ports
from devstack.process import Child, Family

ROUTERS, LINES_A_ROUTER, EVERY_S = 1_000, 100, 10.0
MEASURED = 6
# Too many routers come back at once (docs/agent-api.md).
_BUSY = 429
# For the first time each tells everything, so many at a time.
_AT_A_TIME = 16
# Meanwhile all of them have been silent for too long. Reports follow the timetable until nobody is refused.
_MOST_ROUNDS = 30
# Of all reports of ends these tell of one customer's link that turned.
NEWS = 0.05
_TABLES = """
INSERT INTO inventory_site (id, name) VALUES (1, 'site');
INSERT INTO accounts_customer (id, name, created_at) VALUES (1, 'customer', now());
INSERT INTO inventory_router (id, name, site_id, loopback4, agent_url, cpu, cores, generation)
SELECT n, 'router-' || n, 1, inet '10.255.0.0' + n, 'https://router-' || n, '', 4, 0
FROM generate_series(1, {routers}) n;
INSERT INTO inventory_backbonelink (a_router_id, a_interface, a_metric, z_router_id, z_interface, z_metric,
                                    ipv4, ipv6, in_service)
SELECT n, 'bb0', 10, 1 + n % {routers}, 'bb1', 10, true, true, true FROM generate_series(1, {routers}) n;
INSERT INTO inventory_port (id, router_id, interface, description, kind, customer_id, speed_bps, bookable_bps,
                            booked_bps, max_frame)
SELECT n, n, 'eth0', '', 'uni', 1, 1e11, 1e11, 0, 9022 FROM generate_series(1, {routers}) n;
-- What the routers have told before: a network that is met for the first time is another matter.
INSERT INTO inventory_topologyversion (id, version) VALUES (1, gen_random_uuid());
INSERT INTO inventory_observedinterface (router_id, name, admin_up, link_up, ip_mtu, linux_cp)
SELECT n, name, true, true, 9000, ''
FROM generate_series(1, {routers}) n, unnest(ARRAY['bb0', 'bb1', 'eth0', 'loop0']) AS name;
INSERT INTO inventory_tunneladdress (router_id, address) SELECT id, loopback4 FROM inventory_router;
INSERT INTO inventory_observedroute (router_id, address, reachable)
SELECT one.id, other.loopback4, true
FROM inventory_router one JOIN inventory_router other ON other.id <> one.id;
-- Not silent, however long it takes until each has told something again.
INSERT INTO inventory_observedrouter (router_id, reported_at, boot_id, sent_ms, agent_version, vpp_connected,
                                      vpp_version, simulated, policing)
SELECT id, now() + interval '1 hour', gen_random_uuid(), 0, 'bench', true, '25.10', true, 'none'
FROM inventory_router;
CREATE TEMPORARY TABLE made AS
SELECT n, gen_random_uuid() AS id, 1 + n % {routers} AS a,
       1 + (n + 1 + n / {routers} * 13) % {routers} AS z
FROM generate_series(0, {routers} * {lines} / 2 - 1) n;
INSERT INTO vll_vll (id, customer_id, description, created_at, lifecycle, admin_status, oper_status, in_sync,
                     svc_mtu, cir_bps, eir_bps, requested_transport, encapsulation, family, vni, frame,
                     revision, wanted_present)
SELECT id, 1, 'line ' || n, now(), 'active', 'admin-up', 'op-up', true, 1500, 1e6,
       0, 'auto', 'vxlan', 4, 1 + n, 1514, 1, true FROM made;
INSERT INTO vll_vllend (vll_id, side, port_id, tagging, requested_outer_vlan, outer_vlan, exact_match,
                        tunnel_address, status, status_revision, status_at, link_up, reachable,
                        observed_in_sync, policed, drift)
SELECT id, side, CASE side WHEN 'a' THEN a ELSE z END, 'dot1q', 1 + n % 4094, 1 + n % 4094, true,
       '10.255.0.1', 'verified', 1, now(), true, true, true, false, '[]'
FROM made CROSS JOIN (VALUES ('a'), ('z')) AS ends (side);
"""


def measure() -> Iterator[Figure]:
    with migrated(), TemporaryDirectory(prefix="longline-bench-") as name:
        os.environ["LONGLINE_PKI_DIR"] = name
        agents = _network(Path(name))
        (port,) = free_ports(1)
        agent_api = Child(
            name="agent-api",
            argv=[
                str(VENV_BIN / "gunicorn"),
                *(
                    "--config",
                    "python:portal.processes.gunicorn_agent_api",
                    "--workers",
                    "2",
                    "--no-control-socket",
                ),
                *("--bind", f"{LOOPBACK}:{port}"),
            ],
            log=Path(name) / "agent-api.log",
            env=os.environ | {"LONGLINE_PKI_DIR": name},
            cwd=ROOT,
        )
        with Family() as family:
            family.start(agent_api)
            agent_api.wait_until(lambda: accepts(port))
            load = asyncio.run(_load(agents, port))
    offered = ROUTERS / EVERY_S
    note = (
        f"{ROUTERS} routers of {LINES_A_ROUTER} lines, each tells what it sees and what it counts every"
        f" {EVERY_S:.0f} s: {2 * offered:.0f} documents a second are offered, {NEWS:.0%} of the former have"
        f" news of a line; 2 processes, mutual TLS on {2 * ROUTERS} kept connections, fsync on; PostgreSQL"
        " and the load share the cores; before, all of them told everything for the first time in"
        f" {load.introduced_s:.0f} s, {_AT_A_TIME} at a time"
    )
    yield Figure(
        "reports_return_s",
        load.returned_s,
        "s",
        f"{ROUTERS} routers that were silent report as always, until all are read within one round;"
        f" refused until then: {load.refused}",
    )
    yield Figure("reports_per_s", load.rate("observed"), "1/s", f"{note}; refused or failed: {load.failed}")
    both = [took for kind in load.took.values() for took in kind]
    each = ", ".join(f"{kind} {percentile(took, 95) * 1000:.0f} ms" for kind, took in load.took.items())
    yield Figure("reports_p95_ms", percentile(both, 95) * 1_000, "ms", f"both documents; {each}")
    yield Figure(
        "reports_cpu_ms",
        load.portal_cpu_s / len(load.took["observed"]) * 1_000,
        "ms",
        "agent API and PostgreSQL, of a router's two documents; the load's own"
        f" {load.own_cpu_s / len(load.took['observed']) * 1_000:.1f} ms come on top",
    )


@dataclass
class Load:
    """Seconds of each answered document by its kind, and what the measured part cost."""

    took: dict[str, list[float]] = field(default_factory=lambda: {"observed": [], "counters": []})
    failed: int = 0
    began: float = 0.0
    ended: float = 0.0
    introduced_s: float = 0.0
    returned_s: float = 0.0
    refused: int = 0
    portal_cpu_s: float = 0.0
    own_cpu_s: float = 0.0

    def rate(self, kind: str) -> float:
        return len(self.took[kind]) / (self.ended - self.began)


@dataclass
class Agent:
    """One router's two kinds of report; texts are made once, because the load shares the processors."""

    name: str
    context: ssl.SSLContext
    interfaces: bytes
    routes: bytes
    ends: list[bytes]
    counts: bytes
    boot_id: str = field(default_factory=lambda: str(uuid4()))
    turned: bool = False
    sampled: int = 0
    # What the portal called what it stored last, as agents keep it (docs/agent-api.md).
    etags: dict[str, str] = field(default_factory=dict)

    def observed(self, *, whole: bool) -> bytes:
        now_ms = int(time.time() * 1000)
        if whole:
            self.etags = {}
        if random.random() < NEWS:
            self.turned = not self.turned
            self.etags.pop("ends", None)
        first = self.ends[0].replace(b'"link_up": true', b'"link_up": false') if self.turned else self.ends[0]
        head = {
            "schema": 1,
            "boot_id": self.boot_id,
            "sent_ms": now_ms,
            "look": now_ms * 1000,
            "agent_version": "bench",
            "vpp": {"connected": True, "version": "25.10", "boot_ms": 1, "simulated": True, "workers": 1},
            "encapsulations": ["l2xc", "vxlan"],
            "generation": {"held": 1, "applied": 1},
            "watch_etag": self.etags.get("watch_routes"),
        }
        return b'%s, "interfaces": %s, "routes": %s, "ends": %s}' % (
            json.dumps(head)[:-1].encode(),
            self.interfaces,
            self._named("routes") or self.routes,
            self._named("ends") or b"[%s]" % b", ".join([first, *self.ends[1:]]),
        )

    def _named(self, part: str) -> bytes | None:
        return b'{"etag": "%s"}' % self.etags[part].encode() if part in self.etags else None

    def counters(self) -> bytes:
        now_ms = int(time.time() * 1000)
        self.sampled += 1
        sample = {"seq": self.sampled, "from_ms": now_ms - int(EVERY_S * 1000), "to_ms": now_ms}
        head = {"schema": 1, "boot_id": self.boot_id, "sent_ms": now_ms, "simulated": True, "dropped": 0}
        return b'%s, "samples": [%s, "ends": %s}]}' % (
            json.dumps(head)[:-1].encode(),
            json.dumps(sample)[:-1].encode(),
            self.counts,
        )


async def _load(agents: list[Agent], port: int) -> Load:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    load = Load()
    connections = {
        (agent.name, kind): Connection(port, agent.context) for agent in agents for kind in load.took
    }
    few = asyncio.Semaphore(_AT_A_TIME)
    began = time.perf_counter()
    await asyncio.gather(*(_introduce(few, connections, agent) for agent in agents))
    load.introduced_s = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(_MOST_ROUNDS):
        round_began = time.perf_counter()
        answers = await asyncio.gather(
            *(
                _tell_at(due, connections[agent.name, kind], agent, kind)
                for agent, kind, due in _timetable(load, agents, round_began)
            )
        )
        load.refused += answers.count(_BUSY)
        if set(answers) == {200} and time.perf_counter() - round_began < 1.1 * EVERY_S:
            break
    else:
        raise RuntimeError(f"the network did not come back within {time.perf_counter() - began:.0f} s")
    load.returned_s = time.perf_counter() - began
    cpu, own = cpu_s(), time.process_time()
    load.began = time.perf_counter()
    await asyncio.gather(
        *(
            _report(load, connections[agent.name, kind], agent, kind, due)
            for agent, kind, due in _timetable(load, agents, load.began)
        )
    )
    load.ended = max(time.perf_counter(), load.began + MEASURED * EVERY_S)
    load.own_cpu_s = time.process_time() - own
    load.portal_cpu_s = cpu_s() - cpu - load.own_cpu_s
    return load


def _timetable(load: Load, agents: list[Agent], began: float) -> Iterator[tuple[Agent, str, float]]:
    """Of a round that begins then: whose document of which kind is due when."""
    for at, agent in enumerate(agents):
        for kind in load.took:
            yield agent, kind, began + at * EVERY_S / len(agents)


async def _introduce(
    few: asyncio.Semaphore, connections: dict[tuple[str, str], "Connection"], agent: Agent
) -> None:
    async with few:
        for kind in ("observed", "counters"):
            status = await _tell(connections[agent.name, kind], agent, kind)
            if status != 200:
                raise RuntimeError(f"the portal answered {agent.name}'s first report with {status}")


async def _tell_at(due: float, connection: "Connection", agent: Agent, kind: str) -> int:
    await asyncio.sleep(max(0.0, due - time.perf_counter()))
    return await _tell(connection, agent, kind)


async def _report(load: Load, connection: "Connection", agent: Agent, kind: str, due: float) -> None:
    for _ in range(MEASURED):
        if await _tell_at(due, connection, agent, kind) == 200:
            load.took[kind].append(time.perf_counter() - due)
        else:
            load.failed += 1
        due += EVERY_S


async def _tell(connection: "Connection", agent: Agent, kind: str) -> int:
    """The status of the last answer: what the portal wants whole is told again at once."""
    if kind == "counters":
        status, _ = await connection.post(kind, agent.counters())
        return status
    status, answer = await connection.post(kind, agent.observed(whole=False))
    if status == 412:
        status, answer = await connection.post(kind, agent.observed(whole=True))
    if status == 200:
        agent.etags = json.loads(answer)["etags"]
    return status


@dataclass
class Connection:
    """One that is kept, and made anew once it was closed."""

    port: int
    context: ssl.SSLContext
    host: str = LOOPBACK
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, kind: str, body: bytes) -> tuple[int, bytes]:
        """The status and the answer; 0 where there was none, on a new connection neither."""
        was_kept = self.streams is not None
        try:
            if self.streams is None:
                self.streams = await asyncio.open_connection(self.host, self.port, ssl=self.context)
            status, answer, closes = await _post(*self.streams, kind, body)
        except (OSError, asyncio.IncompleteReadError):
            status, answer, closes = 0, b"", True
        if closes:
            self.drop()
        # Kept for longer than the portal does.
        return await self.post(kind, body) if status == 0 and was_kept else (status, answer)

    def drop(self) -> None:
        """The next document goes over a new one."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def _post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: str, body: bytes
) -> tuple[int, bytes, bool]:
    """The status, the answer, and whether the connection is closed after it."""
    writer.write(
        b"POST /api/agent/v1/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (kind.encode(), len(body), body)
    )
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head.split(b" ", 2)[1])
    if b"content-length:" not in head:
        return status, b"", True
    answer = await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
    return status, answer, b"connection: close" in head


def _network(folder: Path) -> list[Agent]:
    """The network in the database, and an agent with a certificate for each of its routers."""
    from django.db import connection, transaction

    from portal.core.clock import now
    from portal.telemetry.partitions import partitions_keep

    with connection.cursor() as cursor:
        with transaction.atomic():
            # Rules are for what people do; these rows keep them, and their checks would take minutes.
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(_TABLES.format(routers=ROUTERS, lines=LINES_A_ROUTER))
            cursor.execute(
                "SELECT port_id, vll_id::text, side FROM vll_vllend ORDER BY port_id, vll_id, side"
            )
            rows = cursor.fetchall()
        cursor.execute("VACUUM ANALYZE")
    partitions_keep(now=now())
    ends: dict[int, list[tuple[str, str]]] = {number: [] for number in range(1, ROUTERS + 1)}
    for router, vll, side in rows:
        ends[router].append((vll, side))
    contexts = _certificates(folder)
    return [_agent(number, contexts[number], ends[number]) for number in ends]


def _agent(number: int, context: ssl.SSLContext, ends: list[tuple[str, str]]) -> Agent:
    loopbacks = {other: str(IPv4Address("10.255.0.0") + other) for other in range(1, ROUTERS + 1)}
    own = loopbacks.pop(number)
    load = {"rx_bps": 5_012_344, "tx_bps": 812, "speed_bps": 10**10}
    seen = {"admin_up": True, "link_up": True, "ip_mtu": 9000, "tag": None, "linux_cp": None}
    interfaces = [
        {"name": name, "sw_if_index": index, "addresses": addresses, "load": load, **seen}
        for index, (name, addresses) in enumerate(
            {"bb0": [], "bb1": [], "eth0": [], "loop0": [f"{own}/32"]}.items(), start=1
        )
    ]
    state = {
        "revision": 1,
        "link_up": True,
        "reachable": True,
        "in_sync": True,
        "policed": False,
        "drift": [],
    }
    counts = {"in_bytes": 12_500_000, "in_packets": 10_000, "out_bytes": 1, "out_packets": 1, "policer": None}
    routes = [{"address": address, "reachable": True} for address in loopbacks.values()]
    return Agent(
        name=f"router-{number}",
        context=context,
        interfaces=json.dumps(interfaces).encode(),
        routes=json.dumps(routes).encode(),
        ends=[json.dumps({"vll": vll, "end": side, **state}).encode() for vll, side in ends],
        counts=json.dumps([{"vll": vll, "end": side, **counts} for vll, side in ends]).encode(),
    )


def _certificates(folder: Path) -> dict[int, ssl.SSLContext]:
    """A certificate for each router, all of one key: making keys is no part of what is measured."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

    from portal.core.clock import now
    from portal.inventory import pki
    from portal.inventory.certificate_identity import PORTAL_URI, identity_of, router_uri
    from portal.inventory.models import RouterCertificate

    at = now()
    authority = pki.authority_create(folder, now=at)
    for name, uri in (("portal", PORTAL_URI), ("router", router_uri("router"))):
        pki.certificate_issue(folder, authority=authority, file_name=name, uri=uri, now=at)
    contexts, rows = {}, []
    key = load_pem_private_key((folder / "router.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    for number in range(1, ROUTERS + 1):
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
        path = folder / f"router-{number}.pem"
        path.write_bytes(certificate.public_bytes(Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(path, folder / "router.key")
        contexts[number] = context
    RouterCertificate.objects.bulk_create(rows)
    return contexts
