"""Failures of requests to NetBox, of runs, and of the export of single lines."""

from typing import Any

from django.utils.translation import gettext_lazy as _

# The sentence for users of each failure, by its code.
SENTENCES = {
    "away": _(
        "NetBox does not answer ({what}): {why}. Nothing is lost: this is retried automatically. "
        "Check that NETBOX_URL is right and reachable from the worker."
    ),
    "broken": _(
        "NetBox answered {what} with {status}. This is retried automatically; see NetBox's own log"
        " for details."
    ),
    "busy": _("NetBox limits the number of requests ({what}, 429). This is retried automatically."),
    "nonsense": _(
        "The response to {what} is not from NetBox: {why}. Check that NETBOX_URL leads to NetBox"
        " itself, not to a login page or a proxy."
    ),
    "too_old": _("NetBox {release} is too old: 4.2 is the oldest that is supported. Upgrade it."),
    "token_refused": _(
        "NetBox does not accept the token ({status}): {detail} Set NETBOX_TOKEN to one that is "
        "enabled, has not expired and is allowed from this address."
    ),
    "not_permitted": _(
        "NetBox does not let this token {method} {what}: {detail} Give its user that permission"
        " (docs/integrate/netbox.md lists all that are needed)."
    ),
    "refused": _("NetBox refused {what} ({status}): {detail}"),
    "cut_off": _(
        "It was interrupted because its worker was stopped. The next run continues where it left off."
    ),
    "not_allowed": _(
        "{person} may no longer do this: the account is closed, or its role has changed. Request another run."
    ),
    "l2vpn_twice": _(
        "Several L2VPNs (ids {ids}) carry this line's id. Clear the custom field of all but one."
    ),
    "interface_taken": _(
        "The interface {interface} in NetBox belongs to {by} already. Free it there, then check again."
    ),
    "port_not_there": _("Port {port} is not in NetBox. Add its interface there, then check again."),
}


class Failure(Exception):
    """A failure. ``code``: a key of SENTENCES. ``facts``: the values in the sentence.

    ``retry_after_s``: the seconds in the header Retry-After of NetBox's response; None without the header.
    """

    def __init__(self, code: str, *, retry_after_s: float | None = None, **facts: Any) -> None:
        super().__init__(code, facts)
        self.code, self.facts, self.retry_after_s = code, facts, retry_after_s

    @property
    def record(self) -> dict[str, Any]:
        """The failure as JSON for database rows: {"code", "facts"}. ``netbox_status`` reads it."""
        return {"code": self.code, "facts": self.facts}


class CannotExport(Failure):
    """The reason why one line cannot be exported to NetBox."""


class NetboxError(Failure):
    """A failure of a request to NetBox."""


class NetboxRefused(NetboxError):
    """A response with a status 4xx that concerns only the object in the request."""
