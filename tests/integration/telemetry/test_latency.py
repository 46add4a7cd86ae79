"""Round trips between routers: measured once a minute for all their lines, stored, and shown per line."""

from datetime import UTC, datetime, timedelta
from typing import Any, Self

import pytest
from django.db import connection

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import ObservedRouter
from portal.telemetry.partitioned_tables import ROUND_TRIPS, partitions_keep
from portal.telemetry.round_trips import RoundTripTimes, latency, round_trips_store
from portal.vll.models import TunnelPath, Vll
from portal.vll.operations.paths import tunnel_paths_keep
from portal.vll.states import Lifecycle
from provisioning.agent_client import Refused, Unreachable
from provisioning.agent_reply_decoder import RoundTrips
from provisioning.frame_tests import measuring_routers, round_trips_measure
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate
from tests.integration.telemetry.test_throughput import first_in_service
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = START + timedelta(hours=1)


@pytest.fixture
def path(vll: Vll) -> TunnelPath:
    tunnel_paths_keep(now=clock.now())
    return TunnelPath.objects.get()


class Agents:
    """An agent that answers for all routers and records which router was queried about which path."""

    def __init__(self) -> None:
        self.queries: list[tuple[str, Any, str]] = []
        self.answer: Refused | Unreachable | None = None

    def agent_of(self, router: Any) -> Self:
        self.router = router.name
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def measure_round_trips(self, *, vll: Any, side: Any, revision: int) -> Any:
        self.queries.append((self.router, vll, side))
        if self.answer:
            return self.answer
        times = {"sent": 5, "received": 4, "min_us": 710, "avg_us": 805, "max_us": 1200}
        return RoundTrips(schema=1, router=self.router, vll=vll, end=side, revision=revision, **times)


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> Agents:
    agents = Agents()
    monkeypatch.setattr("provisioning.frame_tests.agent_of", agents.agent_of)
    return agents


def times(sent: int, received: int, *us: int) -> RoundTripTimes:
    least, mean, most = us or (0, 0, 0)
    return RoundTripTimes(sent, received, least, mean, most)


def store(path: TunnelPath, minute: int, measured: RoundTripTimes) -> None:
    due = START + timedelta(minutes=minute, seconds=7)
    round_trips_store(path=path.pk, times=measured, due=due, now=due + timedelta(seconds=2))


def shown(vll: Vll, minutes: int, step_s: int) -> list[tuple[int | None, ...]]:
    until = START + timedelta(minutes=minutes)
    answer = latency(vll=vll, since=START, until=until, step_s=step_s, now=LATER)
    assert [row[0] for row in answer["round_trips"]] == list(
        range(int(START.timestamp()), int(until.timestamp()), step_s)
    )
    return [row[1:] for row in answer["round_trips"]]


def test_lines_between_the_same_routers_share_one_path(isp: Isp, alice: User, path: TunnelPath) -> None:
    more = [
        order(
            isp,
            alice,
            a_end=end(isp, "rhino:host-cust1", outer=200),
            z_end=end(isp, "hippo:host-cust1", outer=200),
        ).vll,
        order(
            isp,
            alice,
            a_end=end(isp, "hippo:host-cust1", outer=300),
            z_end=end(isp, "rhino:host-cust1", outer=300),
        ).vll,
        order(
            isp,
            alice,
            a_end=end(isp, "hippo:host-cust1", outer=400),
            z_end=end(isp, "rhino:host-cust1", outer=400),
            transport="vxlan6",
        ).vll,
    ]
    for line in more:
        activate(line)
    tunnel_paths_keep(now=clock.now())
    assert sorted(TunnelPath.objects.values_list("a_router__name", "z_router__name", "family")) == [
        ("rhino", "hippo", 4),
        ("rhino", "hippo", 6),
    ]


def test_path_is_measured_while_lines_use_it(vll: Vll, path: TunnelPath) -> None:
    for lifecycle, in_use in ((Lifecycle.PENDING_TERMINATE, False), (Lifecycle.ACTIVE, True)):
        Vll.objects.update(lifecycle=lifecycle)
        tunnel_paths_keep(now=clock.now())
        path.refresh_from_db()
        assert path.in_use is in_use


def test_router_is_queried_about_a_path_once_a_minute(vll: Vll, path: TunnelPath, agents: Agents) -> None:
    now = path.round_trips_due_at + timedelta(seconds=3)
    rhino = path.a_router_id
    # The due time of a path depends on its id, and is within the next minute.
    ObservedRouter.objects.update(reported_at=now)
    assert measuring_routers(now=now - timedelta(seconds=4)) == []
    assert measuring_routers(now=now) == [rhino]
    assert [round_trips_measure(rhino, now=lambda: now) for _ in range(2)] == [1, 0]
    assert agents.queries == [("rhino", vll.pk, "a")]
    assert measuring_routers(now=now + timedelta(seconds=50)) == []
    ObservedRouter.objects.update(reported_at=now + timedelta(seconds=55))
    assert measuring_routers(now=now + timedelta(seconds=60)) == [rhino]
    path.refresh_from_db()
    assert (path.sent, path.received, path.min_us, path.mean_us, path.max_us) == (5, 4, 710, 805, 1200)
    assert path.round_trips_at == now


def test_missed_minutes_are_not_measured_later(path: TunnelPath, agents: Agents) -> None:
    now = path.round_trips_due_at + timedelta(minutes=5, seconds=3)
    ObservedRouter.objects.update(reported_at=now)
    assert round_trips_measure(path.a_router_id, now=lambda: now) == 1
    assert measuring_routers(now=now) == []


def test_other_router_is_queried_where_the_first_is_silent(
    vll: Vll, path: TunnelPath, agents: Agents
) -> None:
    now = path.round_trips_due_at
    ObservedRouter.objects.filter(router=path.z_router).update(reported_at=now)
    ObservedRouter.objects.filter(router=path.a_router).update(reported_at=now - timedelta(hours=1))
    assert measuring_routers(now=now) == [path.z_router_id]
    assert round_trips_measure(path.a_router_id, now=lambda: now) == 0
    assert round_trips_measure(path.z_router_id, now=lambda: now) == 1
    assert agents.queries == [("hippo", vll.pk, "z")]
    ObservedRouter.objects.update(reported_at=now - timedelta(hours=1))
    assert measuring_routers(now=now + timedelta(minutes=1)) == []


@pytest.mark.parametrize("answer", [Refused(409, {"type": "x", "detail": ""}), Unreachable("gone")])
def test_missing_measurement_is_a_gap(path: TunnelPath, agents: Agents, answer: Any) -> None:
    agents.answer = answer
    assert round_trips_measure(path.a_router_id, now=lambda: path.round_trips_due_at) == 0
    path.refresh_from_db()
    assert path.round_trips_at is None
    assert stored() == [0, 0, 0, 0]


def test_line_that_its_routers_do_not_have_is_not_queried(vll: Vll, path: TunnelPath, agents: Agents) -> None:
    Vll.objects.update(revision=7)
    assert round_trips_measure(path.a_router_id, now=lambda: path.round_trips_due_at) == 0
    assert agents.queries == []


def test_minutes_become_five_minutes_hours_and_days(vll: Vll, path: TunnelPath) -> None:
    first_in_service(vll, START)
    store(path, 0, times(5, 5, 100, 200, 300))
    store(path, 2, times(5, 1, 50, 50, 50))
    store(path, 3, times(5, 0))
    assert shown(vll, 4, 60) == [
        (100, 200, 300, 0),
        (None, None, None, None),
        (50, 50, 50, 4),
        (None, None, None, 5),
    ]
    # The mean is over packets, not over minutes.
    for step_s in (300, 3600, 86400):
        answer = latency(vll=vll, since=START, until=START + timedelta(minutes=5), step_s=step_s, now=LATER)
        assert [row[1:] for row in answer["round_trips"]] == [(50, 175, 300, 9)]
    assert stored() == [3, 1, 1, 1]
    answer = latency(vll=vll, since=START, until=START + timedelta(minutes=5), step_s=60, now=LATER)
    assert answer["missing"] == 2


def test_old_measurements_are_deleted_with_their_partition(path: TunnelPath) -> None:
    store(path, 0, times(5, 5, 100, 200, 300))
    for days, left in ((1, [1, 1, 1, 1]), (4, [0, 1, 1, 1]), (45, [0, 0, 1, 1]), (3000, [0, 0, 0, 0])):
        partitions_keep(now=START + timedelta(days=days))
        assert stored() == left


def stored() -> list[int]:
    with connection.cursor() as cursor:
        counts = []
        for table in ROUND_TRIPS:
            cursor.execute(f"SELECT count(*) FROM {table.name}")  # noqa: S608
            counts.append(cursor.fetchone()[0])
        return counts


def test_customers_read_the_latency_of_their_lines(
    vll: Vll, path: TunnelPath, alice: User, charlie: User
) -> None:
    now = clock.now()
    round_trips_store(path=path.pk, times=times(5, 5, 100, 200, 300), due=now, now=now)
    address = f"/api/v1/vlls/{vll.pk}/latency"
    answer = client(alice).get(f"{address}?step=300").json()
    assert [row[1:] for row in answer["round_trips"] if row[1]] == [[100, 200, 300, 0]]
    assert client(charlie).get(address).status_code == 404
    refused = client(alice).get(f"{address}?step=10")
    assert (refused.status_code, refused.json()["type"].rpartition("#")[2]) == (422, "step-refused")
    assert client(alice).get(f"{address}?from=1800000000&to=1700000000").status_code == 422


def test_line_without_a_tunnel_has_no_latency(isp: Isp, alice: User) -> None:
    local = order(
        isp,
        alice,
        a_end=end(isp, "rhino:host-cust1", outer=200),
        z_end=end(isp, "rhino:host-cust2", outer=200),
    ).vll
    activate(local)
    tunnel_paths_keep(now=clock.now())
    assert not TunnelPath.objects.exists()
    answer = client(alice).get(f"/api/v1/vlls/{local.pk}/latency").json()
    assert {tuple(row[1:]) for row in answer["round_trips"]} == {(None,) * 4}
    assert 'id="latency"' not in signed_in(alice).get(f"/vlls/{local.pk}/").content.decode()


def test_map_and_line_show_the_latency(vll: Vll, path: TunnelPath, alice: User, nora: User) -> None:
    assert 'id="latency"' in signed_in(alice).get(f"/vlls/{vll.pk}/").content.decode()
    now = clock.now()
    round_trips_store(path=path.pk, times=times(5, 4, 710, 850, 1200), due=now, now=now)
    shown = text(signed_in(nora).get("/noc/map/"))
    assert "Paths that lines take" in shown
    for figure in ("IPv4", "0.85 ms", "0.71 ms – 1.20 ms", "4 of 5 came back"):
        assert figure in shown


def test_terminated_line_shows_no_latency(vll: Vll, path: TunnelPath, alice: User) -> None:
    now = clock.now()
    round_trips_store(path=path.pk, times=times(5, 4, 710, 850, 1200), due=now, now=now)
    assert "0.85 ms there and back" in text(signed_in(alice).get(f"/vlls/{vll.pk}/"))
    Vll.objects.update(lifecycle=Lifecycle.CANCELLED)
    shown = signed_in(alice).get(f"/vlls/{vll.pk}/")
    assert "there and back" not in text(shown)
    assert "first figures appear" not in shown.content.decode()
