"""The time to import tables, from the file to the last commit. One table has 10,000 sites; the other orders
1,000 VLLs.
"""

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from bench.database import migrated
from bench.figures import Figure
from bench.orders import small_isp_with_pairs
from bench.sizes import sized

ROWS, LINES = sized(10_000, smallest=50), sized(1_000, smallest=20)


def measure() -> Iterator[Figure]:
    with migrated():
        _, pairs = small_isp_with_pairs()
        sites = _table("name,latitude,longitude", (f"Site {n},47.1,8.{n:05}" for n in range(ROWS)))
        note = f"{ROWS} rows, one worker, each batch with a commit that reaches the disk"
        staged, checked, imported = _times("sites", sites)
        yield Figure(f"import_{ROWS}_stage_ms", staged * 1000, "ms", f"{ROWS} sites, read and kept")
        yield Figure(f"import_{ROWS}_check_ms", checked * 1000, "ms", "sites; undone batch by batch")
        yield Figure(f"import_{ROWS}_ms", imported * 1000, "ms", f"sites; {note}")
        header = "description,a_port,a_outer_vlan,z_port,z_outer_vlan,svc_mtu,cir_bps"
        _, checked, imported = _times("lines", _table(header, _lines(pairs)))
        yield Figure("import_line_check_ms", checked / LINES * 1000, "ms", f"of each of {LINES} rows")
        yield Figure("import_line_ms", imported / LINES * 1000, "ms", f"of each of {LINES} rows, ordered")


def _table(header: str, rows: Iterator[str]) -> bytes:
    return "\n".join([header, *rows, ""]).encode()


def _lines(pairs: list[tuple[int, int]]) -> Iterator[str]:
    from portal.inventory.models import Port, Router

    Router.objects.update(cores=1024)
    names = {port.pk: str(port) for port in Port.objects.select_related("router")}
    for n in range(LINES):
        a, z = pairs[n % len(pairs)]
        vlan = 10 + n // len(pairs)
        yield f"Line {n},{names[a]},{vlan},{names[z]},{vlan},1500,1000000"


def _times(kind: str, table: bytes) -> tuple[float, float, float]:
    """Return the seconds of staging, of checking and of importing. Fails unless all rows are imported."""
    from portal.accounts.models import User
    from portal.core.clock import now
    from portal.imports.kinds import KINDS
    from portal.imports.kinds.kind import Actor
    from portal.imports.models import Import
    from portal.imports.operations import batch_run, import_begin
    from portal.imports.tables import import_stage
    from portal.inventory.models import ObservedRouter

    user, _ = User.objects.get_or_create(username="nora", noc_role="noc")
    arguments: dict[str, Any] = {"kind": KINDS[kind], "file_name": "", "actor": Actor(user=user)}
    ObservedRouter.objects.update(reported_at=now())
    moments = [time.perf_counter()]
    this = import_stage(data=table, now=now(), **arguments)
    moments.append(time.perf_counter())
    for begin in (False, True):
        if begin:
            import_begin(this=this, actor=arguments["actor"], now=now())
        while batch_run(import_id=this.pk, now=now()):
            # No agents run here. Without this update, the routers would become silent during the import.
            ObservedRouter.objects.update(reported_at=now())
        moments.append(time.perf_counter())
    done = Import.objects.get(pk=this.pk)
    assert done.made == done.total, done.rows.exclude(refusals=[]).values("line", "refusals").first()
    staged, checked, imported = (after - before for before, after in pairwise(moments))
    return staged, checked, imported
