"""The exact number of SQL statements of each main operation: an increase and a decrease are both noticed.

A statement costs a round trip and the time to build and run it, which is most of an operation's time. If a
number here changes for a good reason, update it; the failure lists the statements. Each operation is counted
at its second run, when the topology is built and the use of the token is stored.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import body, client
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in

pytestmark = pytest.mark.django_db

# In tests everything runs inside one transaction, so the operation's own transaction is a savepoint, which is
# two of these statements. Six statements of an order, with its rows and its tasks, go to the server together.
API = {
    # One stores that the simulated routers cannot test the line. One reads the frames that foreign interfaces
    # take on both ports.
    "order": 21,
    "order with a key": 28,
    # One reads the interfaces that routers do not report, and one the frames that foreign interfaces take.
    "validate": 14,
    # One reads the open orders, for the health of the lines.
    "list": 4,
    "list, narrowed": 4,
    # Two more: ports are read separately, so that lines share them, and one reads the owner of the export.
    "list as CSV": 6,
    "search": 6,
    "orders": 2,
    "detail": 4,
    "job": 4,
    # One reads since when the line was in service.
    "graph": 7,
    "mail preferences": 3,
}
PAGES = {
    # Four, two of them for a savepoint, read the traffic of all lines. Three count lines by health, one looks
    # for drift, and one reads the user's customers.
    "/": 17,
    "/?q=milk": 17,
    # One reads whether the path is watched.
    "/vlls/{vll}/": 16,
    "/vlls/{vll}/status/": 8,
    # One reads since when the line was in service.
    "/vlls/{vll}/months/": 12,
    "/vlls/{vll}/change/": 7,
    "/vlls/{vll}/remove/": 5,
    "/orders/": 3,
    "/holds/": 3,
    "/account/tokens/": 3,
    "/account/notifications/": 4,
    "/webhooks/": 4,
    "/ports/": 3,
    # One reads since when the VLANs are leased, two the losses, and one the frames of foreign interfaces.
    "/ports/{port}/": 15,
    # Each end has a separate select with its own search. One statement reads the approval limits.
    "/orders/new/": 8,
    "/search/?q=100": 8,
    "/routers/": 5,
    # With any number of alarms: one reads the last round, and one counts the alarms of each kind.
    "/noc/": 5,
    "/noc/wall/": 7,
    "/noc/alarms/history/": 4,
    "/noc/orders/": 4,
    # One lists the ends whose frames the router drops because of an unknown VLAN.
    "/noc/routers/{router}/": 22,
    "/noc/routers/{router}/drain/": 7,
    "/noc/sites/": 4,
    "/noc/routers/": 5,
    "/noc/ports/": 5,
    "/noc/links/": 4,
    "/noc/customers/": 4,
    # Two count the lines by health. Four read the next steps.
    "/noc/customers/{customer}/": 18,
    "/noc/customers/{customer}/lines/?health=setting_up": 8,
    # One reads the interfaces of a router by name.
    "/noc/interfaces/?field=interface&of=router&router=rhino": 7,
    "/noc/vni-ranges/": 4,
    # Five read whether the topology used for orders is current, the load of links, the paths of lines, the
    # verified MTUs of these, and the routers without links.
    "/noc/map/": 11,
    "/noc/imports/": 4,
    "/noc/pools/": 12,
    "/noc/staff/": 4,
    "/noc/people/{person}/": 7,
    # One or two for each table with a row on the page.
    "/noc/audit/": 16,
}


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    return order(isp, alice, cir_bps=1000, description="Milk run").vll


def statements_of(operation: Callable[[], Any]) -> list[str]:
    """Return the statements of the second run."""
    assert operation().status_code < 300
    with CaptureQueriesContext(connection) as captured:
        response = operation()
    assert response.status_code < 300, response.content
    return [query["sql"] for query in captured]


def check(name: str, statements: list[str], baseline: int) -> None:
    listed = "\n".join(
        f"{number:3} {' '.join(sql.split())[:160]}" for number, sql in enumerate(statements, 1)
    )
    assert len(statements) == baseline, (
        f"{name} takes {len(statements)} SQL statements; the baseline is {baseline}:\n{listed}"
    )


@pytest.mark.parametrize("name", API)
def test_api_operation_takes_its_number_of_statements(name: str, isp: Isp, alice: User, vll: Vll) -> None:
    api = client(alice)
    free = iter(range(200, 300))

    def post_order(path: str, **headers: str) -> Any:
        document = body(isp, cir_bps=1000)
        for side, port in (("a", "rhino:host-cust1"), ("z", "hippo:host-cust1")):
            document[f"{side}_end"] = {
                "port": isp.ports[port].pk,
                "tagging": "dot1q",
                "outer_vlan": next(free),
            }
        return api.post(path, document, format="json", headers=headers)

    def read(response: Any) -> Any:
        assert b"".join(response).count(b"\n") > 1
        return response

    operations: dict[str, Callable[[], Any]] = {
        "order": lambda: post_order("/api/v1/vlls"),
        "order with a key": lambda: post_order("/api/v1/vlls", **{"Idempotency-Key": f"key-{next(free)}"}),
        "validate": lambda: post_order("/api/v1/vlls/validate"),
        "list": lambda: api.get("/api/v1/vlls"),
        "list, narrowed": lambda: api.get("/api/v1/vlls?router=rhino&vlan=100&lifecycle=pendingActive"),
        "list as CSV": lambda: read(api.get("/api/v1/vlls.csv")),
        "search": lambda: api.get("/api/v1/vlls?q=100"),
        "orders": lambda: api.get("/api/v1/orders"),
        "detail": lambda: api.get(f"/api/v1/vlls/{vll.pk}"),
        "job": lambda: api.get(f"/api/v1/jobs/{vll.orders.all()[0].pk}"),
        "graph": lambda: api.get(f"/api/v1/vlls/{vll.pk}/throughput"),
        "mail preferences": lambda: api.get("/api/v1/mail-preferences"),
    }
    check(name, statements_of(operations[name]), API[name])


@pytest.mark.parametrize("path", PAGES)
def test_page_takes_its_number_of_statements(path: str, isp: Isp, alice: User, nora: User, vll: Vll) -> None:
    ids = {"vll": vll.pk, "router": isp.routers["rhino"].pk, "person": alice.pk}
    ids |= {"port": isp.ports["rhino:host-cust1"].pk, "customer": vll.customer_id}
    address = path.format(**ids)
    browser = signed_in(nora if path.startswith(("/noc/", "/routers/")) else alice)
    check(path, statements_of(lambda: browser.get(address)), PAGES[path])


def test_overview_reads_the_trouble_of_lines_in_service_once(alice: User, vll: Vll) -> None:
    activate(vll)
    page = signed_in(alice)
    statements = statements_of(lambda: page.get("/"))
    check("/", statements, 19)
    assert sum('FROM "vll_tunnelpath"' in sql for sql in statements) == 1
