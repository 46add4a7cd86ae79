"""For found lines, propose customers and names from the L2VPNs in NetBox with the same VNI."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from portal.accounts.models import Customer
from portal.core.network.encapsulations import Encapsulation
from portal.core.plain_text import made_plain
from portal.inventory.found_lines import FoundLine
from portal.inventory.models import ObservedCircuit
from portal.netbox_sync import line_export
from portal.netbox_sync.client import Client, Row
from portal.netbox_sync.errors import NetboxError
from portal.netbox_sync.import_mapping import CUSTOMER
from portal.netbox_sync.models import NetboxL2vpn, NetboxObject

_PATH = "vpn.l2vpns"
_FIELDS = ("id", "identifier", "name", "tenant", "custom_fields")
# The maximum number of identifiers in one request. More of them might make the URL too long for a proxy.
_AT_ONCE = 100
_NAME = 100
_WITH_VNI = [each.value for each in Encapsulation if each.leases_vni]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal for a found line.

    ``l2vpn``: the name of the L2VPN in NetBox. ``customer``: the name of the portal's customer for the
    L2VPN's tenant; "" if there is none.
    """

    l2vpn: str
    customer: str


class L2vpnProposals:
    """The proposals for some found lines, read with a fixed number of queries."""

    def __init__(self, lines: Iterable[FoundLine]) -> None:
        vnis = {line.key or 0 for line in lines if _has_vni(line)} if settings.NETBOX_URL else set[int]()
        self._by_vni: dict[int, list[NetboxL2vpn]] = {}
        for each in NetboxL2vpn.objects.filter(identifier__in=vnis) if vnis else ():
            self._by_vni.setdefault(each.identifier, []).append(each)
        self._customers = _customers(each for some in self._by_vni.values() for each in some)

    def of(self, line: FoundLine) -> Proposal | None:
        """Return the proposal for a line; None if NetBox does not have exactly one L2VPN with the line's VNI.

        Identifiers of L2VPNs need not be unique.
        """
        found = self._by_vni.get(line.key or 0, []) if _has_vni(line) else []
        if len(found) != 1:
            return None
        return Proposal(l2vpn=found[0].name, customer=self._customers.get(found[0].pk, ""))


def l2vpns_refresh(client: Client) -> None:
    """Read from NetBox the L2VPNs with the VNIs of foreign circuits, and replace the stored L2VPNs.

    Without foreign circuits with a VNI, NetBox is not queried. Raises NetboxError.
    """
    circuits = ObservedCircuit.objects.filter(encapsulation__in=_WITH_VNI, key__gt=0)
    vnis = sorted({key or 0 for key in circuits.values_list("key", flat=True)})
    found = [row for at in range(0, len(vnis), _AT_ONCE) for row in _read(client, vnis[at : at + _AT_ONCE])]
    with transaction.atomic():
        NetboxL2vpn.objects.all().delete()
        NetboxL2vpn.objects.bulk_create(found)


def _read(client: Client, vnis: list[int]) -> Iterator[NetboxL2vpn]:
    try:
        for row in client.rows(_PATH, fields=_FIELDS, identifier=vnis):
            # Check the identifier, because NetBox ignores unknown filters. L2VPNs that the portal wrote are
            # not proposals.
            if row.get("identifier") in vnis and not _is_ours(row):
                yield _kept(row)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NetboxError("nonsense", what=_PATH, why=f"{type(error).__name__}: {error}") from error


def _kept(row: Row) -> NetboxL2vpn:
    tenant: dict[str, Any] = row.get("tenant") or {}
    return NetboxL2vpn(
        netbox_id=row["id"],
        identifier=row["identifier"],
        name=_plain(row["name"]),
        tenant=_plain(tenant.get("name", "")),
        tenant_id=tenant.get("id"),
    )


def _is_ours(row: Row) -> bool:
    return bool((row.get("custom_fields") or {}).get(line_export.ID_FIELD))


def _plain(text: Any) -> str:
    return made_plain(str(text).replace("\0", " "))[:_NAME].strip()


def _has_vni(line: FoundLine) -> bool:
    return line.key is not None and line.transport is not None and line.transport.encapsulation.leases_vni


def _customers(l2vpns: Iterable[NetboxL2vpn]) -> dict[int, str]:
    """Return, by L2VPN, the customer imported from its tenant, else the customer with the tenant's name."""
    of_tenants = [each for each in l2vpns if each.tenant_id is not None]
    if not of_tenants:
        return {}
    known = NetboxObject.objects.filter(kind=CUSTOMER, netbox_id__in=[each.tenant_id for each in of_tenants])
    ids = dict(known.values_list("netbox_id", "row_id"))
    in_service = Customer.objects.filter(retired_at__isnull=True)
    by_id = dict(in_service.filter(pk__in=ids.values()).values_list("pk", "name"))
    of_name = in_service.filter(name__in=[each.tenant for each in of_tenants])
    names = set(of_name.values_list("name", flat=True))
    found = {}
    for each in of_tenants:
        if name := by_id.get(ids.get(each.tenant_id or 0, 0)) or (
            each.tenant if each.tenant in names else ""
        ):
            found[each.pk] = name
    return found
