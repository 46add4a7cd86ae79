"""The free part of the resources that lines lease, and the audit trail."""

from datetime import timedelta

import pytest
from django.db import connection

from portal.accounts.models import User
from portal.allocation.models import ReservedVniRange, VniLease
from portal.allocation.pool_usage import pools
from portal.audit import history as trail
from portal.audit.history import MODELS, newest
from portal.core import clock
from portal.inventory.certificates import enrolment_offer
from portal.inventory.models import Port, Site
from portal.vll.operations.reservations import reservation_make
from portal.web.noc.history import PAGES, WHAT
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.web_pages.browser import save, signed_in, text

pytestmark = pytest.mark.django_db


def test_every_vni_is_counted_once(isp: Isp, alice: User) -> None:
    order(isp, alice)
    now = clock.now()
    for vni, free_at in ((9_000_001, now + timedelta(days=1)), (9_000_002, None)):
        VniLease.objects.create(
            vni=vni,
            owner="d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10",
            leased_at=now,
            released_at=now,
            free_at=free_at,
        )
    # Overlapping ranges count each VNI once.
    for first, last in ((1, 100), (50, 150)):
        ReservedVniRange.objects.create(first=first, last=last, reason="lab")
    found = pools().counts
    assert (found.vnis.leased, found.vnis.resting, found.vnis.quarantined) == (1, 1, 1)
    assert found.vni_reserved == 150
    assert found.vni_free == 2**24 - 1 - 150 - 3


def test_fullest_pools_come_first(isp: Isp, alice: User, nora: User) -> None:
    order(isp, alice)
    Port.objects.filter(pk=isp.ports["hippo:host-cust2"].pk).update(booked_bps=9 * GBIT)
    found = pools()
    assert str(found.fullest_ports[0]) == "hippo:host-cust2"
    assert {(str(row["port"]), row["leases"]) for row in found.busiest_ports} == {
        ("rhino:host-cust1", 1),
        ("hippo:host-cust1", 1),
    }
    assert {router.name for router, use in found.fullest_routers if use.booked_cores > 0} == {
        "rhino",
        "hippo",
    }
    shown = text(signed_in(nora).get("/noc/pools/"))
    assert "9 Gbit/s of 10 Gbit/s" in shown
    assert "VNI 1 0 0 0 16 777 214 of 16 777 215" in shown.replace("\N{NO-BREAK SPACE}", " ")


def test_empty_network_has_empty_pools(nora: User) -> None:
    assert "Nothing is booked yet" in text(signed_in(nora).get("/noc/pools/"))


def test_changes_of_all_kinds_are_listed_newest_first(isp: Isp, alice: User, nora: User) -> None:
    order(isp, alice, description="Milk run")
    Site.objects.create(name="Bern")
    Site.objects.filter(name="Bern").update(name="Berne")
    found = newest().entries
    assert [entry.change.at for entry in found] == sorted((e.change.at for e in found), reverse=True)
    (renamed,) = [e for e in found if e.change.what == "site" and e.change.operation == "update"]
    assert (renamed.change.before, renamed.change.after) == ({"name": "Bern"}, {"name": "Berne"})
    shown = text(signed_in(nora).get("/noc/audit/"))
    assert "Berne Site changed somebody outside the portal name Bern → Berne" in shown
    assert "Milk run Line created" in shown


def test_filter_by_kind_and_unknown_kind(isp: Isp, nora: User) -> None:
    Site.objects.create(name="Bern")
    page = signed_in(nora).get("/noc/audit/?what=site")
    assert {row["change"].what for row in page.context["rows"]} == {"site"}
    assert signed_in(nora).get("/noc/audit/?what=passwords&after=x").status_code == 200


def renamed(user: User, name: str, *, to: str) -> None:
    """Rename through the portal, so that the trail names the author."""
    site = Site.objects.get(name=name)
    assert save(signed_in(user), f"/noc/sites/{site.pk}/change/", {"name": to}).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_filter_by_person_applies_to_the_next_page(
    isp: Isp, nora: User, nina: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    Site.objects.create(name="Bern")
    renamed(nora, "Bern", to="Berne")
    renamed(nina, "Berne", to="Berna")
    renamed(nora, "Berna", to="Bärn")
    browser = signed_in(nora)
    monkeypatch.setattr(trail, "PAGE_SIZE", 1)
    first = browser.get("/noc/audit/", {"by": "nora", "what": "site"})
    assert "Bärn Site changed nora name Berna → Bärn" in text(first)
    second = browser.get(f"/noc/audit/?{first.context['keep']}&after={first.context['page']['after']}")
    assert "Site changed nora name Bern → Berne" in text(second)
    assert not second.context["page"]["after"]
    monkeypatch.undo()
    ninas = browser.get("/noc/audit/?by=nina").context["rows"]
    assert {row["change"].by["username"] for row in ninas} == {"nina"}
    assert 'href="?by=nina"' in browser.get("/noc/audit/").content.decode()
    assert "nobody has changed nothing" in text(browser.get("/noc/audit/?by=nobody"))
    assert "What nina has changed" in text(browser.get(f"/noc/people/{nina.pk}/history/"))


def test_each_table_of_events_has_an_index_by_person(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'audit_%%_by_person'")
        there = {name for (name,) in cursor.fetchall()}
    assert there == {f"audit_{name}_by_person" for name in MODELS}


def test_every_change_is_on_exactly_one_page(
    isp: Isp, alice: User, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    order(isp, alice)
    everything = [(e.change.what, e.change.number) for e in newest().entries]
    monkeypatch.setattr(trail, "PAGE_SIZE", 4)
    browser, after, seen = signed_in(nora), "", []
    for _ in range(20):
        page = browser.get("/noc/audit/", {"after": after})
        seen += [(row["change"].what, row["change"].number) for row in page.context["rows"]]
        after = page.context["page"]["after"]
        if not after:
            break
    assert len(seen) == len(set(seen))
    assert sorted(seen) == sorted(everything)


def test_each_kind_links_to_its_history(isp: Isp, alice: User, nora: User) -> None:
    order(isp, alice)
    ends = {"a_end": end(isp, "rhino:host-cust2"), "z_end": end(isp, "hippo:host-cust2")}
    reservation_make(user=alice, **ends, cir_bps=GBIT, now=clock.now())
    enrolment_offer(router=isp.routers["rhino"], user=nora, now=clock.now())
    browser = signed_in(nora)
    rows = browser.get("/noc/audit/").context["rows"]
    assert {"vll", "vllend", "order", "hold", "routerenrolment"} <= {row["change"].what for row in rows}
    for address in {row["address"] for row in rows}:
        assert browser.get(address).status_code == 200, address


def test_every_audited_table_has_a_name_and_a_page() -> None:
    assert set(PAGES) == set(MODELS)
    assert set(MODELS) <= set(WHAT)


@pytest.mark.parametrize("page", ["/noc/pools/", "/noc/audit/"])
def test_only_the_noc_reads_pools_and_audit(alice: User, page: str) -> None:
    assert signed_in(alice).get(page).status_code == 403
