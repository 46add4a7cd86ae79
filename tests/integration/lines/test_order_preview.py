"""The routers' plan before the NOC approves: the portal queries the agents and writes nothing."""

from collections.abc import Iterator

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.events.models import Event
from portal.inventory.models import Router
from portal.vll.errors import WrongOrderState
from portal.vll.models import Order, Vll, VllTombstone
from portal.vll.operations.modify_line import order_modify
from portal.vll.operations.order_endings import order_cancel
from provisioning.plan_preview import RouterPlan, pending_order_preview
from tests.integration.certificates import certificates
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import activate
from tests.integration.stand_in_agent import StandInAgent, serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def agents(isp: Isp, dairy: Customer) -> Iterator[None]:
    folder = certificates()
    with (
        serving(StandInAgent("rhino"), pki=folder) as rhino,
        serving(StandInAgent("hippo"), pki=folder) as hippo,
    ):
        for agent in (rhino, hippo):
            Router.objects.filter(name=agent.router).update(agent_url=agent.url)
        yield


def preview(pending: Order) -> list[RouterPlan]:
    return pending_order_preview(pending, now=clock.now())


@pytest.fixture
def limit(dairy: Customer) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    dairy.refresh_from_db()


def test_each_router_shows_its_plan_and_the_order_stays_pending(isp: Isp, alice: User, limit: None) -> None:
    pending = order(isp, alice, cir_bps=2 * GBIT)
    events = Event.objects.count()
    hippo, rhino = preview(pending)
    assert (hippo.router.name, rhino.router.name) == ("hippo", "rhino")
    assert [op["cli"] for op in rhino.operations] == ["create sub-interfaces host-cust1"]
    assert (rhino.ends, rhino.error) == ([], "")
    pending.refresh_from_db()
    assert pending.state == "held"
    assert (Event.objects.count(), requested()) == (events, [])


def test_a_move_pending_approval_shows_the_router_that_it_leaves(isp: Isp, alice: User, limit: None) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    changes = {"a_end": {"port": isp.ports["hippo:host-cust2"].pk}, "cir_bps": 2 * GBIT}
    pending = order_modify(user=alice, vll=vll, changes=changes, now=clock.now())
    hippo, rhino = preview(pending)
    assert [row.vll for row in rhino.intent.removed] == [vll.pk]
    assert [op["end"] for op in hippo.operations] == ["a", "z"]
    assert Vll.objects.get(pk=vll.pk).revision == 1
    assert not VllTombstone.objects.exists()


def test_unreachable_router_is_reported(isp: Isp, alice: User, limit: None) -> None:
    pending = order(isp, alice, cir_bps=2 * GBIT)
    Router.objects.filter(name="rhino").update(agent_url="https://127.0.0.1:9")
    hippo, rhino = preview(pending)
    assert hippo.error == ""
    assert rhino.operations == []
    assert "Connect" in rhino.error


def test_what_is_decided_has_no_preview(isp: Isp, alice: User, limit: None) -> None:
    pending = order(isp, alice, cir_bps=2 * GBIT)
    order_cancel(user=alice, order=pending, now=clock.now())
    with pytest.raises(WrongOrderState):
        preview(pending)
