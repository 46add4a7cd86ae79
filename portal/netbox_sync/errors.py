"""Failures to read or write NetBox. The words for them are in ``error_messages``."""

from typing import Any


class Failure(Exception):
    """``code`` names the sentence in ``error_messages``, ``facts`` fill it."""

    def __init__(self, code: str, **facts: Any) -> None:
        super().__init__(code, facts)
        self.code, self.facts = code, facts

    @property
    def told(self) -> dict[str, Any]:
        """As rows keep it and ``error_messages`` reads it: {"code", "facts"}."""
        return {"code": self.code, "facts": self.facts}


class CannotExport(Failure):
    """The obstacle that keeps one line from NetBox."""


class NetboxError(Failure):
    """``retry_after_s`` where NetBox says so."""

    code = "away"

    def __init__(self, *, retry_after_s: float | None = None, **facts: Any) -> None:
        super().__init__(self.code, **facts)
        self.retry_after_s = retry_after_s


class NetboxAway(NetboxError):
    """No answer: refused, dropped, slow, or a certificate that is not trusted."""


class NetboxBroken(NetboxError):
    """An answer of 5xx."""

    code = "broken"


class NetboxBusy(NetboxError):
    """An answer of 429."""

    code = "busy"


class NetboxNonsense(NetboxError):
    """An answer that is no NetBox's: not JSON, not of its shape, or larger than any should be."""

    code = "nonsense"


class NetboxTooOld(NetboxError):
    """A release before 4.2."""

    code = "too_old"


class TokenRefused(NetboxError):
    """An answer of 401, or 403 because the token is unknown, expired or not for this address."""

    code = "token_refused"


class NotPermitted(NetboxError):
    """An answer of 403: the token is good, but may not do that."""

    code = "not_permitted"


class NetboxRefused(NetboxError):
    """An answer of 4xx about what was asked: only that object is at fault."""

    code = "refused"
