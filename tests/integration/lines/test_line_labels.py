"""Routers get the names of their lines if their agents support labels, and again when a name changes."""

import json

import pytest
from django.db.models import F

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import ObservedRouter
from portal.inventory.operations import customer_change
from portal.telemetry.observation_ingest import observation_take
from portal.vll.convergence.requests import intent_is_wanted
from portal.vll.models import RouterConvergence, Vll
from portal.vll.operations.modify_line import vll_describe
from provisioning.intent_generations import next_intent
from tests.integration.isp import Isp
from tests.integration.observed_reports import observed_report
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db


@pytest.fixture
def line(isp: Isp, alice: User) -> Vll:
    placed = order(isp, alice).vll
    activate(placed)
    for router in isp.routers.values():
        RouterConvergence.objects.get_or_create(router=router)
    ObservedRouter.objects.filter(router=isp.routers["rhino"]).update(labels=True)
    RouterConvergence.objects.update(answered=F("wanted"), intent_requested=False)
    return placed


def label_on(isp: Isp, router: str) -> str | None:
    [present] = json.loads(next_intent(isp.routers[router]).document())["present"]
    label: str | None = present.get("label")
    return label


def notified_routers(isp: Isp) -> set[str]:
    """Return the routers that get an intent although their lines have not changed, and mark it as
    answered.
    """
    waiting = RouterConvergence.objects.filter(intent_is_wanted())
    names = set(waiting.values_list("router__name", flat=True))
    waiting.update(answered=F("wanted"), intent_requested=False)
    return names


def test_label_is_sent_to_routers_that_support_it_and_again_after_a_rename(
    isp: Isp, line: Vll, alice: User, nora: User
) -> None:
    short = str(line.pk)[:8]
    assert label_on(isp, "rhino") == f"Cust: {line.customer.name} (ZRH-AMS) {{{short}}}"
    assert label_on(isp, "hippo") is None

    vll_describe(user=alice, vll=line, description="Office to mine", now=clock.now())
    assert notified_routers(isp) == {"rhino"}
    assert label_on(isp, "rhino") == f"Cust: {line.customer.name} (Office to mine) {{{short}}}"

    customer_change(customer=line.customer, name="Dairy", user=nora, now=clock.now())
    assert notified_routers(isp) == {"rhino"}
    assert label_on(isp, "rhino") == f"Cust: Dairy (Office to mine) {{{short}}}"

    customer_change(customer=line.customer, approve_up_to_bps=1, user=nora, now=clock.now())
    vll_describe(user=alice, vll=line, description="Office to mine", now=clock.now())
    assert notified_routers(isp) == set()


def test_long_name_of_a_customer_is_followed_by_the_customers_number(isp: Isp, line: Vll, nora: User) -> None:
    customer_change(customer=line.customer, name="Transcontinental Dairies", user=nora, now=clock.now())
    label = label_on(isp, "rhino")
    assert label is not None
    assert f" #{line.customer_id} (ZRH-AMS)" in label


@pytest.mark.parametrize("ability", ["labels", "link_loss_forwarding"])
def test_agent_gets_an_intent_once_after_each_change_of_an_ability(isp: Isp, line: Vll, ability: str) -> None:
    hippo = isp.routers["hippo"]

    def sends_intent(sent_ms: int, supported: bool) -> bool:
        report = observed_report(sent_ms=sent_ms, **{ability: supported})
        assert observation_take(router=hippo, report=report, now=clock.now())
        hippo.refresh_from_db()
        return notified_routers(isp) == {"hippo"}

    assert not sends_intent(1, supported=False)
    assert sends_intent(2, supported=True)
    assert not sends_intent(3, supported=True)
    assert sends_intent(4, supported=False)
