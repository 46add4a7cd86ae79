"""The metrics of the installation agree with the database rows."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from devstack import packages
from portal.accounts.models import User
from portal.core import clock
from portal.inventory import pki
from portal.inventory.models import ObservedRouter, Router, RouterCertificate
from portal.metrics.registry import Installation, application, fresh_for
from portal.notifications.models import Mail
from portal.vll.models import Order, RouterConvergence, TunnelPath, Vll
from portal.vll.states import OrderState
from tests.integration.certificates import certificates
from tests.integration.isp import Isp
from tests.integration.orders import end, order

pytestmark = pytest.mark.django_db
Value = Callable[..., float | None]


@pytest.fixture
def scrape() -> Callable[[], Value]:
    """Return a function that scrapes the metrics. It returns the value of a sample, or None if it is
    absent.
    """

    def scrape_now() -> Value:
        registry = CollectorRegistry()
        registry.register(Installation())

        def value(name: str, **labels: str) -> float | None:
            return registry.get_sample_value(f"longline_{name}", labels)

        return value

    return scrape_now


def test_lines_and_orders_are_counted_by_their_states(
    isp: Isp, alice: User, scrape: Callable[[], Value]
) -> None:
    done = order(isp, alice, cir_bps=1000)
    order(
        isp,
        alice,
        cir_bps=1000,
        a_end=end(isp, "rhino:host-cust1", outer=101),
        z_end=end(isp, "hippo:host-cust1", outer=101),
    )
    now = clock.now()
    Vll.objects.filter(pk=done.vll_id).update(lifecycle="active", oper_status="op-up", in_sync=True)
    Order.objects.filter(pk=done.pk).update(
        state=OrderState.COMPLETED, ordered_at=now - timedelta(seconds=4), state_at=now
    )
    value = scrape()
    assert value("vlls", lifecycle="active", oper_status="op-up", in_sync="true") == 1
    assert value("vlls", lifecycle="pendingActive", oper_status="op-unknown", in_sync="false") == 1
    assert value("orders_open", state="acknowledged") == 1
    assert value("orders_ended_total", action="add", state="completed") == 1
    assert value("order_duration_seconds_bucket", action="add", le="3.0") == 0
    assert value("order_duration_seconds_bucket", action="add", le="5.0") == 1
    assert value("order_duration_seconds_count", action="add") == 1
    assert value("order_duration_seconds_sum", action="add") == pytest.approx(4)
    assert value("leases", pool="vni", state="leased") == 2
    assert value("leases", pool="port_vlan", state="leased") == 4
    assert value("vnis_free") == 2**24 - 1 - 2
    assert value("database_up") == 1


def test_time_until_approval_is_not_part_of_the_orders_duration(
    isp: Isp, alice: User, scrape: Callable[[], Value]
) -> None:
    now = clock.now()
    Order.objects.filter(pk=order(isp, alice).pk).update(
        state=OrderState.COMPLETED,
        ordered_at=now - timedelta(hours=3),
        approved_at=now - timedelta(seconds=1),
        state_at=now,
    )
    assert scrape()("order_duration_seconds_sum", action="add") == pytest.approx(1)


def test_paths_that_lose_large_packets_are_counted(isp: Isp, scrape: Callable[[], Value]) -> None:
    a, z = sorted((isp.routers["rhino"].pk, isp.routers["hippo"].pk))
    for family, since in ((4, clock.now()), (6, None)):
        TunnelPath.objects.create(
            a_router_id=a,
            z_router_id=z,
            family=family,
            probe_transport=f"vxlan{family}",
            round_trips_due_at=clock.now(),
            verified_ip_mtu=8000,
            verified_at=clock.now(),
            black_hole_since=since,
        )
    value = scrape()
    assert (value("probed_paths"), value("mtu_black_holes")) == (2, 1)


def test_pending_deliveries_are_counted_by_channel(
    isp: Isp, alice: User, scrape: Callable[[], Value]
) -> None:
    now = clock.now()
    for event, state, next_try_at in ((1, "pending", now), (2, "sent", None), (3, "failed", None)):
        Mail.objects.create(
            user=alice,
            group="orders",
            kind="order.completed",
            event_id=event,
            created_at=now - timedelta(minutes=3),
            state=state,
            next_try_at=next_try_at,
        )
    value = scrape()
    assert value("deliveries_pending", channel="mail") == 1
    assert value("deliveries_oldest_age_seconds", channel="mail") == pytest.approx(180, abs=20)
    assert value("deliveries_failed_lately", channel="mail") == 1
    assert value("deliveries_pending", channel="webhook") == 0
    assert value("webhooks", state="disabled") == 0


def test_each_router_has_its_own_series(isp: Isp, scrape: Callable[[], Value]) -> None:
    now = clock.now()
    ObservedRouter.objects.filter(router=isp.routers["rhino"]).update(reported_at=now - timedelta(minutes=2))
    ObservedRouter.objects.filter(router=isp.routers["hippo"]).delete()
    RouterConvergence.objects.create(router=isp.routers["hippo"], failures=3)
    ends = now + timedelta(days=20)
    for serial, expires_at, revoked_at in (("1", ends, None), ("2", ends + timedelta(days=300), now)):
        RouterCertificate.objects.create(
            router=isp.routers["rhino"],
            serial=serial,
            fingerprint=serial,
            issued_at=now,
            expires_at=expires_at,
            revoked_at=revoked_at,
        )
    value = scrape()
    assert value("router_last_report_timestamp_seconds", router="rhino") == pytest.approx(
        (now - timedelta(minutes=2)).timestamp()
    )
    assert value("router_last_report_timestamp_seconds", router="hippo") is None
    assert value("router_vpp_hangs", router="rhino") == 0
    ObservedRouter.objects.filter(router=isp.routers["rhino"]).update(vpp_hangs=True)
    assert scrape()("router_vpp_hangs", router="rhino") == 1
    assert value("router_failures", router="hippo") == 3
    assert value("router_certificate_expiry_timestamp_seconds", router="rhino") == pytest.approx(
        ends.timestamp()
    )
    assert value("routers", state="silent") == 1
    assert value("routers", state="never_reported") == 1
    # Routers without an agent report nothing.
    assert value("router_failures", router="zebra") is None


def test_number_of_statements_does_not_depend_on_the_number_of_rows(
    isp: Isp, alice: User, scrape: Callable[[], Value]
) -> None:
    with CaptureQueriesContext(connection) as few:
        scrape()("database_up")
    for vlan in range(200, 205):
        order(
            isp,
            alice,
            cir_bps=1000,
            a_end=end(isp, "rhino:host-cust2", outer=vlan),
            z_end=end(isp, "hippo:host-cust2", outer=vlan),
        )
    Router.objects.bulk_create(
        Router(name=f"r{n}", site=isp.routers["rhino"].site, agent_url=f"https://127.0.0.1:{n}")
        for n in range(1, 9)
    )
    with CaptureQueriesContext(connection) as many:
        scrape()("database_up")
    assert len(few) == len(many) == 22


def test_second_scrape_within_five_seconds_sends_no_statement(isp: Isp) -> None:
    installation = Installation()
    first = installation.collect()
    with CaptureQueriesContext(connection) as captured:
        assert installation.collect() is first
    assert len(captured) == 0


def test_expensive_counts_are_made_less_often() -> None:
    assert fresh_for(0.01) == 5
    assert fresh_for(0.5) == 25


def test_missing_database_is_reported_and_other_metrics_continue(
    isp: Isp, scrape: Callable[[], Value], monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import OperationalError

    def fail(now: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr("portal.metrics.registry._FROM_THE_DATABASE", (fail,))
    value = scrape()
    assert value("database_up") == 0
    assert value("broker_up") == 1
    assert value("vnis_free") is None


def test_missing_redis_is_reported_and_other_metrics_continue(
    isp: Isp, scrape: Callable[[], Value], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    value = scrape()
    assert value("broker_up") == 0
    assert value("queue_length", queue="provisioning") is None
    assert value("database_up") == 1


def test_every_queue_has_its_length(isp: Isp, scrape: Callable[[], Value]) -> None:
    value = scrape()
    for queue in ("provisioning", "sweepers", "doubtful", "telemetry", "notifications"):
        assert value("queue_length", queue=queue) is not None, queue


def test_certificates_of_the_portal_have_expiry_times(isp: Isp, scrape: Callable[[], Value]) -> None:
    certificates()
    value = scrape()
    for name in ("ca", "portal"):
        assert value("certificate_expiry_timestamp_seconds", certificate=name) > clock.now().timestamp()  # type: ignore[operator]


def test_of_two_cas_the_first_expiry_is_reported(
    isp: Isp, scrape: Callable[[], Value], settings: Any, tmp_path: Path
) -> None:
    settings.LONGLINE_PKI_DIR = tmp_path
    made = {}
    for name, years in (("new", 0), ("old", 5)):
        (tmp_path / name).mkdir()
        pki.authority_create(tmp_path / name, now=clock.now() - timedelta(days=365 * years))
        made[name] = (tmp_path / name / "ca.pem").read_bytes()
    (tmp_path / "ca.pem").write_bytes(made["new"] + made["old"])
    ends = x509.load_pem_x509_certificate(made["old"]).not_valid_after_utc.timestamp()
    assert scrape()("certificate_expiry_timestamp_seconds", certificate="ca") == ends


def response_to(path: str) -> tuple[str, str]:
    statuses: list[str] = []
    environ = {"PATH_INFO": path, "REQUEST_METHOD": "GET", "QUERY_STRING": ""}
    body = b"".join(application(environ, lambda status, headers, *_: statuses.append(status)))
    return statuses[0], body.decode()


def test_process_serves_only_metrics(isp: Isp) -> None:
    status, body = response_to("/metrics")
    assert status == "200 OK"
    assert {family.name for family in text_string_to_metric_families(body)} > {
        "longline_build_info",
        "longline_vlls",
    }
    assert response_to("/")[0] == "404 Not Found"
    assert response_to("/healthz") == ("200 OK", "ok\n")


def test_promtool_accepts_the_metrics(isp: Isp, alice: User) -> None:
    order(isp, alice)
    packages.run_promtool("check", "metrics", stdin=response_to("/metrics")[1])
