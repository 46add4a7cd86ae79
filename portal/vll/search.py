"""Finding VLLs by whatever somebody has at hand: a name, a port, a number, an id."""

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from portal.inventory.models import Port
from portal.vll.models import Order, Vll, VllEnd


def vlls_found(text: str) -> QuerySet[Any, Any]:
    """The ids of the VLLs that ``text`` may mean; the caller narrows them to a tenant.

    A union of narrow look-ups: each walks an index of its own, which a single OR over joins cannot.
    """
    text = text.strip()
    ports = Port.objects.filter(Q(interface__icontains=text) | Q(router__name__icontains=text))
    found = [
        Vll.objects.filter(description__icontains=text).values("pk"),
        VllEnd.objects.filter(port__in=ports).values("vll"),
    ]
    if text.isascii() and text.isdigit() and len(text) < 9:
        number = int(text)
        found += [
            Vll.objects.filter(vni=number).values("pk"),
            VllEnd.objects.filter(outer_vlan=number).values("vll"),
            VllEnd.objects.filter(inner_vlan=number).values("vll"),
        ]
    if row := _uuid(text):
        found += [Vll.objects.filter(pk=row).values("pk"), Order.objects.filter(pk=row).values("vll")]
    return found[0].union(*found[1:])


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
