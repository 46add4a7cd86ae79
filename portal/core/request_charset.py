"""Requests whose texts are UTF-8, as every page and every answer of ours is."""

from typing import Any

from django.core.handlers.wsgi import WSGIRequest
from django.utils.http import parse_header_parameters


class Utf8Request(WSGIRequest):
    """Django decodes queries and forms as the header's ``charset`` says, be it ``rot13`` or ``utf-7``.

    The first is no encoding of text and an error before any view; the second makes halves of surrogate
    pairs, which PostgreSQL has in no text.
    """

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        try:
            self.content_type, self.content_params = parse_header_parameters(meta.get("CONTENT_TYPE", ""))
        except ValueError:
            # A parameter of RFC 2231 in an encoding that nobody knows: no type that any view takes.
            self.content_type, self.content_params = "", {}
