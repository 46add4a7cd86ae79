"""The state of the synchronization with NetBox for people: its figures, and sentences about its results.

Pages, alarms, the API and the command use it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.netbox_sync.client import configuration
from portal.netbox_sync.errors import SENTENCES
from portal.netbox_sync.line_export import lines_due
from portal.netbox_sync.models import ExportedVll, NetboxRun, NetboxState
from portal.netbox_sync.sync_run import stale_after

# Findings of an import, by code.
_FINDINGS = {
    "router_name": _(
        "Its name cannot be a router's name: 1 to 63 of a–z, 0–9 and hyphens. Rename the device, or leave "
        "it out."
    ),
    "not_plain_text": _(
        "Its name contains invisible characters that change how text is shown. This {what} is not "
        "imported: type its name again in NetBox."
    ),
    "duplicate": _(
        "Several objects in NetBox match this {what}. None is imported: give each a different name."
    ),
    "address_twice": _("{address} is the loopback of two routers. Neither gets it."),
    "two_addresses": _(
        "{interface} has more than one address of a family: {addresses}. The portal does not guess"
        " where tunnels end: leave only one address."
    ),
    "no_loopback": _("It has no address on {interface}, so no tunnel can end on it."),
    "interface_name": _(
        "No VPP interface can have that name: 1 to 63 visible ASCII characters. Rename it, or leave it out."
    ),
    "cable_within_router": _("The cable leads back to the same router: it is not a backbone link."),
    "cable_not_connected": _(
        "The cable, or part of it, is not marked as connected. Until it is marked, the link is left out."
    ),
    "cable_to_many": _("The cable has {count} far ends, but a link has exactly one. The cable is left out."),
    "interface_in_two_links": _(
        "It would belong to more than one link. None of them is imported: correct the cables or the bundle."
    ),
    "link_mtu_missing": _(
        "It has no MTU in NetBox. Until it has one, or an agent reports it, orders over this link are"
        " refused."
    ),
    "port_mtu_missing": _(
        "It has no MTU in NetBox. Until it has one, the port is not created, or keeps what it has."
    ),
    "mtu_impossible": _("An MTU of {mtu} is not possible here. It counts as unknown."),
    "speed_missing": _(
        "The interface has no speed in NetBox, and its type implies none. The port is not created"
        " until it has one."
    ),
    "two_uses": _(
        "It is tagged as a port twice, or is also cabled as a link. An interface has only one use."
    ),
    "kept": _("{field} was edited here: {ours} is kept. NetBox has {theirs}."),
    "renamed": _(
        "The name in NetBox is {name} now. A {what} keeps its name here permanently; the rest follows NetBox."
    ),
    "gone": _(
        "NetBox no longer shows this {what}. It stays here until somebody removes it: the token may "
        "simply not be allowed to see it."
    ),
    "retired_here": _("This {what} is retired here, but NetBox still shows it."),
    "refused_here": _("This {what} could not be imported. {why}"),
    "depends": _("This {what} could not be imported, because {on} was not."),
}
KIND_NAMES = {
    "site": _("site"),
    "customer": _("customer"),
    "router": _("router"),
    "port": _("port"),
    "link": _("link"),
}
PHASES = {
    "devices": _("Reading devices"),
    "interfaces": _("Reading interfaces"),
    "addresses": _("Reading addresses"),
    "tenants": _("Reading tenants"),
    "changes": _("Importing changes"),
    "lines": _("Writing lines"),
}


def error_sentence(error: Mapping[str, Any]) -> str:
    """Return the sentence for a failure, given as ``{"code", "facts"}``."""
    return _sentence(SENTENCES, error)


def finding_sentence(finding: Mapping[str, Any]) -> str:
    """Return the sentence for a finding, given as ``{"code", "subject", "facts"}``, without the subject."""
    return _sentence(_FINDINGS, finding)


def _sentence(texts: Mapping[str, Any], failure: Mapping[str, Any]) -> str:
    code = str(failure.get("code", ""))
    return texts[code].format_map(_Facts(failure.get("facts", {}))) if code in texts else code


class _Facts(dict[str, Any]):
    """The facts for a sentence. A missing fact, which an older release did not record, becomes a dash."""

    def __missing__(self, name: str) -> str:
        return "–"

    def __getitem__(self, name: str) -> str:
        value = super().__getitem__(name)
        if name == "what" and value in KIND_NAMES:
            return str(KIND_NAMES[value])
        if name == "detail" and value:
            # The detail is a text of NetBox, and another sentence follows it. So it must end with a period.
            return str(value) if str(value).rstrip().endswith((".", "!", "?")) else f"{value}."
        return "–" if value in (None, "") else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxStatus:
    """The state of the synchronization.

    ``stale``: whether the last complete import is older than two intervals. ``waiting``: the number of lines
    that are due for export. ``in_error``: the number of lines that could not be exported. ``error``: the
    sentence of the current failure, or "".
    """

    url: str
    state: NetboxState
    stale: bool
    waiting: int
    in_error: int
    error: str


def netbox_status(now: datetime) -> NetboxStatus | None:
    """Return the state; None if no NetBox is configured. This function does not write to the database."""
    at = configuration()
    if at is None:
        return None
    state = NetboxState.objects.filter(pk=1).first() or NetboxState(pk=1)
    known_at = state.imported_at
    return NetboxStatus(
        url=at.url,
        state=state,
        stale=known_at is None or known_at < now - stale_after(at),
        waiting=lines_due().count(),
        in_error=ExportedVll.objects.filter(error__isnull=False).count(),
        error=error_sentence(state.error) if state.error else "",
    )


def last_complete_run() -> NetboxRun | None:
    """Return the last run that ended without an error. Its findings are the current findings."""
    return NetboxRun.objects.filter(finished_at__isnull=False, error__isnull=True).order_by("-id").first()


def lines_in_error() -> Any:
    """Return the lines that could not be exported, with the reasons."""
    return ExportedVll.objects.filter(error__isnull=False).select_related("vll__customer").order_by("vll_id")
