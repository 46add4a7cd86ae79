"""One CA replaces another while orders continue: agents renew automatically and none is left behind."""

from pathlib import Path

from cryptography import x509

from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import Customer, Line

# An agent requests a renewal five seconds after its start.
RENEWED_WITHIN_S = 30
ORDERED_WITHIN_S = 30
ROUTERS = ("rhino", "hippo")


def certificates(path: Path) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(path.read_bytes())


def issuer(product: Stack, name: str) -> x509.Name:
    return certificates(product.portal.pki / f"{name}.pem")[0].issuer


def start_again(product: Stack, *names: str) -> None:
    for name in names:
        product.family[name].end()
        product.family[name].restart()


def take_step(product: Stack, step: str, *more: str) -> None:
    product.portal.manage("pki", "rollover", step, "--dir", str(product.portal.pki), *more)
    # The agents would renew within the hour; the portal reads its files again automatically.
    start_again(product, *(f"agent-{name}" for name in ROUTERS))


def test_a_new_ca_replaces_the_old_one_without_interrupting_orders(
    product: Stack, alice: Customer, checker: Checker, line: Line
) -> None:
    def trusts(count: int) -> bool:
        return all(len(certificates(agent.ca)) == count for agent in product.agents)

    def orders_go_on() -> None:
        placed = alice.post(line.order())
        assert checker.require_terminal([placed.order], within_s=ORDERED_WITHIN_S) == {
            placed.order: "completed"
        }

    pki = product.portal.pki
    keys = {name: (pki / f"router-{name}.key").read_bytes() for name in ROUTERS}
    old = issuer(product, "portal")
    take_step(product, "begin")
    assert wait(lambda: trusts(2), timeout_s=RENEWED_WITHIN_S)
    take_step(product, "switch", "--dns", "localhost", "--ip", "127.0.0.1")
    orders_go_on()
    names = ("portal", *(f"router-{name}" for name in ROUTERS))
    assert wait(lambda: all(issuer(product, name) != old for name in names), timeout_s=RENEWED_WITHIN_S)
    take_step(product, "finish")
    assert wait(lambda: trusts(1), timeout_s=RENEWED_WITHIN_S)
    orders_go_on()
    assert {name: (pki / f"router-{name}.key").read_bytes() for name in ROUTERS} == keys
    assert [each.subject for each in certificates(pki / "ca.pem")] == [issuer(product, "portal")]
