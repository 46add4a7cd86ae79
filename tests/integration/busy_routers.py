"""Fill routers with booked load for tests."""

import uuid
from uuid import UUID

from portal.allocation.cpu_core_bookings import bookable_of
from portal.allocation.models import CoreBooking, RouterLoad
from portal.inventory.models import Router
from tests.integration.isp import Isp


def fill(isp: Isp, *routers: str, except_load: int) -> UUID:
    """Book the whole capacity of Rhino and Hippo except this load; return the id of the owner."""
    owner = uuid.uuid4()
    names = routers or ("rhino", "hippo")
    for side, router in zip("az", Router.objects.filter(name__in=names), strict=False):
        total, _ = RouterLoad.objects.get_or_create(router=router, defaults={"booked": 0})
        whole = bookable_of(router) - except_load
        CoreBooking.objects.create(router=router, owner=owner, side=side, load=whole - total.booked)
        RouterLoad.objects.filter(pk=router.pk).update(booked=whole)
    return owner
