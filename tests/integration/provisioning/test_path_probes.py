"""Probe frames cross every path in use at all times: the NOC finds a black hole before a customer does."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.allocation.models import ReservedVniRange, VniLease
from portal.allocation.tunnel_leases import PROBE_VNI, vni_available
from portal.celery_tasks import CONVERGE_ROUTER
from portal.core import clock
from portal.events.models import Event
from portal.inventory.models import ObservedRouter, Router
from portal.vll.models import TunnelPath, Vll
from portal.vll.operations.paths import CLAIM, paths_to_probe, probe_answers_take, tunnel_paths_keep
from portal.vll.operations.tombstones import EndAnswer
from portal.vll.states import Lifecycle
from provisioning.agent_client import Unreachable
from provisioning.frame_tests import path_probe
from provisioning.intent_generations import router_intent, unconfirmed_probes
from tests.integration.allocation.test_vni_pool import lease
from tests.integration.isp import Isp
from tests.integration.lines.test_activation_test import Underlay
from tests.integration.orders import end, order
from tests.integration.raised_alarms import alarm_texts, alarms_found
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
# 1,514 bytes of the line, 20 of IPv4, 8 of UDP and 8 of VXLAN.
NEEDED = 1550


@pytest.fixture
def underlay(isp: Isp, monkeypatch: pytest.MonkeyPatch) -> Underlay:
    """Return an underlay between routers whose agents support probes."""
    ObservedRouter.objects.update(probes=True)
    underlay = Underlay()
    monkeypatch.setattr("provisioning.frame_tests.agent_of", underlay.agent_of)
    monkeypatch.setattr("provisioning.frame_tests.TRAVEL_S", 0)
    return underlay


@pytest.fixture
def path(underlay: Underlay, vll: Vll) -> TunnelPath:
    """Return a path whose probe is configured on both routers."""
    tunnel_paths_keep(now=clock.now())
    path = TunnelPath.objects.get()
    for side in "az":
        answer(path, side, "testing")
    path.refresh_from_db()
    return path


def answer(path: TunnelPath, side: str, status: str, revision: int | None = None) -> None:
    path.refresh_from_db()
    report = EndAnswer(
        vll=path.pk,
        side=side,
        revision=path.probe_revision if revision is None else revision,
        status=status,
        reason=None,
        permanent=False,
    )
    probe_answers_take(router=path.router(side), answers=[report], now=clock.now())
    path.refresh_from_db()


def document(router: Router) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(router_intent(router, generation=1).document())
    return parsed


def probes_in(router: Router) -> list[dict[str, Any]]:
    return [end for end in document(router)["present"] if end["access"] is None]


def send_now(path: TunnelPath) -> TunnelPath:
    """Send the probe frames of the path now."""
    TunnelPath.objects.update(probe_due_at=clock.now())
    assert path_probe(path.pk)
    path.refresh_from_db()
    return path


def events_of(kind: str) -> int:
    return Event.objects.filter(kind=kind).count()


def alarm() -> list[str]:
    return alarm_texts(Kind.BLACK_HOLE)


def test_both_routers_get_a_tunnel_without_an_attachment_circuit(
    isp: Isp, vll: Vll, path: TunnelPath
) -> None:
    [a], [z] = probes_in(isp.routers["rhino"]), probes_in(isp.routers["hippo"])
    assert (a["vll"], a["end"], a["testing"], a["frame"]) == (str(path.pk), "a", True, 65535)
    assert (z["vll"], z["end"]) == (str(path.pk), "z")
    assert a["transport"] == {
        "encapsulation": "vxlan",
        "family": 4,
        "local": isp.routers["rhino"].loopback4,
        "remote": isp.routers["hippo"].loopback4,
        "vni": PROBE_VNI,
    }
    assert path.needed_ip_mtu == NEEDED


def test_router_gets_its_probe_again_until_it_has_answered(isp: Isp, underlay: Underlay, vll: Vll) -> None:
    def notified() -> set[Any]:
        forget_requests()
        tunnel_paths_keep(now=clock.now())
        return {args[0] for _, args in requested(CONVERGE_ROUTER)}

    rhino, hippo = isp.routers["rhino"], isp.routers["hippo"]
    assert notified() == {rhino.pk, hippo.pk}
    assert len(unconfirmed_probes(rhino)) == 1
    path = TunnelPath.objects.get()
    answer(path, "a", "testing")
    assert unconfirmed_probes(rhino) == frozenset()
    assert notified() == {hippo.pk}
    assert paths_to_probe(now=clock.now()) == []
    answer(path, "z", "conflict")
    assert notified() == set()
    assert paths_to_probe(now=clock.now()) == []
    answer(path, "z", "testing")
    assert paths_to_probe(now=clock.now()) == [path.pk]


def test_probe_is_removed_with_the_last_line(isp: Isp, vll: Vll, path: TunnelPath) -> None:
    rhino = isp.routers["rhino"]
    Vll.objects.update(lifecycle=Lifecycle.TERMINATED, wanted_present=False)
    tunnel_paths_keep(now=clock.now())
    path.refresh_from_db()
    gone = {"vll": str(path.pk), "end": "a", "revision": 2}
    assert (probes_in(rhino), document(rhino)["removed"]) == ([], [gone])
    answer(path, "a", "testing", revision=1)
    assert document(rhino)["removed"] == [gone]
    answer(path, "a", "removed")
    assert document(rhino)["removed"] == []
    assert paths_to_probe(now=clock.now()) == []
    # The next line re-creates the probe.
    Vll.objects.update(lifecycle=Lifecycle.ACTIVE, wanted_present=True)
    tunnel_paths_keep(now=clock.now())
    assert [each["revision"] for each in probes_in(rhino)] == [3]


@pytest.mark.parametrize("lacks", ["agent", "setting", "VXLAN", "both", "vni"])
def test_no_probe_exists_without_support_for_it(
    isp: Isp, underlay: Underlay, vll: Vll, settings: Any, lacks: str
) -> None:
    hippo = ObservedRouter.objects.filter(router=isp.routers["hippo"])
    match lacks:
        case "agent":
            hippo.update(probes=False)
        case "setting":
            settings.LONGLINE_PROBE_EVERY_S = 0
        case "VXLAN":
            hippo.update(encapsulations=["geneve"])
        case "both":
            hippo.update(encapsulations=["gre"])
        case "vni":
            VniLease.objects.update(vni=PROBE_VNI)
    tunnel_paths_keep(now=clock.now())
    wanted = ["geneve"] if lacks == "VXLAN" else []
    for name in ("rhino", "hippo"):
        assert [each["transport"]["encapsulation"] for each in probes_in(isp.routers[name])] == wanted


def test_frames_of_the_largest_size_in_use_verify_the_path(
    isp: Isp, alice: User, path: TunnelPath, underlay: Underlay
) -> None:
    send_now(path)
    requests = [each for each in underlay.requests if each["count"] == 10]
    sizes = {(each["side"], each["frame"], each["count"]) for each in requests}
    assert sizes == {(side, size, 10) for side in "az" for size in (64, NEEDED - 36)}
    assert (path.verified_ip_mtu, path.finding, path.black_hole_since) == (NEEDED, "", None)
    assert path.probe_due_at is not None
    assert path.probed_at is not None
    assert path.probe_due_at - path.probed_at == timedelta(minutes=5)
    # A larger line uses another encapsulation, whose packets are also 36 bytes larger than the frames.
    larger = order(
        isp,
        alice,
        a_end=end(isp, "rhino:host-cust2", outer=200),
        z_end=end(isp, "hippo:host-cust2", outer=200),
        svc_mtu=8000,
        transport="geneve4",
    ).vll
    activate(larger)
    tunnel_paths_keep(now=clock.now())
    assert send_now(path).verified_ip_mtu == 8000 + 14 + 36


def test_black_hole_is_found_reported_and_cleared(vll: Vll, path: TunnelPath, underlay: Underlay) -> None:
    send_now(path)
    underlay.largest = 1400
    send_now(path)
    assert (path.finding, path.verified_ip_mtu) == ("large-frames-lost", 1400 + 36)
    [row] = alarm()
    assert row == (
        "rhino – hippo: MTU black hole between rhino and hippo over IPv4: packets of 1,550 bytes are lost,"
        " and the largest that passes has 1,436."
    )
    assert alarms_found(Kind.BLACK_HOLE)[0].affected.lines == 1
    began = path.black_hole_since
    send_now(path)
    assert path.black_hole_since == began
    assert (
        events_of("vll.black_hole"),
        events_of("router.black_hole"),
        events_of("vll.black_hole_gone"),
    ) == (1, 2, 0)
    underlay.largest = 65535
    send_now(path)
    assert (path.finding, path.verified_ip_mtu, path.black_hole_since) == ("", NEEDED, None)
    assert (alarm(), events_of("vll.black_hole_gone")) == ([], 1)


def test_only_lines_that_lose_frames_get_an_event(
    isp: Isp, alice: User, vll: Vll, path: TunnelPath, underlay: Underlay
) -> None:
    larger = order(
        isp,
        alice,
        a_end=end(isp, "rhino:host-cust2", outer=200),
        z_end=end(isp, "hippo:host-cust2", outer=200),
        svc_mtu=8000,
    ).vll
    activate(larger)
    tunnel_paths_keep(now=clock.now())
    underlay.largest = 4000
    send_now(path)
    assert list(Event.objects.filter(kind="vll.black_hole").values_list("vll_id", flat=True)) == [larger.pk]
    underlay.largest = 65535
    send_now(path)
    gone = Event.objects.filter(kind="vll.black_hole_gone")
    assert list(gone.values_list("vll_id", flat=True)) == [larger.pk]


def test_fragmented_packets_are_a_black_hole(path: TunnelPath, underlay: Underlay) -> None:
    whole = underlay.send_test_frames

    def in_pieces(**values: Any) -> Any:
        if values["frame"] > 1000:
            underlay.pieces += values["count"]
        return whole(**values)

    underlay.send_test_frames = in_pieces  # type: ignore[method-assign]
    send_now(path)
    assert path.black_hole_since is not None
    assert path.verified_ip_mtu == 1000 + 36


def test_loss_of_all_frames_is_no_black_hole(path: TunnelPath, underlay: Underlay) -> None:
    send_now(path)
    underlay.largest = 0
    send_now(path)
    assert (path.finding, path.black_hole_since, path.verified_ip_mtu) == ("nothing-arrives", None, NEEDED)
    assert alarm() == []


def test_one_worker_sends_and_another_replaces_it_if_it_dies(path: TunnelPath, underlay: Underlay) -> None:
    now = clock.now() + timedelta(seconds=1)
    underlay.outcome = Unreachable("gone")
    assert [path_probe(path.pk, now=lambda: now) for _ in range(2)] == [True, False]
    assert paths_to_probe(now=now + CLAIM / 2) == []
    assert paths_to_probe(now=now + CLAIM) == [path.pk]
    underlay.outcome = None
    assert path_probe(path.pk, now=lambda: now + CLAIM)
    path.refresh_from_db()
    assert path.verified_ip_mtu == NEEDED


def test_no_line_gets_the_vni_of_probes() -> None:
    ReservedVniRange.objects.create(first=1, last=PROBE_VNI - 2, reason="not ours")
    assert lease() == PROBE_VNI - 1
    assert not vni_available()


def test_map_and_link_show_the_verified_mtu(
    isp: Isp, path: TunnelPath, underlay: Underlay, nora: User
) -> None:
    send_now(path)
    page = text(signed_in(nora).get("/noc/map/"))
    assert "all arrive" in page
    assert f" {NEEDED} " in page
    link = isp.links["rhino-hippo"]
    shown = text(signed_in(nora).get(reverse("web:noc-links-change", args=[link.pk])))
    assert f"IP MTU declared 9000 IP MTU reported not known IP MTU verified by frames {NEEDED}, at" in shown
    underlay.largest = 1400
    send_now(path)
    assert "MTU black hole" in text(signed_in(nora).get("/noc/map/"))
    other = isp.links["hippo-zebra"]
    assert "verified by frames not verified" in text(
        signed_in(nora).get(reverse("web:noc-links-change", args=[other.pk]))
    )
