"""Sentences about findings, failures and progress, and the names of kinds of inventory rows."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

# Failures of NetBox, of runs and of single lines, by code.
_ERRORS = {
    "away": gettext_noop(
        "NetBox does not answer ({what}): {why}. Nothing is lost: this is retried automatically. "
        "Check that NETBOX_URL is right and reachable from the worker."
    ),
    "broken": gettext_noop(
        "NetBox answered {what} with {status}. This is retried automatically; see NetBox's own log"
        " for details."
    ),
    "busy": gettext_noop(
        "NetBox limits the number of requests ({what}, 429). This is retried automatically."
    ),
    "nonsense": gettext_noop(
        "The response to {what} is not from NetBox: {why}. Check that NETBOX_URL leads to NetBox"
        " itself, not to a login page or a proxy."
    ),
    "too_old": gettext_noop("NetBox {release} is too old: 4.2 is the oldest that is supported. Upgrade it."),
    "token_refused": gettext_noop(
        "NetBox does not accept the token ({status}): {detail} Set NETBOX_TOKEN to one that is "
        "enabled, has not expired and is allowed from this address."
    ),
    "not_permitted": gettext_noop(
        "NetBox does not let this token {method} {what}: {detail} Give its user that permission"
        " (docs/integrate/netbox.md lists all that are needed)."
    ),
    "refused": gettext_noop("NetBox refused {what} ({status}): {detail}"),
    "cut_off": gettext_noop(
        "It was interrupted because its worker was stopped. The next run continues where it left off."
    ),
    "not_allowed": gettext_noop(
        "{person} may no longer do this: the account is closed, or its role has changed. Request another run."
    ),
    "l2vpn_twice": gettext_noop(
        "Several L2VPNs (ids {ids}) carry this line's id. Clear the custom field of all but one."
    ),
    "interface_taken": gettext_noop(
        "The interface {interface} in NetBox belongs to {by} already. Free it there, then check again."
    ),
    "port_not_there": gettext_noop(
        "Port {port} is not in NetBox. Add its interface there, then check again."
    ),
}
# Findings of an import, by code.
_FINDINGS = {
    "router_name": gettext_noop(
        "Its name cannot be a router's name: 1 to 63 of a–z, 0–9 and hyphens. Rename the device, or leave "
        "it out."
    ),
    "not_plain_text": gettext_noop(
        "Its name contains invisible characters that change how text is shown. This {what} is not "
        "imported: type its name again in NetBox."
    ),
    "duplicate": gettext_noop(
        "Several objects in NetBox match this {what}. None is imported: give each a different name."
    ),
    "address_twice": gettext_noop("{address} is the loopback of two routers. Neither gets it."),
    "two_addresses": gettext_noop(
        "{interface} has more than one address of a family: {addresses}. The portal does not guess"
        " where tunnels end: leave only one address."
    ),
    "no_loopback": gettext_noop("It has no address on {interface}, so no tunnel can end on it."),
    "interface_name": gettext_noop(
        "No VPP interface can have that name: 1 to 63 visible ASCII characters. Rename it, or leave it out."
    ),
    "cable_within_router": gettext_noop(
        "The cable leads back to the same router: it is not a backbone link."
    ),
    "cable_not_connected": gettext_noop(
        "The cable, or part of it, is not marked as connected. Until it is marked, the link is left out."
    ),
    "cable_to_many": gettext_noop(
        "The cable has {count} far ends, but a link has exactly one. The cable is left out."
    ),
    "interface_in_two_links": gettext_noop(
        "It would belong to more than one link. None of them is imported: correct the cables or the bundle."
    ),
    "link_mtu_missing": gettext_noop(
        "It has no MTU in NetBox. Until it has one, or an agent reports it, orders over this link are"
        " refused."
    ),
    "port_mtu_missing": gettext_noop(
        "It has no MTU in NetBox. Until it has one, the port is not created, or keeps what it has."
    ),
    "mtu_impossible": gettext_noop("An MTU of {mtu} is not possible here. It counts as unknown."),
    "speed_missing": gettext_noop(
        "The interface has no speed in NetBox, and its type implies none. The port is not created"
        " until it has one."
    ),
    "two_uses": gettext_noop(
        "It is tagged as a port twice, or is also cabled as a link. An interface has only one use."
    ),
    "kept": gettext_noop("{field} was edited here: {ours} is kept. NetBox has {theirs}."),
    "renamed": gettext_noop(
        "The name in NetBox is {name} now. A {what} keeps its name here permanently; the rest follows NetBox."
    ),
    "gone": gettext_noop(
        "NetBox no longer shows this {what}. It stays here until somebody removes it: the token may "
        "simply not be allowed to see it."
    ),
    "retired_here": gettext_noop("This {what} is retired here, but NetBox still shows it."),
    "refused_here": gettext_noop("This {what} could not be imported. {why}"),
    "depends": gettext_noop("This {what} could not be imported, because {on} was not."),
}
KIND_NAMES = {
    "site": gettext_lazy("site"),
    "customer": gettext_lazy("customer"),
    "router": gettext_lazy("router"),
    "port": gettext_lazy("port"),
    "link": gettext_lazy("link"),
}
PHASES = {
    "devices": gettext_lazy("Reading devices"),
    "interfaces": gettext_lazy("Reading interfaces"),
    "addresses": gettext_lazy("Reading addresses"),
    "tenants": gettext_lazy("Reading tenants"),
    "changes": gettext_lazy("Importing changes"),
    "lines": gettext_lazy("Writing lines"),
}


def error_sentence(error: Mapping[str, Any]) -> str:
    """Return the sentence for a failure, given as ``{"code", "facts"}``."""
    return _sentence(_ERRORS, error)


def finding_sentence(finding: Mapping[str, Any]) -> str:
    """Return the sentence for a finding, given as ``{"code", "subject", "facts"}``, without the subject."""
    return _sentence(_FINDINGS, finding)


def _sentence(texts: Mapping[str, str], failure: Mapping[str, Any]) -> str:
    code = str(failure.get("code", ""))
    return _(texts[code]).format_map(_Facts(failure.get("facts", {}))) if code in texts else code


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
