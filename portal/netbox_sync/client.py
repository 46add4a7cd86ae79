"""The settings for NetBox, and a client of its REST API, based on pynetbox.

The client reads lists page by page, and raises typed errors. Its HTTP sessions reach only one NetBox, and
have limits on time and size.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import pynetbox
import requests
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError, ReadTimeoutError

from portal.core.quantities import whole_number
from portal.netbox_sync.errors import NetboxError, NetboxRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The settings for NetBox (docs/integrate/netbox.md), without the prefix ``NETBOX_``.

    ``ca``: a file with CA certificates; "" for the CAs of the system. ``timeout_s`` and ``total_s``: the
    limits (s) for one read and for a whole response. ``page``: the number of objects per page. A device is
    imported as a router if it has one of ``device_roles`` and all of ``device_tags``, which are slugs.
    """

    url: str
    token: str
    ca: str = ""
    timeout_s: float = 20
    total_s: float = 120
    page: int = 250
    sync_every_s: int = 900
    apply: bool = True
    device_roles: Sequence[str] = ("router",)
    device_tags: Sequence[str] = ()
    tenant_tags: Sequence[str] = ()
    uni_tag: str = "longline-uni"
    enni_tag: str = "longline-enni"
    customer_field: str = "longline_customer"
    loopback_interface: str = "loop0"
    at_end: str = "remove"


def configuration() -> Configuration | None:
    """Return the configuration; None if no NetBox is configured."""
    if not settings.NETBOX_URL:
        return None
    found = {each.name: getattr(settings, f"NETBOX_{each.name.upper()}") for each in fields(Configuration)}
    return Configuration(**{**found, "url": found["url"].rstrip("/")})


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


Row = dict[str, Any]
OLDEST = (4, 2)
# The first release in which an L2VPN has a status (NetBox release notes).
WITH_L2VPN_STATUS = (4, 3)
_DETAIL = 500
_LARGEST_VERSION = 9999


class Client:
    """A client of one NetBox. ``version``: such as (4, 4). All methods raise NetboxError."""

    def __init__(self, configuration: Configuration) -> None:
        self._page = configuration.page
        self._api = pynetbox.api(configuration.url, token=configuration.token)
        self._api.http_session = session(configuration)
        with _typed_errors("status"):
            status = self._api.status()
        self.release = str(status.get("netbox-version", "")) if isinstance(status, dict) else ""
        self.version = _version(self.release)
        if self.version < OLDEST:
            raise NetboxError("too_old", release=self.release)

    def rows(self, path: str, *, fields: Sequence[str], **filters: Any) -> Iterator[Row]:
        """Yield all objects at ``path`` (such as ``dcim.interfaces``) that match ``filters``, with
        ``fields``.

        Each page begins after the last id of the previous page. With offsets, the client would skip an object
        whenever another object is deleted between two pages. It ignores ``next`` in NetBox's responses,
        because ``next`` might form a loop or lead to another host. Only one page is in memory at a time.
        """
        endpoint, begins, last = self._endpoint(path), dict[str, int](), 0
        while True:
            before = last
            with _typed_errors(path):
                # If an offset is given, pynetbox reads only one page and ignores ``next``.
                page = endpoint.filter(
                    limit=self._page, offset=0, ordering="id", fields=",".join(fields), **begins, **filters
                )
                rows = [dict(record) for record in page]
                count = page.request.count
            for row in rows:
                if not isinstance(row.get("id"), int):
                    raise NetboxError("nonsense", what=path, why="a row has no id")
                if row["id"] < last:
                    raise NetboxError("nonsense", what=path, why="its rows are not in the order of their ids")
                if row["id"] > last:
                    last = row["id"]
                    yield row
            if not rows or len(rows) >= count:
                return
            if last == before:
                raise NetboxError("nonsense", what=path, why="its next page has the same rows")
            begins = {"id__gt": last}

    def create(self, path: str, values: Mapping[str, Any]) -> Row:
        """Create an object. Return the object as NetBox has stored it."""
        with _typed_errors(path):
            return dict(self._endpoint(path).create(dict(values)))

    def create_all(self, path: str, values: Sequence[Mapping[str, Any]]) -> list[Row]:
        """Create all of these objects or none. Return the objects as NetBox has stored them."""
        with _typed_errors(path):
            return [dict(made) for made in self._endpoint(path).create([dict(each) for each in values])]

    def change(self, path: str, row_id: int, values: Mapping[str, Any]) -> None:
        """Change these fields of an object. Its other fields do not change."""
        with _typed_errors(path):
            self._endpoint(path).update([{"id": row_id, **values}])

    def remove(self, path: str, ids: Sequence[int]) -> None:
        """Delete the objects with these ids. Without ids, no request is sent."""
        if ids:
            with _typed_errors(path):
                self._endpoint(path).delete(list(ids))

    def _endpoint(self, path: str) -> Any:
        app, _, name = path.partition(".")
        return getattr(getattr(self._api, app), name.replace("-", "_"))


@contextmanager
def _typed_errors(what: str) -> Iterator[None]:
    try:
        yield
    except pynetbox.RequestError as error:
        raise _refusal(what, error.req) from error
    except pynetbox.AllocationError as error:
        raise NetboxRefused("refused", what=what, status=409, detail=error.req.text[:_DETAIL]) from error
    except (pynetbox.ContentError, TooLarge) as error:
        raise NetboxError("nonsense", what=what, why=str(error)[:_DETAIL]) from error
    except requests.exceptions.InvalidSchema as error:
        raise NetboxError("nonsense", what=what, why="it sends us to another address") from error
    except requests.exceptions.JSONDecodeError as error:
        raise NetboxError("nonsense", what=what, why="it is not JSON") from error
    except requests.RequestException as error:
        raise NetboxError("away", what=what, why=_why(error)) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # For a response with an unexpected structure, pynetbox raises other errors.
        raise NetboxError("nonsense", what=what, why=f"{type(error).__name__}: {error}"[:_DETAIL]) from error


def _refusal(what: str, answer: requests.Response) -> NetboxError:
    status, detail = answer.status_code, answer.text[:_DETAIL]
    if status == 429:
        return NetboxError("busy", what=what, retry_after_s=_seconds(answer.headers.get("Retry-After", "")))
    if status >= 500:
        seconds = _seconds(answer.headers.get("Retry-After", ""))
        return NetboxError("broken", what=what, status=status, retry_after_s=seconds)
    if status == 401 or (status == 403 and "token" in detail.lower()):
        return NetboxError("token_refused", status=status, detail=detail)
    if status == 403:
        return NetboxError("not_permitted", what=what, method=answer.request.method, detail=detail)
    return NetboxRefused("refused", what=what, status=status, detail=detail)


def _why(error: requests.RequestException) -> str:
    if isinstance(error, requests.exceptions.SSLError):
        return f"its certificate is not trusted: {error}"[:_DETAIL]
    if isinstance(error, requests.Timeout):
        return "it did not answer in time"
    return f"{type(error).__name__}: {error}"[:_DETAIL]


def _seconds(retry_after: str) -> float | None:
    """Return the seconds in a Retry-After header (RFC 9110, 10.2.3), at most an hour; None for a date."""
    return min(float(retry_after), 3600.0) if retry_after.isdecimal() else None


def _version(release: str) -> tuple[int, int]:
    numbers = release.split("-")[0].split(".")
    major, minor = (whole_number(number, most=_LARGEST_VERSION) for number in (*numbers, "", "")[:2])
    if major is None or minor is None:
        raise NetboxError("nonsense", what="status", why=f"{release[:50]!r} is no NetBox release")
    return major, minor
