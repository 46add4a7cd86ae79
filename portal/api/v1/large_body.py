"""Bodies that are larger than those of all other requests, and bounded as well."""

from collections.abc import Callable
from functools import wraps
from io import BytesIO
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.api.parsers import BodyTooLarge
from portal.core.whole_number import whole_number

Handler = Callable[..., HttpResponse]


def takes_bytes(most: int) -> Callable[[Handler], Handler]:
    """Let a view's write method have a body of so many bytes: once it is known who sends it.

    Django itself reads a body of DATA_UPLOAD_MAX_MEMORY_SIZE at most where all of it is asked for, as
    Idempotency-Key does; what is read here is kept where it would keep it.
    """

    def limited(handler: Handler) -> Handler:
        @wraps(handler)
        def write(view: APIView, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
            plain = request._request
            if whole_number(plain.META.get("CONTENT_LENGTH") or "0", most=most) is None:
                raise BodyTooLarge(f"At most {most} bytes are taken.")
            if not hasattr(plain, "_body"):
                body = plain.read(most)
                plain._body, plain._stream = body, BytesIO(body)
            return handler(view, request, *args, **kwargs)

        return write

    return limited
