"""An import of 5,000 interfaces: in pages, in little memory, and with visible progress."""

import json
import tracemalloc
from collections.abc import Callable

import pytest

from portal.netbox_sync.client import Client, configuration
from portal.netbox_sync.import_mapping import wanted
from portal.netbox_sync.netbox_reader import read
from tests.integration.netbox.seeded import UNI
from tests.integration.netbox.stand_in import Answer, Request, stand_in_netbox

INTERFACES = 5000
DEVICES = 250
MIB = 1024 * 1024


def large(request: Request) -> Answer:
    """Return 250 routers with 20 ports each, with all the fields that NetBox writes."""
    query = dict(request.query)
    rows: list[dict[str, object]] = []
    after, size = int(query.get("id__gt", 0)), int(query.get("limit", 50))
    if request.path == "/api/status/":
        return Answer(200, json.dumps({"netbox-version": "4.4.10"}).encode())
    if request.path == "/api/dcim/devices/":
        rows = [
            {
                "id": n,
                "name": f"r{n}",
                "site": {"id": 1, "name": "Bern"},
                "primary_ip4": None,
                "primary_ip6": None,
            }
            for n in range(1, DEVICES + 1)
        ]
    elif request.path == "/api/dcim/interfaces/" and query.get("kind") == "physical":
        devices = sorted(int(value) for name, value in request.query if name == "device_id")
        per = INTERFACES // DEVICES
        rows = [_interface(device, number) for device in devices for number in range(per)]
    rows = [row for row in rows if int(str(row["id"])) > after]
    page = {"count": len(rows), "next": None, "previous": None, "results": rows[:size]}
    return Answer(200, json.dumps(page).encode())


def _interface(device: int, number: int) -> dict[str, object]:
    nested = {"id": device, "url": f"http://netbox.invalid/api/dcim/devices/{device}/", "name": f"r{device}"}
    return {
        "id": device * 100 + number,
        "device": {**nested, "display": f"r{device}", "description": "x" * 200},
        "name": f"port{number}",
        "type": {"value": "10gbase-x-sfpp", "label": "SFP+ (10GE)"},
        "mtu": 9000,
        "speed": None,
        "lag": None,
        "tags": [{"id": 1, "name": UNI, "slug": UNI, "url": "http://netbox.invalid/api/extras/tags/1/"}],
        "description": "A port",
        "connected_endpoints": None,
        "connected_endpoints_type": None,
        "connected_endpoints_reachable": None,
        "custom_fields": {f"field{n}": "y" * 100 for n in range(10)},
    }


def test_import_of_5000_interfaces_needs_little_memory_and_reports_progress(
    configured: Callable[..., None],
) -> None:
    progress_reports: list[tuple[str, int, int | None]] = []
    with stand_in_netbox(large) as stand_in:
        configured(stand_in.url)
        at = configuration()
        assert at is not None
        client = Client(at)
        tracemalloc.start()
        try:
            objects = read(client, at, lambda *progress: progress_reports.append(progress))
            remaining, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        pages = sum(each.path == "/api/dcim/interfaces/" for each in stand_in.requests)
    assert len(objects.interfaces) == INTERFACES
    assert len(wanted(objects, at).rows["port"]) == INTERFACES
    # The full JSON is 10 MiB and several times larger as objects; only one page of it may be in memory.
    assert peak - remaining < 12 * MIB
    assert remaining < 8 * MIB
    assert pages >= INTERFACES / at.page
    assert [done for phase, done, _ in progress_reports if phase == "interfaces"] == list(
        range(1, INTERFACES + 1)
    )


@pytest.mark.django_db
def test_large_import_stores_its_progress(
    configured: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from portal.core import clock
    from portal.netbox_sync import sync_run
    from portal.netbox_sync.models import NetboxRun
    from portal.netbox_sync.sync_run import sync_due

    monkeypatch.setattr(sync_run, "_EVERY_S", 0.0)
    stored: set[tuple[str, int]] = set()
    save = NetboxRun.save

    def store(self: NetboxRun, **options: object) -> None:
        stored.add((self.phase, self.done))
        save(self, **options)

    monkeypatch.setattr(NetboxRun, "save", store)
    monkeypatch.setattr(f"{__name__}.DEVICES", 3)
    monkeypatch.setattr(f"{__name__}.INTERFACES", 30)
    with stand_in_netbox(large) as stand_in:
        configured(stand_in.url)
        sync_due(now=clock.now())
    run = NetboxRun.objects.get()
    assert (run.error, run.counts["port"]) == (None, 30)
    assert {("interfaces", 30), ("changes", 34)} <= stored
