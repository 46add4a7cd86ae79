"""Lines over stand-ins of VPP 25.10 are policed at both ends, and what was dropped is counted."""

import pytest

from devstack.stack import Stack
from tests.journeys.test_a_year_of_a_line import Api


@pytest.mark.parametrize(
    ("port", "access"),
    [
        ("memif1/0", {"tagging": "untagged"}),
        ("host-cust1", {"tagging": "dot1q", "outer_vlan": 777}),
        ("host-cust1", {"tagging": "qinq", "outer_vlan": 778, "inner_vlan": 5}),
    ],
    ids=["a whole port", "a VLAN", "two VLANs"],
)
def test_a_line_is_policed_at_its_cir(live_stack: Stack, port: str, access: dict[str, object]) -> None:
    alice = live_stack.client("customer")
    ends = {
        which: {"port": live_stack.port(router, port), **access}
        for which, router in (("a_end", "rhino"), ("z_end", "hippo"))
    }
    accepted = alice.order(
        description="Limited to its rate", svc_mtu=1500, cir_bps=100_000, transport="auto", **ends
    )
    alice.wait_completed(accepted.order, timeout_s=30)
    assert alice.vll(accepted.vll)["policed"]
    assert alice.vll(accepted.vll)["a_end"]["unpoliced_reason"] is None

    def dropped() -> bool:
        policing = alice.policing(accepted.vll)
        return all(policing[end]["violate"] and policing[end]["violate"]["packets"] for end in ends)

    assert alice.wait(dropped, timeout_s=45)
    alice.wait_completed(alice.remove(accepted.vll), timeout_s=30)


def test_an_excess_rate_is_policed_above_the_cir_and_can_be_removed(live_stack: Stack) -> None:
    alice = Api(live_stack, "customer")
    ends = {
        which: {"port": live_stack.port(router, "memif1/0"), "tagging": "untagged"}
        for which, router in (("a_end", "rhino"), ("z_end", "hippo"))
    }
    rates = {"cir_bps": 100_000, "eir_bps": 300_000}
    vll = alice.done("POST", "/vlls", {"description": "With excess", "svc_mtu": 1500, **rates, **ends})
    assert (vll["eir_bps"], vll["ebs_bytes"], vll["requested_ebs_bytes"]) == (300_000, 15_300, None)
    url = f"/vlls/{vll['id']}"
    assert alice.client.wait(lambda: bool(alice("GET", url)["policed"]), timeout_s=20)

    def coloured() -> bool:
        found = alice("GET", f"{url}/policing")
        return all(
            found[end]["violate"]
            and found[end]["violate"]["packets"]
            and found[end]["exceed"]["packets"] > found[end]["conform"]["packets"] > 0
            for end in ends
        )

    assert alice.client.wait(coloured, timeout_s=45), alice("GET", f"{url}/policing")
    vll = alice.done("PATCH", url, {"eir_bps": 0})
    assert (vll["eir_bps"], vll["ebs_bytes"], vll["in_sync"]) == (0, 0, True)
    alice.done("DELETE", url)
