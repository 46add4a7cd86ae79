"""Each kind of row creates the same object as its page does, and the import recognises it the next time."""

from decimal import Decimal

import pytest
from django.utils import translation

from portal.accounts.models import Customer, Invitation, Membership, User
from portal.audit.history import object_history
from portal.core import clock
from portal.events.models import Event
from portal.imports.models import Import, ImportState
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.vll.models import Order, Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.states import OrderState
from tests.integration.imports.files import begun, checked, counts, imported, refusals, sentences, work
from tests.integration.isp import Isp
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db

SITES = "name;latitude;longitude\nZürich;47,3769;8,5417\nBern;;\n"
LINKS = "a_router,a_interface,a_ip_mtu,z_router,z_interface,z_ip_mtu,in_service\n"
LINES = "description,a_port,a_outer_vlan,z_port,z_outer_vlan,svc_mtu,cir_bps\n"


def test_sites_are_imported(nora: User) -> None:
    assert counts(checked(nora, "sites", SITES)) == {"new": 2}
    assert not Site.objects.exists()
    this = imported(nora, "sites", SITES)
    assert (this.state, counts(this)) == (ImportState.COMPLETED, {"made": 2})
    found = set(Site.objects.values_list("name", "latitude", "longitude"))
    assert found == {("Zürich", Decimal("47.376900"), Decimal("8.541700")), ("Bern", None, None)}
    [change] = object_history(Site, Site.objects.get(name="Bern").pk)
    assert (change.by["username"], change.by["request_id"]) == ("nora", f"import-{this.pk}")
    assert set(Event.objects.filter(kind="site.created").values_list("actor", flat=True)) == {"nora"}


def test_equal_row_is_unchanged_and_differing_row_is_refused(nora: User) -> None:
    imported(nora, "sites", SITES)
    again = imported(nora, "sites", "name,latitude,longitude\nZürich,,\nBern,46.9,7.4\nGenf,46.2,6.1\n")
    assert counts(again) == {"same": 1, "refused": 1, "made": 1}
    assert refusals(again) == [(3, "", "row-differs")]
    assert "Bern already exists, with other values" in sentences(again)[0]
    assert "latitude is empty here and 46.900000 in the file" in sentences(again)[0]
    assert Site.objects.get(name="Bern").latitude is None


def test_routers_are_imported(nora: User) -> None:
    Site.objects.create(name="Zürich")
    table = (
        "name,site,loopback4,loopback6,agent_url,cpu,cores\n"
        "rhino,Zürich,10.255.0.1,FD00:255::1,https://rhino.example.net:9443,EPYC,4\n"
        "hippo,Basel,10.255.0.2,,,,\n"
        "Zebra,Zürich,10.255.0.300,fd00::/64,http://x,,vier\n"
        "otter,Zürich,10.255.0.1,,,,\n"
    )
    this = imported(nora, "routers", table)
    assert counts(this) == {"refused": 3, "made": 1}
    assert refusals(this) == [
        (3, "site", "named-nowhere"),
        (4, "name", "cell-not-a-router-name"),
        (4, "loopback4", "cell-not-an-address"),
        (4, "loopback6", "cell-not-an-address"),
        (4, "agent_url", "cell-not-a-url"),
        (4, "cores", "cell-not-a-number"),
        (5, "loopback4", "row-twice"),
    ]
    rhino = Router.objects.get()
    assert (rhino.name, rhino.loopback6, rhino.cores) == ("rhino", "fd00:255::1", 4)
    assert counts(checked(nora, "routers", table)) == {"same": 1, "refused": 3}


def test_links_are_imported(isp: Isp, nora: User) -> None:
    row = "rhino,eth1,9000,zebra,eth1,,no\n"
    assert counts(imported(nora, "links", LINKS + row)) == {"made": 1}
    made = BackboneLink.objects.get(a_interface="eth1")
    assert (made.a_ip_mtu, made.z_ip_mtu, made.in_service, made.a_metric) == (9000, None, False, 10)
    # The same link, described from the other side.
    assert counts(checked(nora, "links", LINKS + "zebra,eth1,,rhino,eth1,9000,no\n")) == {"same": 1}
    wrong = "rhino,bb-next,9000,zebra,eth2,9000,no\nrhino,eth3,60,rhino,eth4,,no\nape,e,,rhino,eth5,,no\n"
    assert refusals(checked(nora, "links", LINKS + wrong)) == [
        (2, "a_interface", "interface-taken"),
        (3, "z_router", "link-within-router"),
        (4, "a_router", "named-nowhere"),
    ]


def test_customers_are_imported(nora: User, dairy: Customer) -> None:
    table = "name,approve_up_to_bps,cooling_off_s\nBasel Bakery,1000000000,\nAlpine Dairy,,\nCave,1E+10,\n"
    this = imported(nora, "customers", table)
    assert counts(this) == {"same": 1, "refused": 1, "made": 1}
    assert refusals(this) == [(4, "approve_up_to_bps", "cell-not-a-number")]
    assert Customer.objects.get(name="Basel Bakery").approve_up_to_bps == 10**9


def test_rate_may_have_a_unit(nora: User) -> None:
    table = "name;approve_up_to_bps\nBasel Bakery;1.5G\nCave;1'000'000\nDune;1.000\nElm;10 MB/s\n"
    this = imported(nora, "customers", table)
    assert counts(this) == {"refused": 2, "made": 2}
    assert [(line, code) for line, _column, code in refusals(this)] == [
        *((4, "quantity-ambiguous"), (5, "quantity-ambiguous"))
    ]
    assert Customer.objects.get(name="Basel Bakery").approve_up_to_bps == 1_500_000_000
    assert Customer.objects.get(name="Cave").approve_up_to_bps == 1_000_000


def test_ports_are_imported(isp: Isp, nora: User, dairy: Customer) -> None:
    table = (
        "router,interface,customer,speed_bps,oversubscription_percent\n"
        "rhino,eth7,Alpine Dairy,10000000000,200\n"
        "rhino,host-cust1,Alpine Dairy,10000000000,\n"
        "rhino,bb-next,,1,\n"
        "rhino,eth8,Nobody,1,\n"
    )
    this = imported(nora, "ports", table)
    assert counts(this) == {"same": 1, "refused": 2, "made": 1}
    assert refusals(this) == [(4, "interface", "interface-taken"), (5, "customer", "named-nowhere")]
    made = Port.objects.get(interface="eth7")
    assert (made.customer, made.bookable_bps) == (dairy, 2 * 10**10)


def test_users_are_invited(nina: User, dairy: Customer, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(email="Alice@alpine.example")
    table = (
        "customer,email,role\n"
        "Alpine Dairy,dora@alpine.example,Viewer\n"
        "Alpine Dairy,alice@alpine.example,operator\n"
        "Alpine Dairy,bad,viewer\n"
        "Alpine Dairy,eve@alpine.example,boss\n"
    )
    this = imported(nina, "users", table)
    assert counts(this) == {"same": 1, "refused": 2, "made": 1}
    assert refusals(this) == [(4, "email", "cell-not-an-email"), (5, "role", "cell-not-one-of")]
    invitation = Invitation.objects.get()
    assert (invitation.email, invitation.role, invitation.invited_by) == (
        "dora@alpine.example",
        Membership.Role.VIEWER,
        nina,
    )
    assert counts(checked(nina, "users", table)) == {"same": 2, "refused": 2}


def test_lines_are_ordered_once(isp: Isp, nora: User) -> None:
    table = LINES + "ZRH-AMS,rhino:host-cust1,100,hippo:host-cust1,any,1500,1000000000\n"
    this = imported(nora, "lines", table)
    assert counts(this) == {"made": 1}
    order = Order.objects.select_related("vll").get()
    assert (order.ordered_by, order.request_id) == ("nora", this.origin)
    assert (order.state, order.vll.description) == (OrderState.ACKNOWLEDGED, "ZRH-AMS")
    assert counts(imported(nora, "lines", table)) == {"same": 1}
    assert Vll.objects.count() == 1
    changed = table.replace(",1500,", ",1400,")
    assert refusals(checked(nora, "lines", changed)) == [(2, "", "row-differs")]


def test_refusal_of_an_order_names_its_column(isp: Isp, nora: User) -> None:
    rows = (
        "one,rhino:host-cust1,5000,hippo:host-cust1,any,1500,1000000\n"
        "two,rhino:host-cust9,7,hippo:host-cust1,any,1500,1000000\n"
        "three,rhino,7,hippo:host-cust1,any,1500,1000000\n"
        "four,rhino:host-cust1,8,hippo:host-cust1,any,1500,100000000000\n"
        "five,rhino:host-cust1,9,hippo:host-cust1,any,1500,1000000\n"
        "six,rhino:host-cust1,9,hippo:host-cust1,any,1500,1000000\n"
    )
    this = checked(nora, "lines", LINES + rows)
    assert counts(this) == {"new": 1, "refused": 5}
    assert [each for each in refusals(this) if each[0] != 5] == [
        (2, "a_outer_vlan", "vlan-out-of-range"),
        (3, "a_port", "named-nowhere"),
        (4, "a_port", "cell-not-a-port"),
        (7, "a_outer_vlan", "row-twice"),
    ]
    assert not Order.objects.exists()


TAGGED = (
    "description,a_port,a_tagging,a_outer_vlan,a_inner_vlan,a_exact_match,"
    "z_port,z_tagging,z_outer_vlan,svc_mtu,cir_bps\n"
)


def tagged(*ends: str) -> str:
    """Return a table of lines with these A ends: tagging, outer VLAN, inner VLAN, exact match."""
    rows = (
        f"line {number},rhino:host-cust1,{end},hippo:host-cust1,dot1q,any,1500,1000000\n"
        for number, end in enumerate(ends, start=2)
    )
    return TAGGED + "".join(rows)


def test_same_vlans_with_two_tag_types_are_two_lines(isp: Isp, nora: User) -> None:
    table = tagged("qinq,100,5,yes", "dot1ad,100,5,yes", "dot1q,100,,yes", "dot1q,200,,yes", "qinq,200,1,yes")
    assert counts(checked(nora, "lines", table)) == {"new": 5}
    assert counts(imported(nora, "lines", table)) == {"made": 5}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("qinq,100,5,yes", "qinq,100,5,yes"),
        ("dot1ad,100,5,yes", "dot1ad,100,5,yes"),
        # Frames with an inner VLAN belong to a line that accepts further tags.
        ("dot1q,100,,no", "qinq,100,5,yes"),
        ("qinq,100,5,yes", "dot1q,100,,no"),
        ("dot1q,100,,no", "dot1q,100,,yes"),
        ("untagged,,,yes", "dot1q,7,,yes"),
        ("dot1q,7,,yes", "untagged,,,yes"),
    ],
)
def test_import_refuses_the_overlaps_that_an_order_refuses(
    isp: Isp, nora: User, one: str, other: str
) -> None:
    this = checked(nora, "lines", tagged("dot1ad,300,1,yes", one, "qinq,300,1,yes", other))
    refused = refusals(this)
    # A whole port overlaps with the first row too.
    assert {code for _line, _column, code in refused} == {"row-twice"}
    assert 5 in {line for line, _column, _code in refused} or one.startswith("untagged")
    assert [line for line, _column, _code in refused if line in (2, 4)] == []


def test_exported_list_of_lines_can_be_imported(isp: Isp, nora: User) -> None:
    from tests.integration.api.test_api_v1 import client

    table = LINES + "ZRH-AMS,rhino:host-cust1,100,hippo:host-cust1,any,1500,1000000000\n"
    imported(nora, "lines", table)
    exported = b"".join(client(nora).get("/api/v1/vlls.csv"))  # type: ignore[call-overload]
    assert counts(checked(nora, "lines", exported)) == {"same": 1}
    # The import skips terminated lines.
    over = exported.replace(b",pendingActive,", b",terminated,")
    assert refusals(checked(nora, "lines", over)) == [(2, "lifecycle", "line-is-over")]


def test_line_being_removed_counts_neither_as_existing_nor_as_new(isp: Isp, nora: User) -> None:
    table = LINES + "ZRH-AMS,rhino:host-cust1,100,hippo:host-cust1,any,1500,1000000000\n"
    imported(nora, "lines", table)
    vll = Vll.objects.get()
    activate(vll)
    order_delete(user=nora, vll=vll, now=clock.now())
    assert refusals(imported(nora, "lines", table)) == [(2, "description", "line-being-removed")]


def test_import_runs_in_the_name_of_the_user_who_started_it(isp: Isp, nora: User, nina: User) -> None:
    """Orders and the audit trail name the user who started it; the user who uploaded it may have left."""
    row = "ZRH-AMS,rhino:host-cust1,100,hippo:host-cust1,any,1500,1000000000\n"
    this = begun(nina, checked(nora, "lines", LINES + row))
    User.objects.filter(pk=nora.pk).update(is_active=False)
    assert counts(work(this)) == {"made": 1}
    order = Order.objects.get()
    assert order.ordered_by == "nina"
    assert object_history(Vll, order.vll_id)[0].by["username"] == "nina"
    assert (this.requested_by, this.begun_by, this.ended_by) == (nora, nina, None)


def test_import_stops_when_its_user_loses_the_right(nora: User, nina: User) -> None:
    this = checked(nora, "sites", SITES)
    begun(nina, this)
    User.objects.filter(pk=nina.pk).update(is_active=False)
    ended = work(this)
    assert ended.state == ImportState.CANCELLED
    assert ended.stopped_by["code"] == "import-not-allowed"
    assert not Site.objects.exists()
    assert Import.objects.count() == 1


def test_refusals_are_shown_in_the_readers_language(isp: Isp, nora: User) -> None:
    """The sentence of this refusal comes from a table, by the kind of the missing object."""
    this = checked(nora, "routers", "name,site\nabc,Nowhere\n")
    with translation.override("de"):
        [sentence] = sentences(this)
    assert sentence.startswith("Es gibt keinen Standort „Nowhere“.")


def test_differences_are_described_in_words(nora: User) -> None:
    imported(nora, "sites", "name,latitude,longitude\nBern,46.9,7.4\n")
    this = checked(nora, "sites", "name,latitude,longitude\nBern,46.9,7.5\n")
    assert "longitude is 7.400000 here and 7.500000 in the file." in sentences(this)[0]
    Site.objects.update(latitude=None, longitude=None)
    this = checked(nora, "sites", "name,latitude,longitude\nBern,46.9,7.4\n")
    assert "latitude is empty here and 46.900000 in the file; longitude is empty" in sentences(this)[0]
