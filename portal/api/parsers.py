"""JSON bodies, bounded: what cannot be read, kept or echoed is the caller's mistake, not ours."""

import json
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop as _
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser


class BodyTooLarge(APIException):
    """More than DATA_UPLOAD_MAX_MEMORY_SIZE, which Django itself asks only where it reads forms."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too-large"
    default_detail = f"At most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes are taken."


class BoundedJSONParser(JSONParser):
    """UTF-8 whatever ``charset`` says (RFC 8259, section 8.1); no NaN, no half of a surrogate pair."""

    # In bytes.
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
            raise ParseError(f"This is no JSON: {type(error).__name__}.") from error
        return value


def _no_constant(name: str) -> Any:
    raise ValueError(name)
