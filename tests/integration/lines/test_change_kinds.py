"""A modify order names its kinds of change, for programs and for readers."""

from collections.abc import Callable
from typing import Any

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.vll.line_revision import differences_of
from portal.vll.models import Order, Vll
from portal.vll.operations.modify_line import order_modify, order_resume, order_suspend
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def kinds(user: User, changed: Order) -> list[str]:
    named: list[str] = client(user).get(f"/api/v1/orders/{changed.pk}").json()["changes"]
    return named


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"cir_bps": 2 * GBIT}, ["bandwidth"]),
        ({"svc_mtu": 1400}, ["svc-mtu"]),
        ({"transport": "geneve4"}, ["transport"]),
        ({"a_end": {"outer_vlan": 200}}, ["vlan"]),
        ({"z_end": {"exact_match": False}}, ["encapsulation"]),
        ({"cir_bps": 2 * GBIT, "a_end": {"outer_vlan": 200}}, ["bandwidth", "vlan"]),
    ],
)
def test_change_names_its_kinds(isp: Isp, alice: User, vll: Vll, changes: Any, named: list[str]) -> None:
    changed = order_modify(user=alice, vll=vll, changes=changes, now=clock.now())
    assert kinds(alice, changed) == named


@pytest.mark.parametrize(("side", "port"), [("a", "rhino:host-cust2"), ("z", "hippo:host-cust2")])
def test_move_names_the_end(isp: Isp, alice: User, vll: Vll, side: str, port: str) -> None:
    changes = {f"{side}_end": {"port": isp.ports[port].pk}}  # type: ignore[arg-type]
    changed = order_modify(user=alice, vll=vll, changes=changes, now=clock.now())
    assert kinds(alice, changed) == [f"move-{side}-end"]
    assert f"move of the {side.upper()} end" in text(signed_in(alice).get("/orders/"))


def test_suspend_and_resume_have_kinds(alice: User, vll: Vll) -> None:
    doings: list[tuple[Callable[..., Order], str]] = [(order_suspend, "suspend"), (order_resume, "resume")]
    for doing, name in doings:
        changed = doing(user=alice, vll=vll, now=clock.now())
        assert kinds(alice, changed) == [name]
        vll.refresh_from_db()
        activate(vll)


def test_new_line_has_no_kinds(alice: User, vll: Vll) -> None:
    assert kinds(alice, vll.orders.get()) == []


def test_changed_description_is_named_with_the_other_kinds(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, description="Milk").vll
    activate(vll)
    changed = order_modify(
        user=alice, vll=vll, changes={"description": "Cheese", "cir_bps": 1000}, now=clock.now()
    )
    assert kinds(alice, changed) == ["description", "bandwidth"]
    assert (differences_of(changed)[0].before, differences_of(changed)[0].after) == ("Milk", "Cheese")
    activate(vll)
    same = order_modify(
        user=alice, vll=vll, changes={"description": "Cheese", "cir_bps": 2000}, now=clock.now()
    )
    assert kinds(alice, same) == ["bandwidth"]
