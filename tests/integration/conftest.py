"""The users of the tests. Ada is an admin of Alpine Dairy, Alice orders for it, Bob is a viewer, and Charlie
is a stranger. Nora belongs to the NOC. Nina is a NOC admin: she may remove what Nora may only change."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import override_settings

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.core.environment import ActivationTestMode
from portal.inventory.models import ObservedRouter
from portal.vll.models import Vll
from tests.integration.activation_testing import Underlay
from tests.integration.isp import Isp, build_isp, member
from tests.integration.orders import order
from tests.integration.requested_tasks import forget_requests
from tests.integration.router_answers import activate


@pytest.fixture(autouse=True)
def no_messages() -> None:
    """Forget the messages of earlier tests."""
    forget_requests()


@pytest.fixture
def dairy(db: None) -> Customer:
    return Customer.objects.create(name="Alpine Dairy", created_at=clock.now())


@pytest.fixture
def bakery(db: None) -> Customer:
    return Customer.objects.create(name="Basel Bakery", created_at=clock.now())


@pytest.fixture
def ada(dairy: Customer) -> User:
    return member("ada", dairy, "admin")


@pytest.fixture
def alice(dairy: Customer) -> User:
    return member("alice", dairy, "operator")


@pytest.fixture
def bob(dairy: Customer) -> User:
    return member("bob", dairy, "viewer")


@pytest.fixture
def charlie(bakery: Customer) -> User:
    return member("charlie", bakery, "admin")


@pytest.fixture
def nora(db: None) -> User:
    return User.objects.create_user("nora", password="correct horse battery", noc_role="noc")


@pytest.fixture
def nina(db: None) -> User:
    return User.objects.create_user("nina", password="correct horse battery", noc_role="nocAdmin")


@pytest.fixture
def isp(dairy: Customer) -> Isp:
    return build_isp(owner=dairy)


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    """Return an active line from Rhino to Hippo: VXLAN over IPv4, VLAN 100 at both ends, 1518 B, 1 Gbit/s."""
    vll = order(isp, alice).vll
    activate(vll)
    return vll


@pytest.fixture
def one_connection() -> Iterator[None]:
    """Let requests to the WSGI application see the test's transaction: no request closes the connection."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def underlay(isp: Isp, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Underlay:
    """Return an underlay between routers that can send test frames; lines have to pass a test."""
    settings.LONGLINE_LINE_TEST = ActivationTestMode.REQUIRED
    ObservedRouter.objects.update(line_tests=True)
    underlay = Underlay()
    monkeypatch.setattr("provisioning.frame_tests.agent_of", underlay.agent_of)
    monkeypatch.setattr("provisioning.frame_tests.TRAVEL_S", 0)
    return underlay


@pytest.fixture(scope="module")
def documentation_sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Serve a documentation site for staff and one for customers, and yield the folder of both.

    Only staff has the page /docs/routers/. The folder is next to a file that no site contains.
    """
    folder = tmp_path_factory.mktemp("documentation") / "docs"
    for page in ("staff", "staff/routers", "customers", "customers/customers"):
        (folder / page).mkdir(parents=True)
        (folder / page / "index.html").write_text(f"<!doctype html><title>{page}</title>")
    (folder / "staff" / "searchindex.js").write_text("Search.setIndex({})")
    (folder.parent / "secret").write_text("secret")
    with override_settings(LONGLINE_DOCS_DIR=folder):
        yield folder
