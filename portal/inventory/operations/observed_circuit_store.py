"""Storage of foreign circuits that agents report: only differences are written."""

from collections.abc import Iterable
from typing import Any

from msgspec import to_builtins

from portal.inventory.models import ObservedCircuit, Router
from portal.inventory.reported_observation import CircuitReport, TunnelReport

_COLUMNS = ("encapsulation", "local", "remote", "key", "sides")


def circuits_store(router: Router, circuits: Iterable[CircuitReport]) -> None:
    """Store the reported circuits, and delete those that are no longer reported."""
    reported = {(row.near, row.far): row for row in (_row(router, circuit) for circuit in circuits)}
    known = {(row.near, row.far): row for row in ObservedCircuit.objects.filter(router=router)}
    gone = [row.pk for place, row in known.items() if place not in reported]
    ObservedCircuit.objects.filter(pk__in=gone).delete()
    changed = []
    for place, row in reported.items():
        old = known.get(place)
        if old is not None and _columns(old) != _columns(row):
            row.pk = old.pk
            changed.append(row)
    ObservedCircuit.objects.bulk_update(changed, _COLUMNS, batch_size=500)
    new = [row for place, row in reported.items() if place not in known]
    ObservedCircuit.objects.bulk_create(new, batch_size=500)


def _row(router: Router, circuit: CircuitReport) -> ObservedCircuit:
    row = ObservedCircuit(
        router=router,
        near=circuit.near.interface,
        far="" if circuit.far is None else circuit.far.interface,
        sides=to_builtins(circuit, enc_hook=str),
    )
    tunnel = _tunnel(circuit)
    if tunnel is not None:
        row.encapsulation, row.local, row.remote = tunnel.encapsulation, tunnel.local, tunnel.remote
        row.key = tunnel.vni or tunnel.gre_key or 0
    return row


def _tunnel(circuit: CircuitReport) -> TunnelReport | None:
    """Return the only tunnel of a circuit; None for a circuit within the router or between two tunnels."""
    tunnels = [side.tunnel for side in (circuit.near, circuit.far) if side is not None and side.tunnel]
    return tunnels[0] if len(tunnels) == 1 else None


def _columns(row: ObservedCircuit) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in _COLUMNS)
