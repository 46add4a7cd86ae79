"""An L2VPN of others in NetBox proposes the customer and the name of the found line that has its VNI."""

import pytest

from portal.accounts.models import Customer, User
from portal.inventory.found_lines import found_circuits, found_lines
from portal.inventory.models import ObservedCircuit, ObservedRouter, Port
from portal.netbox_sync.client import Client
from portal.netbox_sync.configuration import configuration
from portal.netbox_sync.import_mapping import CUSTOMER
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals, Proposal, l2vpns_refresh
from portal.netbox_sync.models import NetboxL2vpn, NetboxObject
from tests.integration.circuits import attachment, circuit, tunnel
from tests.integration.isp import Isp
from tests.integration.netbox.stand_in import StandIn
from tests.integration.test_adoption import store
from tests.integration.test_api_v1 import client
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def found(isp: Isp) -> None:
    """Lines of the VNIs 7000 to 7003 from rhino to hippo, whose ports are nobody's."""
    ObservedRouter.objects.update(vpp_connected=True, adoption="allowed")
    Port.objects.all().delete()
    for here, there in (("rhino", "hippo"), ("hippo", "rhino")):
        rows = [circuit(attachment("host-cust1", 300 + n), tunnel(here, there, 7000 + n)) for n in range(4)]
        store(isp, here, *rows)


def proposals() -> dict[int | None, Proposal | None]:
    lines = list(found_lines(found_circuits()))
    netbox = L2vpnProposals(lines)
    return {line.key: netbox.of(line) for line in lines}


def refresh() -> None:
    at = configuration()
    assert at is not None
    l2vpns_refresh(Client(at))


def test_an_l2vpn_of_others_proposes_its_customer_and_name(
    netbox: StandIn, found: None, nina: User, dairy: Customer
) -> None:
    # Renamed here; it is the tenant all the same.
    Customer.objects.filter(pk=dairy.pk).update(name="Alpine Dairy AG")
    NetboxObject.objects.create(kind=CUSTOMER, netbox_id=17, row_id=dairy.pk)
    refresh()
    assert proposals() == {
        7000: Proposal(l2vpn="Milk run", customer="Alpine Dairy AG"),
        7001: Proposal(l2vpn="Butter run", customer=""),
        # One that we wrote there says nothing new, and of two nobody knows which.
        7002: None,
        7003: None,
    }
    assert not NetboxL2vpn.objects.filter(identifier=9999).exists()
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


def test_without_netbox_nothing_is_proposed(found: None, dairy: Customer) -> None:
    NetboxL2vpn.objects.create(netbox_id=1, identifier=7000, name="Milk run", tenant=dairy.name)
    assert set(proposals().values()) == {None}
