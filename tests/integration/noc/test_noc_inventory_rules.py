"""Rules for writes to the inventory: unique values stay unique, and objects in use cannot be removed."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from portal.accounts.models import Customer, User
from portal.allocation.errors import VniRangeBackwards, VniRangeInUse
from portal.allocation.models import ReservedVniRange
from portal.allocation.tunnel_leases import vni_range_change, vni_range_create, vni_range_remove
from portal.core import clock
from portal.core.errors import DomainError
from portal.events.models import Event
from portal.inventory import operations
from portal.inventory.errors import (
    BookableBelowBooked,
    CoordinateMissing,
    InterfaceTaken,
    InUse,
    LinkInService,
    LinkWithinRouter,
    NotAnInterfaceName,
    OutOfRange,
    Retired,
    ValueTaken,
)
from portal.inventory.interfaces import with_link_speed
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.inventory.operations import (
    customer_change,
    customer_remove,
    link_change,
    link_create,
    port_change,
    port_remove,
    router_change,
    router_remove,
)
from portal.vll.models import Attempt
from portal.vll.operations.line_removal import order_delete
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate, answer

pytestmark = pytest.mark.django_db


def by(user: User) -> dict[str, Any]:
    return {"user": user, "now": clock.now()}


def side(router: Router, interface: str, which: str) -> dict[str, Any]:
    return {f"{which}_router": router, f"{which}_interface": interface}


def test_site_is_created_renamed_and_removed(nora: User) -> None:
    site = operations.site_create(name="Bern", **by(nora))
    operations.site_change(site=site, name="Bern West", **by(nora))
    assert Site.objects.get().name == "Bern West"
    operations.site_remove(site=site, **by(nora))
    assert not Site.objects.exists()
    events = Event.objects.filter(kind__startswith="site.").order_by("id")
    assert [(event.kind, event.actor) for event in events] == [
        ("site.created", "nora"),
        ("site.changed", "nora"),
        ("site.removed", "nora"),
    ]
    assert events[1].data["changes"] == {"name": ["Bern", "Bern West"]}


def test_coordinates_of_a_site_are_stored_and_in_the_event(nora: User) -> None:
    site = operations.site_create(name="Bern", **by(nora))
    operations.site_change(site=site, latitude=Decimal("46.948"), longitude=Decimal("-7.4474"), **by(nora))
    assert Site.objects.get().coordinates == (46.948, -7.4474)
    event = Event.objects.get(kind="site.changed")
    assert event.data["changes"] == {"latitude": [None, "46.948"], "longitude": [None, "-7.4474"]}
    operations.site_change(site=site, latitude=None, longitude=None, **by(nora))
    assert Site.objects.get().coordinates is None


@pytest.mark.parametrize(
    ("latitude", "longitude", "field"),
    [
        ("90.000001", "0", "latitude"),
        ("0", "-180.000001", "longitude"),
        ("1", None, "longitude"),
        (None, "1", "latitude"),
    ],
)
def test_impossible_coordinates_are_refused(
    nora: User, latitude: str | None, longitude: str | None, field: str
) -> None:
    place = {
        name: value and Decimal(value) for name, value in (("latitude", latitude), ("longitude", longitude))
    }
    with pytest.raises((OutOfRange, CoordinateMissing)) as refusal:
        operations.site_create(name="Nowhere", **place, **by(nora))
    assert refusal.value.field == field
    assert refusal.value.sentence
    site = operations.site_create(name="Bern", **by(nora))
    with pytest.raises((OutOfRange, CoordinateMissing)) as refusal:
        operations.site_change(site=site, **place, **by(nora))
    assert refusal.value.field == field


def test_two_sites_cannot_have_one_name(isp: Isp, nora: User) -> None:
    with pytest.raises(ValueTaken) as refusal:
        operations.site_create(name="Zürich", **by(nora))
    assert refusal.value.field == "name"
    assert Site.objects.count() == 1


def test_site_with_routers_cannot_be_removed(isp: Isp, nora: User) -> None:
    with pytest.raises(InUse) as refusal:
        operations.site_remove(site=Site.objects.get(), **by(nora))
    assert refusal.value.used_by == ["hippo", "otter", "panda", "rhino", "zebra"]


def test_refusal_names_five_objects_and_counts_the_rest(isp: Isp, nora: User) -> None:
    site = Site.objects.get()
    operations.router_create(name="koala", site=site, **by(nora))
    with pytest.raises(InUse) as refusal:
        operations.site_remove(site=site, **by(nora))
    assert "and 1 more" in refusal.value.sentence
    assert refusal.value.facts["count"] == 6


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "rhino"),
        ("loopback4", "10.255.0.1"),
        ("loopback6", "fd00:255::1"),
        ("agent_url", "https://127.0.0.1:9441"),
    ],
)
def test_identifiers_of_a_router_are_unique(isp: Isp, nora: User, field: str, value: str) -> None:
    wanted = {"name": "koala", "site": isp.routers["rhino"].site, field: value}
    with pytest.raises(ValueTaken) as refusal:
        operations.router_create(**wanted, **by(nora))
    assert (refusal.value.field, refusal.value.value) == (field, value)


def test_agent_with_lines_on_its_router_cannot_be_removed(isp: Isp, alice: User, nora: User) -> None:
    order(isp, alice)
    with pytest.raises(InUse) as refusal:
        router_change(router=isp.routers["rhino"], agent_url="", **by(nora))
    assert refusal.value.used_by == ["rhino:host-cust1"]


@pytest.mark.parametrize("which", ["a", "z"])
@pytest.mark.parametrize("taken", [("rhino", "bb-next"), ("rhino", "bb-prev"), ("rhino", "host-cust1")])
def test_interface_in_use_cannot_be_a_side_of_another_link(
    isp: Isp, nora: User, which: str, taken: tuple[str, str]
) -> None:
    router, interface = taken
    other = "z" if which == "a" else "a"
    ends = side(isp.routers[router], interface, which) | side(isp.routers["panda"], "bb-new", other)
    with pytest.raises(InterfaceTaken) as refusal:
        link_create(**ends, **by(nora))
    assert refusal.value.field == f"{which}_interface"
    assert ("port" if interface == "host-cust1" else "link") in refusal.value.used_by
    assert BackboneLink.objects.count() == 5


def test_database_refuses_one_interface_in_two_links(isp: Isp) -> None:
    ends = side(isp.routers["rhino"], "bb-prev", "a") | side(isp.routers["panda"], "bb-new", "z")
    with pytest.raises(IntegrityError, match="an_interface_has_one_use"), transaction.atomic():
        BackboneLink.objects.create(**ends)


def test_link_moves_to_a_free_interface_and_frees_the_old_one(isp: Isp, nora: User) -> None:
    link, rhino, panda = isp.links["rhino-hippo"], isp.routers["rhino"], isp.routers["panda"]
    link_change(link=link, a_interface="bb-moved", **by(nora))
    link_create(**side(rhino, "bb-next", "z"), **side(panda, "bb-new", "a"), **by(nora))
    assert BackboneLink.objects.count() == 6


def test_port_cannot_use_the_interface_of_a_link(isp: Isp, nora: User) -> None:
    with pytest.raises(InterfaceTaken):
        operations.port_create(router=isp.routers["rhino"], interface="bb-next", speed_bps=GBIT, **by(nora))


def test_link_connects_two_routers(isp: Isp, nora: User) -> None:
    rhino = isp.routers["rhino"]
    with pytest.raises(LinkWithinRouter):
        link_create(**side(rhino, "x1", "a"), **side(rhino, "x2", "z"), **by(nora))


@pytest.mark.parametrize(
    "changes",
    [
        {"a_ip_mtu": 67},
        {"z_ip_mtu": 65536},
        {"a_metric": 0},
        {"z_interface": "with space"},
        {"a_interface": ""},
    ],
)
def test_impossible_values_of_a_link_are_refused(isp: Isp, nora: User, changes: dict[str, Any]) -> None:
    with pytest.raises((OutOfRange, NotAnInterfaceName)) as refusal:
        link_change(link=isp.links["rhino-hippo"], **changes, **by(nora))
    assert refusal.value.field in changes


def test_link_in_service_cannot_be_removed(isp: Isp, nora: User) -> None:
    link = isp.links["rhino-hippo"]
    with pytest.raises(LinkInService):
        operations.link_remove(link=link, **by(nora))
    link_change(link=link, in_service=False, **by(nora))
    operations.link_remove(link=link, **by(nora))
    assert not BackboneLink.objects.filter(pk=link.pk).exists()


def test_port_is_bookable_to_its_speed_by_default(isp: Isp, nora: User) -> None:
    port = operations.port_create(
        router=isp.routers["rhino"], interface="x1", speed_bps=GBIT, bookable_bps=None, **by(nora)
    )
    assert port.bookable_bps == GBIT


def test_bookable_bandwidth_cannot_fall_below_the_booked(isp: Isp, alice: User, nora: User) -> None:
    order(isp, alice)
    port = isp.ports["rhino:host-cust1"]
    with pytest.raises(BookableBelowBooked) as refusal:
        port_change(port=port, bookable_bps=GBIT - 1, **by(nora))
    assert refusal.value.booked_bps == GBIT
    port_change(port=port, bookable_bps=GBIT, **by(nora))
    found = with_link_speed(Port.objects.filter(pk=port.pk)).get()
    assert found.free_bps == 0


def test_port_with_lines_keeps_its_customer(isp: Isp, alice: User, bakery: Customer, nora: User) -> None:
    order(isp, alice)
    with pytest.raises(InUse):
        port_change(port=isp.ports["rhino:host-cust1"], customer=bakery, **by(nora))
    port_change(port=isp.ports["rhino:host-cust2"], customer=bakery, **by(nora))
    assert bakery.ports.get() == isp.ports["rhino:host-cust2"]


def test_port_with_a_line_cannot_be_removed_and_the_refusal_names_it(
    isp: Isp, alice: User, nora: User
) -> None:
    order(isp, alice, description="Milk run")
    with pytest.raises(InUse) as refusal:
        port_remove(port=isp.ports["rhino:host-cust1"], **by(nora))
    assert refusal.value.used_by == ["line Milk run"]


def test_port_that_never_had_a_line_is_deleted(isp: Isp, nora: User) -> None:
    port_remove(port=isp.ports["rhino:host-cust2"], **by(nora))
    assert not Port.objects.filter(interface="host-cust2", router__name="rhino").exists()


def test_port_with_history_is_retired_and_frees_its_interface(isp: Isp, alice: User, nora: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    for end in ("a", "z"):
        answer(vll, end, "removed")
    port = isp.ports["rhino:host-cust1"]
    port_remove(port=port, **by(nora))
    port.refresh_from_db()
    assert port.retired_at is not None
    assert port.customer is None
    with pytest.raises(Retired):
        port_change(port=port, description="again", **by(nora))
    operations.port_create(router=port.router, interface=port.interface, speed_bps=GBIT, **by(nora))


def test_router_with_ports_and_links_cannot_be_removed(isp: Isp, nora: User) -> None:
    with pytest.raises(InUse) as refusal:
        router_remove(router=isp.routers["rhino"], **by(nora))
    assert refusal.value.used_by[:2] == ["port rhino:host-cust1", "port rhino:host-cust2"]
    assert refusal.value.count == 4


def unused_router(isp: Isp, nora: User) -> Router:
    return operations.router_create(
        name="koala", site=isp.routers["rhino"].site, agent_url="https://koala.example", **by(nora)
    )


def test_unused_router_is_deleted(isp: Isp, nora: User) -> None:
    router_remove(router=unused_router(isp, nora), **by(nora))
    assert not Router.objects.filter(name="koala").exists()


def test_router_with_history_is_retired_and_accepts_nothing_new(isp: Isp, nora: User) -> None:
    koala, now = unused_router(isp, nora), clock.now()
    Attempt.objects.create(
        router=koala, generation=1, started_at=now, finished_at=now, outcome="unreachable", answer={}
    )
    router_remove(router=koala, **by(nora))
    koala.refresh_from_db()
    assert koala.retired_at is not None
    assert not koala.has_agent
    with pytest.raises(Retired):
        operations.port_create(router=koala, interface="x1", speed_bps=GBIT, **by(nora))


def test_customer_with_ports_or_lines_cannot_be_removed(isp: Isp, dairy: Customer, nora: User) -> None:
    with pytest.raises(InUse) as refusal:
        customer_remove(customer=dairy, **by(nora))
    assert refusal.value.count == 4


def test_empty_customer_is_removed(bakery: Customer, nora: User) -> None:
    customer_change(customer=bakery, approve_up_to_bps=GBIT, **by(nora))
    customer_remove(customer=bakery, **by(nora))
    assert not Customer.objects.exists()


def test_two_customers_cannot_have_one_name(bakery: Customer, nora: User) -> None:
    with pytest.raises(ValueTaken):
        operations.customer_create(name="Basel Bakery", **by(nora))


def test_reserved_range_has_24_bit_limits_and_only_free_vnis(isp: Isp, alice: User, nora: User) -> None:
    vni = order(isp, alice).vll.vni
    refused: list[tuple[int, int, type[DomainError]]] = [
        (9, 8, VniRangeBackwards),
        (0, 8, VniRangeBackwards),
        (1, 2**24, VniRangeBackwards),
        (vni, vni, VniRangeInUse),
    ]
    for first, last, error in refused:
        with pytest.raises(error):
            vni_range_create(first=first, last=last, reason="lab", **by(nora))
    low = 1 if vni > 1000 else 2000
    row = vni_range_create(first=low, last=low + 99, reason="lab", **by(nora))
    vni_range_change(vni_range=row, last=low + 199, **by(nora))
    vni_range_remove(vni_range=ReservedVniRange.objects.get(last=low + 199), **by(nora))
    assert not ReservedVniRange.objects.exists()
