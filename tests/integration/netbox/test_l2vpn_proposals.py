"""A foreign L2VPN in NetBox proposes customer and name for the found line with the same VNI."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from devstack.netbox_writer import NetboxWriter
from portal.accounts.models import Customer, User
from portal.core import clock
from portal.inventory.found_lines import found_circuits, found_lines
from portal.inventory.models import ObservedCircuit, ObservedRouter, Router
from portal.inventory.observation_store import circuits_store
from portal.netbox_sync.client import Client, configuration
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals, Proposal, l2vpns_refresh
from portal.netbox_sync.models import NetboxL2vpn
from portal.netbox_sync.sync_run import sync_due
from tests.integration.api.test_api_v1 import client
from tests.integration.circuits import attachment, circuit, found_line, tunnel
from tests.integration.isp import Isp
from tests.integration.netbox.l2vpns import others_l2vpns
from tests.integration.netbox.lines import line
from tests.integration.netbox.seeded import seed
from tests.integration.netbox.stand_in import Answer, Request, StandIn, stand_in_netbox
from tests.integration.netbox.test_faults import STATUS, answer
from tests.integration.netbox.test_import import run
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def seeded(netbox: StandIn) -> NetboxWriter:
    """The portal has imported the ISP of NetBox; its routers report lines of the VNIs 7000 to 7004."""
    seeded = seed(netbox.url, netbox.token)
    run()
    for here, there in (("rhino", "hippo"), ("hippo", "rhino")):
        router = Router.objects.get(name=here)
        ObservedRouter.objects.create(
            router=router,
            reported_at=clock.now(),
            boot_id=uuid4(),
            sent_ms=0,
            agent_version="0.1.0",
            vpp_connected=True,
            adoption="allowed",
        )
        rows = [circuit(attachment("cust2", 300 + n), tunnel(here, there, 7000 + n)) for n in range(5)]
        circuits_store(router, rows)
    return seeded


def proposals() -> dict[int | None, Proposal | None]:
    lines = list(found_lines(found_circuits()))
    netbox = L2vpnProposals(lines)
    return {line.key: netbox.of(line) for line in lines}


def test_foreign_l2vpn_proposes_its_customer_and_name(
    netbox: StandIn, seeded: NetboxWriter, nina: User
) -> None:
    others_l2vpns(seeded)
    line(vni=7002)
    sync_due(now=clock.now())
    # The portal's customer has another name; it still belongs to the tenant.
    Customer.objects.filter(name="Alpine Dairy").update(name="Alpine Dairy AG")
    run()
    assert proposals() == {
        7000: Proposal(l2vpn="Milk run", customer="Alpine Dairy AG"),
        7001: Proposal(l2vpn="Butter run", customer=""),
        # The portal ignores its own L2VPN, and two L2VPNs with one VNI, which are ambiguous.
        7002: None,
        7003: None,
        7004: Proposal(l2vpn="Cheese run", customer=""),
    }
    listed = client(nina).get("/api/v1/found-lines").json()["results"]
    assert [line["netbox"] for line in listed][:2] == [
        {"l2vpn": "Milk run", "customer": "Alpine Dairy AG"},
        {"l2vpn": "Butter run", "customer": ""},
    ]
    browser = signed_in(nina)
    assert "NetBox’s L2VPN Milk run, of Alpine Dairy AG" in text(browser.get("/noc/found-lines/"))
    first = ObservedCircuit.objects.earliest("pk").pk
    page = browser.get(f"/noc/found-lines/{first}/adopt/")
    assert "Proposed below by its VNI: NetBox’s L2VPN Milk run, of Alpine Dairy AG" in text(page)
    assert 'value="Alpine Dairy AG"' in page.content.decode()
    assert 'value="Milk run"' in page.content.decode()
    several = browser.get("/noc/found-lines/adopt/").content.decode()
    assert 'value="Butter run"' in several
    sheet = b"".join(browser.get("/noc/found-lines/adopt/sheet.csv")).decode()  # type: ignore[call-overload]
    assert ",7000,,Alpine Dairy AG,Milk run," in sheet


def test_l2vpn_with_an_unrequested_vni_is_ignored(configured: Callable[..., None], isp: Isp) -> None:
    """A NetBox ignores filters that it does not know, and returns all objects."""

    def everything(request: Request) -> Answer:
        if request.path == "/api/status/":
            return answer(200, STATUS)
        rows = [{"id": n, "identifier": n, "name": f"Run {n}"} for n in (900, 9999)]
        return answer(200, {"count": len(rows), "next": None, "previous": None, "results": rows})

    found_line(isp)
    with stand_in_netbox(everything) as stand_in:
        configured(stand_in.url)
        at = configuration()
        assert at is not None
        l2vpns_refresh(Client(at))
    assert proposals() == {900: Proposal(l2vpn="Run 900", customer="")}
    assert NetboxL2vpn.objects.count() == 1


def test_nothing_is_proposed_without_netbox(isp: Isp) -> None:
    found_line(isp)
    NetboxL2vpn.objects.create(netbox_id=1, identifier=900, name="Milk run", tenant="Alpine Dairy")
    assert set(proposals().values()) == {None}
