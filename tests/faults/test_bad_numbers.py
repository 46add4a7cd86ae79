"""Numbers that do not exist are refused at the API, by the agent and by the database; nothing changes."""

import json
from typing import Any

import httpx
import psycopg
import pytest

from devstack.stack import Stack
from provisioning.agent_tls import router_context
from tests.faults.checker import Checker
from tests.faults.customer import Customer, Json, Line

UNKNOWN_VLL = "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01"


@pytest.fixture(autouse=True)
def nothing_changes(checker: Checker) -> Any:
    before = _rows(checker)
    yield
    assert _rows(checker) == before


def _rows(checker: Checker) -> dict[str, int]:
    tables = (
        "vll_vll",
        "vll_vllend",
        "vll_order",
        "allocation_vnilease",
        "allocation_portvlanlease",
        "allocation_bandwidthbooking",
    )
    return {table: checker.sql(f"SELECT count(*) FROM {table}")[0][0] for table in tables}  # noqa: S608


def _with(body: Json, path: str, value: Any) -> Json:
    first, _, rest = path.partition(".")
    return body | {first: _with(body[first], rest, value) if rest else value}


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
def test_the_api_refuses_it(alice: Customer, line: Line, path: str, value: Any) -> None:
    body = _with(line.order(description="bad"), path, value)
    # json writes 1e309 as Infinity, which is no JSON; as digits it is JSON and overflows the reader.
    answer = alice.raw(json.dumps(body).replace("Infinity", "1e309").encode())
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="deep arrays"),
        pytest.param(b'{"a_end":' * 20_000 + b"1" + b"}" * 20_000, id="deep objects"),
        pytest.param(b'{"svc_mtu": ' + b"9" * 500_000 + b"}", id="a number of 500,000 digits"),
        pytest.param(b'{"svc_mtu": NaN, "cir_bps": Infinity}', id="NaN"),
        pytest.param(b'{"description": "\\ud800"}', id="half a surrogate pair"),
        pytest.param(b"\xff\xfe\x00", id="no UTF-8"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"null", id="null"),
    ],
)
def test_the_api_refuses_malformed_bodies(alice: Customer, content: bytes) -> None:
    answer = alice.raw(content)
    assert answer.status_code in (400, 422), answer.text[:500]
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_the_api_refuses_a_huge_body(alice: Customer) -> None:
    answer = alice.raw(b'{"description": "' + b"x" * 20_000_000 + b'"}')
    assert answer.status_code == 413, answer.status_code
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("half", ["\\ud800", "\\u0000"])
def test_the_api_refuses_text_that_the_database_cannot_hold(alice: Customer, line: Line, half: str) -> None:
    body = json.dumps(line.order(description="DESCRIPTION")).replace("DESCRIPTION", half)
    answer = alice.raw(body.encode())
    assert answer.status_code in (400, 422), answer.text[:500]


@pytest.mark.parametrize("vni", [0, 2**24, 2**24 + 5, -1])
def test_neither_agent_nor_database_takes_such_a_vni(product: Stack, checker: Checker, vni: int) -> None:
    for name, url in product.agent_urls.items():
        context = router_context(pki=product.portal.pki, router=name, pinned=None)
        with httpx.Client(base_url=url, verify=context, trust_env=False) as agent:
            before = agent.get("/v1/state").json()["held"]
            generation = (before["generation"] if before else 0) + 1
            answer = agent.put("/v1/intent", json=_intent(name, generation, vni))
            assert answer.status_code == 422, answer.text
            assert agent.get("/v1/state").json()["held"] == before
    with checker.connect() as database, pytest.raises(psycopg.errors.CheckViolation):
        database.execute(
            "INSERT INTO allocation_vnilease (holder, leased_at, vni) VALUES (%s, now(), %s)",
            [UNKNOWN_VLL, vni],
        )


def _intent(router: str, generation: int, vni: int) -> Json:
    access = {
        "interface": "host-cust1",
        "tagging": "dot1q",
        "outer_vlan": 100,
        "inner_vlan": None,
        "exact_match": True,
    }
    transport = {
        "encapsulation": "vxlan",
        "family": 4,
        "local": "10.255.0.1",
        "remote": "10.255.0.2",
        "vni": vni,
    }
    end = {
        "vll": UNKNOWN_VLL,
        "end": "a",
        "revision": 1,
        "admin_up": True,
        "frame": 1522,
        "access": access,
        "transport": transport,
    }
    return {"schema": 1, "router": router, "generation": generation, "present": [end], "removed": []}
