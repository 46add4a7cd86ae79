"""Failures to read or write NetBox. ``user_messages`` has their sentences."""

from typing import Any


class Failure(Exception):
    """A failure. ``code`` selects the sentence in ``user_messages``; ``facts`` fill it."""

    def __init__(self, code: str, **facts: Any) -> None:
        super().__init__(code, facts)
        self.code, self.facts = code, facts

    @property
    def record(self) -> dict[str, Any]:
        """Return the form for database rows, which ``user_messages`` reads: {"code", "facts"}."""
        return {"code": self.code, "facts": self.facts}


class CannotExport(Failure):
    """An obstacle that keeps one line out of NetBox."""


class NetboxError(Failure):
    """A failure of NetBox as a whole. ``retry_after_s``: from NetBox's response, if it has one."""

    code = "away"

    def __init__(self, *, retry_after_s: float | None = None, **facts: Any) -> None:
        super().__init__(self.code, **facts)
        self.retry_after_s = retry_after_s


class NetboxAway(NetboxError):
    """No response: connection refused or dropped, timeout, or an untrusted certificate."""


class NetboxBroken(NetboxError):
    """A response with status 5xx."""

    code = "broken"


class NetboxBusy(NetboxError):
    """A response with status 429."""

    code = "busy"


class NetboxNonsense(NetboxError):
    """A response that is not NetBox's: not JSON, of another shape, or too large."""

    code = "nonsense"


class NetboxTooOld(NetboxError):
    """A NetBox release before 4.2."""

    code = "too_old"


class TokenRefused(NetboxError):
    """A response with status 401, or 403 because the token is unknown, expired or not valid for this
    address.
    """

    code = "token_refused"


class NotPermitted(NetboxError):
    """A response with status 403: the token is valid and lacks the permission."""

    code = "not_permitted"


class NetboxRefused(NetboxError):
    """A response with status 4xx about the request: only that object is at fault."""

    code = "refused"
