"""The portal checks changes of a router against the lines that end on it."""

from typing import Any

import pytest

from portal.accounts.models import User
from portal.allocation.errors import CoresBelowBooked
from portal.core import clock
from portal.inventory.errors import OutOfRange
from portal.inventory.models import Router
from portal.inventory.operations import router_change
from portal.vll.errors import LoopbackInUse, UnderlayTableInUse
from portal.vll.models import Vll
from portal.vll.operations.modify_line import order_modify
from tests.integration.isp import GBIT, Isp
from tests.integration.noc.test_noc_api import client
from tests.integration.orders import order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import save, signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    """Return a 10 Gbit/s line of VXLAN over IPv4 from rhino, which has 4 cores, to hippo."""
    placed = order(isp, alice, cir_bps=10 * GBIT).vll
    activate(placed)
    return placed


def change(isp: Isp, user: User, **changes: Any) -> Router:
    return router_change(router=isp.routers["rhino"], user=user, now=clock.now(), **changes)


def test_fewer_cores_than_booked_need_confirmation(isp: Isp, nora: User, vll: Vll) -> None:
    with pytest.raises(CoresBelowBooked) as refused:
        change(isp, nora, cores=1, cpu="Atom C3558")
    assert refused.value.booked_cores > refused.value.bookable_cores
    assert Router.objects.get(name="rhino").cores == 4
    assert change(isp, nora, cores=1, cpu="Atom C3558", accept_affected=True).cores == 1


def test_other_values_of_an_overbooked_router_can_change(isp: Isp, nora: User, vll: Vll) -> None:
    change(isp, nora, cores=1, cpu="Atom C3558", accept_affected=True)
    assert change(isp, nora, cores=1, cpu="Atom C3558", agent_url="https://rhino.example:9440").cores == 1
    assert change(isp, nora, cores=2).cores == 2


@pytest.mark.parametrize("new", [None, "10.255.9.9"])
def test_loopback_with_tunnels_cannot_be_removed(isp: Isp, nora: User, vll: Vll, new: str | None) -> None:
    with pytest.raises(LoopbackInUse) as refused:
        change(isp, nora, loopback4=new, accept_affected=True)
    assert (refused.value.address, refused.value.count, refused.value.example) == ("10.255.0.1", 1, "ZRH-AMS")
    assert change(isp, nora, loopback6=None).loopback6 is None


def test_underlay_table_with_tunnels_cannot_be_changed(isp: Isp, nora: User, vll: Vll) -> None:
    with pytest.raises(UnderlayTableInUse) as refused:
        change(isp, nora, underlay_table=10, accept_affected=True)
    assert (refused.value.table, refused.value.count, refused.value.example) == (0, 1, "ZRH-AMS")
    assert change(isp, nora, underlay_table=0, cores=4).underlay_table == 0


@pytest.mark.parametrize("table", [10, 2**32 - 2])
def test_underlay_table_without_tunnels_can_be_changed(isp: Isp, nora: User, table: int) -> None:
    assert change(isp, nora, underlay_table=table).underlay_table == table


def test_underlay_table_that_vpp_cannot_have_is_refused(isp: Isp, nora: User) -> None:
    with pytest.raises(OutOfRange):
        change(isp, nora, underlay_table=2**32 - 1)


def test_loopback_is_removed_after_the_lines_change_their_ip_version(
    isp: Isp, alice: User, nora: User, vll: Vll
) -> None:
    order_modify(user=alice, vll=vll, changes={"transport": "vxlan6"}, now=clock.now())
    activate(vll)
    assert change(isp, nora, loopback4="10.255.9.9").loopback4 == "10.255.9.9"


def test_page_and_api_ask_for_confirmation(isp: Isp, nora: User, vll: Vll) -> None:
    url = f"/api/v1/routers/{isp.routers['rhino'].pk}"

    def patch(**body: Any) -> Any:
        return client(nora).patch(url, body, format="json", headers={"If-Match": "*"})

    refused = patch(cores=1, cpu="Atom C3558")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (409, "cores")
    assert patch(loopback4="10.255.9.9").json()["errors"][0]["code"] == "loopback-in-use"
    page, form = signed_in(nora), f"/noc/routers/{isp.routers['rhino'].pk}/change/"
    sent = {"site": "Zürich", "loopback4": "10.255.0.1", "loopback6": "fd00:255::1", "cores": "1"}
    sent |= {"agent_url": "https://127.0.0.1:9441", "cpu": "Atom C3558"}
    answered = save(page, form, sent)
    assert answered.status_code == 422
    assert "have booked" in text(answered)
    assert save(page, form, sent | {"accept_affected": "on"}).status_code == 302
    assert patch(cores=1, accept_affected=True).status_code == 200
