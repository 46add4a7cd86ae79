"""The REST APIs answer every bad request with a problem document and a status 4xx."""

import base64
import json
import ssl
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings as deployment
from django.db import OperationalError, connection
from django.test import Client

from portal.accounts.models import User
from portal.accounts.tokens import token_create
from portal.core import clock
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import body
from tests.integration.certificates import certificates
from tests.integration.isp import Isp
from tests.integration.orders import order

pytestmark = pytest.mark.django_db
PATH = "/api/v1/vlls"


@pytest.fixture
def api(isp: Isp, alice: User) -> Client:
    _, plain = token_create(user=alice, name="test", now=clock.now())
    return Client(raise_request_exception=False, headers={"Authorization": f"Bearer {plain}"})


def no_database() -> AbstractContextManager[None]:
    """Let each statement fail as it does while PostgreSQL restarts."""

    def lost(*_: Any) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    return connection.execute_wrapper(lost)


def assert_problem(answer: Any, status: int) -> None:
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert answer.json()["status"] == status
    assert answer.json()["request_id"] == answer["X-Request-Id"]


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b'{"\\ud800": 1}', 400),
        (b'{"transport": "\\udc00"}', 400),
        (b'{"a_end": {"tagging": "\\ud800"}}', 400),
        (b"\xff\xfe", 400),
        (b'{"svc_mtu": NaN}', 400),
        (b'{"svc_mtu": NaN, "cir_bps": Infinity}', 400),
        (b"[" * 100_000, 400),
        (b"[" * 100_000 + b"]" * 100_000, 400),
        (b'{"a_end":' * 20_000 + b"1" + b"}" * 20_000, 400),
        (b'{"svc_mtu": ' + b"9" * 5000 + b"}", 400),
        (b"", 422),
        (b"null", 422),
        (b'{"description": "\\u0000"}', 422),
        (b'{"description": "' + b"a" * deployment.DATA_UPLOAD_MAX_MEMORY_SIZE + b'"}', 413),
    ],
)
def test_unreadable_body_is_refused(api: Client, raw: bytes, status: int) -> None:
    assert_problem(api.post(PATH, raw, content_type="application/json"), status)


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return the document with this value at ``path`` ("a_end.outer_vlan")."""
    first, _, rest = path.partition(".")
    return document | {first: changed(document[first], rest, value) if rest else value}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(("a_end.outer_vlan", value) for value in (0, 4095, 4096, -1, 2**63, 1e309, "100", 7.5, True)),
        *(("z_end.inner_vlan", value) for value in (0, 4095, 7)),
        *(("svc_mtu", value) for value in (0, 67, 65536, 2**64, 1e309, -1500, "1500")),
        *(("cir_bps", value) for value in (0, -1, 10**13, 2**63, 1e309)),
        *(("eir_bps", value) for value in (-1, 10**13, 2**63, 1e309)),
        *(("cbs_bytes", value) for value in (0, -1, 1517, 2**31, 1e309)),
        ("ebs_bytes", 100_000),
        *(("a_end.port", value) for value in (0, 2**53, 2**63, 1e309, None)),
        ("vni", 2**24),
    ],
)
def test_impossible_number_is_refused_and_changes_nothing(
    api: Client, isp: Isp, path: str, value: Any
) -> None:
    tagged = {"tagging": "dot1q", "outer_vlan": 100}
    wanted = changed(body(isp, z_end={"port": isp.ports["hippo:host-cust1"].pk} | tagged), path, value)
    # json writes 1e309 as Infinity, which is invalid JSON; as digits it is valid and overflows the parser.
    raw = json.dumps(wanted).replace("Infinity", "1e309")
    answer = api.post(PATH, raw, content_type="application/json")
    assert_problem(answer, 400 if answer.status_code == 400 else 422)
    assert not Vll.objects.exists()


@pytest.mark.parametrize("charset", ["zlib", "rot13", "utf-16"])
def test_json_is_read_as_utf_8_despite_other_charsets(api: Client, charset: str) -> None:
    answer = api.generic("POST", PATH, b"{}", content_type=f"application/json; charset={charset}")
    assert_problem(answer, 422)


@pytest.mark.parametrize(
    "place",
    [
        "",
        "{",
        "7",
        "[]",
        "[1, 2, 3]",
        '["2026-01-01T00:00:00", "x"]',
        "[null, null]",
        "[null]",
        "[1e309]",
        '["\\u0000"]',
        '["\\ud800"]',
        '["\\ud800", "\\udfff"]',
        '["2026-01-01T00:00:00", "00000000-0000-0000-0000-000000000000"]',
        "[99999999999999999999]",
        "[" * 3000,
    ],
)
def test_edited_cursor_is_404(api: Client, place: str) -> None:
    cursor = base64.urlsafe_b64encode(place.encode()).decode() or "x"
    for path in ("vlls", "orders", "ports"):
        assert_problem(api.get(f"/api/v1/{path}", {"cursor": cursor}), 404)


@pytest.mark.parametrize("limit", ["0", "-1", "201", "x", "", "1.5", "9" * 5000, "٣"])
def test_limit_outside_1_to_200_is_422(api: Client, limit: str) -> None:
    assert_problem(api.get(PATH, {"limit": limit}), 422)


@pytest.mark.parametrize(
    "query",
    [
        "from=0001-01-01T00:00:00%2B14:00",
        "to=0001-01-01T00:00:00Z",
        "from=9999-12-31T23:00:00Z&to=9999-12-31T23:59:59Z",
        "from=-1",
    ],
)
def test_times_at_the_ends_of_the_calendar_are_handled(
    api: Client, isp: Isp, alice: User, query: str
) -> None:
    assert_problem(api.get(f"{PATH}/{order(isp, alice).vll_id}/throughput?{query}"), 422)


def test_unknown_api_path_is_404(api: Client) -> None:
    assert_problem(api.get("/api/v1/nothing"), 404)


def test_unknown_host_is_refused(api: Client) -> None:
    assert_problem(api.get(PATH, headers={"Host": "evil.example"}), 400)


def test_internal_error_is_a_problem_document(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.api.v1.lines.lines.VllsView.rows", lambda _: 1 / 0)
    answer = api.get(PATH)
    assert_problem(answer, 500)
    assert "division" not in answer.content.decode()


def test_missing_database_is_503_for_programs(api: Client) -> None:
    with no_database():
        answer = api.get(PATH)
    assert_problem(answer, 503)
    assert answer["Retry-After"] == "5"


def test_missing_database_is_503_for_people(api: Client, alice: User) -> None:
    api.force_login(alice)
    with no_database():
        answer = api.get("/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer["X-Request-Id"] in answer.content.decode()


def test_missing_database_is_503_for_agents(isp: Isp, settings: Any) -> None:
    settings.ROOT_URLCONF = "portal.processes.urls_agent_api"
    certificate = ssl.PEM_cert_to_DER_cert((certificates() / "router-rhino.pem").read_text())
    tls = SimpleNamespace(getpeercert=lambda binary_form: certificate)
    client = Client(raise_request_exception=False)
    with no_database():
        answer = client.post("/api/agent/v1/counters", b"{}", "application/json", **{"gunicorn.socket": tls})
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
