"""The complete schema. Each process generates it once."""

from functools import cache
from typing import Any

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext_noop as _
from drf_spectacular.generators import SchemaGenerator

# Pairs of title and text, in English. The page translates both.
RULES = (
    (
        _("Authentication"),
        _(
            "Send an API token with every request: `Authorization: Bearer ll_…`. It acts for the user "
            "who created it, within its scopes. Every token may read. Writing needs the scope `order` or "
            "`noc`; changing a team or a webhook needs the scope `team` or `webhooks`."
        ),
    ),
    (
        _("Errors"),
        _(
            "Every 4xx and 5xx is a problem document (RFC 9457): what went wrong, why, what to do next,"
            " and a request id to quote. Its `type` is the address of an explanation; the part after the"
            " `#` never changes."
        ),
    ),
    (
        _("Pagination"),
        _(
            "The response of a list has `results` and `next`: request the address in `next` until it is"
            " null. Unknown filters are refused."
        ),
    ),
    (
        _("Idempotency"),
        _(
            "Send an `Idempotency-Key`, such as a UUID, with a write. If the response is lost, send the"
            " same request with the same key: it is done once, and for 24 hours you get the first response"
            " again."
        ),
    ),
    (
        _("ETags"),
        _(
            "Responses with one object have an `ETag`. Send it as `If-Match` with a change: if somebody "
            "else has changed the object since, the response is 412. Send it as `If-None-Match` with GET: "
            "if the object is unchanged, the response is 304 without a body."
        ),
    ),
    (
        _("Rate limits"),
        _(
            "The number of requests per minute is limited for each token, and for all tokens of a user"
            " together. Above the limit the response is 429, with the seconds to wait in `Retry-After`."
        ),
    ),
    (
        _("Orders"),
        _(
            "The response to an order is 202: the portal has accepted it and carries it out afterwards. "
            "`Location` is the address to follow it at."
        ),
    ),
    (
        _("Values"),
        _(
            "Sizes are in bytes, rates in bit/s, times in UTC. Unknown members and control characters in"
            " texts are refused."
        ),
    ),
)
DESCRIPTION = "Order, change and watch virtual leased lines.\n\n" + "\n".join(
    f"* **{title}.** {text}" for title, text in RULES
)


class Generator(SchemaGenerator):
    """drf-spectacular's generator, which adds the rules for all requests to the document's description."""

    def get_schema(self, request: Any = None, public: bool = False) -> dict[str, Any]:
        schema: dict[str, Any] = super().get_schema(request, public)
        schema["info"]["description"] = DESCRIPTION
        return schema


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of ``/api/v1``."""
    with translation.override(settings.LANGUAGE_CODE):  # readers of all languages share the cached document
        return Generator().get_schema(public=True)
