"""NOC forms select a customer, a router or a site by name: with suggestions, and without scripts."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.inventory.models import Port
from portal.web.fields.suggestions import SHOWN
from tests.integration.isp import Isp
from tests.integration.web_pages.browser import save, signed_in, text

pytestmark = pytest.mark.django_db

ROWS = 100_000


@pytest.fixture
def many(db: None) -> None:
    now = clock.now()
    with connection.cursor() as cursor:
        # Create rows without the triggers of the audit trail.
        cursor.execute("SET LOCAL session_replication_role = replica")
        Customer.objects.bulk_create(
            (Customer(name=f"customer {n:06}", created_at=now) for n in range(ROWS)), batch_size=5000
        )
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


def port(isp: Isp, customer: str, **more: str) -> dict[str, str]:
    return {
        "router": "rhino",
        "interface": "x2",
        "customer": customer,
        "kind": "uni",
        "speed_bps": "1000",
        "max_frame": "9022",
        **more,
    }


def test_row_is_selected_by_name_or_id(isp: Isp, dairy: Customer, nora: User) -> None:
    noc = signed_in(nora)
    assert noc.post("/noc/ports/add/", port(isp, "Alpine Dairy")).status_code == 302
    by_id = port(isp, str(dairy.pk), interface="x3", router=str(isp.routers["hippo"].pk))
    assert noc.post("/noc/ports/add/", by_id).status_code == 302
    made = Port.objects.filter(interface__in=["x2", "x3"]).order_by("interface")
    assert [(str(each), each.customer) for each in made] == [("rhino:x2", dairy), ("hippo:x3", dairy)]


def test_numeric_name_has_precedence_over_an_id(isp: Isp, dairy: Customer, nora: User) -> None:
    numbered = Customer.objects.create(name=str(dairy.pk), created_at=clock.now())
    assert signed_in(nora).post("/noc/ports/add/", port(isp, str(dairy.pk))).status_code == 302
    assert Port.objects.get(interface="x2").customer == numbered


@pytest.mark.parametrize("name", ["Alpine", "0", "99999999999999999999999", "١", "<b>"])
def test_unknown_name_is_reported_next_to_the_field(isp: Isp, nora: User, name: str) -> None:
    answered = signed_in(nora).post("/noc/ports/add/", port(isp, name))
    assert answered.status_code == 422
    assert "Nothing has this name." in text(answered)


def test_retired_customer_is_not_suggested(isp: Isp, dairy: Customer, nora: User) -> None:
    Customer.objects.filter(pk=dairy.pk).update(retired_at=clock.now())
    assert signed_in(nora).post("/noc/ports/add/", port(isp, "Alpine Dairy")).status_code == 422
    assert "Alpine" not in signed_in(nora).get("/noc/suggest/customers/").content.decode()


def test_change_form_shows_the_name_and_keeps_the_customer(isp: Isp, dairy: Customer, nora: User) -> None:
    noc, pk = signed_in(nora), isp.ports["rhino:host-cust1"].pk
    assert 'value="Alpine Dairy"' in noc.get(f"/noc/ports/{pk}/change/").content.decode()
    sent = {"customer": "", "kind": "uni", "speed_bps": "10000", "bookable_bps": "10000", "max_frame": "9022"}
    assert save(noc, f"/noc/ports/{pk}/change/", sent).status_code == 302
    assert Port.objects.get(pk=pk).customer is None


def test_form_and_suggestions_stay_short_with_100_000_customers(isp: Isp, nora: User, many: None) -> None:
    noc = signed_in(nora)
    form = noc.get("/noc/ports/add/").content.decode()
    assert form.count("<option") < 60
    assert len(form) < 40_000
    noc.get("/noc/suggest/customers/")
    with CaptureQueriesContext(connection) as sent:
        said = noc.get("/noc/suggest/customers/?of=customer&customer=0999").content.decode()
    assert said.count("<option") == SHOWN
    assert '<option value="customer 009990">' in said
    assert sum("accounts_customer" in query["sql"] for query in sent) == 1
    assert noc.post("/noc/ports/add/", port(isp, "customer 099999")).status_code == 302


def test_names_with_markup_are_escaped(isp: Isp, nora: User) -> None:
    Customer.objects.create(name='"><script>', created_at=clock.now())
    said = signed_in(nora).get("/noc/suggest/customers/").content.decode()
    assert "&quot;&gt;&lt;script&gt;" in said
    assert "<script>" not in said
    assert "<script>" not in signed_in(nora).get("/noc/ports/add/").content.decode().split("<datalist")[1]


def test_only_the_noc_reads_suggestions(isp: Isp, ada: User, nora: User) -> None:
    assert signed_in(ada).get("/noc/suggest/customers/").status_code == 403
    assert signed_in(nora).get("/noc/suggest/secrets/").status_code == 404
