"""Giving back everything that a VLL held, once nothing of it is left on a router."""

from datetime import datetime, timedelta

from django.conf import settings

from portal.allocation.bandwidth import bandwidth_release
from portal.allocation.gre_pairs import gre_pair_release
from portal.allocation.vlans import vlans_release
from portal.allocation.vnis import vni_release
from portal.vll.models import Vll


def leases_release(vll: Vll, *, now: datetime) -> None:
    """VLANs and bandwidth at once; VNI and GRE pair after their hold-down."""
    rest = timedelta(seconds=settings.LONGLINE_HOLD_DOWN_S)
    # Bandwidth first: that locks the ports, as an order for the same VLANs does before it asks for them.
    bandwidth_release(holder=vll.pk)
    vlans_release(holder=vll.pk)
    vni_release(holder=vll.pk, rest=rest, now=now)
    gre_pair_release(holder=vll.pk, rest=rest, now=now)
