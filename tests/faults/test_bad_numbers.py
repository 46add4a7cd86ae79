"""The agent and the database also refuse impossible numbers, and the web server refuses a huge body.

tests/integration/api/test_api_bad_input.py has the other refusals of the API, which need no stack.
"""

import httpx
import psycopg
import pytest

from devstack.stack import Stack
from drills.checks.checker import Checker
from drills.checks.customer import Customer, Json
from provisioning.agent_client import router_context

UNKNOWN_VLL = "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01"
IMPOSSIBLE_VNIS = (0, 2**24, 2**24 + 5, -1)


def test_the_api_refuses_a_huge_body(alice: Customer) -> None:
    answer = alice.raw(b'{"description": "' + b"x" * 20_000_000 + b'"}')
    assert answer.status_code == 413, answer.status_code
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_no_agent_accepts_an_impossible_vni(product: Stack) -> None:
    for name, url in product.agent_urls.items():
        context = router_context(pki=product.portal.pki, router=name, pinned=None)
        with httpx.Client(base_url=url, verify=context, trust_env=False) as agent:
            before = agent.get("/v1/state").json()["held"]
            generation = (before["generation"] if before else 0) + 1
            for vni in IMPOSSIBLE_VNIS:
                answer = agent.put("/v1/intent", json=_intent(name, generation, vni))
                assert answer.status_code == 422, answer.text
                assert agent.get("/v1/state").json()["held"] == before


def test_the_database_accepts_no_impossible_vni(checker: Checker) -> None:
    insert = "INSERT INTO allocation_vnilease (holder, leased_at, vni) VALUES (%s, now(), %s)"
    with checker.connect() as database:
        for vni in IMPOSSIBLE_VNIS:
            with pytest.raises(psycopg.errors.CheckViolation):
                database.execute(insert, [UNKNOWN_VLL, vni])


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
