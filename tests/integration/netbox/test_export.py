"""The portal writes each line to NetBox once, as an L2VPN with two ends, and removes it with the line."""

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


class InNetbox:
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
def in_netbox(seeded: NetboxWriter) -> InNetbox:
    run()
    return InNetbox(seeded)


def export() -> None:
    """Run the export that beat starts every few seconds, between two imports."""
    sync_due(now=clock.now())


def test_line_is_written_once(netbox: StandIn, in_netbox: InNetbox, seeded: NetboxWriter) -> None:
    line()
    line(SECOND, vlan=200, vni=70002, lifecycle=Lifecycle.PENDING_ACTIVE)
    export()
    first, second = in_netbox.l2vpns()
    assert (first["name"], first["type"]["value"], first["identifier"], first["tenant"]["id"]) == (
        "ZRH-BRN (11111111-2222)",
        "vpws",
        70001,
        seeded.id("dairy"),
    )
    assert first["custom_fields"]["longline_id"] == str(FIRST)
    assert first["custom_fields"]["longline_url"] == f"http://testserver/vlls/{FIRST}/"
    assert [each["status"]["value"] for each in (first, second)] == ["active", "planned"]
    assert in_netbox.ends() == {
        (router, f"cust0.{vlan}") for router in ("rhino", "hippo") for vlan in (100, 200)
    }
    assert not ExportedVll.objects.filter(error__isnull=False).exists()
    # Neither the next check of due lines, which sends no request, nor a full check writes anything.
    netbox.requests.clear()
    export()
    assert netbox.requests == []
    run()
    assert netbox.writes == []


def test_change_writes_only_the_differences(netbox: StandIn, in_netbox: InNetbox) -> None:
    vll = line()
    export()
    netbox.requests.clear()
    Vll.objects.filter(pk=vll.pk).update(vni=70003, revision=2)
    export()
    assert netbox.writes == [("PATCH", "/api/vpn/l2vpns/")]
    assert [each["identifier"] for each in in_netbox.l2vpns()] == [70003]
    VllEnd.objects.filter(vll=vll, side="z").update(outer_vlan=300)
    Vll.objects.filter(pk=vll.pk).update(revision=3)
    export()
    assert in_netbox.ends() == {("rhino", "cust0.100"), ("hippo", "cust0.300")}
    assert in_netbox.children() == {"rhino:cust0.100", "hippo:cust0.300"}


def test_manual_edits_in_netbox_are_kept(netbox: StandIn, in_netbox: InNetbox) -> None:
    vll = line()
    export()
    (row,) = in_netbox.l2vpns()
    edits = {"name": "Milk run", "description": "The dairy's", "comments": "Ask Heidi", "identifier": 5}
    in_netbox.api.vpn.l2vpns.update([{"id": row["id"], **edits}])
    Vll.objects.filter(pk=vll.pk).update(lifecycle=Lifecycle.PENDING_TERMINATE, revision=2)
    netbox.requests.clear()
    run()
    assert netbox.writes == [("PATCH", "/api/vpn/l2vpns/")]
    (row,) = in_netbox.l2vpns()
    assert {name: row[name] for name in edits} == edits
    assert row["status"]["value"] == "decommissioning"


def test_l2vpn_removed_in_netbox_is_written_again(netbox: StandIn, in_netbox: InNetbox) -> None:
    line()
    export()
    in_netbox.api.vpn.l2vpns.delete([row["id"] for row in in_netbox.l2vpns()])
    run()
    assert len(in_netbox.l2vpns()) == 1
    assert in_netbox.ends() == {("rhino", "cust0.100"), ("hippo", "cust0.100")}
    assert in_netbox.children() == {"rhino:cust0.100", "hippo:cust0.100"}


def test_end_of_a_line_removes_its_objects(netbox: StandIn, in_netbox: InNetbox) -> None:
    vll = line()
    line(SECOND, vlan=200, vni=70002)
    export()
    over(vll)
    export()
    assert [row["identifier"] for row in in_netbox.l2vpns()] == [70002]
    assert in_netbox.children() == {"rhino:cust0.200", "hippo:cust0.200"}
    netbox.requests.clear()
    run()
    assert netbox.writes == []


def test_l2vpn_of_an_ended_line_can_be_kept(netbox: StandIn, in_netbox: InNetbox, settings: Any) -> None:
    settings.NETBOX_AT_END = "decommission"
    vll = line()
    export()
    over(vll)
    export()
    assert [row["status"]["value"] for row in in_netbox.l2vpns()] == ["decommissioning"]
    assert (in_netbox.ends(), in_netbox.children()) == (set(), set())
    # Another line can use its VLANs.
    line(SECOND, vni=70002)
    export()
    assert in_netbox.ends() == {("rhino", "cust0.100"), ("hippo", "cust0.100")}


def test_killed_worker_leads_to_no_duplicates(netbox: StandIn, in_netbox: InNetbox) -> None:
    line()
    export()
    # The portal has lost its rows about the export, and one end is missing.
    ExportedVll.objects.all().delete()
    (row,) = in_netbox.l2vpns()
    ends = list(in_netbox.api.vpn.l2vpn_terminations.filter(l2vpn_id=row["id"], ordering="id"))
    ends[-1].delete()
    netbox.requests.clear()
    export()
    assert netbox.writes == [("POST", "/api/vpn/l2vpn-terminations/")]
    assert in_netbox.ends() == {("rhino", "cust0.100"), ("hippo", "cust0.100")}


def test_conflicting_object_blocks_only_its_line(
    netbox: StandIn, in_netbox: InNetbox, seeded: NetboxWriter
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
    # After an operator has freed the object, the next full check uses it.
    api.vpn.l2vpns.delete([theirs])
    run()
    assert not ExportedVll.objects.filter(error__isnull=False).exists()
    over(Vll.objects.get(pk=FIRST))
    export()
    # A person created the interface, so the portal does not remove it.
    assert in_netbox.children() == {"rhino:cust0.100", "rhino:cust0.200", "hippo:cust0.200"}
