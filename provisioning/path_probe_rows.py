"""Probes in a router's intent: ends without an access."""

from dataclasses import dataclass

from portal.allocation.vni_leases import PROBE_VNI
from portal.core.network.encapsulations import Transport
from portal.core.network.required_mtu import MAX_FRAME
from portal.inventory.models import Router
from portal.vll.models import TunnelPath, VllEnd
from portal.vll.operations.path_probes import probes_on
from provisioning.intent_document import EndKey, IntendedEnd, end_members


@dataclass(frozen=True, slots=True)
class ProbeRows:
    """The wanted probes on a router, and the unwanted probes whose removal the router has not confirmed."""

    present: tuple[IntendedEnd, ...]
    removed: tuple[EndKey, ...]


def probe_rows(router: Router) -> ProbeRows:
    """Return the probes on a router.

    ``vll`` is the id of the path. Side "a" is the side of the path's ``a_router``.
    """
    paths = list(probes_on(router))
    return ProbeRows(
        present=tuple(_row(path, path.side_of(router.pk)) for path in paths if path.probe_transport),
        removed=tuple(
            key for path in paths if not path.probe_transport and (key := _unconfirmed(path, router))
        ),
    )


def unconfirmed_probes(router: Router) -> frozenset[EndKey]:
    """Return the probes that this router has not confirmed. Every document must contain them until then."""
    return frozenset(key for path in probes_on(router) if (key := _unconfirmed(path, router)))


def _unconfirmed(path: TunnelPath, router: Router) -> EndKey | None:
    side, present = path.side_of(router.pk), bool(path.probe_transport)
    wanted = VllEnd.Status.TESTING if present else VllEnd.Status.REMOVED
    if path.answer(side) == (wanted, path.probe_revision):
        return None
    return EndKey(path.pk, side, path.probe_revision, present=present)


def _row(path: TunnelPath, side: str) -> IntendedEnd:
    transport = Transport(path.probe_transport)
    far = "z" if side == "a" else "a"
    members = end_members(
        admin_up=True,
        frame=MAX_FRAME,
        access=None,
        transport={
            "encapsulation": transport.encapsulation.value,
            "family": transport.family,
            "local": path.router(side).loopback(path.family),
            "remote": path.router(far).loopback(path.family),
            "vni": PROBE_VNI,
        },
        table=path.router(side).underlay_table,
        testing=True,
    )
    return IntendedEnd(
        vll=path.pk,
        side=side,
        revision=path.probe_revision,
        wanted_present=True,
        confirmed_removed=False,
        members=members,
    )
