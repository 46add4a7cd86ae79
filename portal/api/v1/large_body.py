"""A higher size limit for the bodies of some requests."""

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
    """Return a decorator that allows bodies of up to ``most`` bytes for a view's write method.

    The code for Idempotency-Key reads the whole body, but Django refuses to read more than
    DATA_UPLOAD_MAX_MEMORY_SIZE. The wrapper therefore reads the body itself and stores it where Django would
    store it. DRF authenticates the sender before the wrapper runs.
    """

    def limited(handler: Handler) -> Handler:
        @wraps(handler)
        def write(view: APIView, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
            plain = request._request
            if whole_number(plain.META.get("CONTENT_LENGTH") or "0", most=most) is None:
                raise BodyTooLarge(f"The body may have at most {most} bytes.")
            if not hasattr(plain, "_body"):
                body = plain.read(most)
                plain._body, plain._stream = body, BytesIO(body)
            return handler(view, request, *args, **kwargs)

        return write

    return limited
