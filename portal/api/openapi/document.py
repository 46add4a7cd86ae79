"""The whole schema, made once per process."""

from functools import cache
from typing import Any

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext_noop as _
from drf_spectacular.generators import SchemaGenerator

# Title and text. English; the page translates them.
RULES = (
    (
        _("Authentication"),
        _(
            "Send an API token with every request: `Authorization: Bearer ll_…`. It acts for the user "
            "who created it, within its scopes: every token reads, `order` and `noc` write, `team` "
            "and `webhooks` change those."
        ),
    ),
    (
        _("Errors"),
        _(
            "Every 4xx and 5xx is a problem document (RFC 9457): what went wrong, why, what to do next,"
            " and a request id to quote. Its `type` leads to the explanation; what follows its `#` never"
            " changes."
        ),
    ),
    (
        _("Pagination"),
        _(
            "A list answers with `results` and `next`: ask for the address in `next` until it is null. A"
            " filter that does not exist is refused."
        ),
    ),
    (
        _("Idempotency"),
        _(
            "Send an `Idempotency-Key`, such as a UUID, with a write. If the answer is lost, send the"
            " same request with the same key: it is done once, and you get the first answer again for 24"
            " hours."
        ),
    ),
    (
        _("ETags"),
        _(
            "Every object that you read carries an `ETag`. Send it back as `If-Match` with a change, "
            "which is refused with 412 if somebody else was quicker. With `If-None-Match` you do not "
            "download again what you already have."
        ),
    ),
    (
        _("Rate limits"),
        _(
            "Each token, and each user by all their tokens together, may send a number of requests a"
            " minute. Beyond that the answer is 429, and `Retry-After` says how many seconds to wait."
        ),
    ),
    (
        _("Orders"),
        _(
            "An order is answered with 202: it is accepted and carried out afterwards. `Location` is "
            "where to follow it."
        ),
    ),
    (
        _("Values"),
        _(
            "Sizes are in bytes, rates in bit/s, times in UTC. Members that are not documented are"
            " refused, and so are control characters in texts."
        ),
    ),
)
DESCRIPTION = "Order, change and watch virtual leased lines.\n\n" + "\n".join(
    f"* **{title}.** {text}" for title, text in RULES
)


class Generator(SchemaGenerator):
    """drf-spectacular's, with the rules of every request as the document's description."""

    def get_schema(self, request: Any = None, public: bool = False) -> dict[str, Any]:
        made: dict[str, Any] = super().get_schema(request, public)
        made["info"]["description"] = DESCRIPTION
        return made


@cache
def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document of ``/api/v1``."""
    with translation.override(settings.LANGUAGE_CODE):  # kept for all readers
        return Generator().get_schema(public=True)
