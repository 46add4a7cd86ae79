"""Values that only a program or an attacker sends cause no internal error (500) at any address."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.converters import IntConverter, PathConverter
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.accounts.tokens import token_create
from portal.api.openapi.document import document
from portal.core import clock
from portal.vll.models import Vll
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db

# Python's int refuses the first three; the fourth matches a pattern that ends with ``$``.
HOSTILE = {
    "zeros": "0" * 4999 + "7",
    "nines": "9" * 5000,
    "superscript": "²",
    "line end": "2026-10\n",
    "nul": "\0",
}
# The query parameters of all pages.
PAGE_PARAMETERS = (
    *("after", "q", "port", "a-port", "z-port", "owner", "customer", "health", "month", "from", "to"),
    *("show", "role", "what", "by", "of", "field", "router", "link", "line", "vll", "decided", "about"),
    *("vlan", "vlans", "seen", "unless", "hold", "state", "site", "fails", "step", "range", "severity"),
    *("kind", "revision"),
)


def addresses(resolver: URLResolver, prefix: str = "/") -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from addresses(entry, f"{prefix}{entry.pattern}")
        else:
            yield f"{prefix}{entry.pattern}", entry


def pages() -> list[tuple[str, URLPattern]]:
    return [
        (route, entry)
        for route, entry in addresses(get_resolver())
        if not route.startswith(("/api/", "/static"))
        and all(each not in route for each in ("<uuid:", "<str:", "<slug:"))
    ]


def api() -> APIClient:
    nora = User.objects.create_user("nora-api", noc_role="noc")
    _, plain = token_create(user=nora, name="test", now=clock.now())
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
    return client


def test_no_hostile_value_in_an_address_makes_a_page_fail(
    isp: Isp, vll: Vll, documentation_sites: None, nina: User
) -> None:
    """A page that reads neither its query nor a text in its path gets only the first value."""
    client = Client(raise_request_exception=False)
    client.force_login(nina)
    failed, read = [], 0
    for route, entry in pages():
        # The documentation's path takes any text; rows have numbers.
        converters = entry.pattern.converters
        assert all(isinstance(each, (IntConverter, PathConverter)) for each in converters.values()), route
        for value in HOSTILE.values():
            path = route
            for name in converters:
                path = path.replace(f"<int:{name}>", "1").replace(f"<path:{name}>", quote(value))
            query = "&".join(f"{name}={quote(value)}" for name in PAGE_PARAMETERS)
            response = client.get(f"{path}?{query}")
            if response.status_code >= 500:
                failed.append(f"{path}?{query}")
            # Django caches the query in the request when the page reads it.
            reads_query = "GET" in response.wsgi_request.__dict__
            read += reads_query
            if not reads_query and "<path:" not in route:
                break
    assert not failed
    assert read > 50


@pytest.mark.parametrize("value", [HOSTILE["zeros"], HOSTILE["nines"]], ids=["zeros", "nines"])
def test_no_long_number_in_its_path_makes_a_page_fail(isp: Isp, nina: User, value: str) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(nina)
    numbered = [(route, entry) for route, entry in pages() if "<int:" in route]
    assert numbered
    for route, entry in numbered:
        path = route
        for name in entry.pattern.converters:
            path = path.replace(f"<int:{name}>", value)
        assert client.get(path).status_code < 500, route


def parameters() -> list[tuple[str, str]]:
    """Return the path and the name of every query parameter of every GET operation."""
    return [
        (path, each["name"])
        for path, item in document()["paths"].items()
        for each in item.get("get", {}).get("parameters", [])
        if each["in"] == "query"
    ]


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_no_hostile_query_parameter_makes_the_api_fail(isp: Isp, vll: Vll, value: str) -> None:
    client, failed, tried = api(), [], set()
    port = isp.ports["rhino:host-cust1"].pk
    for path, name in parameters():
        # Lines and orders have UUIDs; other rows have numbers, and the number of this port serves for all.
        of_line = path.startswith(("/api/v1/vlls/", "/api/v1/orders/"))
        address = path.replace("{id}", str(vll.pk if of_line else port))
        if "{" in address or (path, name) in tried:
            continue
        tried.add((path, name))
        if client.get(f"{address}?{name}={quote(value)}").status_code >= 500:
            failed.append(f"{path}?{name}")
    assert len(tried) > 50
    assert not failed


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 4000, "1e400", "-" + "9" * 4000])
def test_no_number_in_a_body_makes_the_api_fail(isp: Isp, number: str) -> None:
    client = api()
    bodies = {
        "/api/v1/vlls": '{"a_end": {"port": N, "outer_vlan": N}, "svc_mtu": N, "cir_bps": N}',
        "/api/v1/sites": '{"name": "Basel", "latitude": N, "longitude": N}',
        "/api/v1/customers": '{"name": "Basel", "approve_up_to_bps": N}',
        "/api/v1/links": '{"name": N, "a_router": N, "ip_mtu": N}',
        "/api/v1/imports": '{"kind": "sites", "csv": N, "dry_run": true}',
    }
    for path, body in bodies.items():
        response = client.post(path, body.replace("N", number), content_type="application/json")
        assert 400 <= response.status_code < 500, f"{path}: {response.status_code}"
