"""NetBox has each line as an L2VPN with two ends, written once, and removed with the line."""

from typing import Any

import pytest

from devstack.netbox_writer import NetboxWriter
from portal.core import clock
from portal.netbox_sync.models import ExportedVll
from portal.netbox_sync.sync_run import sync_due
from portal.vll.models import Vll, VllEnd
from portal.vll.states import Lifecycle
from tests.integration.netbox.lines import FIRST, SECOND, line, over
from tests.integration.netbox.seeded import seed
from tests.integration.netbox.stand_in import StandIn
from tests.integration.netbox.test_import import run

pytestmark = pytest.mark.django_db


class There:
    """Read the lines in NetBox directly, without the portal."""

    def __init__(self, seeded: NetboxWriter) -> None:
        self.api: Any = seeded.api

    def l2vpns(self) -> list[dict[str, Any]]:
        return [dict(each) for each in self.api.vpn.l2vpns.filter(slug__isw="longline-", ordering="id")]

    def ends(self) -> set[tuple[str, str]]:
        """Return (router, interface) of each termination."""
        found = set()
        for each in self.api.vpn.l2vpn_terminations.filter(l2vpn_id=[row["id"] for row in self.l2vpns()]):
            interface = self.api.dcim.interfaces.get(each.assigned_object_id)
            assert (interface.type.value, interface.parent.name) == ("virtual", "cust0")
            found.add((interface.device.name, interface.name))
        return found

    def children(self) -> set[str]:
        rows = self.api.dcim.interfaces.filter(name__isw="cust0.", ordering="id")
        return {f"{row.device.name}:{row.name}" for row in rows}


@pytest.fixture
def seeded(netbox: StandIn) -> NetboxWriter:
    return seed(netbox.url, netbox.token)


@pytest.fixture
def there(seeded: NetboxWriter) -> There:
    run()
    return There(seeded)


def export() -> None:
    """Run the export that beat starts every few seconds, between two imports."""
    sync_due(now=clock.now())


def test_a_line_is_written_once(netbox: StandIn, there: There, seeded: NetboxWriter) -> None:
    line()
    line(SECOND, vlan=200, vni=70002, lifecycle=Lifecycle.PENDING_ACTIVE)
    export()
    first, second = there.l2vpns()
    assert (first["name"], first["type"]["value"], first["identifier"], first["tenant"]["id"]) == (
        "ZRH-BRN (11111111-2222)",
        "vpws",
        70001,
        seeded.id("dairy"),
    )
    assert first["custom_fields"]["longline_id"] == str(FIRST)
    assert first["custom_fields"]["longline_url"] == f"http://testserver/vlls/{FIRST}/"
    assert [each["status"]["value"] for each in (first, second)] == ["active", "planned"]
    assert there.ends() == {(router, f"cust0.{vlan}") for router in ("rhino", "hippo") for vlan in (100, 200)}
    assert not ExportedVll.objects.filter(error__isnull=False).exists()
    # Neither the next check of due lines, which sends no request, nor a full check writes anything.
    netbox.asked.clear()
    export()
    assert netbox.asked == []
    run()
    assert netbox.writes == []


def test_a_change_writes_what_differs_and_nothing_else(netbox: StandIn, there: There) -> None:
    vll = line()
    export()
    netbox.asked.clear()
    Vll.objects.filter(pk=vll.pk).update(vni=70003, revision=2)
    export()
    assert netbox.writes == [("PATCH", "/api/vpn/l2vpns/")]
    assert [each["identifier"] for each in there.l2vpns()] == [70003]
    VllEnd.objects.filter(vll=vll, side="z").update(outer_vlan=300)
    Vll.objects.filter(pk=vll.pk).update(revision=3)
    export()
    assert there.ends() == {("rhino", "cust0.100"), ("hippo", "cust0.300")}
    assert there.children() == {"rhino:cust0.100", "hippo:cust0.300"}


def test_what_people_edited_in_netbox_survives(netbox: StandIn, there: There) -> None:
    vll = line()
    export()
    (row,) = there.l2vpns()
    edits = {"name": "Milk run", "description": "The dairy's", "comments": "Ask Heidi", "identifier": 5}
    there.api.vpn.l2vpns.update([{"id": row["id"], **edits}])
    Vll.objects.filter(pk=vll.pk).update(lifecycle=Lifecycle.PENDING_TERMINATE, revision=2)
    netbox.asked.clear()
    run()
    assert netbox.writes == [("PATCH", "/api/vpn/l2vpns/")]
    (row,) = there.l2vpns()
    assert {name: row[name] for name in edits} == edits
    assert row["status"]["value"] == "decommissioning"


def test_what_people_removed_in_netbox_comes_back(netbox: StandIn, there: There) -> None:
    line()
    export()
    there.api.vpn.l2vpns.delete([row["id"] for row in there.l2vpns()])
    run()
    assert len(there.l2vpns()) == 1
    assert there.ends() == {("rhino", "cust0.100"), ("hippo", "cust0.100")}
    assert there.children() == {"rhino:cust0.100", "hippo:cust0.100"}


def test_the_end_of_a_line_removes_what_was_made_for_it(netbox: StandIn, there: There) -> None:
    vll = line()
    line(SECOND, vlan=200, vni=70002)
    export()
    over(vll)
    export()
    assert [row["identifier"] for row in there.l2vpns()] == [70002]
    assert there.children() == {"rhino:cust0.200", "hippo:cust0.200"}
    netbox.asked.clear()
    run()
    assert netbox.writes == []


def test_the_record_of_a_line_can_stay(netbox: StandIn, there: There, settings: Any) -> None:
    settings.NETBOX_AT_END = "decommission"
    vll = line()
    export()
    over(vll)
    export()
    assert [row["status"]["value"] for row in there.l2vpns()] == ["decommissioning"]
    assert (there.ends(), there.children()) == (set(), set())
    # Its VLANs are free for the next.
    line(SECOND, vni=70002)
    export()
    assert there.ends() == {("rhino", "cust0.100"), ("hippo", "cust0.100")}


def test_a_worker_killed_in_between_makes_nothing_twice(netbox: StandIn, there: There) -> None:
    line()
    export()
    # The worker's notes are lost, and one end does not exist yet.
    ExportedVll.objects.all().delete()
    (row,) = there.l2vpns()
    ends = list(there.api.vpn.l2vpn_terminations.filter(l2vpn_id=row["id"], ordering="id"))
    ends[-1].delete()
    netbox.asked.clear()
    export()
    assert netbox.writes == [("POST", "/api/vpn/l2vpn-terminations/")]
    assert there.ends() == {("rhino", "cust0.100"), ("hippo", "cust0.100")}


def test_what_stands_in_a_lines_way_holds_up_that_line_alone(
    netbox: StandIn, there: There, seeded: NetboxWriter
) -> None:
    api = seeded.api
    theirs = seeded.make(api.vpn.l2vpns, "theirs", name="Theirs", slug="longline-test-theirs", type="vpws")
    seeded.interfaces({"rhino:cust0.100": {"type": "virtual", "parent": seeded.id("rhino:cust0")}})
    seeded.make(
        api.vpn.l2vpn_terminations,
        "their end",
        l2vpn=theirs,
        assigned_object_type="dcim.interface",
        assigned_object_id=seeded.id("rhino:cust0.100"),
    )
    line()
    line(SECOND, vlan=200, vni=70002)
    export()
    assert {str(row.pk): (row.error or {}).get("code") for row in ExportedVll.objects.all()} == {
        str(FIRST): "interface_taken",
        str(SECOND): None,
    }
    # After an operator freed the object, the next full check takes it.
    api.vpn.l2vpns.delete([theirs])
    run()
    assert not ExportedVll.objects.filter(error__isnull=False).exists()
    over(Vll.objects.get(pk=FIRST))
    export()
    # A person created the interface, so it stays.
    assert there.children() == {"rhino:cust0.100", "rhino:cust0.200", "hippo:cust0.200"}
