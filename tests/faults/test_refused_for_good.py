"""When one end cannot be built, the other end is undone, and the customer gets the reason."""

from devstack.stack import Stack
from drills.checks.checker import Checker
from drills.checks.customer import Customer, Line
from tests.faults.continuous_check import Watch

CLEAN_WITHIN_S = 60
VLAN = 77


def test_a_foreign_subinterface_is_refused_by_the_router_and_later_by_the_portal(
    product: Stack, alice: Customer, checker: Checker, line: Line
) -> None:
    noc = product.client("noc")
    hippo = noc.router("hippo")
    with Watch(checker):
        noc.router_action(hippo, "hold")
        refused = alice.post(line.order(vlan=VLAN))
        assert refused.status == 202
        foreign = checker.vpps["hippo"].add_sub(line.interface, VLAN)
        before = checker.vpps["hippo"].config().named(foreign)
        noc.router_action(hippo, "release")
        states = checker.require_terminal([refused.order], within_s=CLEAN_WITHIN_S)
    assert states[refused.order] == "failed"
    failure = alice.get(f"/api/v1/orders/{refused.order}")["failure"]
    assert (failure["router"], failure["code"]) == ("hippo", "foreign_subinterface")
    assert foreign in failure["object"]

    configs = checker.configs()
    assert [each for config in configs.values() for each in config.tagged(refused.vll)] == []
    assert configs["hippo"].named(foreign) == before
    ports = {port["id"]: port for port in _all_ports(alice)}
    assert ports[line.rhino]["booked_bps"] == ports[line.hippo]["booked_bps"] == 0

    # The router has now reported the sub-interface, so the portal refuses the next order immediately.
    assert noc.wait(lambda: _refusals(alice, line) == ["vlan-in-foreign-use"], timeout_s=CLEAN_WITHIN_S)

    # The VLAN is free again, and the failed order leaves nothing on the ports.
    checker.vpps["hippo"].delete_sub(foreign)
    assert noc.wait(lambda: not _refusals(alice, line), timeout_s=CLEAN_WITHIN_S)
    again = alice.post(line.order(vlan=VLAN))
    checker.require_completed([again.order], within_s=CLEAN_WITHIN_S)


def _refusals(customer: Customer, line: Line) -> list[str]:
    """Return the codes with which the portal would refuse the order now."""
    return [each["code"] for each in customer.validate(line.order(vlan=VLAN))["reasons"]]


def _all_ports(alice: Customer) -> list[dict]:
    found, url = [], "/api/v1/ports"
    while url:
        page = alice.get(url)
        found += page["results"]
        url = page["next"]
    return found
