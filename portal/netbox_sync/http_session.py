"""HTTP sessions that reach only one NetBox, with limits on time and size."""

import time
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError, ReadTimeoutError

from portal.netbox_sync.configuration import Configuration

MAX_ANSWER = 32 * 1024 * 1024
_CHUNK = 64 * 1024


class TooLarge(requests.RequestException):
    """The response is longer than ``MAX_ANSWER`` bytes."""


class TooSlow(requests.RequestException):
    """The response takes too long in total."""


class BoundedAdapter(HTTPAdapter):
    """An adapter that limits the time and the size of each response.

    The timeout of ``requests`` (``timeout_s``) applies only to a single read. A server that sends one byte at
    a time could therefore keep a worker busy for hours. ``total_s`` limits the time of the whole response,
    and ``MAX_ANSWER`` limits its decompressed size.
    """

    def __init__(self, *, timeout_s: float, total_s: float) -> None:
        super().__init__()
        self._timeout_s, self._total_s = timeout_s, total_s

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        until = time.monotonic() + self._total_s
        response = super().send(request, **{**options, "stream": True, "timeout": self._timeout_s})
        body = bytearray()
        try:
            while piece := response.raw.read1(_CHUNK, decode_content=True):
                body += piece
                if len(body) > MAX_ANSWER:
                    raise TooLarge(f"more than {MAX_ANSWER} bytes", request=request)
                if time.monotonic() > until:
                    raise TooSlow(f"more than {self._total_s:g} s", request=request)
        except ReadTimeoutError as error:
            raise requests.ReadTimeout(error, request=request) from error
        except HTTPError as error:
            raise requests.ConnectionError(error, request=request) from error
        finally:
            response.close()
        # Store the body as requests itself would store it.
        response._content, response._content_consumed = bytes(body), True
        return response


def session(configuration: Configuration) -> requests.Session:
    """Return a session that can only reach the URL of the configured NetBox, even after redirects.

    Proxies and passwords in the environment are ignored.
    """
    made = requests.Session()
    made.trust_env = False
    made.verify = configuration.ca or True
    made.adapters.clear()
    adapter = BoundedAdapter(timeout_s=configuration.timeout_s, total_s=configuration.total_s)
    made.mount(f"{configuration.url}/", adapter)
    return made
