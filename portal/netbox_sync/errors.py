"""Failures of requests to NetBox. Their sentences for users are in ``user_messages``."""

from typing import Any


class Failure(Exception):
    """A failure. ``code`` selects the sentence in ``user_messages``. ``facts``: the values in the
    sentence.
    """

    def __init__(self, code: str, **facts: Any) -> None:
        super().__init__(code, facts)
        self.code, self.facts = code, facts

    @property
    def record(self) -> dict[str, Any]:
        """The failure as JSON for database rows: {"code", "facts"}. ``user_messages`` reads it."""
        return {"code": self.code, "facts": self.facts}


class CannotExport(Failure):
    """The reason why one line cannot be exported to NetBox."""


class NetboxError(Failure):
    """A failure of a request to NetBox.

    ``retry_after_s``: the seconds in the response's header Retry-After; None without the header.
    """

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
    """A response that NetBox would not send: not JSON, with an unexpected structure, or too large."""

    code = "nonsense"


class NetboxTooOld(NetboxError):
    """A NetBox release before 4.2."""

    code = "too_old"


class TokenRefused(NetboxError):
    """A response with status 401, or with status 403 and a message about the token.

    The token is unknown, expired, or not valid for the portal's IP address.
    """

    code = "token_refused"


class NotPermitted(NetboxError):
    """A response with status 403: the token is valid, but does not have the permission."""

    code = "not_permitted"


class NetboxRefused(NetboxError):
    """A response with any other status 4xx. The failure concerns only the object in the request, and not
    NetBox as a whole.
    """

    code = "refused"
