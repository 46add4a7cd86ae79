"""EIR and bursts: the customer orders and changes them, routers police them, and no port books them."""

import json
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.inventory.models import ObservedRouter, Port
from portal.vll.models import Order, Vll
from portal.vll.operations.modify_line import order_modify
from portal.vll.operations.retry_order import order_retry
from provisioning.intent_document import intent_for
from provisioning.intent_rows import router_rows
from tests.integration.api.test_api_lifecycle import codes, patch
from tests.integration.api.test_api_v1 import body, client, post
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate, refuse
from tests.integration.web_pages.browser import signed_in, text
from tests.integration.web_pages.test_order_page import fields, mistakes, submit

pytestmark = pytest.mark.django_db
MBIT = 10**6


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    """Return an active line with a CIR of 1 Gbit/s and an EIR of half of it."""
    placed = order(isp, alice, eir_bps=500 * MBIT, ebs_bytes=100_000).vll
    activate(placed)
    return placed


def profile(isp: Isp, router: str) -> Any:
    ObservedRouter.objects.update(policing="subinterface")
    intent = intent_for(router=router, generation=1, rows=list(router_rows(isp.routers[router]).ends))
    (present,) = json.loads(intent.document())["present"]
    return present["bandwidth"]


def shown(user: User, vll: Vll) -> dict[str, Any]:
    document = client(user).get(f"/api/v1/vlls/{vll.pk}").json()
    names = ("cir_bps", "cbs_bytes", "requested_cbs_bytes", "eir_bps", "ebs_bytes", "requested_ebs_bytes")
    return {name: document[name] for name in names}


def test_order_without_excess_gets_none(isp: Isp, alice: User) -> None:
    placed = post(alice, body(isp))
    assert placed.status_code == 202
    assert shown(alice, Vll.objects.get()) == {
        "cir_bps": GBIT,
        "cbs_bytes": 1_250_000,
        "requested_cbs_bytes": None,
        "eir_bps": 0,
        "ebs_bytes": 0,
        "requested_ebs_bytes": None,
    }


def test_excess_reaches_both_routers_and_only_the_cir_is_booked(isp: Isp, alice: User) -> None:
    placed = post(alice, body(isp, eir_bps=9 * GBIT, cbs_bytes=20_000))
    assert placed.status_code == 202, placed.content
    expected = {"cir_bps": GBIT, "cbs_bytes": 20_000, "eir_bps": 9 * GBIT, "ebs_bytes": 11_250_000}
    assert profile(isp, "rhino") == profile(isp, "hippo") == expected
    assert set(Port.objects.filter(booked_bps__gt=0).values_list("booked_bps", flat=True)) == {GBIT}
    assert shown(alice, Vll.objects.get()) == expected | {
        "requested_cbs_bytes": 20_000,
        "requested_ebs_bytes": None,
    }


@pytest.mark.parametrize(
    ("values", "code", "field"),
    [
        ({"eir_bps": 10**12 + 1}, "eir-out-of-range", "eir_bps"),
        ({"eir_bps": 9 * GBIT + 1}, "peak-above-port", "eir_bps"),
        ({"cbs_bytes": 1525}, "burst-out-of-range", "cbs_bytes"),
        ({"cbs_bytes": 2**31}, "burst-out-of-range", "cbs_bytes"),
        ({"eir_bps": 1, "ebs_bytes": 1525}, "burst-out-of-range", "ebs_bytes"),
        ({"ebs_bytes": 20_000}, "excess-burst-without-rate", "ebs_bytes"),
        ({"eir_bps": -1}, "min_value", "eir_bps"),
        ({"eir_bps": "7"}, "not_integer", "eir_bps"),
        ({"cbs_bytes": 1518.0}, "not_integer", "cbs_bytes"),
    ],
)
def test_impossible_policer_is_refused_and_validation_agrees(
    isp: Isp, alice: User, values: dict[str, Any], code: str, field: str
) -> None:
    refused = post(alice, body(isp, **values))
    assert refused.status_code == 422
    assert [(each["code"], each["field"]) for each in refused.json()["errors"]] == [(code, field)]
    validated = client(alice).post("/api/v1/vlls/validate", body(isp, **values), format="json")
    if validated.status_code == 200:
        assert [reason["code"] for reason in validated.json()["reasons"]] == [code]
    assert not Vll.objects.exists()


def test_oversubscribed_port_sells_nothing_beyond_its_speed(isp: Isp, alice: User) -> None:
    Port.objects.update(bookable_bps=40 * GBIT)
    refused = post(alice, body(isp, cir_bps=10 * GBIT + 1))
    assert [(each["code"], each["field"]) for each in refused.json()["errors"]] == [
        ("peak-above-port", "cir_bps")
    ]
    assert post(alice, body(isp, cir_bps=10 * GBIT)).status_code == 202


def test_higher_cir_from_excess_needs_approval(isp: Isp, alice: User, dairy: Customer) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    placed = order(isp, alice, cir_bps=GBIT // 2, eir_bps=GBIT // 2).vll
    activate(placed)
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT // 2)
    alice.refresh_from_db()
    changed = order_modify(user=alice, vll=placed, changes={"cir_bps": GBIT, "eir_bps": 0}, now=clock.now())
    assert changed.state == "held"


def test_burst_of_exactly_the_largest_frame_is_accepted(isp: Isp, alice: User) -> None:
    # 1500 bytes, 14 of Ethernet, two tags of the customer (the Z end is a whole port), and the tag of the A
    # end.
    values = {"cbs_bytes": 1526, "eir_bps": 1, "ebs_bytes": 1526}
    assert post(alice, body(isp, **values)).status_code == 202


@pytest.mark.parametrize(
    "broken",
    [
        {"eir_bps": -1},
        {"eir_bps": 10**12 + 1},
        {"requested_cbs_bytes": 1513},
        {"requested_ebs_bytes": 1513},
        {"eir_bps": 0},
    ],
)
def test_database_refuses_invalid_excess(vll: Vll, broken: dict[str, int]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Vll.objects.filter(pk=vll.pk).update(**broken)


def test_excess_can_be_changed_and_null_restores_the_default_burst(isp: Isp, alice: User, vll: Vll) -> None:
    changed = patch(alice, vll, {"eir_bps": 800 * MBIT, "ebs_bytes": None, "cbs_bytes": 30_000})
    assert changed.status_code == 202
    assert changed.json()["order"]["changes"] == ["bandwidth"]
    activate(vll)
    after = shown(alice, vll)
    assert (after["eir_bps"], after["ebs_bytes"], after["cbs_bytes"]) == (800 * MBIT, 1_000_000, 30_000)
    assert set(Port.objects.filter(booked_bps__gt=0).values_list("booked_bps", flat=True)) == {GBIT}


def test_burst_of_excess_ends_with_the_eir(alice: User, vll: Vll) -> None:
    assert patch(alice, vll, {"eir_bps": 0}).status_code == 202
    activate(vll)
    assert (vll.eir_bps, vll.requested_ebs_bytes) == (0, None)


def test_burst_without_a_rate_is_refused(alice: User, vll: Vll) -> None:
    refused = patch(alice, vll, {"eir_bps": 0, "ebs_bytes": 50_000})
    assert (refused.status_code, codes(refused)) == (422, ["excess-burst-without-rate"])


def test_packet_larger_than_the_bursts_is_refused(alice: User, isp: Isp) -> None:
    placed = order(isp, alice, cbs_bytes=2000).vll
    activate(placed)
    refused = patch(alice, placed, {"svc_mtu": 2000})
    assert (refused.status_code, codes(refused)) == (422, ["burst-out-of-range"])


def test_refused_change_restores_the_previous_profile(isp: Isp, alice: User, vll: Vll) -> None:
    patch(alice, vll, {"eir_bps": 800 * MBIT})
    refuse(vll, "a")
    assert (vll.eir_bps, vll.requested_ebs_bytes) == (500 * MBIT, 100_000)
    activate(vll)
    failed = Order.objects.get(action="modify")
    assert failed.state == "failed"
    order_retry(user=alice, order=failed, now=clock.now())
    vll.refresh_from_db()
    assert (vll.eir_bps, vll.requested_ebs_bytes) == (800 * MBIT, 100_000)


def test_approval_limit_counts_both_rates(isp: Isp, alice: User, dairy: Customer) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    assert order(isp, alice, eir_bps=1).state == "held"


def test_order_older_than_excess_can_be_undone(alice: User, vll: Vll) -> None:
    patch(alice, vll, {"svc_mtu": 1400})
    changing = Order.objects.get(action="modify")
    names = ("eir_bps", "requested_cbs_bytes", "requested_ebs_bytes")
    old = {
        side: {k: v for k, v in getattr(changing, side).items() if k not in names}
        for side in ("before", "after")
    }
    Order.objects.filter(pk=changing.pk).update(**old)
    refuse(vll, "a")
    assert (vll.svc_mtu, vll.eir_bps) == (1500, 0)


def test_page_shows_the_whole_profile(alice: User, vll: Vll) -> None:
    page = text(signed_in(alice).get(f"/vlls/{vll.pk}/"))
    assert "1 Gbit/s + 500 Mbit/s EIR" in page
    assert "Committed burst (CBS) 1250000 bytes" in page
    assert "Excess bandwidth (EIR) 500 Mbit/s, not reserved" in page
    assert "Excess burst (EBS) 100000 bytes" in page


def test_form_orders_and_changes_excess(isp: Isp, alice: User) -> None:
    sent = fields(isp, eir="0.5", eir_unit=str(GBIT), cbs_bytes="20000", ebs_bytes="")
    assert submit(alice, sent).status_code == 302
    vll = Vll.objects.get()
    assert (vll.eir_bps, vll.requested_cbs_bytes, vll.requested_ebs_bytes) == (500 * MBIT, 20_000, None)
    activate(vll)
    page = signed_in(alice).get(f"/vlls/{vll.pk}/change/").content.decode()
    assert 'name="eir" value="500"' in page
    assert 'name="cbs_bytes" value="20000"' in page
    response = signed_in(alice).post(f"/vlls/{vll.pk}/change/", sent | {"eir": "", "revision": vll.revision})
    assert response.status_code == 302
    vll.refresh_from_db()
    assert (vll.eir_bps, vll.requested_cbs_bytes) == (0, 20_000)


def test_error_in_the_excess_is_shown_next_to_its_open_field(isp: Isp, alice: User) -> None:
    response = submit(alice, fields(isp, eir="90", eir_unit=str(GBIT)))
    assert response.status_code == 422
    sentence = "rhino:host-cust1 runs at 10 Gbit/s; CIR and EIR together are 91.5 Gbit/s. Order less excess."
    assert mistakes(response) == {"id_eir": sentence}
    assert "<details open" in response.content.decode().split("Line</legend>")[1]
