"""Requests whose text is UTF-8, like all pages and responses of the portal."""

from typing import Any

from django.core.handlers.wsgi import WSGIRequest
from django.utils.http import parse_header_parameters


class Utf8Request(WSGIRequest):
    """A request that ignores the ``charset`` of its header; Django would decode by ``rot13`` or ``utf-7``.

    ``rot13`` is no text encoding and causes an error before any view. ``utf-7`` produces halves of surrogate
    pairs, which PostgreSQL does not store in text.
    """

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        try:
            self.content_type, self.content_params = parse_header_parameters(meta.get("CONTENT_TYPE", ""))
        except ValueError:
            # A parameter of RFC 2231 has an unknown encoding. No view accepts the empty type.
            self.content_type, self.content_params = "", {}
