"""Behind a TLS proxy on another address: only a trusted proxy sets the scheme and the client address."""

import http.client
import json
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path

import pytest

from devstack.folders import ROOT
from devstack.packages import TOOLS
from devstack.process import LOOPBACK, accepts, free_ports
from portal.accounts.models import User
from portal.accounts.tokens import token_create
from portal.core import clock
from tests.integration.database_url import database_url
from tests.integration.gunicorn_server import server
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db(transaction=True)

# Each is an address of the local host, and the portal treats them as different hosts.
PROXY, CUSTOMER, STRANGER = "127.0.0.2", "127.0.0.3", "127.0.0.4"
LIST = "/api/v1/ports?limit=1"
Connect = Callable[[str], http.client.HTTPConnection]
FORGED = {"X-Forwarded-Proto": "https", "X-Forwarded-For": CUSTOMER}


@dataclass(frozen=True)
class Site:
    """The portal, and nginx in front of it as in the compose file."""

    portal: int
    proxy: int
    tls: ssl.SSLContext

    def behind(self, caller: str) -> http.client.HTTPConnection:
        return http.client.HTTPSConnection(
            PROXY, self.proxy, timeout=60, context=self.tls, source_address=(caller, 0)
        )

    def directly(self, caller: str) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(LOOPBACK, self.portal, timeout=60, source_address=(caller, 0))


def get(to: http.client.HTTPConnection, token: str, **headers: str) -> tuple[int, str]:
    """Return the status and the address of the redirect."""
    to.request("GET", LIST, headers={"Authorization": f"Bearer {token}", **headers})
    response = to.getresponse()
    return response.status, json.loads(response.read()).get("next", "")


@contextmanager
def site(folder: Path, *, trusted: str) -> Iterator[Site]:
    environment = {
        "DATABASE_URL": database_url(),
        "LONGLINE_TRUSTED_PROXIES": trusted,
        "ALLOWED_HOSTS": f"{LOOPBACK},{PROXY}",
    }
    config, app = (
        "from portal.processes.gunicorn_web import *\n",
        "from portal.wsgi import application as app\n",
    )
    with server(folder, config, app, environment) as portal, nginx(folder, portal) as (proxy, certificate):
        yield Site(portal, proxy, ssl.create_default_context(cafile=certificate))


@contextmanager
def nginx(folder: Path, portal: int) -> Iterator[tuple[int, Path]]:
    """Yield the port of a real nginx with the shipped configuration, and its certificate."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:{TOOLS}")
    assert program, "nginx is missing: python -m devstack.packages test"
    (port,) = free_ports(1)
    certificate, key = folder / "web.pem", folder / "web.key"
    ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key))
    name = ("-subj", "/CN=portal", "-addext", f"subjectAltName=IP:{PROXY}")
    subprocess.run(
        ["openssl", "req", "-x509", *ec, *name, "-out", certificate], check=True, capture_output=True
    )
    text = (ROOT / "deploy" / "compose" / "nginx.conf").read_text()
    for shipped, here in (
        (" /tmp/", f" {folder}/"),
        ("listen 8443 ssl http2;", f"listen {PROXY}:{port} ssl http2;"),
        ("/run/secrets/web_certificate", str(certificate)),
        ("/run/secrets/web_key", str(key)),
        ("http://web:8000;", f"http://{LOOPBACK}:{portal};"),
        ("proxy_pass $web;", f"proxy_pass $web; proxy_bind {PROXY};"),
    ):
        assert shipped in text
        text = text.replace(shipped, here)
    (folder / "nginx.conf").write_text(text)
    user = "user root; " if os.geteuid() == 0 else ""
    process = subprocess.Popen(
        [program, "-p", folder, "-e", "stderr", "-c", "nginx.conf", "-g", f"{user}daemon off;"]
    )
    try:
        deadline = time.monotonic() + 30
        while not accepts(port, PROXY):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield port, certificate
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def anywhere(isp: Isp, alice: User) -> str:
    return token_create(user=alice, name="anywhere", now=clock.now())[1]


@pytest.fixture
def at_home(isp: Isp, alice: User) -> str:
    """Return a token that is restricted to the customer's address."""
    home = [ip_network(CUSTOMER)]
    return token_create(user=alice, name="at home", allowed_networks=home, now=clock.now())[1]


def test_trusted_proxy_sets_scheme_and_client_address(tmp_path: Path, anywhere: str, at_home: str) -> None:
    with site(tmp_path, trusted=f"{PROXY}/32") as portal:
        there = f"https://{PROXY}:{portal.proxy}/api/v1/ports?"
        status, following = get(portal.behind(CUSTOMER), at_home)
        assert (status, following[: len(there)]) == (200, there)
        # nginx replaces these headers of a client.
        assert get(portal.behind(STRANGER), at_home, **FORGED)[0] == 403
        assert get(portal.behind(STRANGER), anywhere, **{"X-Forwarded-Proto": "http"})[1].startswith(there)
        assert_headers_are_ignored(portal.directly, anywhere, at_home)


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/api/v1/imports?kind=sites", "application/problem+json"), ("/noc/imports/", "text/plain")],
)
def test_request_too_large_for_nginx_gets_the_clients_format(tmp_path: Path, path: str, kind: str) -> None:
    with site(tmp_path, trusted=f"{PROXY}/32") as portal:
        to = portal.behind(CUSTOMER)
        to.request("POST", path, headers={"Content-Type": "text/csv", "Content-Length": str(10 * 2**20)})
        response = to.getresponse()
        body = response.read().decode()
    assert (response.status, response.headers.get_content_type()) == (413, kind)
    if kind.endswith("json"):
        problem = json.loads(body)
        assert (problem["status"], problem["type"].partition("#")[2]) == (413, "too-large")


def test_untrusted_proxy_sets_neither_scheme_nor_address(tmp_path: Path, anywhere: str, at_home: str) -> None:
    with site(tmp_path, trusted="192.0.2.0/24") as portal:
        assert_headers_are_ignored(portal.directly, anywhere, at_home)
        assert_headers_are_ignored(portal.behind, anywhere, at_home)


def assert_headers_are_ignored(connect: Connect, anywhere: str, at_home: str) -> None:
    """Check that the portal believes no header. Loopback has no special rights."""
    for caller in (LOOPBACK, STRANGER):
        assert get(connect(caller), at_home, **FORGED)[0] == 403, caller
        status, following = get(connect(caller), anywhere, **FORGED)
        assert (status, following.split(":")[0]) == (200, "http"), caller
