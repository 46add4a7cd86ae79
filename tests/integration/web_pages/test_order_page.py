from typing import Any

import pytest
from django.db.models import Q

from portal.accounts.models import Customer, Membership, User
from portal.allocation.models import PortVlanLease
from portal.inventory.models import BackboneLink, ObservedRoute
from portal.vll.models import Order, Vll
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def fields(isp: Isp, **changes: Any) -> dict[str, Any]:
    """Return the form as a browser sends it; dashes of field names are written as two underscores."""
    sent = {
        "a_end-port": isp.ports["rhino:host-cust1"].pk,
        "a_end-tagging": "dot1q",
        "a_end-outer_vlan": "100",
        "z_end-port": isp.ports["hippo:host-cust1"].pk,
        "z_end-tagging": "dot1q",
        "z_end-outer_vlan": "any",
        "cir": "1.5",
        "cir_unit": str(GBIT),
        "svc_mtu": "1500",
        "transport": "auto",
        "description": "Milk run",
    }
    sent |= {name.replace("__", "-"): value for name, value in changes.items()}
    return {name: value for name, value in sent.items() if value is not None}


def submit(user: User, sent: dict[str, Any], **headers: str) -> Any:
    return signed_in(user).post("/orders/new/", sent, headers=headers)


def mistakes(response: Any) -> dict[str, str]:
    """Return field id -> sentence, as the summary lists the errors."""
    return {problem.html_id: problem.text for problem in response.context["problems"]}


def test_plain_post_orders_and_leads_to_the_line(isp: Isp, alice: User) -> None:
    response = submit(alice, fields(isp))
    vll = Vll.objects.get()
    assert response.status_code == 302
    assert response["Location"] == f"/vlls/{vll.pk}/"
    assert (vll.description, vll.cir_bps, vll.svc_mtu) == ("Milk run", 1_500_000_000, 1500)
    ends = {end.side: (str(end.port), end.requested_outer_vlan, end.outer_vlan) for end in vll.ends.all()}
    assert ends == {"a": ("rhino:host-cust1", 100, 100), "z": ("hippo:host-cust1", None, 100)}
    assert all(end.exact_match for end in vll.ends.all())


def test_htmx_post_leads_to_the_line(isp: Isp, alice: User) -> None:
    response = submit(alice, fields(isp), hx_request="true")
    assert response["HX-Redirect"] == f"/vlls/{Vll.objects.get().pk}/"


@pytest.mark.parametrize(
    ("tagging", "outer", "inner"),
    [("untagged", None, None), ("dot1q", "7", None), ("qinq", "7", "8"), ("dot1ad", "7", "8")],
)
def test_every_tagging_can_be_ordered(
    isp: Isp, alice: User, tagging: str, outer: str | None, inner: str | None
) -> None:
    changes = {"a_end__tagging": tagging, "a_end__outer_vlan": outer, "a_end__inner_vlan": inner}
    assert submit(alice, fields(isp, **changes)).status_code == 302
    end = Vll.objects.get().ends.get(side="a")
    assert end.tagging == tagging
    assert (end.outer_vlan, end.inner_vlan) == (int(outer) if outer else None, int(inner) if inner else None)


def test_whole_port_is_ordered_although_the_form_proposed_a_vlan(isp: Isp, alice: User) -> None:
    assert submit(alice, fields(isp, a_end__tagging="untagged", a_end__outer_vlan="any")).status_code == 302
    assert Vll.objects.get().ends.get(side="a").outer_vlan is None


def test_exact_match_can_be_turned_off(isp: Isp, alice: User) -> None:
    submit(alice, fields(isp, a_end__more_tags="on"))
    assert not Vll.objects.get().ends.get(side="a").exact_match


def test_form_offers_only_ports_that_the_user_may_order_on(isp: Isp, alice: User, bakery: Customer) -> None:
    Membership.objects.create(user=alice, customer=bakery, role="viewer")
    isp.ports["hippo:host-cust2"].customer = bakery
    isp.ports["hippo:host-cust2"].save()
    shown = signed_in(alice).get("/orders/new/").content.decode()
    assert "rhino:host-cust1" in shown
    assert "hippo:host-cust2" not in shown


def test_user_without_ports_sees_a_contact(charlie: User) -> None:
    response = signed_in(charlie).get("/orders/new/")
    assert "No ports to order on" in text(response)
    assert "order-form" not in response.content.decode().split("<main")[1]


def test_viewer_cannot_order(isp: Isp, bob: User) -> None:
    assert signed_in(bob).get("/orders/new/").status_code == 403
    assert submit(bob, fields(isp)).status_code == 403
    assert Order.objects.count() == 0


def test_port_of_another_customer_is_unknown_to_the_form(isp: Isp, charlie: User) -> None:
    response = submit(charlie, fields(isp))
    assert response.status_code == 422
    assert "This port does not exist" in mistakes(response)["id_a_end-port"]
    assert Order.objects.count() == 0


def test_noc_orders_on_behalf_of_a_customer(isp: Isp, nora: User, dairy: Customer) -> None:
    submit(nora, fields(isp))
    assert Order.objects.get().customer == dairy


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"a_end__port": ""}, "id_a_end-port"),
        ({"a_end__outer_vlan": "0"}, "id_a_end-outer_vlan"),
        ({"a_end__outer_vlan": "4095"}, "id_a_end-outer_vlan"),
        ({"a_end__outer_vlan": "ten"}, "id_a_end-outer_vlan"),
        ({"a_end__outer_vlan": ""}, "id_a_end-outer_vlan"),
        ({"z_end__tagging": "qinq"}, "id_z_end-inner_vlan"),
        ({"z_end__tagging": "qinq", "z_end__inner_vlan": "x"}, "id_z_end-inner_vlan"),
        ({"z_end__tagging": "untagged", "z_end__outer_vlan": "7"}, "id_z_end-outer_vlan"),
        ({"a_end__tagging": "token ring"}, "id_a_end-tagging"),
        ({"svc_mtu": "67"}, "id_svc_mtu"),
        ({"svc_mtu": "1e309"}, "id_svc_mtu"),
        ({"svc_mtu": "9000"}, "id_svc_mtu"),
        ({"cir": ""}, "id_cir"),
        ({"cir": "-1"}, "id_cir"),
        ({"cir": "NaN"}, "id_cir"),
        ({"cir": "0.0000000001"}, "id_cir"),
        ({"cir": "11"}, "id_cir"),
        ({"transport": "l2xc"}, "id_transport"),
        ({"transport": "pigeon"}, "id_transport"),
    ],
)
def test_error_is_shown_next_to_its_field_and_keeps_the_form(
    isp: Isp, alice: User, changes: dict[str, str], field: str
) -> None:
    response = submit(alice, fields(isp, **changes))
    assert response.status_code == 422
    errors = mistakes(response)
    assert list(errors) == [field]
    page = response.content.decode()
    assert f'<a href="#{field}">' in page
    assert f'id="{field}_error"' in page
    assert 'value="Milk run"' in page
    assert (Order.objects.count(), PortVlanLease.objects.count()) == (0, 0)


def test_equal_ends_are_reported_at_the_z_end(isp: Isp, alice: User) -> None:
    same = {"z_end__port": isp.ports["rhino:host-cust1"].pk, "z_end__outer_vlan": "100"}
    assert list(mistakes(submit(alice, fields(isp, **same)))) == ["id_z_end-port"]


def test_all_errors_of_a_form_are_reported_together(isp: Isp, alice: User) -> None:
    response = submit(alice, fields(isp, a_end__outer_vlan="ten", z_end__port="", svc_mtu="many", cir="much"))
    assert list(mistakes(response)) == ["id_a_end-outer_vlan", "id_z_end-port", "id_cir", "id_svc_mtu"]
    assert "4 things to change" in text(response)


def test_error_names_the_taken_vlan(isp: Isp, alice: User) -> None:
    order(isp, alice)
    errors = mistakes(submit(alice, fields(isp)))
    assert errors["id_a_end-outer_vlan"].startswith("VLAN 100 on rhino:host-cust1 is used by another line.")


def test_button_leaves_the_vlan_to_the_portal_without_scripts(isp: Isp, alice: User) -> None:
    page = text(submit(alice, fields(isp, any="a_end")))
    assert "used by another line" not in page
    response = submit(alice, fields(isp, any="a_end"))
    assert response.context["form"].a_end["outer_vlan"].value() == "any"
    assert response.context["form"].line["description"].value() == "Milk run"
    assert not Order.objects.exists()


def test_form_shows_the_bandwidth_that_needs_approval(isp: Isp, alice: User, dairy: Customer) -> None:
    sentence = "More than 2 Gbit/s waits for the NOC's approval."
    vll = order(isp, alice).vll
    addresses = ("/orders/new/", f"/vlls/{vll.pk}/change/", f"/vlls/{vll.pk}/bandwidth/")
    assert [sentence in text(signed_in(alice).get(address)) for address in addresses] == [False] * 3
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=2 * GBIT)
    assert [sentence in text(signed_in(alice).get(address)) for address in addresses] == [True] * 3
    assert "Orders of more than 2 Gbit/s wait" in text(signed_in(alice).get(f"/team/{dairy.pk}/"))


def test_mtu_refusal_names_link_mtu_shortfall_and_largest_packet(isp: Isp, alice: User) -> None:
    BackboneLink.objects.update(a_ip_mtu=1574, z_ip_mtu=1574)
    sent = {"a_end__outer_vlan": "100", "svc_mtu": "1540", "transport": "geneve4"}
    reason = mistakes(submit(alice, fields(isp, **sent)))["id_svc_mtu"]
    required = 1540 + 14 + 52  # the frame, and GENEVE over IPv4 with room for options
    assert "rhino" in reason
    assert "1574" in reason
    assert str(required - 1574) in reason
    assert "gre" in reason.lower() or "1508" in reason


def test_htmx_gets_only_the_form_with_its_errors(isp: Isp, alice: User) -> None:
    response = submit(alice, fields(isp, svc_mtu="67"), hx_request="true")
    assert response.status_code == 422
    page = response.content.decode()
    assert page.lstrip().startswith("<form")
    assert "<html" not in page


def test_description_is_escaped(isp: Isp, alice: User) -> None:
    submit(alice, fields(isp, description="<script>alert(1)</script>"))
    page = signed_in(alice).get("/").content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_other_methods_are_refused(alice: User) -> None:
    assert signed_in(alice).delete("/orders/new/").status_code == 405


def test_form_proposes_any_vlan_and_both_ends_get_the_same(isp: Isp, alice: User) -> None:
    # VLAN 100 is leased at one end, and 101 at the other.
    for name, outer in (("rhino", 100), ("hippo", 101)):
        ends = {"a_end": end(isp, f"{name}:host-cust1", outer=outer), "z_end": end(isp, f"{name}:host-cust2")}
        order(isp, alice, cir_bps=10**6, **ends)
    page = signed_in(alice).get("/orders/new/").content.decode()
    assert page.count('value="any"') == 2
    submit(alice, fields(isp, a_end__outer_vlan="any", description="", cir="1"))
    placed = Vll.objects.order_by("-created_at")[0]
    assert [each.outer_vlan for each in placed.ends.order_by("side")] == [102, 102]


def test_any_vlan_is_the_vlan_of_the_other_end_where_free(isp: Isp, alice: User) -> None:
    submit(alice, fields(isp, a_end__outer_vlan="any", z_end__outer_vlan="777"))
    assert {each.outer_vlan for each in Vll.objects.get().ends.all()} == {777}


def test_unnamed_line_is_named_after_its_sites(isp: Isp, alice: User) -> None:
    submit(alice, fields(isp, description=""))
    sites = [isp.routers[name].site.name for name in ("rhino", "hippo")]
    assert Vll.objects.get().description == " – ".join(sites)


def test_lines_between_the_same_sites_are_numbered(isp: Isp, alice: User) -> None:
    for vlan in ("100", "101", "102"):
        submit(alice, fields(isp, description="", a_end__outer_vlan=vlan, z_end__outer_vlan=vlan))
    name = " – ".join(isp.routers[name].site.name for name in ("rhino", "hippo"))
    called = set(Vll.objects.values_list("description", flat=True))
    assert called == {name, f"{name} 2", f"{name} 3"}


def test_name_that_looks_like_another_is_numbered(isp: Isp, alice: User) -> None:
    sites = [isp.routers[name].site.name for name in ("rhino", "hippo")]
    order(isp, alice, description="-".join(sites))
    submit(alice, fields(isp, description="", a_end__outer_vlan="7", z_end__outer_vlan="7", cir="1"))
    assert Vll.objects.filter(description=f"{' – '.join(sites)} 2").exists()


def proposed(user: User) -> list[object]:
    """Return the ports that an unedited form has selected, A first."""
    form = signed_in(user).get("/orders/new/").context["form"]
    return [form.a_end["port"].value(), form.z_end["port"].value()]


def test_next_line_begins_at_the_last_lines_port(isp: Isp, alice: User, nora: User, bakery: Customer) -> None:
    assert proposed(alice) == [None, None]
    order(
        isp, alice, a_end=end(isp, "rhino:host-cust1", outer=7), z_end=end(isp, "hippo:host-cust1", outer=7)
    )
    order(
        isp, alice, a_end=end(isp, "hippo:host-cust2", outer=8), z_end=end(isp, "rhino:host-cust1", outer=8)
    )
    assert proposed(alice) == [isp.ports["hippo:host-cust2"].pk, None]
    # The NOC's last line may have belonged to any customer.
    assert proposed(nora) == [None, None]
    isp.ports["hippo:host-cust2"].customer = bakery
    isp.ports["hippo:host-cust2"].save()
    assert proposed(alice) == [None, None]


def test_only_two_ports_are_both_selected(isp: Isp, alice: User, bakery: Customer) -> None:
    left = {"rhino:host-cust1", "hippo:host-cust1"}
    for name, port in isp.ports.items():
        if name not in left:
            port.customer = bakery
            port.save()
    # By the names of their sites, as the select lists them.
    assert proposed(alice) == [isp.ports[name].pk for name in ("hippo:host-cust1", "rhino:host-cust1")]


def test_port_in_the_address_is_preselected(isp: Isp, alice: User) -> None:
    order(
        isp, alice, a_end=end(isp, "rhino:host-cust1", outer=7), z_end=end(isp, "hippo:host-cust1", outer=7)
    )
    named = isp.ports["hippo:host-cust2"].pk
    form = signed_in(alice).get("/orders/new/", {"port": named}).context["form"]
    assert [form.a_end["port"].value(), form.z_end["port"].value()] == [named, None]


def test_copy_of_a_line_has_all_values_except_vlans_and_name(isp: Isp, alice: User, charlie: User) -> None:
    vll = order(isp, alice, description="Milk run", cir_bps=250 * 10**6, svc_mtu=1600).vll
    form = signed_in(alice).get("/orders/new/", {"like": str(vll.pk)}).context["form"]
    assert [form.a_end["port"].value(), form.z_end["port"].value()] == [
        isp.ports["rhino:host-cust1"].pk,
        isp.ports["hippo:host-cust1"].pk,
    ]
    assert (form.a_end["outer_vlan"].value(), form.line["description"].value()) == ("any", None)
    assert (form.line["cir"].value(), form.line["svc_mtu"].value()) == ("250", 1600)
    assert f"?like={vll.pk}" in signed_in(alice).get(f"/vlls/{vll.pk}/").content.decode()
    # A line of another customer or an invalid id fills in nothing.
    for user, like in ((charlie, str(vll.pk)), (alice, "x")):
        response = signed_in(user).get("/orders/new/", {"like": like})
        assert response.status_code in (200, 403)
        assert "1600" not in response.content.decode()


@pytest.mark.parametrize("reader", ["alice", "nora"])
def test_preview_and_order_give_the_same_reason_for_a_router_without_links(
    isp: Isp, alice: User, nora: User, reader: str
) -> None:
    """Customers have no field for the transport, so the reason is a sentence without the name of a field."""
    BackboneLink.objects.filter(Q(a_router=isp.routers["hippo"]) | Q(z_router=isp.routers["hippo"])).delete()
    ObservedRoute.objects.all().delete()
    user = {"alice": alice, "nora": nora}[reader]
    preview = signed_in(user).post("/orders/new/check/", fields(isp), headers={"HX-Request": "true"})
    reason = "No IPv4 links in service join rhino and hippo in both directions."
    refused = submit(user, fields(isp))
    assert refused.status_code == 422
    for response, problems in ((preview, preview.context["reasons"]), (refused, refused.context["problems"])):
        assert reason in text(response)
        assert ".." not in text(response)
        if reader == "alice":
            assert {(each.html_id, each.label) for each in problems} == {("", "")}
            assert "Transport" not in text(response)
    shown = [each.text for each in preview.context["reasons"]]
    if reader == "alice":
        assert shown == [each.text for each in refused.context["problems"]]
