"""Two people edit one NOC form at the same time: neither overwrites the other's change unknowingly."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from portal.accounts.models import Customer, User
from portal.allocation.models import ReservedVniRange
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.web.fields.base import VersionedForm
from tests.integration.isp import GBIT, Isp
from tests.integration.web_pages.browser import save, signed_in, text, version_in

pytestmark = pytest.mark.django_db
REFUSED = "Somebody has changed this since you opened it, so nothing was saved"
# One other value for a field of each kind, as typed, and a second field with a value.
CHANGES: dict[str, tuple[type[Any], dict[str, str], dict[str, str]]] = {
    "sites": (Site, {"name": "Bern"}, {"name": "Thun"}),
    "routers": (Router, {"cores": "8"}, {"cpu": "Xeon"}),
    "ports": (Port, {"speed_bps": "20000"}, {"description": "dock 4"}),
    "links": (BackboneLink, {"a_ip_mtu": "1600"}, {"z_metric": "20"}),
    "customers": (Customer, {"approve_up_to_bps": "100"}, {"name": "Alpine Cheese"}),
    "vni-ranges": (ReservedVniRange, {"last": "20"}, {"reason": "spare"}),
}


def opened(browser: Client, address: str) -> dict[str, Any]:
    """Return the values that a browser would send of the unedited form."""
    page = browser.get(address)
    form: VersionedForm = page.context["form"]
    filled = {name: form[name].value() for name in form.fields}
    boxes = {name: "on" for name, value in filled.items() if value is True}
    written = {name: str(value) for name, value in filled.items() if not isinstance(value, bool | None)}
    return {"version": version_in(page), **written, **boxes}


@pytest.fixture
def vni_range(db: None) -> ReservedVniRange:
    return ReservedVniRange.objects.create(first=1, last=9, reason="lab")


@pytest.mark.parametrize("kind", CHANGES)
def test_form_older_than_another_change_is_refused(
    isp: Isp, vni_range: ReservedVniRange, nora: User, nina: User, kind: str
) -> None:
    model, ninas, noras = CHANGES[kind]
    row = model.objects.order_by("pk").first()
    address = f"/noc/{kind}/{row.pk}/change/"
    noc, admin = signed_in(nora), signed_in(nina)
    seen = opened(noc, address)
    assert admin.post(address, opened(admin, address) | ninas).status_code == 302
    after_nina = model.objects.filter(pk=row.pk).values().get()
    refused = noc.post(address, seen | noras)
    assert refused.status_code == 409
    assert REFUSED in text(refused)
    assert model.objects.filter(pk=row.pk).values().get() == after_nina


def test_form_shows_the_input_and_the_current_values(dairy: Customer, nora: User, nina: User) -> None:
    address, noc = f"/noc/customers/{dairy.pk}/change/", signed_in(nora)
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=10 * GBIT)
    seen = opened(noc, address)
    assert (
        save(signed_in(nina), address, {"name": "Alpine Dairy", "approve_up_to_bps": "50"}).status_code == 302
    )
    refused = noc.post(address, seen | {"name": "Alpine Cheese"})
    form = refused.context["form"]
    assert form.errors["name"] == ["It is Alpine Dairy now."]
    assert form.errors["approve_up_to_bps"] == ["It is 50 now."]
    assert "cooling_off_s" not in form.errors
    page = refused.content.decode()
    assert 'value="Alpine Cheese"' in page
    assert 'value="10000"' in page
    assert f'href="/noc/customers/{dairy.pk}/history/"' in page
    # Nora keeps Nina's limit and her own name.
    decided = {"version": version_in(refused), "name": "Alpine Cheese", "approve_up_to_bps": "50"}
    assert noc.post(address, decided).status_code == 302
    dairy.refresh_from_db()
    assert (dairy.name, dairy.approve_up_to_bps) == ("Alpine Cheese", 50_000_000)


def test_emptied_and_ticked_fields_are_reported(isp: Isp, nora: User, nina: User) -> None:
    link, noc = isp.links["rhino-hippo"], signed_in(nora)
    address = f"/noc/links/{link.pk}/change/"
    seen = opened(noc, address)
    ninas = opened(signed_in(nina), address) | {"a_ip_mtu": ""}
    ninas.pop("ipv6")
    assert signed_in(nina).post(address, ninas).status_code == 302
    errors = noc.post(address, seen).context["form"].errors
    assert (errors["a_ip_mtu"], errors["ipv6"]) == (["It is empty now."], ["It is not ticked now."])


def test_other_refusal_does_not_count_as_reading_the_new_values(
    dairy: Customer, nora: User, nina: User
) -> None:
    address, noc = f"/noc/customers/{dairy.pk}/change/", signed_in(nora)
    wrong = noc.post(address, opened(noc, address) | {"name": ""})
    assert wrong.status_code == 422
    assert (
        save(signed_in(nina), address, {"name": "Alpine Dairy", "approve_up_to_bps": "50"}).status_code == 302
    )
    again = {"version": version_in(wrong), "name": "Alpine Cheese"}
    assert noc.post(address, again).status_code == 409


def test_form_without_a_version_is_refused(dairy: Customer, nora: User) -> None:
    for sent in ({"name": "x"}, {"name": "x", "version": ""}, {"name": "x", "version": "0" * 32}):
        assert signed_in(nora).post(f"/noc/customers/{dairy.pk}/change/", sent).status_code == 409
    dairy.refresh_from_db()
    assert dairy.name == "Alpine Dairy"


def test_saving_twice_saves_once(dairy: Customer, nora: User) -> None:
    address, noc = f"/noc/customers/{dairy.pk}/change/", signed_in(nora)
    sent = opened(noc, address) | {"name": "Alpine Cheese"}
    assert [noc.post(address, sent).status_code for _ in range(2)] == [302, 302]


def test_bookings_on_a_port_do_not_outdate_its_form(isp: Isp, nora: User) -> None:
    port = isp.ports["rhino:host-cust1"]
    address, noc = f"/noc/ports/{port.pk}/change/", signed_in(nora)
    sent = opened(noc, address) | {"description": "dock 4"}
    Port.objects.filter(pk=port.pk).update(booked_bps=GBIT)
    assert noc.post(address, sent).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_one_of_many_changes_of_one_version_succeeds(dairy: Customer, nora: User) -> None:
    address, browsers = f"/noc/customers/{dairy.pk}/change/", [signed_in(nora) for _ in range(8)]
    seen = opened(browsers[0], address)

    def named(number: int) -> int:
        try:
            return browsers[number].post(address, seen | {"name": f"Dairy {number}"}).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(len(browsers)) as people:
        answers = list(people.map(named, range(len(browsers))))
    assert sorted(answers) == [302] + [409] * (len(browsers) - 1)
    dairy.refresh_from_db()
    assert dairy.name == f"Dairy {answers.index(302)}"
