"""The tables themselves refuse impossible numbers, from any writer."""

import pytest
from django.db import DataError, IntegrityError, connection, transaction

from portal.accounts.models import User
from portal.allocation.models import ReservedVniRange
from portal.core import clock
from portal.vll.models import Vll
from portal.vll.operations.reservations import reservation_make
from tests.integration.isp import Isp
from tests.integration.orders import end, order

pytestmark = pytest.mark.django_db

VNIS = (0, -1, 2**24, 2**24 + 5)
VLANS = (0, -1, 4095, 65536)
MTUS = (67, 0, -1, 65536)
NO_RATES = (0, -1, 2**63)


@pytest.fixture
def rows(isp: Isp, alice: User) -> None:
    """Create a row in each table: a line with two tags at its A end, a reservation, and a reserved range."""
    order(isp, alice, a_end=end(isp, "rhino:host-cust1", "qinq", inner_vlan=7))
    ends = (end(isp, f"{name}:host-cust2", outer=7) for name in ("rhino", "hippo"))
    reservation_make(user=alice, a_end=next(ends), z_end=next(ends), cir_bps=1000, now=clock.now())
    ReservedVniRange.objects.create(first=1, last=9, reason="lab")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("vll_vll.vni", VNIS),
        ("allocation_vnilease.vni", VNIS),
        ("allocation_reservedvnirange.first", VNIS),
        ("allocation_reservedvnirange.last", VNIS),
        ("vll_vllend.outer_vlan", VLANS),
        ("vll_vllend.inner_vlan", VLANS),
        ("vll_vllend.requested_outer_vlan", VLANS),
        ("vll_vll.svc_mtu", MTUS),
        ("vll_vll.frame", MTUS),
        ("inventory_backbonelink.a_ip_mtu", MTUS),
        ("inventory_backbonelink.z_ip_mtu", MTUS),
        ("vll_vll.cir_bps", NO_RATES),
        ("vll_hold.cir_bps", NO_RATES),
        ("inventory_port.speed_bps", NO_RATES),
    ],
)
def test_impossible_number_is_refused(rows: None, column: str, values: tuple[int, ...]) -> None:
    table, _, name = column.partition(".")
    for written in (*values, "1e309", "'Infinity'::float8"):
        with pytest.raises((IntegrityError, DataError)), transaction.atomic(), connection.cursor() as sql:
            sql.execute(f"UPDATE {table} SET {name} = {written}")  # noqa: S608
            pytest.fail(f"{column} = {written} was written")


def test_largest_and_smallest_possible_numbers_are_accepted(rows: None) -> None:
    for column, values in {
        "vll_vll.vni": (1, 2**24 - 1),
        "vll_vllend.requested_outer_vlan": (1, 4094),
        "vll_vll.svc_mtu": (68, 65535),
    }.items():
        table, _, name = column.partition(".")
        for value in values:
            with connection.cursor() as sql:
                sql.execute(f"UPDATE {table} SET {name} = {value}")  # noqa: S608
    assert Vll.objects.get().svc_mtu == 65535
