"""A nearly empty VNI pool: the portal finds every free VNI, and reports an empty pool immediately."""

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.allocation import tunnel_leases
from portal.allocation.errors import VniPoolExhausted
from portal.allocation.models import ReservedVniRange, VniLease
from portal.core import clock
from tests.integration.api.test_api_v1 import body, client
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db


def fill_pool_except(first: int, last: int, *free: int) -> None:
    """Create a pool from ``first`` to ``last`` with all values leased except these."""
    for low, high in ((1, first - 1), (last + 1, tunnel_leases.LAST_VNI)):
        ReservedVniRange.objects.create(first=low, last=high, reason="not ours")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO allocation_vnilease (vni, holder, leased_at)"
            " SELECT vni, gen_random_uuid(), now() FROM generate_series(%s::int, %s::int) AS vni"
            " WHERE vni <> ALL(%s::int[])",
            [first, last, list(free)],
        )


def lease() -> int:
    return tunnel_leases.vni_lease(owner=uuid.uuid4(), now=clock.now())


def test_every_gap_of_a_pool_of_many_pieces_is_found() -> None:
    first, last = 1000, 1000 + 3 * tunnel_leases._PIECE
    # The ends of the pool, and both sides of the beginning of a piece.
    gaps = {
        first,
        first + 7,
        first + tunnel_leases._PIECE - 1,
        first + tunnel_leases._PIECE,
        first + 2 * tunnel_leases._PIECE,
        last,
    }
    fill_pool_except(first, last, *gaps)
    assert tunnel_leases.vni_available()
    assert {lease() for _ in gaps} == gaps
    assert not tunnel_leases.vni_available()
    with pytest.raises(VniPoolExhausted):
        lease()


def test_empty_pool_costs_a_few_tries_and_one_query() -> None:
    fill_pool_except(1000, 1000 + tunnel_leases._PIECE)
    with CaptureQueriesContext(connection) as captured, pytest.raises(VniPoolExhausted):
        lease()
    assert len(captured) == tunnel_leases._RANDOM_TRIES + 1


def test_query_reads_a_limited_number_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnel_leases, "_PIECE", 100)
    monkeypatch.setattr(tunnel_leases, "_SEEN", 300)
    monkeypatch.setattr("random.randint", lambda low, high: low)
    fill_pool_except(1001, 2000, 1300, 1301)
    # Three pieces, here the first ones: from 1001 to 1300.
    assert tunnel_leases.vni_available()
    VniLease.objects.create(vni=1300, owner=uuid.uuid4(), leased_at=clock.now())
    assert not tunnel_leases.vni_available()


def test_order_from_an_empty_pool_is_refused_with_advice(isp: Isp, alice: User) -> None:
    fill_pool_except(1000, 1100)
    before = VniLease.objects.count()
    ordered = client(alice).post("/api/v1/vlls", body(isp, cir_bps=1000), format="json")
    assert ordered.status_code == 409
    assert "Ask the NOC to enlarge the pool" in ordered.json()["detail"]
    validated = client(alice).post("/api/v1/vlls/validate", body(isp, cir_bps=1000), format="json")
    assert not validated.json()["feasible"]
    assert "Ask the NOC to enlarge the pool" in str(validated.json())
    assert VniLease.objects.count() == before
