"""Names in NetBox that the portal refuses: it reports and skips those objects, and imports all others."""

import json
from collections.abc import Callable

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.inventory.models import Port, Router, Site
from portal.netbox_sync.models import NetboxRun
from portal.netbox_sync.sync_run import sync_due
from tests.integration.netbox.seeded import CUSTOMER_FIELD, UNI
from tests.integration.netbox.stand_in import Answer, Request, stand_in_netbox
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def odd(sign: str) -> Callable[[Request], Answer]:
    """Return a backend with valid objects and objects with this character in their names.

    Rhino, in Bern, has a port of Alpine Dairy and a port of a customer with an odd name. Hippo is at a site
    with an odd name. A third router has an odd name.
    """
    sites = [{"id": 1, "name": "Bern"}, {"id": 2, "name": f"Thun{sign}"}]
    devices = [("rhino", sites[0]), ("hippo", sites[1]), (f"ze{sign}bra", sites[0])]
    tenants = [{"id": 1, "name": "Alpine Dairy"}, {"id": 2, "name": f"Basel{sign} Bakery"}]

    def answer(request: Request) -> Answer:
        rows: list[dict[str, object]] = []
        if request.path == "/api/status/":
            return Answer(200, json.dumps({"netbox-version": "4.4.10"}).encode())
        if request.path == "/api/dcim/devices/":
            rows = [{"id": n, "name": name, "site": site} for n, (name, site) in enumerate(devices, start=1)]
        elif request.path == "/api/dcim/interfaces/" and dict(request.query).get("kind") == "physical":
            rows = [
                {
                    "id": 10 + tenant["id"],
                    "device": {"id": 1},
                    "name": f"port{tenant['id']}",
                    "type": {"value": "10gbase-x-sfpp"},
                    "mtu": 9000,
                    "tags": [{"slug": UNI}],
                    "description": f"dock{sign}4",
                    "custom_fields": {CUSTOMER_FIELD: tenant},
                }
                for tenant in tenants
            ]
        page = {"count": len(rows), "next": None, "previous": None, "results": rows}
        return Answer(200, json.dumps(page).encode())

    return answer


@pytest.mark.parametrize("sign", ["\u202e", "\x1b", "\0", "\ud800", "\u2028"], ids=ascii)
def test_odd_name_is_reported_and_affects_nothing_else(
    configured: Callable[..., None], nina: User, sign: str
) -> None:
    with stand_in_netbox(odd(sign)) as stand_in:
        configured(stand_in.url)
        sync_due(now=clock.now())
    run = NetboxRun.objects.get()
    assert run.error is None
    assert {(each["code"], each["subject"]) for each in run.findings} >= {
        ("not_plain_text", "Thun "),
        ("not_plain_text", "Basel  Bakery"),
        ("router_name", "ze bra"),
        ("depends", "hippo"),
        ("depends", "rhino:port2"),
    }
    assert list(Site.objects.values_list("name", flat=True)) == ["Bern"]
    assert list(Router.objects.values_list("name", flat=True)) == ["rhino"]
    assert list(Customer.objects.values_list("name", flat=True)) == ["Alpine Dairy"]
    assert list(Port.objects.values_list("interface", "description")) == [("port1", "dock 4")]
    assert "type its name again in NetBox" in text(signed_in(nina).get("/noc/netbox/"))
