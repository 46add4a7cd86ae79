"""The portal imports NetBox's objects once, follows their changes, and overwrites no manual edit."""

from io import StringIO

import pytest
from django.core.management import call_command

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.events.models import Event
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.inventory.operations import port_change, site_create
from portal.netbox_sync.models import NetboxObject, NetboxRun
from portal.netbox_sync.netbox_status import last_complete_run
from tests.integration.netbox.seeded import seed
from tests.integration.netbox.stand_in import StandIn

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    output = StringIO()
    call_command("netbox_sync", *arguments, stdout=output, stderr=StringIO())
    return output.getvalue()


def last_run() -> NetboxRun:
    found = last_complete_run()
    assert found is not None
    return found


def findings() -> set[tuple[str, str]]:
    return {(each["code"], each["subject"]) for each in last_run().findings}


def test_dry_run_prints_changes_and_makes_none(netbox: StandIn) -> None:
    seed(netbox.url, netbox.token)
    netbox.requests.clear()
    output = run("--dry-run")
    assert netbox.writes == []
    assert (Site.objects.count(), Router.objects.count(), NetboxObject.objects.count()) == (0, 0, 0)
    assert (
        "+ router rhino\n    site: Zürich\n    loopback4: 10.255.0.1\n    loopback6: fd00:255::1\n" in output
    )
    assert "+ port rhino:cust0\n" in output
    assert "    customer: Alpine Dairy\n" in output
    assert "! zebra:bb0: It has no MTU in NetBox." in output
    assert output.endswith("12 changes, 1 findings; nothing was changed\n")


def test_all_objects_are_imported_once(netbox: StandIn) -> None:
    seed(netbox.url, netbox.token)
    run()
    assert set(Site.objects.values_list("name", flat=True)) == {"Zürich", "Bern"}
    assert set(Router.objects.values_list("name", "site__name", "loopback4", "loopback6", "agent_url")) == {
        ("rhino", "Zürich", "10.255.0.1", "fd00:255::1", ""),
        ("hippo", "Bern", "10.255.0.2", "fd00:255::2", ""),
        ("zebra", "Bern", "10.255.0.3", "fd00:255::3", ""),
    }
    ports = Port.objects.values_list(
        "router__name", "interface", "customer__name", "speed_bps", "max_frame", "description", "kind"
    )
    assert set(ports) == {
        ("rhino", "cust0", "Alpine Dairy", 10**10, 9122, "To dairy", "uni"),
        ("hippo", "cust0", "Alpine Dairy", 10**10, 9122, "To dairy", "uni"),
        ("rhino", "cust1", None, 10**10, 9122, "To nobody", "uni"),
    }
    links = {str(link): (link.a_ip_mtu, link.z_ip_mtu) for link in BackboneLink.objects.all()}
    assert links == {
        "rhino:bb0 — hippo:bb0": (9000, 9000),
        # The portal invents no value: this link blocks orders until somebody enters its MTU.
        "hippo:bb1 — zebra:bb0": (9000, None),
        "rhino:BondEthernet0 — zebra:BondEthernet0": (9000, 9000),
    }
    assert findings() == {("link_mtu_missing", "zebra:bb0")}
    announced = Event.objects.filter(kind="router.created", actor__gt="")
    assert announced.count() == 3
    events = Event.objects.count()
    netbox.requests.clear()
    run()
    assert last_run().counts["changes"] == 0
    assert Event.objects.count() == events
    assert netbox.writes == []


def test_rename_is_imported_and_a_manual_edit_is_kept(netbox: StandIn, nora: User) -> None:
    seeded = seed(netbox.url, netbox.token)
    run()
    rows = {name: Site.objects.get(name=name).pk for name in ("Zürich", "Bern")}
    port = Port.objects.get(router__name="rhino", interface="cust1")
    port_change(port=port, user=nora, now=clock.now(), description="Spare, do not sell")
    api = seeded.api
    seeded.change(api.dcim.sites, "bern", name="Berne")
    seeded.change(api.dcim.devices, "zebra", site=seeded.id("zurich"))
    seeded.change(api.dcim.interfaces, "zebra:bb0", mtu=9000)
    seeded.change(api.dcim.interfaces, "rhino:cust1", description="For rent", speed=25_000_000)
    run()
    assert Site.objects.get(pk=rows["Bern"]).name == "Berne"
    assert Router.objects.get(name="zebra").site_id == rows["Zürich"]
    assert not BackboneLink.objects.filter(z_ip_mtu=None).exists()
    port.refresh_from_db()
    # The value edited in the portal stays after every import; other values of the port follow NetBox.
    assert (port.description, port.speed_bps, port.bookable_bps) == (
        "Spare, do not sell",
        25 * 10**9,
        25 * 10**9,
    )
    assert findings() == {("kept", "rhino:cust1")}
    run()
    assert (last_run().counts["changes"], findings()) == (0, {("kept", "rhino:cust1")})


def test_existing_objects_are_recognised(netbox: StandIn, nora: User) -> None:
    seed(netbox.url, netbox.token)
    now = clock.now()
    bern = site_create(name="Bern", user=nora, now=now)
    dairy = Customer.objects.create(name="Alpine Dairy", created_at=now)
    hippo = Router.objects.create(name="hippo", site=bern, loopback4="10.255.0.2")
    rhino = Router.objects.create(name="rhino", site=bern)
    port = Port.objects.create(
        router=hippo, interface="cust0", customer=dairy, speed_bps=10**9, bookable_bps=10**9, max_frame=9122
    )
    link = BackboneLink.objects.create(
        a_router=hippo, a_interface="bb0", a_ip_mtu=9000, z_router=rhino, z_interface="bb0", z_ip_mtu=None
    )
    run()
    assert Router.objects.count() == 3
    assert (Site.objects.get(name="Bern").pk, Customer.objects.get().pk) == (bern.pk, dairy.pk)
    hippo.refresh_from_db()
    link.refresh_from_db()
    port.refresh_from_db()
    # The import fills empty values. Where both have a value, the portal's value stays until somebody decides.
    assert (hippo.loopback6, link.z_ip_mtu, port.description) == ("fd00:255::2", 9000, "To dairy")
    assert (port.speed_bps, BackboneLink.objects.count()) == (10**9, 3)
    assert findings() == {
        ("link_mtu_missing", "zebra:bb0"),
        ("kept", "hippo:cust0"),
        ("kept", "rhino"),
    }


def test_object_missing_from_netbox_is_not_removed(netbox: StandIn) -> None:
    seeded = seed(netbox.url, netbox.token)
    run()
    api = seeded.api
    api.dcim.cables.delete([seeded.id("rhino:bb0-hippo:bb0")])
    seeded.change(api.dcim.devices, "zebra", status="offline")
    seeded.change(api.dcim.interfaces, "rhino:cust1", tags=[])
    netbox.requests.clear()
    run()
    assert (Router.objects.count(), BackboneLink.objects.count(), Port.objects.count()) == (3, 3, 3)
    assert findings() == {
        ("gone", "rhino:bb0 — hippo:bb0"),
        ("gone", "hippo:bb1 — zebra:bb0"),
        ("gone", "rhino:BondEthernet0 — zebra:BondEthernet0"),
        ("gone", "zebra"),
        ("gone", "rhino:cust1"),
    }


def test_invalid_objects_are_reported_and_all_others_imported(netbox: StandIn) -> None:
    seeded = seed(netbox.url, netbox.token)
    api = seeded.api
    # Two addresses of a family; an invalid router name; a port of unknown MTU; a cable to the same router.
    seeded.addresses(("rhino", "10.255.1.1/32"))
    seeded.change(api.dcim.devices, "zebra", name="Zebra in Bern")
    seeded.change(api.dcim.interfaces, "rhino:cust1", mtu=None)
    seeded.interfaces({"hippo:bb8": {}, "hippo:bb9": {}})
    seeded.cables(("hippo:bb8", "hippo:bb9"))
    # The cable is only planned, and it leads to a router that the portal does not have.
    seeded.change(api.dcim.cables, "rhino:bb0-hippo:bb0", status="planned")
    run()
    assert set(Router.objects.values_list("name", "loopback4", "loopback6")) == {
        ("rhino", None, "fd00:255::1"),
        ("hippo", "10.255.0.2", "fd00:255::2"),
    }
    assert {str(port) for port in Port.objects.all()} == {"rhino:cust0", "hippo:cust0"}
    assert not BackboneLink.objects.exists()
    assert findings() == {
        ("two_addresses", "rhino"),
        ("router_name", "Zebra in Bern"),
        ("port_mtu_missing", "rhino:cust1"),
        ("cable_within_router", "hippo:bb8 — hippo:bb9"),
        ("cable_not_connected", "rhino:bb0 — hippo:bb0"),
    }
