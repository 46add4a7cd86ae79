"""A customer's page: the customer's objects and the next steps."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from portal.accounts.invitations import invite
from portal.accounts.models import Customer, Membership, User
from portal.core import clock
from portal.diagnosis.trouble_reports import trouble_report
from portal.inventory.models import Port
from portal.telemetry.models import FrozenMonth, MonthlyPercentile
from portal.telemetry.partitioned_tables import partitions_keep
from portal.telemetry.throughput import customer_traffic
from portal.vll.models import Vll
from tests.integration.isp import GBIT, Isp, member
from tests.integration.orders import end, order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def read(user: User, customer: Customer) -> Any:
    answer = signed_in(user).get(f"/noc/customers/{customer.pk}/")
    assert answer.status_code == 200
    return answer


def steps(answer: Any) -> dict[str, str]:
    """Return the forms of the next steps, by the texts of their buttons."""
    part = answer.content.decode().partition('id="next"')[2].partition("</section>")[0]
    found = re.findall(r'href="([^"]+)">([^<]+)<', part)
    return {action: address.replace("&amp;", "&") for address, action in found}


def test_new_customer_page_shows_all_next_steps(nina: User) -> None:
    made = signed_in(nina).post("/noc/customers/add/", {"name": "Chur & Co."}, follow=True)
    customer = Customer.objects.get(name="Chur & Co.")
    assert made.redirect_chain[-1][0] == f"/noc/customers/{customer.pk}/"
    assert steps(made) == {
        "Invite an administrator": f"/team/{customer.pk}/?role=admin#invite",
        "Add a port": "/noc/ports/add/?customer=Chur+%26+Co.",
    }


def test_port_added_from_the_page_has_the_customer_and_returns_there(
    isp: Isp, dairy: Customer, nora: User
) -> None:
    noc, address = signed_in(nora), "/noc/ports/add/?customer=Alpine+Dairy"
    assert re.search(r'name="customer" value="Alpine Dairy"', noc.get(address).content.decode())
    sent = {"router": "rhino", "interface": "x9", "customer": "Alpine Dairy", "kind": "uni"}
    sent |= {"speed_bps": "1000", "max_frame": "9022"}
    assert noc.post(address, sent).url == f"/noc/customers/{dairy.pk}/"
    assert noc.post("/noc/ports/add/", sent | {"interface": "x10"}).url == "/noc/ports/"


def test_invitation_proposes_the_role_administrator(dairy: Customer, nina: User) -> None:
    form = signed_in(nina).get(f"/team/{dairy.pk}/?role=admin").content.decode()
    assert '<option value="admin" selected>' in form
    assert "selected" not in signed_in(nina).get(f"/team/{dairy.pk}/?role=emperor").content.decode()


def test_user_who_cannot_invite_sees_who_can(dairy: Customer, nora: User) -> None:
    answer = read(nora, dairy)
    assert "A NOC admin can invite somebody." in text(answer)
    assert "Invite an administrator" not in steps(answer)


def test_finished_step_disappears(isp: Isp, dairy: Customer, nina: User) -> None:
    first = Port.objects.filter(customer=dairy).order_by("pk")[0]
    assert steps(read(nina, dairy)) == {
        "Invite an administrator": f"/team/{dairy.pk}/?role=admin#invite",
        "Order a line for them": f"/orders/new/?port={first.pk}",
    }
    invite(by=nina, customer=dairy, email="ada@dairy.example", role="admin", now=clock.now())
    assert list(steps(read(nina, dairy))) == ["Order a line for them"]
    order(isp, nina, cir_bps=10**6)
    assert steps(read(nina, dairy)) == {}


def test_customer_without_a_mail_address_is_marked(isp: Isp, dairy: Customer, ada: User, nina: User) -> None:
    answer = read(nina, dairy)
    assert "None of its people has an e-mail address, so no mail reaches them." in text(answer)
    User.objects.filter(pk=ada.pk).update(email="ada@dairy.example")
    assert "Invite an administrator" not in steps(read(nina, dairy))


def test_unusable_ports_offer_no_next_step(isp: Isp, dairy: Customer, nina: User) -> None:
    type(isp.routers["rhino"]).objects.update(agent_url="")
    assert "Its ports are on routers without an agent" in text(read(nina, dairy))


def test_lines_are_counted_by_health_and_counts_link_to_lists(
    isp: Isp, dairy: Customer, alice: User, nora: User
) -> None:
    down = order(isp, alice, description="Milk run", cir_bps=10**6).vll
    activate(down)
    Vll.objects.filter(pk=down.pk).update(oper_status="op-down")
    ends = {
        f"{side}_end": end(isp, f"{name}:host-cust1", outer=7)
        for side, name in (("a", "rhino"), ("z", "hippo"))
    }
    order(isp, alice, description="Whey", cir_bps=10**6, **ends)
    page = read(nora, dairy)
    assert "Lines 2 Down 1 Setting up 1" in text(page)
    address = f"/noc/customers/{dairy.pk}/lines/?health=down"
    assert f'href="{address}"' in page.content.decode()
    listed = text(signed_in(nora).get(address))
    assert "Milk run" in listed
    assert "Whey" not in listed
    everything = text(signed_in(nora).get(f"/noc/customers/{dairy.pk}/lines/?health=odd"))
    assert "Milk run" in everything
    assert "Whey" in everything


def test_members_and_invitations_are_listed_with_last_sign_in(dairy: Customer, ada: User, nina: User) -> None:
    User.objects.filter(pk=ada.pk).update(email="ada@dairy.example")
    invite(by=nina, customer=dairy, email="new@dairy.example", role="viewer", now=clock.now())
    shown = text(read(nina, dairy))
    assert "ada Admin · ada@dairy.example never signed in" in shown
    assert "new@dairy.example invited as Viewer until" in shown
    User.objects.filter(pk=ada.pk).update(last_login=clock.now())
    assert "ada@dairy.example signed in 20" in text(read(nina, dairy))


def test_pending_approvals_come_first_and_link_to_the_decision(
    isp: Isp, dairy: Customer, alice: User, nora: User
) -> None:
    Customer.objects.update(approve_up_to_bps=GBIT)
    alice.refresh_from_db()
    pending = order(isp, alice, cir_bps=2 * GBIT, description="big")
    shown = read(nora, dairy).content.decode()
    assert f'href="/noc/orders/{pending.pk}/"' in shown.partition('id="orders"')[2]


def test_open_trouble_report_is_shown(isp: Isp, dairy: Customer, alice: User, nora: User) -> None:
    vll = order(isp, alice, description="Milk run", cir_bps=10**6).vll
    trouble_report(user=alice, vll=vll, note="It stutters", now=clock.now())
    assert "Open trouble reports Milk run It stutters from alice" in text(read(nora, dairy))


def test_lists_are_bounded_and_link_to_the_rest(
    isp: Isp, dairy: Customer, bakery: Customer, alice: User, nora: User
) -> None:
    rhino = isp.routers["rhino"]
    Port.objects.bulk_create(
        Port(router=rhino, interface=f"x{n}", customer=dairy, speed_bps=GBIT, bookable_bps=GBIT)
        for n in range(20)
    )
    Port.objects.create(router=rhino, interface="theirs", customer=bakery, speed_bps=GBIT, bookable_bps=GBIT)
    for n in range(10):
        member(f"person{n}", dairy, "viewer")
        ends = {
            f"{side}_end": end(isp, f"{name}:host-cust1", outer=7 + n)
            for side, name in (("a", "rhino"), ("z", "hippo"))
        }
        order(isp, alice, cir_bps=10**6, **ends)
    page = read(nora, dairy).content.decode()
    assert len(re.findall(r'href="/ports/\d+/"', page)) == 8
    assert len(re.findall(r'href="/noc/people/\d+/"', page)) == 8
    for address in (f"/ports/?customer={dairy.pk}", f"/team/{dairy.pk}/", f"/orders/?customer={dairy.pk}"):
        assert f'href="{address}"' in page
    ports = text(signed_in(nora).get(f"/ports/?customer={dairy.pk}"))
    assert "rhino:x19" in ports
    assert "rhino:theirs" not in ports
    assert "Orders of Alpine Dairy" in text(signed_in(nora).get(f"/orders/?customer={dairy.pk}"))
    assert "Orders of" not in text(signed_in(nora).get(f"/orders/?customer={bakery.pk}999"))


def test_foreign_customer_filter_narrows_nothing_for_a_stranger(
    isp: Isp, dairy: Customer, charlie: User
) -> None:
    shown = text(signed_in(charlie).get(f"/orders/?customer={dairy.pk}"))
    assert "Alpine" not in shown
    assert "Alpine" not in text(signed_in(charlie).get(f"/ports/?customer={dairy.pk}"))


def test_traffic_of_all_lines_is_summed(
    isp: Isp, dairy: Customer, alice: User, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    vll, now = order(isp, alice, cir_bps=10**6).vll, clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)  # the newest 5 minutes are the same for the page
    partitions_keep(now=now)
    nothing = customer_traffic(dairy, now=now)
    assert (nothing.now_bps, nothing.p95_bps) == (None, None)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO telemetry_five_minutes (vll_id, start_at, a_in_bytes, z_in_bytes, a_covered_ms,"
            " z_covered_ms, simulated) VALUES (%s, %s, 3000000, 600000, 300000, 150000, false)",
            [vll.pk, nothing.since],
        )
    month = (now.replace(day=1) - timedelta(days=1)).date().replace(day=1)
    FrozenMonth.objects.create(month=month, frozen_at=now)
    for side, correction, most in (("a", 0, 5), ("a", 1, 10**6), ("z", 0, 3 * 10**6)):
        MonthlyPercentile.objects.create(
            vll_id=vll.pk,
            side=side,
            month=month,
            max_bps=most,
            counted=1,
            missing=0,
            simulated=False,
            frozen_at=now,
            correction=correction,
        )
    found = customer_traffic(dairy, now=now)
    assert (found.now_bps, found.p95_bps, found.month) == (80_000 + 32_000, 3 * 10**6, month)
    shown = text(read(nora, dairy))
    assert "112 kbit/s" in shown
    assert f"95th percentiles of {month:%Y-%m}, added up 3 Mbit/s" in shown


def test_only_the_noc_reads_the_page_also_of_a_retired_customer(
    dairy: Customer, ada: User, nina: User
) -> None:
    for address in ("", "lines/"):
        assert signed_in(ada).get(f"/noc/customers/{dairy.pk}/{address}").status_code == 403
    assert signed_in(nina).get("/noc/customers/999999/").status_code == 404
    Membership.objects.all().delete()
    Customer.objects.filter(pk=dairy.pk).update(retired_at=clock.now())
    answer = read(nina, dairy)
    assert "This customer is retired" in text(answer)
    assert steps(answer) == {}


def test_list_and_search_link_to_the_page(dairy: Customer, nora: User) -> None:
    for address in ("/noc/customers/", "/search/?q=Alpine"):
        assert f'href="/noc/customers/{dairy.pk}/"' in signed_in(nora).get(address).content.decode()
