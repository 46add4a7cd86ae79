"""A large network that is written directly into the tables, and a certificate for each of its routers.

Import this module after Django has been set up.
"""

from pathlib import Path

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
