"""A stolen router key is useless for pages and API once its certificate is revoked."""

import shutil
import ssl
from collections.abc import Callable
from pathlib import Path

import httpx

from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import Customer, Line

REVOKED_WITHIN_S = 5
HEALED_WITHIN_S = 30
ROUTER = "hippo"


def thief(product: Stack, certificate: Path, key: Path) -> Callable[[], int]:
    """Return a function that reports with this certificate and returns the agent API's status."""
    context = ssl.create_default_context(cafile=product.portal.pki / "ca.pem")
    context.load_cert_chain(certificate, key)
    agent_api = httpx.Client(base_url=product.portal.agents_url, verify=context, trust_env=False)
    # Nothing in the report is valid, so even an accepted report changes nothing.
    return lambda: agent_api.post("/api/agent/v1/observed", json={}).status_code


def test_a_revoked_certificate_is_refused_at_once_by_both_servers(
    product: Stack, alice: Customer, checker: Checker, line: Line, tmp_path: Path
) -> None:
    pki = product.portal.pki
    files = [pki / f"router-{ROUTER}.pem", pki / f"router-{ROUTER}.key"]
    stolen = [Path(shutil.copy(file, tmp_path)) for file in files]
    report = thief(product, *stolen)
    assert report() == 422, "the certificate counted before"

    product.portal.manage("pki", "revoke", "--name", ROUTER)
    assert wait(lambda: report() == 403, timeout_s=REVOKED_WITHIN_S)
    waiting = alice.post(line.order())
    assert wait(lambda: "revoked" in _last_error(checker), timeout_s=30), _last_error(checker)
    assert alice.get(f"/api/v1/orders/{waiting.order}")["state"] not in ("completed", "failed")
    assert checker.vpps[ROUTER].config().tagged(waiting.vll) == [], "the portal still speaks to the thief"

    for file in files:
        file.unlink()
    product.portal.manage(
        "pki", "issue", "--dir", str(pki), "--role", "router", "--name", ROUTER, "--ip", "127.0.0.1"
    )
    states = checker.require_terminal([waiting.order], within_s=HEALED_WITHIN_S)
    assert states[waiting.order] == "completed"
    assert report() == 403, "the stolen certificate counts again"


def _last_error(checker: Checker) -> str:
    query = (
        "SELECT last_error FROM vll_routerconvergence c JOIN inventory_router r ON r.id = c.router_id "
        "WHERE r.name = %s"
    )
    return "; ".join(str(error) for (error,) in checker.sql(query, ROUTER))
