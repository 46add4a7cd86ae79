"""A router without a certificate gets one with the agent's command, the NOC's page and HTTPS."""

import re
import ssl
import stat
import subprocess
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import psycopg
import pytest

from devstack.folders import BUILD
from devstack.process import LOOPBACK, accepts, free_ports
from devstack.stack import Stack
from tests.faults.web_page import log_in

# These routers have no agent, so an enrolment disturbs no other journey.
ROUTER, OTHER = "zebra", "panda"


@pytest.fixture(scope="module")
def https(live_stack: Stack) -> Iterator[str]:
    """Yield the address of a web server with TLS, which plays a proxy."""
    (port,) = free_ports(1)
    pki = live_stack.portal.pki
    child = live_stack.portal.web_child(
        "web-tls", port, "--certfile", str(pki / "portal.pem"), "--keyfile", str(pki / "portal.key")
    )
    child.start()
    try:
        child.wait_until(lambda: accepts(port))
        yield f"https://{LOOPBACK}:{port}"
    finally:
        child.stop()


@pytest.fixture(scope="module")
def noc(live_stack: Stack) -> Iterator[httpx.Client]:
    """A browser in which a member of the NOC is signed in."""
    browser = log_in(live_stack.url, **live_stack.loaded["noc_login"])
    yield browser
    browser.close()


@pytest.fixture
def offer(live_stack: Stack, noc: httpx.Client) -> Callable[[str], str]:
    """Return a function that presses the button on a router's page and returns the shown token."""

    def press(router: str) -> str:
        ((router_id,),) = sql(live_stack, "SELECT id FROM inventory_router WHERE name = %s", router)
        data = {"csrfmiddlewaretoken": noc.cookies["csrftoken"]}
        page = noc.post(
            f"/noc/routers/{router_id}/enrolment/", data=data, headers={"Referer": live_stack.url}
        )
        token = re.search(r"lle_[\w-]+", page.raise_for_status().text)
        assert token is not None
        return token[0]

    return press


def sql(stack: Stack, query: str, *parameters: object) -> list[tuple[object, ...]]:
    with psycopg.connect(stack.portal.services.database_url, autocommit=True) as database:
        cursor = database.execute(query, parameters)
        return cursor.fetchall() if cursor.description else []


class Newcomer:
    """The machine of a router that has a configuration but neither key nor certificate."""

    def __init__(self, folder: Path, https: str, name: str = ROUTER) -> None:
        self.tls, self._config, self._https = folder / "tls", folder / "agent.yaml", https
        self._config.write_text(
            f"router: {name}\nlisten: {LOOPBACK}:1\nstate_dir: state\n"
            "tls: {ca: tls/ca.pem, certificate: tls/router.pem, key: tls/router.key}\n"
        )

    def enroll(self, token: str, *trust: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                str(BUILD / "longline-agent"), "enroll", "-config", str(self._config),
                "-portal", self._https, "-token-file", "/dev/stdin", *trust,
            ],
            input=token + "\n",
            capture_output=True,
            text=True,
            timeout=60,
        )  # fmt: skip

    def report_status(self, stack: Stack) -> int:
        """Return the agent API's status for a report with the stored certificate: 422 for a known router."""
        context = ssl.create_default_context(cafile=self.tls / "ca.pem")
        context.load_cert_chain(self.tls / "router.pem", self.tls / "router.key")
        with httpx.Client(base_url=stack.portal.agents_url, verify=context, trust_env=False) as client:
            return client.post("/api/agent/v1/observed", json={}).status_code


@pytest.fixture
def newcomer(tmp_path: Path, https: str) -> Newcomer:
    return Newcomer(tmp_path, https)


def by_file(stack: Stack) -> tuple[str, str]:
    return "-ca", str(stack.portal.pki / "ca.pem")


def by_fingerprint(stack: Stack) -> tuple[str, str]:
    der = ssl.PEM_cert_to_DER_cert((stack.portal.pki / "portal.pem").read_text())
    return "-ca-fingerprint", sha256(der).hexdigest()


@pytest.mark.parametrize("trust", [by_file, by_fingerprint])
def test_the_agent_api_knows_an_enrolled_router_until_its_revocation(
    live_stack: Stack,
    newcomer: Newcomer,
    offer: Callable[[str], str],
    trust: Callable[[Stack], tuple[str, str]],
) -> None:
    done = newcomer.enroll(offer(ROUTER), *trust(live_stack))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{ROUTER} is enrolled until" in done.stdout
    assert stat.S_IMODE((newcomer.tls / "router.key").stat().st_mode) == 0o600
    assert sorted(path.name for path in newcomer.tls.iterdir()) == ["ca.pem", "router.key", "router.pem"]
    assert newcomer.report_status(live_stack) == 422
    live_stack.portal.manage("pki", "revoke", "--name", ROUTER)
    assert newcomer.report_status(live_stack) == 403


def test_an_interrupted_enrolment_can_be_completed_with_the_same_token(
    live_stack: Stack, newcomer: Newcomer, offer: Callable[[str], str]
) -> None:
    token, trust = offer(ROUTER), by_file(live_stack)
    assert newcomer.enroll(token, *trust).returncode == 0
    # This is the state after a power loss between the portal's answer and the agent's storing of it.
    certificate = (newcomer.tls / "router.pem").read_bytes()
    (newcomer.tls / "router.key").rename(newcomer.tls / "router.key.new")
    (newcomer.tls / "router.pem").unlink()
    (newcomer.tls / "ca.pem").unlink()
    again = newcomer.enroll(token, *trust)
    assert (again.returncode, again.stderr) == (0, "")
    assert (newcomer.tls / "router.pem").read_bytes() == certificate
    assert newcomer.report_status(live_stack) == 422


def test_a_used_token_is_refused_on_another_machine_with_a_reason(
    live_stack: Stack, newcomer: Newcomer, offer: Callable[[str], str], tmp_path: Path, https: str
) -> None:
    token, trust = offer(ROUTER), by_file(live_stack)
    assert newcomer.enroll(token, *trust).returncode == 0
    (tmp_path / "thief").mkdir()
    refused = Newcomer(tmp_path / "thief", https).enroll(token, *trust)
    assert refused.returncode == 1
    assert f"token for {ROUTER} has already been used with another key" in refused.stderr


def test_an_expired_token_is_refused_with_a_reason(
    live_stack: Stack, newcomer: Newcomer, offer: Callable[[str], str]
) -> None:
    token = offer(ROUTER)
    aged = "UPDATE inventory_routerenrolment SET expires_at = now() WHERE used_at IS NULL"
    sql(live_stack, aged)
    refused = newcomer.enroll(token, *by_file(live_stack))
    assert (refused.returncode, "has expired" in refused.stderr) == (1, True), refused.stderr


def test_a_token_of_another_router_is_refused_by_name_and_stays_valid(
    live_stack: Stack, newcomer: Newcomer, offer: Callable[[str], str], tmp_path: Path, https: str
) -> None:
    token, trust = offer(OTHER), by_file(live_stack)
    refused = newcomer.enroll(token, *trust)
    assert refused.returncode == 1
    assert f"is for {OTHER}, but {ROUTER} presented it" in refused.stderr
    (tmp_path / OTHER).mkdir()
    assert Newcomer(tmp_path / OTHER, https, OTHER).enroll(token, *trust).returncode == 0


def test_an_agent_that_does_not_trust_the_portal_keeps_the_token_valid(
    live_stack: Stack, newcomer: Newcomer, offer: Callable[[str], str]
) -> None:
    token = offer(ROUTER)
    for trust in ((), ("-ca-fingerprint", "00" * 32)):
        refused = newcomer.enroll(token, *trust)
        assert (refused.returncode, "the portal is not trusted" in refused.stderr) == (1, True), (
            refused.stderr
        )
    assert newcomer.enroll(token, *by_file(live_stack)).returncode == 0
