"""Leasing VLANs on a port: an insert that the exclusion constraint may refuse."""

from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange

from portal.allocation.errors import NoVlanFree, VlanTaken
from portal.allocation.models import PortVlanLease
from portal.allocation.tag_keys import tag_keys
from portal.core.tagging import Tagging
from portal.inventory.models import Port


def vlan_lease(
    *,
    port: Port,
    holder: UUID,
    side: str,
    tagging: Tagging,
    outer: int | None,
    inner: int | None,
    exact_match: bool,
    now: datetime,
) -> PortVlanLease:
    """Lease these tags, or raise ``VlanTaken``. ``outer`` None on a tagged service means any free one.

    The caller holds the port's row lock, which makes "any" deterministic; uniqueness itself is the
    constraint's work and needs no lock.
    """
    if tagging is not Tagging.UNTAGGED and outer is None:
        outer = _first_free_outer(port, side, tagging, inner, exact_match)
    first, end = tag_keys(tagging, outer=outer, inner=inner, exact_match=exact_match)
    try:
        with transaction.atomic():
            return PortVlanLease.objects.create(
                port=port, holder=holder, side=side, keys=NumericRange(first, end), leased_at=now
            )
    except IntegrityError as error:
        if "vlan_leased_once_per_port" not in str(error):
            raise
        field = f"{side}_end.port" if tagging is Tagging.UNTAGGED else f"{side}_end.outer_vlan"
        raise VlanTaken(field=field, port=str(port), tags=_tags(tagging, outer, inner)) from error


def _first_free_outer(port: Port, side: str, tagging: Tagging, inner: int | None, exact_match: bool) -> int:
    taken = [(lease.keys.lower, lease.keys.upper) for lease in PortVlanLease.objects.filter(port=port)]
    for outer in range(1, 4095):
        first, end = tag_keys(tagging, outer=outer, inner=inner, exact_match=exact_match)
        if not any(low < end and first < high for low, high in taken):
            return outer
    raise NoVlanFree(field=f"{side}_end.outer_vlan", port=str(port))


def outer_vlan_of(lease: PortVlanLease) -> int | None:
    """The outer VLAN of a lease, None for a whole port."""
    return None if lease.keys.upper - lease.keys.lower == 2**25 else (lease.keys.lower >> 12) & 0xFFF


def vlans_release(*, holder: UUID) -> None:
    """Give back all VLANs of a VLL at once: a customer's VLAN needs no rest."""
    PortVlanLease.objects.filter(holder=holder).delete()


def _tags(tagging: Tagging, outer: int | None, inner: int | None) -> str:
    if tagging is Tagging.UNTAGGED:
        return "the whole port"
    return f"{tagging} {outer}" if inner is None else f"{tagging} {outer}.{inner}"
