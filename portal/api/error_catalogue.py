"""Every code that a problem document may carry: its status, what it means, and its facts."""

from dataclasses import dataclass

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from portal.core.errors import TEXTS, Conflict, DomainError, TooSoon, errors_with_sentences
from portal.vll.errors import NotAllowedToOrder, NotForYouToForce

# Status and title of what is no DomainError.
KINDS = {
    "authentication-failed": (401, _("The API token is unknown, expired or revoked")),
    "bad-request": (400, _("The address or the headers of the request are not acceptable")),
    "bad-signature": (403, _("A message is not signed as NetBox signs it")),
    "busy": (429, _("Many routers come back at once")),
    "export-running": (429, _("Another export is being sent")),
    "idempotency-key-in-flight": (409, _("A request with this Idempotency-Key is being worked on")),
    "idempotency-key-missing": (400, _("This portal requires an Idempotency-Key with every POST")),
    "idempotency-key-reused": (422, _("This Idempotency-Key came with another request before")),
    "internal": (500, _("The portal made a mistake")),
    "invalid": (422, _("Members or parameters cannot be accepted")),
    "invalid-report": (422, _("Members of an agent's report cannot be accepted")),
    "malformed-idempotency-key": (400, _("The Idempotency-Key is not 1 to 255 visible ASCII characters")),
    "malformed-json": (422, _("An agent's report is not JSON")),
    "method-not-allowed": (405, _("This method is not offered here")),
    "not-acceptable": (406, _("No media type of the Accept header is offered here")),
    "not-authenticated": (401, _("No API token was sent")),
    "not-found": (404, _("There is no such address or object, or you may not see it")),
    "not-stored": (412, _("An agent's report refers to a list that has to be sent whole")),
    "parse-error": (400, _("The body cannot be read")),
    "permission-denied": (403, _("You may not do this")),
    "precondition-failed": (412, _("It has changed since you read it")),
    "precondition-required": (428, _("If-Match is missing")),
    "throttled": (429, _("Too many requests in this minute")),
    "too-large": (413, _("The body is too large")),
    "unavailable": (503, _("The database does not answer")),
    "unsupported-media-type": (415, _("The body is not of a media type that is read here")),
    "wrong-role": (403, _("The client certificate is not one of our routers'")),
}


def status_of(kind: type[DomainError]) -> int:
    """The status that a refusal is answered with."""
    if issubclass(kind, NotAllowedToOrder | NotForYouToForce):
        return 403
    if issubclass(kind, Conflict):
        return 409
    return 429 if issubclass(kind, TooSoon) else 422


@dataclass(frozen=True, slots=True)
class Entry:
    """``facts``: the names of those that come with it; ``meaning`` has some of them in braces."""

    code: str
    status: int
    meaning: str
    facts: list[str]


def entries() -> list[Entry]:
    """All of them, by code."""
    found = [Entry(code, status, f"{gettext(title)}.", []) for code, (status, title) in KINDS.items()]
    for kind in errors_with_sentences():
        meaning = gettext(TEXTS[kind]) if kind in TEXTS else " ".join((kind.__doc__ or "").split())
        found.append(Entry(kind.code, status_of(kind), meaning, kind.fact_names()))
    return sorted(found, key=lambda entry: entry.code)


def markdown() -> str:
    """``docs/reference/errors.md``."""
    rows = (f"| `{e.code}` | {e.status} | {e.meaning} | {', '.join(e.facts)} |\n" for e in entries())
    return _HEAD + "".join(rows)


_HEAD = """# Errors

Made by `make openapi`. The `type` of each problem document (RFC 9457) leads to its entry in the portal:
`/api/docs/errors/#<code>`. Programs compare what follows the `#`. Names in braces are facts, which come in
`errors`; sizes are in bytes, rates in bit/s.

| code | status | means | facts |
| --- | --- | --- | --- |
"""
