"""`manage.py reconcile` lists its changes in one place, and a silent router does not stop it."""

from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from portal.accounts.models import User
from portal.inventory.models import Router
from tests.integration.certificates import certificates
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.stand_in_agent import StandInAgent, serving

pytestmark = pytest.mark.django_db(transaction=True)

LOST = "77d0b6a6-31f6-4c06-8f11-b7f2f0f6f903"


def owned(interface: str, kind: str, key: int | None) -> dict[str, object]:
    owner = {"vll": LOST, "end": "a", "revision": 1, "sw_if_index": 7}
    return owner | {"interface": interface, "kind": kind, "key": key}


@pytest.fixture
def rhino(isp: Isp) -> Iterator[StandInAgent]:
    """Rhino has a newer intent, and a line that is not in the database. Hippo is unreachable."""
    with serving(StandInAgent("rhino"), pki=certificates()) as agent:
        agent.stored = {"generation": 5, "sha256": "0" * 64}
        agent.owned = [owned("host-cust1.7", "subif", None), owned("vxlan_tunnel7", "vxlan", 70001)]
        Router.objects.filter(name="rhino").update(agent_url=agent.url)
        Router.objects.filter(name="hippo").update(agent_url="https://127.0.0.1:1")
        yield agent


def reconcile(*arguments: str) -> str:
    out = StringIO()
    call_command("reconcile", *arguments, stdout=out)
    return out.getvalue()


def test_dry_run_lists_unknown_lines_and_the_planned_changes(
    isp: Isp, alice: User, rhino: StandInAgent
) -> None:
    vll = order(isp, alice).vll_id
    assert reconcile("--dry-run", "rhino").splitlines() == [
        "rhino has generation 5, ahead of the database's 0",
        f"  quarantined {LOST} a: host-cust1.7, vxlan_tunnel7 (VNI 70001)",
        f"  make        {vll} a",
        "routers queried: 1; lines quarantined: 1; ends to make: 1, to change: 0, to remove: 0, hindered: 0",
    ]
    assert rhino.intents == []
    assert Router.objects.get(name="rhino").generation == 0


def test_existing_end_that_differs_is_changed(isp: Isp, alice: User, rhino: StandInAgent) -> None:
    vll = str(order(isp, alice).vll_id)
    rhino.plan = lambda body: (200, {  # type: ignore[method-assign]
        "schema": 1, "router": "rhino", "generation": 1, "quarantined": [],
        "operations": [
            {"n": 1, "stage": "tag", "vll": each, "end": "a", "message": "", "cli": "", "why": ""}
            for each in (vll, LOST)
        ],
        "ends": [{
            "vll": vll, "end": "a", "revision": 1, "status": "conflict",
            "reason": {"code": "port_in_use", "message": "it is bridged", "object": None, "retval": None,
                       "vpp_message": None},
        }],
    })  # fmt: skip
    rhino.owned[0]["vll"] = vll
    assert reconcile("--dry-run", "rhino").splitlines()[1:4] == [
        f"  change      {vll} a",
        f"  remove      {LOST} a",
        f"  hindered    {vll} a: it is bridged",
    ]


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_silent_router_is_named_and_the_others_are_reconciled(
    rhino: StandInAgent, options: list[str]
) -> None:
    with pytest.raises(CommandError, match="hippo does not report its state"):
        reconcile("--all", *options)
    assert Router.objects.get(name="rhino").generation == (0 if options else 5)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "give the names of routers"),
        (["--all", "rhino"], "give the names of routers"),
        (["zebra"], "no router with an agent is named zebra"),
    ],
)
def test_routers_must_be_named_unambiguously(rhino: StandInAgent, arguments: list[str], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        reconcile(*arguments)


def test_dry_run_without_vpp_fails_with_a_reason(rhino: StandInAgent) -> None:
    problem = {"type": "urn:longline:error:vpp-unavailable", "detail": "VPP is not connected"}
    rhino.plan = lambda body: (503, problem)  # type: ignore[method-assign]
    with pytest.raises(CommandError, match="rhino does not say what it would do: VPP is not connected"):
        reconcile("--dry-run", "rhino")
