"""Parsers for JSON bodies of limited size.

A body that the portal cannot read, store or send back gets a 4xx response, not a 5xx.
"""

import json
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop as _
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser


class BodyTooLarge(APIException):
    """The body exceeds DATA_UPLOAD_MAX_MEMORY_SIZE.

    Django checks this limit only if it reads the body itself. The parsers read the stream instead.
    """

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too-large"
    default_detail = f"The body may have at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes."


class BoundedJSONParser(JSONParser):
    """Parse JSON as UTF-8, regardless of ``charset`` (RFC 8259, section 8.1).

    Refuse NaN, infinity and unpaired surrogates.
    """

    # Bytes.
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        body = stream.read(self.limit + 1)
        if len(body) > self.limit:
            raise BodyTooLarge
        try:
            value = json.loads(body.decode(), parse_constant=_no_constant)
            json.dumps(value, ensure_ascii=False).encode()
        except RecursionError as error:
            raise ParseError(_("The JSON is nested too deeply.")) from error
        except ValueError as error:
            raise ParseError(f"The body is not valid JSON: {type(error).__name__}.") from error
        return value


def _no_constant(name: str) -> Any:
    raise ValueError(name)
