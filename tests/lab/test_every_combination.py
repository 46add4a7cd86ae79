"""Lines of every combination, ordered through the API, built in two real VPPs, tested with frames."""

import secrets

import pytest

from devstack.client import Refused
from tests.lab.abilities import Ability
from tests.lab.combinations import ALL, Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import order, ordered

SMALL_PACKET = 46


@pytest.mark.parametrize("combination", ALL, ids=str)
def test_the_largest_promised_packet_arrives_unchanged_both_ways_and_nothing_stays_behind(
    lab: Lab, combination: Combination
) -> None:
    before = lab.traces()
    customer = lab.stack.client("customer")
    ends = lab.ends(combination.transport, combination.tagging)

    with pytest.raises(Refused) as refusal:
        order(lab, combination, svc_mtu=combination.largest_svc_mtu + 1)
    assert refusal.value.status in (409, 422), refusal.value

    with ordered(lab, combination, svc_mtu=combination.largest_svc_mtu) as accepted:
        vll = customer.vll(accepted.vll)
        assert (vll["lifecycle"], vll["transport"]) == ("active", combination.transport)
        [test] = customer.tests(accepted.vll)
        if combination.transport == "l2xc":
            assert (test["state"], test["reason"]) == ("not_tested", "no-tunnel")
        elif not lab.can(Ability.ACTIVATION_TESTS):
            assert (test["state"], test["reason"]) == ("not_tested", "router-cannot")
        else:
            assert (test["state"], test["largest_passed"]) == ("passed", vll["frame"])
            assert test["round_trip_us"]["received"] == test["round_trip_us"]["sent"]
        for of, to in (("a", "z"), ("z", "a")):
            _send(lab, combination, ends, of, to, SMALL_PACKET, tries=20)
            _send(lab, combination, ends, of, to, combination.largest_svc_mtu, tries=1)

    assert customer.vll(accepted.vll)["lifecycle"] == "terminated"
    assert lab.traces() == before
    lab.report.append(
        f"lab {combination}: {combination.largest_svc_mtu} bytes both ways unchanged; one more refused"
        f" ({refusal.value.problem['detail']}); nothing left"
    )


def _send(
    lab: Lab,
    combination: Combination,
    ends: dict[str, tuple[str, str]],
    of: str,
    to: str,
    size: int,
    tries: int,
) -> None:
    """Send a packet. Only the first may need several tries: VPP drops packets that wait for ARP or ND."""
    sender, receiver = lab.customers[ends[of]], lab.customers[ends[to]]
    packet = secrets.token_bytes(size)
    receiver.drain()
    complaint: str | None = "nothing was sent"
    for _ in range(tries):
        sender.send(combination.on_the_wire(of=of, at=of, packet=packet))
        complaint = receiver.expect(combination.on_the_wire(of=of, at=to, packet=packet), timeout_s=1)
        if complaint is None:
            return
    pytest.fail(f"{combination}, {of} to {to}, {size} bytes: {complaint}")
