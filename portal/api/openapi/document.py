"""The whole schema, made once per process."""

from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator

RULES = (
    "Sign requests with an API token: `Authorization: Bearer ll_…`.",
    "An order is answered with 202: the order is then a fact, and `Location` is where to watch it.",
    "Every error is a problem document (RFC 9457) with what, why, what to do next and a request id;"
    " its `type` leads to what it means.",
    "Send an `Idempotency-Key` with every write, and repeat it freely: it is done once.",
    "Reads of one object carry an `ETag`; changes want it back as `If-Match`.",
    "Lists are paged by key: follow `next` until it is null. Filters that do not exist are refused.",
    "Each token may ask so much per minute; 429 says in `Retry-After` when to go on.",
    "Texts are plain: control characters and such as turn the direction of writing are refused.",
    "Sizes are in bytes, rates in bit/s, times in UTC.",
)
DESCRIPTION = "Order, change and watch virtual leased lines.\n\n" + "\n".join(f"* {rule}" for rule in RULES)


class Generator(SchemaGenerator):
    """drf-spectacular's, with the ground rules as the document's description."""

    def get_schema(self, request: Any = None, public: bool = False) -> dict[str, Any]:
        made: dict[str, Any] = super().get_schema(request, public)
        made["info"]["description"] = DESCRIPTION
        return made


@cache
def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document of ``/api/v1``."""
    return Generator().get_schema(public=True)
