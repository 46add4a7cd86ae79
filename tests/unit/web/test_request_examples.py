"""Examples in curl, Python and HTTPie, which send the same request."""

import json
import shlex
from typing import Any

import httpx
import pytest

from portal.api.openapi.document import GROUPS
from portal.api.openapi.examples import ExampleRequest, curl, httpie, python
from portal.api.openapi.reference import example_request, operations

_SEPARATORS = (":=", "=", ":")
BODIES: list[Any] = [
    None,
    {},
    {"name": "Basel"},
    {"name": "O'Neill's \"café\" = 5 \\ 7: @home", "note": "two\nlines"},
    {
        "a_end": {"port": 12, "outer_vlan": "any", "inner_vlan": None, "tags": []},
        "exact": True,
        "rates": [1, 2.5],
    },
    {"types": ["vll.up", "vll.down"], "rows": [{"a": "\\n"}, [1]]},
]


def example(**changes: Any) -> ExampleRequest:
    given: dict[str, Any] = {
        "method": "POST",
        "url": "https://portal.example.net/api/v1/vlls",
        "body": None,
        "if_match": "",
        "drawn_key": False,
        "signed": True,
        "response_type": "application/json",
    }
    return ExampleRequest(**{**given, **changes})


def of_curl(command: str) -> tuple[str, str, dict[str, str], Any]:
    """Return the method, address, headers and body of a curl command."""
    program, *parts = shlex.split(command.replace("\\\n", " "))
    assert program == "curl"
    method, address, headers, body = "GET", "", {}, None
    while parts:
        match parts.pop(0):
            case "--request":
                method = parts.pop(0)
            case "--header":
                name, _, value = parts.pop(0).partition(": ")
                headers[name] = value
            case "--data":
                body = json.loads(parts.pop(0))
            case word:
                address = word
    assert headers.pop("Content-Type", None) == (None if body is None else "application/json")
    return method, address, headers, body


def of_httpie(command: str) -> tuple[str, str, dict[str, str], Any]:
    """Return the request of an HTTPie command.

    An item is split at its first separator, the longer one first.
    """
    program, *parts = shlex.split(command.replace("\\\n", " "))
    assert program == "http"
    headers: dict[str, str] = {}
    if parts[0] == "--auth-type":
        assert parts[1:3] == ["bearer", "--auth"]
        headers["Authorization"] = f"Bearer {parts[3]}"
        parts = parts[4:]
    method, address, *items = parts
    body: Any = None
    for item in items:
        at = min(item.index(each) for each in _SEPARATORS if each in item)
        separator = next(each for each in _SEPARATORS if item.startswith(each, at))
        name, value = item[:at], item[at + len(separator) :]
        if separator == ":":
            headers[name] = value
        else:
            body = {**(body or {}), name: value if separator == "=" else json.loads(value)}
    return method, address, headers, body


def of_python(code: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, dict[str, str], Any]:
    """Return the request that a piece of Python passes to httpx."""
    sent: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={}, request=request)

    monkeypatch.setenv("TOKEN", "$TOKEN")
    with httpx.Client(transport=httpx.MockTransport(respond)) as client:
        for method in ("get", "post", "patch", "delete"):
            monkeypatch.setattr(httpx, method, getattr(client, method))
        exec(compile(code, "example", "exec"), {})  # noqa: S102 - it is the example that is tested
    (request,) = sent
    names = ("Authorization", "Idempotency-Key", "If-Match")
    headers = {name: request.headers[name] for name in names if name in request.headers}
    return request.method, str(request.url), headers, json.loads(request.content) if request.content else None


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("if_match", ["", '"9b1f0c5a7e3d4f62"', "*"])
def test_all_three_send_the_same_request(body: Any, if_match: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = example(body=body, if_match=if_match)
    headers = {"Authorization": "Bearer $TOKEN"} | ({"If-Match": if_match} if if_match else {})
    sent = ("POST", request.url, headers, body)
    assert of_curl(curl(request)) == sent
    assert of_python(python(request), monkeypatch) == sent
    # HTTPie cannot express an empty object; no operation needs one.
    if body != {}:
        assert of_httpie(httpie(request)) == sent


@pytest.mark.parametrize("slug", GROUPS)
def test_documented_requests_are_equal_in_curl_and_httpie(slug: str) -> None:
    """Another test sends what curl and Python send: tests/integration/api/test_api_doc_examples.py."""
    for operation in operations()[slug]:
        request = example_request(operation, "https://portal.example.net")
        assert of_httpie(httpie(request)) == of_curl(curl(request))


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_request_without_body_and_token_sends_none(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = example(method=method, signed=False, response_type="")
    sent = (method, request.url, {}, None)
    assert of_curl(curl(request)) == sent
    assert of_httpie(httpie(request)) == sent
    assert of_python(python(request), monkeypatch) == sent


def test_each_request_has_a_new_key(monkeypatch: pytest.MonkeyPatch) -> None:
    request = example(drawn_key=True)
    assert '--header "Idempotency-Key: $(uuidgen)"' in curl(request)
    assert 'Idempotency-Key:"$(uuidgen)"' in httpie(request)
    keys = {of_python(python(request), monkeypatch)[2]["Idempotency-Key"] for _ in range(2)}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("response_type", "shown"),
    [
        ("application/json", "print(response.json())"),
        ("text/csv", "print(response.text)"),
        ("", "print(response.status_code)"),
    ],
)
def test_python_prints_the_response(response_type: str, shown: str) -> None:
    assert python(example(response_type=response_type)).endswith(shown)
