"""Observations of agents: the portal writes only differences, and a router changes only its own ends."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.interfaces import reported_interfaces
from portal.inventory.models import (
    BackboneLink,
    ObservedInterface,
    ObservedLoad,
    ObservedRoute,
    ObservedRouter,
    TopologyVersion,
    TunnelAddress,
)
from portal.inventory.queries import watch_routes
from portal.inventory.reported_observation import EndObservation, LoadReport, ObservedReport, RouteReport
from portal.telemetry.observation_ingest import observation_take
from portal.underlay.errors import PathMtuUnknown
from portal.vll.models import RouterConvergence, Vll
from tests.integration.isp import Isp
from tests.integration.noc.test_noc_api import client
from tests.integration.observed_reports import changed, interface, observed_end, observed_report
from tests.integration.orders import end, order
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db
BACKBONE = interface("host-bb0", "10.0.0.0/31")
LOOPBACK = interface("loop0", "10.255.0.1/32", "fd00:255::1/128", "fe80::1/128", "192.0.2.1/24")
NOTHING: Any = {"vpp_boot_ms": None, "encapsulations": [], "vpp_workers": None}
ROUTES = (RouteReport("10.255.0.2", reachable=True), RouteReport("fd00:255::2", reachable=False))


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def report(isp: Isp, now: datetime) -> ObservedReport:
    return observed_report(
        sent_ms=int(now.timestamp() * 1000), interfaces=(BACKBONE, LOOPBACK), routes=ROUTES
    )


def take(isp: Isp, report: ObservedReport, now: datetime, *ends: EndObservation) -> bool:
    return observation_take(router=isp.routers["rhino"], report=changed(report, ends=ends), now=now)


def later(report: ObservedReport, **changes: Any) -> ObservedReport:
    return changed(report, **{"sent_ms": report.sent_ms + 10_000, **changes})


def interfaces(isp: Isp) -> dict[str, int | None]:
    rows = ObservedInterface.objects.filter(router=isp.routers["rhino"])
    return dict(rows.values_list("name", "ip_mtu"))


def addresses(isp: Isp) -> set[str]:
    return set(TunnelAddress.objects.filter(router=isp.routers["rhino"]).values_list("address", flat=True))


def routes(isp: Isp) -> dict[str, bool]:
    return dict(ObservedRoute.objects.filter(router=isp.routers["rhino"]).values_list("address", "reachable"))


def test_report_is_stored(isp: Isp, report: ObservedReport, now: datetime) -> None:
    assert take(isp, report, now)
    row = ObservedRouter.objects.get(router=isp.routers["rhino"])
    assert (row.reported_at, row.generation_stored, row.vpp_workers) == (now, 3, 2)
    assert interfaces(isp) == {"host-bb0": 9000, "loop0": 9000}
    assert routes(isp) == {"10.255.0.2": True, "fd00:255::2": False}


def test_plugins_and_linux_cp_pairs_follow_the_reports(
    isp: Isp, report: ObservedReport, now: datetime
) -> None:
    paired = replace(BACKBONE, linux_cp="e0")
    take(isp, changed(report, vpp_plugins=("linux_cp", "vxlan"), interfaces=(paired, LOOPBACK)), now)
    interfaces_ = ObservedInterface.objects.filter(router=isp.routers["rhino"])
    assert dict(interfaces_.values_list("name", "linux_cp")) == {"host-bb0": "e0", "loop0": ""}
    away = later(report, vpp_connected=False, vpp_plugins=None, interfaces=())
    take(isp, away, now)
    assert ObservedRouter.objects.get(router=isp.routers["rhino"]).vpp_plugins == ["linux_cp", "vxlan"]
    take(isp, later(away, vpp_connected=True, vpp_plugins=None, interfaces=report.interfaces), now)
    assert not interfaces_.exclude(linux_cp="").exists()
    assert ObservedRouter.objects.get(router=isp.routers["rhino"]).vpp_plugins is None


def test_link_is_stored_with_its_speed_and_the_time_of_its_last_change(
    isp: Isp, report: ObservedReport, now: datetime
) -> None:
    def of_backbone(**differently: Any) -> tuple[Any, ...]:
        then = next(times)
        facts = {"sent_ms": int(then.timestamp() * 1000), "interfaces": (replace(BACKBONE, **differently),)}
        take(isp, changed(report, **facts), then)
        row = ObservedInterface.objects.get(router=isp.routers["rhino"], name=BACKBONE.name)
        return row.speed_bps, row.link_since, then

    times = (now + timedelta(seconds=10 * n) for n in range(1, 9))
    fast = LoadReport(rx_bps=1, tx_bps=2, speed_bps=10**10)
    # The portal does not know since when the link was up before its first report.
    assert of_backbone(load=fast)[:2] == (10**10, None)
    speed, down_since, then = of_backbone(load=None, link_up=False)
    # A report without a load does not change the speed.
    assert (speed, down_since) == (10**10, then)
    assert of_backbone(load=replace(fast, rx_bps=5), link_up=False)[:2] == (10**10, down_since)
    assert of_backbone(load=replace(fast, speed_bps=None), link_up=False)[:2] == (None, down_since)
    _, up_since, then = of_backbone(load=fast)
    assert up_since == then


def test_tunnel_addresses_are_host_addresses_of_loopbacks(
    isp: Isp, report: ObservedReport, now: datetime
) -> None:
    take(isp, report, now)
    assert addresses(isp) == {"10.255.0.1", "fd00:255::1"}


def test_tunnel_addresses_belong_to_enabled_loopbacks_and_their_table(
    isp: Isp, report: ObservedReport, now: datetime
) -> None:
    def of_loopback(**differently: Any) -> set[tuple[str, int]]:
        facts = {"interfaces": (BACKBONE, replace(LOOPBACK, **differently)), "sent_ms": next(times)}
        take(isp, changed(report, **facts), now)
        rows = TunnelAddress.objects.filter(router=isp.routers["rhino"])
        return set(rows.values_list("address", "table"))

    times = (report.sent_ms + n for n in range(1, 9))
    assert of_loopback(tables=(10, 20)) == {("10.255.0.1", 10), ("fd00:255::1", 20)}
    assert of_loopback() == {("10.255.0.1", 0), ("fd00:255::1", 0)}
    assert of_loopback(admin_up=False) == set()


def test_equal_report_writes_only_the_time(isp: Isp, report: ObservedReport, now: datetime) -> None:
    take(isp, report, now)
    version = TopologyVersion.objects.get().version
    with CaptureQueriesContext(
        connection,
    ) as queries:
        take(isp, later(report), now + timedelta(seconds=10))
    writes = [q["sql"] for q in queries if q["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert [sql.split()[1].strip('"') for sql in writes if "convergence" not in sql] == [
        "inventory_observedrouter"
    ]
    assert TopologyVersion.objects.get().version == version


def test_changed_mtu_makes_a_new_topology_version(isp: Isp, report: ObservedReport, now: datetime) -> None:
    take(isp, report, now)
    version = TopologyVersion.objects.get().version
    take(isp, later(report, interfaces=(replace(BACKBONE, ip_mtu=1500), LOOPBACK)), now)
    assert interfaces(isp)["host-bb0"] == 1500
    assert TopologyVersion.objects.get().version != version


def test_lost_link_makes_no_new_topology_version(isp: Isp, report: ObservedReport, now: datetime) -> None:
    take(isp, report, now)
    version = TopologyVersion.objects.get().version
    take(isp, later(report, interfaces=(replace(BACKBONE, link_up=False), LOOPBACK)), now)
    assert ObservedInterface.objects.get(name="host-bb0").link_up is False
    assert TopologyVersion.objects.get().version == version


def test_missing_objects_are_removed_and_changed_ones_updated(
    isp: Isp, report: ObservedReport, now: datetime
) -> None:
    take(isp, report, now)
    turned = (RouteReport("fd00:255::2", reachable=True), RouteReport("10.255.0.9", reachable=True))
    loopback = replace(LOOPBACK, addresses=("10.255.0.11/32",))
    take(isp, later(report, interfaces=(loopback,), routes=turned), now)
    assert interfaces(isp) == {"loop0": 9000}
    assert addresses(isp) == {"10.255.0.11"}
    assert routes(isp) == {"fd00:255::2": True, "10.255.0.9": True}


def test_last_observation_stays_while_vpp_is_disconnected(
    isp: Isp, report: ObservedReport, now: datetime
) -> None:
    take(isp, report, now)
    take(isp, later(report, vpp_connected=False, interfaces=(), routes=(), **NOTHING), now)
    row = ObservedRouter.objects.get(router=isp.routers["rhino"])
    assert (row.vpp_connected, row.encapsulations, row.vpp_workers) == (False, ["l2xc", "vxlan"], 2)
    assert interfaces(isp) == {"host-bb0": 9000, "loop0": 9000}
    assert addresses(isp) == {"10.255.0.1", "fd00:255::1"}


def test_vpp_hangs_until_it_answers(isp: Isp, report: ObservedReport, now: datetime) -> None:
    take(isp, changed(report, vpp_connected=False, vpp_hangs=True, interfaces=(), routes=(), **NOTHING), now)
    assert ObservedRouter.objects.get(router=isp.routers["rhino"]).vpp_hangs
    take(isp, later(report), now)
    assert not ObservedRouter.objects.get(router=isp.routers["rhino"]).vpp_hangs


def test_agent_that_never_had_a_vpp_reports_no_encapsulations(
    isp: Isp, report: ObservedReport, now: datetime
) -> None:
    ObservedRouter.objects.all().delete()
    take(isp, changed(report, vpp_connected=False, interfaces=(), routes=(), **NOTHING), now)
    assert ObservedRouter.objects.get().encapsulations is None
    take(isp, later(report, encapsulations=()), now)
    assert ObservedRouter.objects.get().encapsulations == []


def test_outdated_report_is_ignored(isp: Isp, report: ObservedReport, now: datetime) -> None:
    take(isp, later(report), now)
    assert take(isp, changed(report, interfaces=()), now) is False
    assert take(isp, changed(report, boot_id=str(uuid4()), interfaces=()), now) is False
    assert take(isp, later(report, interfaces=()), now) is False
    assert interfaces(isp) == {"host-bb0": 9000, "loop0": 9000}


def test_clock_that_was_set_back_does_not_silence_a_router(
    isp: Isp, report: ObservedReport, now: datetime
) -> None:
    take(isp, report, now)
    set_back = changed(report, sent_ms=report.sent_ms - 3_600_000)
    assert take(isp, set_back, now + timedelta(seconds=10)) is False
    assert take(isp, set_back, now + timedelta(seconds=31)) is True


def test_only_its_own_router_sets_an_end_up(
    isp: Isp, alice: User, report: ObservedReport, now: datetime
) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    ends_ = tuple(observed_end(vll.pk, side) for side in "az")
    take(isp, report, now, *ends_)
    assert [(end.side, end.link_up) for end in vll.ends.order_by("side")] == [("a", True), ("z", None)]
    observation_take(router=isp.routers["hippo"], report=changed(report, ends=ends_), now=now)
    assert Vll.objects.get(pk=vll.pk).oper_status == "op-up"


def test_lines_are_down_while_a_router_has_no_vpp(
    isp: Isp, alice: User, report: ObservedReport, now: datetime
) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    ends_ = tuple(observed_end(vll.pk, side) for side in "az")
    observation_take(router=isp.routers["hippo"], report=changed(report, ends=ends_), now=now)
    away = later(report, vpp_connected=False, interfaces=(), routes=(), **NOTHING)
    for one, status in (
        (report, "op-up"),
        (away, "op-unknown"),
        (later(away, vpp_absent=True), "op-down"),
        (later(report, sent_ms=report.sent_ms + 60_000), "op-up"),
    ):
        assert take(isp, one, now, *(ends_ if one.vpp.connected else ()))
        assert Vll.objects.get(pk=vll.pk).oper_status == status


@pytest.fixture
def backoff(isp: Isp, now: datetime) -> RouterConvergence:
    return RouterConvergence.objects.create(
        router=isp.routers["rhino"], failures=6, retry_at=now + timedelta(seconds=50)
    )


@pytest.mark.parametrize(
    ("before", "again"),
    [
        ({"reported_at": timedelta(seconds=16)}, {}),
        ({}, {"boot_id": str(uuid4())}),
        ({"vpp_connected": False}, {}),
    ],
)
def test_report_ends_a_backoff_and_sends_immediately(
    isp: Isp, report: ObservedReport, now: datetime, backoff: RouterConvergence, before: dict, again: dict
) -> None:
    if "reported_at" in before:
        before = {"reported_at": now - before["reported_at"]}
    ObservedRouter.objects.filter(router=isp.routers["rhino"]).update(**before)
    take(isp, changed(report, **again), now)
    take(isp, replace(later(report), **again), now)
    backoff.refresh_from_db()
    assert (backoff.retry_at, backoff.failures) == (None, 6)
    assert [args for _, args in requested()] == [[isp.routers["rhino"].pk]]


def test_report_sends_immediately_despite_a_message_behind_silent_routers(
    isp: Isp, report: ObservedReport, now: datetime
) -> None:
    rhino = isp.routers["rhino"]
    ObservedRouter.objects.filter(router=rhino).update(reported_at=now - timedelta(seconds=40))
    take(isp, report, now)
    take(isp, later(report), now)
    assert [args for _, args in requested()] == [[rhino.pk]]


def test_router_that_reports_but_never_answers_keeps_its_pauses(
    isp: Isp, report: ObservedReport, now: datetime, backoff: RouterConvergence
) -> None:
    take(isp, report, now)
    take(isp, later(report), now + timedelta(seconds=10))
    backoff.refresh_from_db()
    assert backoff.retry_at == now + timedelta(seconds=50)
    assert len(requested()) == 0


def test_agent_without_a_vpp_for_long_confirms_no_mtu(
    isp: Isp, alice: User, report: ObservedReport, now: datetime
) -> None:
    away = {"vpp_connected": False, "vpp_boot_ms": None, "interfaces": (), "routes": ()}
    for minutes in (0, 3, 6):
        at = now + timedelta(minutes=minutes)
        ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(reported_at=at)
        take(isp, changed(report, sent_ms=report.sent_ms + minutes, **away), at)
        if minutes < 6:
            order(isp, alice, now=at, cir_bps=1, a_end=end(isp, "rhino:host-cust1", outer=minutes + 1),
                  z_end=end(isp, "hippo:host-cust1", outer=minutes + 1))  # fmt: skip
    with pytest.raises(PathMtuUnknown):
        order(isp, alice, now=at)
    both = tuple(replace(BACKBONE, name=name) for name in ("bb-next", "bb-prev"))
    take(isp, changed(report, sent_ms=report.sent_ms + 7, interfaces=(*both, LOOPBACK)), at)
    order(isp, alice, now=at)


def test_router_watches_the_tunnel_addresses_of_the_others(isp: Isp) -> None:
    TunnelAddress.objects.create(router=isp.routers["hippo"], address="10.255.1.2")
    etag, addresses = watch_routes(isp.routers["rhino"])
    assert addresses == ["10.255.0.2", "10.255.1.2", "fd00:255::2"]
    assert watch_routes(isp.routers["rhino"], known=etag) == (etag, None)
    TunnelAddress.objects.create(router=isp.routers["hippo"], address="10.255.1.3")
    etag_now, addresses = watch_routes(isp.routers["rhino"], known=etag)
    assert etag_now != etag
    assert addresses == ["10.255.0.2", "10.255.1.2", "10.255.1.3", "fd00:255::2"]


def test_load_of_a_link_is_stored_for_its_side_from_each_report(
    isp: Isp, report: ObservedReport, now: datetime
) -> None:
    link = isp.links["rhino-hippo"]

    def carrying(rx_bps: int, *, at: datetime, speed_bps: int | None = None) -> None:
        load = LoadReport(rx_bps, 7, speed_bps)
        seen_there = replace(BACKBONE, name=link.a_interface, load=load)
        elsewhere = replace(LOOPBACK, load=load)
        sent_ms = int(at.timestamp() * 1000)
        assert take(isp, changed(report, sent_ms=sent_ms, interfaces=(seen_there, elsewhere)), at)

    carrying(5, at=now, speed_bps=10**10)
    before = TopologyVersion.objects.get().version
    carrying(6 * 10**11, at=now + timedelta(seconds=10))
    load = ObservedLoad.objects.get()
    assert (load.link, load.side, load.rx_bps, load.tx_bps) == (link, "a", 6 * 10**11, 7)
    assert (load.speed_bps, load.at) == (None, now + timedelta(seconds=10))
    assert TopologyVersion.objects.get().version == before  # a load does not change the topology
    # A report without a load keeps the stored load with its time.
    take(isp, changed(report, sent_ms=report.sent_ms + 20_000), now + timedelta(seconds=20))
    assert ObservedLoad.objects.get().at == now + timedelta(seconds=10)


def test_link_on_a_vlan_sub_interface_is_observed_like_any_other(
    isp: Isp, report: ObservedReport, nora: User, now: datetime
) -> None:
    """A carrier's hand-off is a VLAN of a port. Earlier agents report no parent."""
    sub = interface("host-bb0.100", "10.0.0.2/31", ip_mtu=1600, parent="host-bb0")
    take(isp, changed(report, interfaces=(BACKBONE, LOOPBACK, sub)), now)
    link = isp.links["rhino-hippo"]
    BackboneLink.objects.filter(pk=link.pk).update(a_interface="host-bb0.100")
    rows = {row["id"]: row for row in client(nora).get("/api/v1/links").json()["results"]}
    assert (rows[link.pk]["a_missing"], rows[link.pk]["a_observed_ip_mtu"]) == (False, 1600)
    reported = reported_interfaces(isp.routers["rhino"])
    assert {each.observed.name: each.observed.parent for each in reported} == {
        "host-bb0": "",
        "host-bb0.100": "host-bb0",
    }
    earlier = interface("host-bb0.100", "10.0.0.2/31", ip_mtu=1600)
    take(isp, later(report, interfaces=(BACKBONE, LOOPBACK, earlier)), now)
    assert not ObservedInterface.objects.exclude(parent="").exists()
