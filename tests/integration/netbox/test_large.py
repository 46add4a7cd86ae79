"""An import of 5,000 interfaces: in pages, in little memory, and with visible progress."""

import json
import tracemalloc
from collections.abc import Callable

import pytest

from portal.netbox_sync.client import Client
from portal.netbox_sync.configuration import configuration
from portal.netbox_sync.import_mapping import wanted
from portal.netbox_sync.netbox_reader import read
from tests.integration.netbox.seeded import UNI
from tests.integration.netbox.stand_in import Answer, Asked, stand_in_netbox

INTERFACES = 5000
DEVICES = 250
MIB = 1024 * 1024


def large(asked: Asked) -> Answer:
    """Return 250 routers with 20 ports each, with all the fields that NetBox writes."""
    query = dict(asked.query)
    rows: list[dict[str, object]] = []
    after, size = int(query.get("id__gt", 0)), int(query.get("limit", 50))
    if asked.path == "/api/status/":
        return Answer(200, json.dumps({"netbox-version": "4.4.10"}).encode())
    if asked.path == "/api/dcim/devices/":
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
    elif asked.path == "/api/dcim/interfaces/" and query.get("kind") == "physical":
        devices = sorted(int(value) for name, value in asked.query if name == "device_id")
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


def test_five_thousand_interfaces_in_little_memory_and_with_progress(configured: Callable[..., None]) -> None:
    told: list[tuple[str, int, int | None]] = []
    with stand_in_netbox(large) as stand_in:
        configured(stand_in.url)
        at = configuration()
        assert at is not None
        client = Client(at)
        tracemalloc.start()
        try:
            seen = read(client, at, lambda *progress: told.append(progress))
            held, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        pages = sum(each.path == "/api/dcim/interfaces/" for each in stand_in.asked)
    assert len(seen.interfaces) == INTERFACES
    assert len(wanted(seen, at).rows["port"]) == INTERFACES
    # The full JSON is 10 MiB, and several times that as objects; only one page of it may be in memory.
    assert peak - held < 12 * MIB
    assert held < 8 * MIB
    assert pages >= INTERFACES / at.page
    assert [done for phase, done, _ in told if phase == "interfaces"] == list(range(1, INTERFACES + 1))


@pytest.mark.django_db
def test_a_large_import_says_how_far_it_is(
    configured: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from portal.core import clock
    from portal.netbox_sync import run_queue
    from portal.netbox_sync.models import NetboxRun
    from portal.netbox_sync.sync_run import sync_due

    monkeypatch.setattr(run_queue, "_EVERY_S", 0.0)
    noted: set[tuple[str, int]] = set()
    save = NetboxRun.save

    def noting(self: NetboxRun, **options: object) -> None:
        noted.add((self.phase, self.done))
        save(self, **options)

    monkeypatch.setattr(NetboxRun, "save", noting)
    monkeypatch.setattr(f"{__name__}.DEVICES", 3)
    monkeypatch.setattr(f"{__name__}.INTERFACES", 30)
    with stand_in_netbox(large) as stand_in:
        configured(stand_in.url)
        sync_due(now=clock.now())
    run = NetboxRun.objects.get()
    assert (run.error, run.counts["port"]) == (None, 30)
    assert {("interfaces", 30), ("changes", 34)} <= noted
