"""The agent API as in production: gunicorn with TLS and client certificates, and a real database."""

import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509 import CertificateSigningRequestBuilder, Name
from django.conf import settings

from devstack.process import LOOPBACK, accepts, free_ports
from portal.accounts.models import User
from portal.core import clock
from portal.inventory import pki
from portal.inventory.models import ObservedInterface, ObservedRouter, Router, RouterCertificate
from portal.inventory.pki import router_uri
from portal.telemetry.models import AgentApiUptime, Sample
from portal.vll.models import RouterConvergence, Vll
from tests.integration.certificates import certificates, issue, register
from tests.integration.database_url import database_url
from tests.integration.isp import Isp
from tests.integration.live_process import eventually
from tests.integration.orders import order
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db(transaction=True)
REPORTS = Path(__file__).parents[2] / "contract" / "reports"
COUNTERS, OBSERVED = "/api/agent/v1/counters", "/api/agent/v1/observed"
CERTIFICATE = "/api/agent/v1/certificate"
Post = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def agent_api(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the base URL of a running agent API on the test database."""
    certificates()
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [
            sys.executable, "-m", "gunicorn", "--config", "python:portal.processes.gunicorn_agent_api",
            "--bind", f"{LOOPBACK}:{port}", "--no-control-socket", "--log-level", "warning",
        ],
        env=os.environ | {"DATABASE_URL": database_url()},
        cwd=settings.BASE_DIR,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while not accepts(port):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield f"https://{LOOPBACK}:{port}"
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(autouse=True)
def _no_samples(db: None) -> None:
    # Django empties only the tables that it manages; a migration declares this table in SQL.
    Sample.objects.all().delete()


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    vll = order(isp, alice).vll
    activate(vll)
    forget_requests()
    return vll


@pytest.fixture
def post(isp: Isp, agent_api: str) -> Iterator[Post]:
    """Return ``post(path, body, who=...)`` with the certificate of ``who``, which is Rhino or Hippo."""
    folder = certificates()
    for name in ("rhino", "hippo"):
        register(isp.routers[name])
    clients: dict[str, httpx.Client] = {}

    def send(path: str, body: Any, *, who: str = "router-rhino", **more: Any) -> httpx.Response:
        if who not in clients:
            context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
            context.load_cert_chain(folder / f"{who}.pem", folder / f"{who}.key")
            clients[who] = httpx.Client(base_url=agent_api, verify=context, trust_env=False)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return clients[who].request(more.pop("method", "POST"), path, content=content, **more)

    yield send
    for client in clients.values():
        client.close()


def counters(*ends: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a report with one sample that ended a second ago."""
    report = json.loads((REPORTS / "counters.json").read_text())
    to_ms = int(clock.now().timestamp() * 1000) - 1000
    sample = {"seq": 1, "from_ms": to_ms - 10_000, "to_ms": to_ms, "ends": list(ends)}
    return report | {"sent_ms": to_ms + 1000, "samples": [sample | changes]}


def counted(vll: Vll, side: str, in_bytes: int = 1_250_000) -> dict[str, Any]:
    return {"vll": str(vll.pk), "end": side, "in_bytes": in_bytes, "in_packets": 1000,
            "out_bytes": 0, "out_packets": 0, "policer": None}  # fmt: skip


def observed(**changes: Any) -> dict[str, Any]:
    report = json.loads((REPORTS / "observed.json").read_text())
    return report | {"sent_ms": int(clock.now().timestamp() * 1000)} | changes


def test_counters_are_stored_once(post: Post, vll: Vll) -> None:
    report = counters(counted(vll, "a"))
    assert post(COUNTERS, report).json() == {"accepted": 1, "duplicate": 0, "refused": 0}
    assert post(COUNTERS, report).json() == {"accepted": 0, "duplicate": 1, "refused": 0}
    sample = Sample.objects.get()
    assert (sample.vll_id, sample.side, sample.in_bytes) == (vll.pk, "a", 1_250_000)


def test_contract_example_reports_are_accepted(post: Post, vll: Vll) -> None:
    assert post(COUNTERS, (REPORTS / "counters.json").read_bytes()).status_code == 200
    response = post(OBSERVED, (REPORTS / "observed.json").read_bytes())
    assert response.status_code == 200
    assert response.json()["watch_routes"] == ["10.255.0.2", "fd00:255::2"]
    etags = response.json()["etags"]
    again = json.loads((REPORTS / "observed-again.json").read_text())
    assert {name: again[name]["etag"] for name in ("routes", "ends", "circuits")} == {
        name: etag for name, etag in etags.items() if name != "watch_routes"
    }
    response = post(OBSERVED, again | {"watch_etag": etags["watch_routes"]})
    assert response.status_code == 200
    assert response.json() == {
        "watch_routes": None,
        "underlay_table": 0,
        "etags": etags,
        "maintenance": False,
        "freeze": None,
    }


def test_response_says_whether_the_router_is_in_maintenance(post: Post, isp: Isp) -> None:
    report = (REPORTS / "observed.json").read_bytes()
    assert post(OBSERVED, report).json()["maintenance"] is False
    Router.objects.filter(name="rhino").update(maintenance_since=clock.now())
    assert post(OBSERVED, report).json()["maintenance"] is True


def an_end(vll: Vll, **values: Any) -> dict[str, Any]:
    return {"vll": str(vll.pk), "end": "a", "revision": 1, "link_up": True, "reachable": True,
            "in_sync": True, "policed": False, "drift": []} | values  # fmt: skip


def named(response: httpx.Response, *lists: str) -> dict[str, Any]:
    """Return the names of these lists after the portal has stored them."""
    return {name: {"etag": response.json()["etags"][name]} for name in lists}


def test_named_list_means_the_list_reported_under_that_name(post: Post, isp: Isp, vll: Vll) -> None:
    first = post(OBSERVED, observed(ends=[an_end(vll)]))
    post(OBSERVED, observed(ends=[an_end(vll)]))  # the portal has compared the changes of the first report
    before = ObservedRouter.objects.get(router=isp.routers["rhino"])
    assert post(OBSERVED, observed(**named(first, "ends", "routes"))).status_code == 200
    after = ObservedRouter.objects.get(router=isp.routers["rhino"])
    assert after.sent_ms > before.sent_ms
    assert after.digests == before.digests
    assert vll.ends.get(side="a").link_up is True


def test_unknown_list_name_requests_the_full_list_and_stores_nothing(post: Post, isp: Isp, vll: Vll) -> None:
    first = post(OBSERVED, observed(ends=[an_end(vll)]))
    post(OBSERVED, observed(ends=[an_end(vll, link_up=False)]))
    before = ObservedRouter.objects.values().get(router=isp.routers["rhino"])
    for lists in (named(first, "ends"), {"routes": {"etag": "of-no-list"}}):
        response = post(OBSERVED, observed(**lists))
        assert (response.status_code, response.json()["type"]) == (
            412,
            "http://testserver/api/docs/errors/#not-stored",
        )
    assert ObservedRouter.objects.values().get(router=isp.routers["rhino"]) == before
    assert vll.ends.get(side="a").link_up is False


def test_portal_changes_are_compared_with_the_full_list(post: Post, isp: Isp, vll: Vll) -> None:
    for _ in range(2):
        response = post(OBSERVED, observed(ends=[an_end(vll)]))
    vll.ends.filter(side="a").update(link_up=None)
    assert post(OBSERVED, observed(**named(response, "ends"))).status_code == 412
    assert post(OBSERVED, observed(ends=[an_end(vll)])).status_code == 200
    assert vll.ends.get(side="a").link_up is True
    assert post(OBSERVED, observed(**named(response, "ends"))).status_code == 200


@pytest.mark.parametrize(
    "ends", [{}, {"etag": 7}, {"etag": "a", "ends": []}, {"etag": "a" * 65}, {"etag": "\0"}, "a"]
)
def test_list_name_has_one_form(post: Post, ends: Any) -> None:
    response = post(OBSERVED, observed(ends=ends))
    assert response.status_code == 422
    assert all(error["pointer"].startswith("/ends") for error in response.json()["errors"])


def test_name_of_watched_routes_is_printable(post: Post) -> None:
    response = post(OBSERVED, observed(watch_etag="\0"))
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/watch_etag"


def test_router_cannot_write_ends_of_another_router(post: Post, vll: Vll) -> None:
    assert post(COUNTERS, counters(counted(vll, "z"))).json()["accepted"] == 0
    assert Sample.objects.count() == 0
    end = {"vll": str(vll.pk), "end": "z", "revision": 1, "link_up": False, "reachable": False,
           "in_sync": False, "policed": False, "drift": []}  # fmt: skip
    assert post(OBSERVED, observed(ends=[end])).status_code == 200
    assert vll.ends.get(side="z").link_up is None


def test_certificate_alone_identifies_the_router(post: Post, isp: Isp, vll: Vll) -> None:
    assert post(COUNTERS, counters(counted(vll, "z")), who="router-hippo").json()["accepted"] == 1
    assert Sample.objects.get().router_id == isp.routers["hippo"].pk


def test_portal_certificate_is_no_router(post: Post) -> None:
    response = post(COUNTERS, counters(), who="portal")
    assert response.status_code == 403
    assert response.json()["type"] == "http://testserver/api/docs/errors/#wrong-role"
    assert response.headers["Content-Type"] == "application/problem+json"


def test_revoked_certificate_is_refused_at_the_next_request(post: Post) -> None:
    assert post(COUNTERS, counters()).status_code == 200
    RouterCertificate.objects.filter(router__name="rhino").update(revoked_at=clock.now())
    assert post(COUNTERS, counters()).status_code == 403


def test_unregistered_certificate_is_refused(post: Post, isp: Isp) -> None:
    folder = certificates()
    if not (folder / "unregistered.pem").exists():
        issue(folder, "unregistered", router_uri("rhino"), pki.authority_load(folder))
    assert post(COUNTERS, counters(), who="unregistered").status_code == 403


def renewal(folder: Path, key_of: str) -> dict[str, Any]:
    """Return an agent's renewal request with this key."""
    key = load_pem_private_key((folder / f"{key_of}.key").read_bytes(), password=None)
    request = CertificateSigningRequestBuilder().subject_name(Name([]))
    csr = request.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()  # type: ignore[arg-type]
    digest = sha256(pki.trusted_pem(folder)).hexdigest()
    return {"schema": 1, "csr_pem": csr, "ca_sha256": digest}


def test_certificate_is_renewed_for_its_own_key_only(post: Post) -> None:
    folder = certificates()
    response = post(CERTIFICATE, renewal(folder, "router-rhino"))
    assert response.json() == {"certificate_pem": None, "ca_pem": None}
    refused = post(CERTIFICATE, renewal(folder, "router-hippo"))
    assert (refused.status_code, refused.json()["type"].partition("#")[2]) == (422, "bad-certificate-request")
    assert post(CERTIFICATE, {"schema": 1, "csr_pem": "", "ca_sha256": "x"}).status_code == 422
    RouterCertificate.objects.filter(router__name="rhino").update(revoked_at=clock.now())
    assert post(CERTIFICATE, renewal(folder, "router-rhino")).status_code == 403


def test_client_certificate_is_required(agent_api: str) -> None:
    context = ssl.create_default_context(cafile=str(certificates() / "ca.pem"))
    with httpx.Client(verify=context, trust_env=False) as client, pytest.raises(httpx.TransportError):
        client.post(f"{agent_api}{COUNTERS}", json=counters())


def test_unfinished_handshakes_do_not_block_routers(post: Post, agent_api: str) -> None:
    address = (LOOPBACK, int(agent_api.rpartition(":")[2]))
    with ExitStack() as stuck:
        for _ in range(16):
            stuck.enter_context(socket.create_connection(address)).sendall(b"\x16")
        assert post(COUNTERS, counters(), timeout=40).status_code == 200


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"schema": 2}, "/schema", "unknown_value"),
        ({"boot_id": "D3F9D3D2-61B6-4C5A-8F53-0D3E6B6A9F10"}, "/boot_id", "out_of_range"),
        ({"sent_ms": "now"}, "/sent_ms", "type"),
        ({"sent_ms": 1.5}, "/sent_ms", "type"),
        ({"simulated": 1}, "/simulated", "type"),
        ({"dropped": -1}, "/dropped", "out_of_range"),
        ({"router": "hippo"}, "/router", "unknown_field"),
        ({"samples": None}, "/samples", "type"),
        ({"samples": [{"seq": 1}]}, "/samples/0/from_ms", "missing"),
        (
            {"samples": [{"seq": 2**63, "from_ms": 1, "to_ms": 2, "ends": []}]},
            "/samples/0/seq",
            "out_of_range",
        ),
    ],
)
def test_invalid_report_is_refused_entirely(
    post: Post, change: dict[str, Any], pointer: str, code: str
) -> None:
    response = post(COUNTERS, counters() | change)
    assert response.status_code == 422
    assert (pointer, code) in [(each["pointer"], each["code"]) for each in response.json()["errors"]]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 50_000, b'{"a": NaN}', b'{"a": 1e309}']
)
def test_body_that_is_no_json_object_is_refused_permanently(post: Post, body: bytes) -> None:
    assert post(COUNTERS, body).status_code == 422


def test_oversized_body_is_refused(post: Post) -> None:
    assert post(COUNTERS, b" " * (32 * 1024 * 1024 + 1)).status_code == 413


def test_other_methods_and_paths_return_problem_documents(post: Post) -> None:
    assert post(COUNTERS, b"", method="GET").status_code == 405
    assert post("/login", b"").json()["type"] == "http://testserver/api/docs/errors/#not-found"


def test_frames_of_foreign_sub_interfaces_are_stored_until_they_change(post: Post, isp: Isp) -> None:
    report = observed()
    frames = {"dot1ad": False, "outer": 100, "inner": None, "least_tags": 1, "most_tags": 3}
    sub = report["interfaces"][0] | {"name": "host-bb0.100", "addresses": [], "parent": "host-bb0"}
    for reported in (frames, frames | {"most_tags": 1}, None):
        report["interfaces"][1:] = [sub | ({"frames": reported} if reported else {})]
        report["sent_ms"] += 1
        response = post(OBSERVED, report)
        assert response.status_code == 200, response.json()
        row = ObservedInterface.objects.get(router=isp.routers["rhino"], name="host-bb0.100")
        assert (row.parent, row.frames) == ("host-bb0", reported)
    report["interfaces"][1] |= {"frames": frames | {"most_tags": 4}}
    assert post(OBSERVED, report).status_code == 422


def test_observation_replaces_the_previous_one(post: Post, isp: Isp) -> None:
    post(OBSERVED, observed())
    assert ObservedInterface.objects.get(router=isp.routers["rhino"]).ip_mtu == 9000
    row = ObservedRouter.objects.get(router=isp.routers["rhino"])
    assert (row.generation_stored, row.vpp_version, row.simulated) == (42, "25.10-release", False)


def test_unusable_files_stay_reported_until_the_agent_clears_them(post: Post, isp: Isp) -> None:
    unread = {"file": "/var/lib/longline/intent.json.set-aside", "why": "empty \x00"}
    nothing_stored = {"held": None, "applied": None}
    assert post(OBSERVED, observed(set_aside=[unread], generation=nothing_stored)).status_code == 200
    row = ObservedRouter.objects.get(router=isp.routers["rhino"])
    assert row.set_aside == [{"file": unread["file"], "why": "empty \ufffd"}]
    assert post(OBSERVED, observed(sent_ms=row.sent_ms + 1)).status_code == 200
    row.refresh_from_db()
    assert row.set_aside == []


def test_reports_of_first_release_agents_are_accepted(post: Post, isp: Isp, vll: Vll) -> None:
    """The documents are exactly those of the first release and never change. The portal invents no values."""
    now_ms = int(clock.now().timestamp() * 1000)
    mine = {"vll": str(vll.pk), "end": "a"}
    report = json.loads((REPORTS / "first-release" / "observed.json").read_text()) | {"sent_ms": now_ms}
    report["ends"][0] |= mine | {"revision": vll.revision}
    response = post(OBSERVED, report)
    assert response.status_code == 200, response.json()
    end = vll.ends.get(side="a")
    assert (end.link_up, end.observed_in_sync, end.policed) == (True, True, False)
    assert ObservedRouter.objects.get(router=isp.routers["rhino"]).policing == "none"

    report = json.loads((REPORTS / "first-release" / "counters.json").read_text()) | {"sent_ms": now_ms}
    (sample,) = report["samples"]
    sample |= {"from_ms": now_ms - 11_000, "to_ms": now_ms - 1000}
    sample["ends"][0] |= mine
    response = post(COUNTERS, report)
    assert response.status_code == 200, response.json()
    assert response.json()["accepted"] == 1
    assert Sample.objects.get().conform_packets is None


@pytest.mark.parametrize("odd", ["bell\x07", "\ud800", "\u0000", "\x1b[31m", "x" * 64])
def test_odd_foreign_text_does_not_reject_the_report(post: Post, isp: Isp, odd: str) -> None:
    report = observed()
    report["interfaces"][0]["tag"] = odd
    report["vpp"]["version"] = odd
    report["interfaces"].append(report["interfaces"][0] | {"name": f"{odd} "})
    # JSON escapes, because a lone surrogate has no bytes in UTF-8.
    assert post(OBSERVED, json.dumps(report).encode()).status_code == 200
    # The portal omits names that no port or link can have.
    assert [row.name for row in ObservedInterface.objects.filter(router=isp.routers["rhino"])] == ["host-bb0"]
    version = ObservedRouter.objects.get(router=isp.routers["rhino"]).vpp_version
    assert version.isprintable()
    assert len(version) == len(odd)


def test_returned_agent_gets_its_intent_immediately(post: Post, isp: Isp, vll: Vll) -> None:
    now = clock.now()
    ObservedRouter.objects.filter(router=isp.routers["rhino"]).update(reported_at=now - timedelta(minutes=2))
    RouterConvergence.objects.create(
        router=isp.routers["rhino"], failures=6, retry_at=now + timedelta(minutes=1)
    )
    post(OBSERVED, observed())
    assert RouterConvergence.objects.get(router=isp.routers["rhino"]).retry_at is None
    # The agent API is another process, which sends the message after its response.
    eventually(lambda: bool(requested()))
    assert [args for _, args in requested()] == [[isp.routers["rhino"].pk]]


@pytest.mark.parametrize(
    "change",
    [
        {"interfaces": [{"name": "x"}]},
        {"encapsulations": ["ipip"]},
        {"routes": [{"address": "10.255.0.2/32", "reachable": True}]},
        {"routes": [{"address": "FD00::1", "reachable": True}]},
        {"generation": {"held": 0, "applied": None}},
        {"agent_version": "\x00"},
        {"agent_version": "\ud800"},
        {"ends": [{"vll": "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", "end": "b"}]},
    ],
)
def test_invalid_observation_is_refused(post: Post, change: dict[str, Any]) -> None:
    before = set(ObservedInterface.objects.values_list("router", "name"))
    assert post(OBSERVED, observed(**change)).status_code == 422
    assert set(ObservedInterface.objects.values_list("router", "name")) == before


def test_running_server_records_its_uptime(agent_api: str) -> None:
    AgentApiUptime.objects.all().delete()
    deadline = time.monotonic() + 60
    while not AgentApiUptime.objects.filter(
        last_recorded_at__gte=clock.now() - timedelta(minutes=1)
    ).exists():
        assert time.monotonic() < deadline
        time.sleep(0.2)
