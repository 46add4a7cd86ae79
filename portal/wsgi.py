"""The WSGI application for people and API clients."""

import os
from importlib import import_module
from typing import Any

from django.core.handlers.wsgi import WSGIRequest
from django.core.wsgi import get_wsgi_application
from django.utils.http import parse_header_parameters


class Utf8Request(WSGIRequest):
    """A request that ignores the ``charset`` of its Content-Type header.

    Django would use any codec of Python. ``rot13`` is not a text encoding and causes an error before any
    view. ``utf-7`` produces lone surrogates, which PostgreSQL cannot store.
    """

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        try:
            self.content_type, self.content_params = parse_header_parameters(meta.get("CONTENT_TYPE", ""))
        except ValueError:
            # A parameter in the form of RFC 2231 has an unknown encoding. No view accepts the empty type.
            self.content_type, self.content_params = "", {}


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
application = get_wsgi_application()
application.request_class = Utf8Request
# Building the API's schema takes half a second. Do it once before the processes fork.
import_module("portal.api.openapi.document").document()
