"""Concurrent clients on real connections: the portal leases each value once, the last one to one client."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock

import pytest
from django.db import connection, transaction

from portal.accounts.models import User
from portal.allocation.errors import PortFull, RouterFull, VlanTaken, VniPoolExhausted
from portal.allocation.models import PortVlanLease, ReservedVniRange, VniLease
from portal.allocation.packet_capacity import end_load
from portal.allocation.tunnel_leases import (
    LAST_VNI,
    PROBE_VNI,
    cooled_down_leases_free,
    vni_lease,
    vni_lease_named,
)
from portal.core import clock
from portal.core.network.encapsulations import Transport
from portal.inventory.models import Port
from tests.integration.awaited_locks import concurrently
from tests.integration.busy_routers import fill
from tests.integration.isp import GBIT, Isp
from tests.integration.leases import loads, sums_are_right
from tests.integration.orders import end, order

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """Run ``work`` in threads with separate connections; return the results or raised exceptions.

    The threads connect one after the other, and begin the work when all are connected. On a busy machine,
    some of many simultaneous connection attempts would exceed the portal's time limit.
    """
    connecting, connected = Lock(), Barrier(count, timeout=60)

    def one(number: int) -> object:
        try:
            with connecting:
                connection.ensure_connection()
            connected.wait()
            return work(number)
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def lease(_number: int) -> int:
    with transaction.atomic():
        return vni_lease(owner=uuid.uuid4(), now=clock.now())


@pytest.fixture
def pool_of_48() -> Iterator[range]:
    """Reserve all VNIs except 48, in two ranges."""
    ReservedVniRange.objects.create(first=1, last=999, reason="below")
    ReservedVniRange.objects.create(first=1048, last=LAST_VNI, reason="above")
    return range(1000, 1048)


def test_64_clients_get_48_vnis_once_each_and_16_get_a_refusal(pool_of_48: range) -> None:
    results = at_once(64, lease)
    leased = [r for r in results if isinstance(r, int)]
    assert sorted(leased) == list(pool_of_48)
    assert sum(isinstance(r, VniPoolExhausted) for r in results) == 16
    assert VniLease.objects.count() == 48


def test_rolled_back_lease_is_free_again(pool_of_48: range) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        for _ in pool_of_48:
            vni_lease(owner=uuid.uuid4(), now=clock.now())
        raise RuntimeError
    assert lease(0) in pool_of_48


def test_overlapping_and_adjacent_reserved_ranges_leave_the_rest() -> None:
    for first, last in ((1, 100), (50, 200), (201, PROBE_VNI - 2)):
        ReservedVniRange.objects.create(first=first, last=last, reason="")
    assert lease(0) == PROBE_VNI - 1


def test_one_of_32_clients_gets_the_vlan(isp: Isp, alice: User) -> None:
    results = at_once(
        32, lambda n: order(isp, alice, z_end=end(isp, "hippo:host-cust1", outer=n + 1), cir_bps=1000).pk
    )
    assert sum(isinstance(r, uuid.UUID) for r in results) == 1
    assert sum(isinstance(r, VlanTaken) for r in results) == 31
    assert PortVlanLease.objects.count() == 2


def test_one_of_32_clients_gets_the_last_gigabit(isp: Isp, alice: User) -> None:
    Port.objects.filter(pk=isp.ports["rhino:host-cust1"].pk).update(bookable_bps=GBIT)

    def work(number: int) -> uuid.UUID:
        # Half of the clients name the ports in reverse order: locks in id order prevent deadlocks.
        a, z = end(isp, "rhino:host-cust1", outer=number + 1), end(isp, "hippo:host-cust1", outer=number + 1)
        return order(isp, alice, **({"a_end": a, "z_end": z} if number % 2 else {"a_end": z, "z_end": a})).pk

    results = at_once(32, work)
    assert sum(isinstance(r, uuid.UUID) for r in results) == 1
    assert sum(isinstance(r, PortFull) for r in results) == 31
    assert Port.objects.get(pk=isp.ports["rhino:host-cust1"].pk).booked_bps == GBIT


def test_one_of_64_clients_gets_the_last_gigabit_of_two_routers(isp: Isp, alice: User) -> None:
    # The clients use separate ports, so that they share only the routers' cores.
    pairs = []
    for number in range(64):
        for name in ("rhino", "hippo"):
            port = Port.objects.create(
                router=isp.routers[name],
                interface=f"race{number}",
                customer=isp.ports["rhino:host-cust1"].customer,
                speed_bps=GBIT,
                bookable_bps=GBIT,
            )
            isp.ports[str(port)] = port
        pairs.append([f"rhino:race{number}", f"hippo:race{number}"])
    fill(isp, except_load=end_load(GBIT, Transport.VXLAN4))

    def work(number: int) -> uuid.UUID:
        # Half of the clients order in the reverse direction: the portal locks routers in id order.
        a, z = pairs[number] if number % 2 else pairs[number][::-1]
        return order(isp, alice, a_end=end(isp, a), z_end=end(isp, z)).vll_id

    results = at_once(64, work)
    (winner,) = [r for r in results if isinstance(r, uuid.UUID)]
    assert Counter(type(r) for r in results) == {uuid.UUID: 1, RouterFull: 63}
    load = end_load(GBIT, Transport.VXLAN4)
    sides = ("rhino", "hippo") if winner in results[1::2] else ("hippo", "rhino")
    assert loads(winner) == [("a", sides[0], load), ("z", sides[1], load)]
    assert sums_are_right()


def test_any_vlan_gives_each_concurrent_client_its_own_vlan(isp: Isp, alice: User) -> None:
    def work(_number: int) -> object:
        ends = {
            "a_end": end(isp, "rhino:host-cust1", outer="any"),
            "z_end": end(isp, "hippo:host-cust1", outer="any"),
        }
        return order(isp, alice, cir_bps=1000, **ends).vll.ends.get(side="a").outer_vlan

    assert sorted(at_once(24, work)) == list(range(100, 124))  # type: ignore[type-var]


def test_lease_that_an_adoption_takes_out_of_its_cool_down_is_not_freed() -> None:
    now = clock.now()
    VniLease.objects.create(vni=7, owner=uuid.uuid4(), leased_at=now, released_at=now, free_at=now)
    adopted = uuid.uuid4()

    waited, freed = concurrently(
        lambda: vni_lease_named(7, owner=adopted, now=now), lambda: cooled_down_leases_free(now=now)
    )
    assert (waited, freed) == (False, 0)
    assert VniLease.objects.get().owner == adopted
