"""Lines on imported ports, with ids that are the same in each run."""

from typing import Any
from uuid import UUID

from portal.core import clock
from portal.inventory.models import Port
from portal.vll.models import Vll, VllEnd
from portal.vll.states import Lifecycle

FIRST = UUID("11111111-2222-4333-8444-555555555501")
SECOND = UUID("22222222-3333-4444-8555-666666666602")


def port(name: str) -> Port:
    router, interface = name.split(":")
    return Port.objects.get(router__name=router, interface=interface)


def line(pk: UUID = FIRST, *, vlan: int = 100, vni: int = 70001, **changes: Any) -> Vll:
    """Create Alpine Dairy's line from rhino:cust0 to hippo:cust0 with dot1q, as an order leaves it."""
    a = port("rhino:cust0")
    vll = Vll.objects.create(
        pk=pk,
        **{
            "customer": a.customer,
            "description": "ZRH-BRN",
            "created_at": clock.now(),
            "lifecycle": Lifecycle.ACTIVE,
            "svc_mtu": 1500,
            "cir_bps": 10**8,
            "requested_transport": "auto",
            "encapsulation": "vxlan",
            "family": 4,
            "vni": vni,
            "frame": 1514,
            **changes,
        },
    )
    for side, where in (("a", a), ("z", port("hippo:cust0"))):
        VllEnd.objects.create(
            vll=vll, side=side, port=where, tagging="dot1q", requested_outer_vlan=vlan, outer_vlan=vlan
        )
    return vll


def over(vll: Vll) -> None:
    Vll.objects.filter(pk=vll.pk).update(
        lifecycle=Lifecycle.TERMINATED, wanted_present=False, revision=vll.revision + 1
    )
