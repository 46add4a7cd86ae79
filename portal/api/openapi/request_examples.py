"""Examples of one request for curl, Python (httpx) and HTTPie. They read the API token from ``TOKEN``."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

LANGUAGES = {"curl": "curl", "python": "Python", "httpie": "HTTPie"}


@dataclass(frozen=True, slots=True)
class ExampleRequest:
    """An example request. ``body`` is None if the request has no body.

    * ``drawn_key``: the example generates an Idempotency-Key each time it runs.
    * ``signed``: the example sends an API token.
    * ``response_type``: the media type of the response; "" for a response without a body.
    """

    method: str
    url: str
    body: Any
    if_match: str
    drawn_key: bool
    signed: bool
    response_type: str


def examples(request: ExampleRequest) -> dict[str, str]:
    """Return the example in each language, keyed by the language. LANGUAGES has the names of the
    languages.
    """
    return {"curl": curl(request), "python": python(request), "httpie": httpie(request)}


def curl(request: ExampleRequest) -> str:
    """Return a curl command for a POSIX shell with uuidgen."""
    url = shlex.quote(request.url)
    parts = [f"curl {url}" if request.method == "GET" else f"curl --request {request.method} {url}"]
    if request.signed:
        parts.append('--header "Authorization: Bearer $TOKEN"')
    if request.drawn_key:
        parts.append('--header "Idempotency-Key: $(uuidgen)"')
    if request.if_match:
        parts.append(f"--header {shlex.quote(f'If-Match: {request.if_match}')}")
    if request.body is not None:
        parts.append('--header "Content-Type: application/json"')
        parts.append(f"--data {shlex.quote(_json(request.body))}")
    return " \\\n  ".join(parts)


def python(request: ExampleRequest) -> str:
    """Return a program for Python 3 with httpx. It assigns the response to the variable ``response``."""
    headers = []
    if request.signed:
        headers.append('"Authorization": f"Bearer {os.environ[\'TOKEN\']}",')
    if request.drawn_key:
        headers.append('"Idempotency-Key": str(uuid.uuid4()),')
    if request.if_match:
        headers.append(f'"If-Match": {request.if_match!r},')
    arguments = [f"{_literal(request.url)},"]
    if headers:
        arguments += ["headers={", *(f"    {line}" for line in headers), "},"]
    if request.body is not None:
        arguments.append(f"json={_literal(request.body)},")
    indented = "\n".join(arguments).replace("\n", "\n    ")
    shown = {"": "response.status_code", "application/json": "response.json()"}.get(
        request.response_type, "response.text"
    )
    imports = [name for name, used in (("os", request.signed), ("uuid", request.drawn_key)) if used]
    return "\n".join(
        [
            *(f"import {name}" for name in imports),
            *([""] if imports else []),
            "import httpx",
            "",
            f"response = httpx.{request.method.lower()}(",
            f"    {indented}",
            ")",
            "response.raise_for_status()",
            f"print({shown})",
        ]
    )


def httpie(request: ExampleRequest) -> str:
    """Return a command for HTTPie 3. In its arguments, ``=`` sends text and ``:=`` sends JSON."""
    parts = ['http --auth-type bearer --auth "$TOKEN"' if request.signed else "http"]
    parts[0] += f" {request.method} {shlex.quote(request.url)}"
    if request.drawn_key:
        parts.append('Idempotency-Key:"$(uuidgen)"')
    if request.if_match:
        parts.append(shlex.quote(f"If-Match:{request.if_match}"))
    for name, value in (request.body or {}).items():
        # HTTPie removes a backslash that precedes a separator. In JSON text, no backslash precedes a
        # separator.
        plain = isinstance(value, str) and "\\" not in value
        parts.append(shlex.quote(f"{name}={value}" if plain else f"{name}:={_json(value, indent=None)}"))
    return " \\\n  ".join(parts)


def _json(value: Any, indent: int | None = 2) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False)


def _literal(value: Any) -> str:
    """Return a JSON value as a Python literal. Each level is indented by four spaces."""
    if isinstance(value, dict) and value:
        inner = "".join(f"    {_json(name)}: {_indented(part)},\n" for name, part in value.items())
        return f"{{\n{inner}}}"
    if isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        inner = "".join(f"    {_indented(part)},\n" for part in value)
        return f"[\n{inner}]"
    if isinstance(value, list):
        return f"[{', '.join(_literal(part) for part in value)}]"
    return repr(value) if value is None or isinstance(value, bool) else _json(value)


def _indented(value: Any) -> str:
    return _literal(value).replace("\n", "\n    ")
