"""Examples of every operation, and of one request for curl, Python (httpx) and HTTPie.

The examples of operations are generated from the schema if there are no written ones. The examples of
requests read the API token from ``TOKEN``.
"""

import json
import shlex
from dataclasses import dataclass
from typing import Any

from portal.vll.line_spec import END, LINE, Property

_CSR = "-----BEGIN CERTIFICATE REQUEST-----\n…\n-----END CERTIFICATE REQUEST-----\n"
# The declaration of a line has examples of its properties.
_LINE = {each.name: int(each.cell_example) for each in LINE if each.is_required}
_TAGGING = next(each.cell_example for each in END if each.name == "tagging")
_A_END = {"port": 12, "tagging": _TAGGING, "outer_vlan": 100}
_Z_END = {"port": 34, "tagging": _TAGGING, "outer_vlan": "any"}
_LINK = {"a_ip_mtu": 9000, "z_ip_mtu": 9000}

# Keyed by the name of the schema's component.
BODIES: dict[str, dict[str, Any]] = {
    "ActivationTestRequestRequest": {"frame": 1514},
    "CalibrationWriteRequest": {"calibration": None},
    "CustomerWriteRequest": {"name": "Basel Bakery", "approve_up_to_bps": 1_000_000_000},
    "EnrolRequest": {"token": "the token that the NOC gave you", "csr_pem": _CSR},
    "ForceEndRequest": {"reason": "The router was replaced."},
    "HoldMakeRequest": {"a_end": _A_END, "z_end": _Z_END, "cir_bps": _LINE["cir_bps"]},
    "ImportWriteRequest": {
        "kind": "sites",
        "dry_run": True,
        "csv": "name,latitude,longitude\nBasel,47.5596,7.5886\n",
    },
    "InvitationCreateRequest": {"email": "vera@customer.example", "role": "viewer"},
    "LineTestRequestRequest": {"frame": 1514},
    "LinkWriteRequest": {
        "a_router": "rhino",
        "a_interface": "bb-west",
        "z_router": "zebra",
        "z_interface": "bb-east",
        **_LINK,
        "in_service": False,
    },
    "OrderAddRequest": {"description": "Zurich-Basel", "a_end": _A_END, "z_end": _Z_END, **_LINE},
    "PatchedCustomerWriteRequest": {"approve_up_to_bps": 1_000_000_000},
    "PatchedLinkWriteRequest": _LINK,
    "PatchedMailsRequest": {"failures": True, "reports": False},
    "PatchedMemberChangeRequest": {"role": "operator"},
    "PatchedPortChangeRequest": {"description": "Rack 7, port 3"},
    "PatchedRouterChangeRequest": {"cores": 4},
    "PatchedSiteWriteRequest": {"name": "Zurich"},
    "PatchedVllChangeRequest": {"cir_bps": 200_000_000},
    "PatchedVniRangeWriteRequest": {"reason": "Lines of the old portal"},
    "PatchedWebhookChangeRequest": {"types": ["vll.up", "vll.down"]},
    "PortCreateRequest": {
        "router": "rhino",
        "interface": "host-cust3",
        "customer": "Alpine Dairy",
        "speed_bps": 10_000_000_000,
    },
    "RejectionRequest": {"reason": "The port is about to be moved."},
    "RevocationRequest": {"serial": None},
    "RouterActionRequest": {"do": "maintenance-begin", "reason": "New line card"},
    "RouterCreateRequest": {
        "name": "lynx",
        "site": "Zürich",
        "loopback4": "10.255.0.9",
        "agent_url": "https://lynx.example.net:9443",
    },
    "SiteWriteRequest": {"name": "Basel"},
    "TokenCreateRequest": {"name": "nightly report", "scopes": ["read"]},
    "TroubleReportRequestRequest": {"note": "No frames since 09:30."},
    "VniRangeWriteRequest": {"first": 70_000, "last": 79_999, "reason": "Lines of the old portal"},
    "WebhookCreateRequest": {"url": "https://hooks.customer.example/lines", "types": ["vll.up", "vll.down"]},
}


_METHODS = ("get", "post", "put", "patch", "delete")
_VLL, _ORDER = "6f0f7c62-2f5e-4a57-9d0e-6c3a8ad54c11", "0d3b1c9e-58c4-4a6a-8f5d-2f4b8d6a9e77"
_BASE = "https://portal.example.net/api/v1"


def _example(each: Property) -> Any:
    """Return the example that the declaration of a line has for this property."""
    if each.api_example is not None:
        return each.api_example
    return int(each.cell_example) if each.unit else each.cell_example or None


# Example values by the name of the member.
_BY_NAME: dict[str, Any] = {
    **{each.name: _example(each) for each in (*LINE, *END)},
    **{each.column: each.default for each in LINE if each.column != each.name},
    "order": f"{_BASE}/orders/{_ORDER}",
    "result": f"{_BASE}/vlls/{_VLL}",
    "customer": "Alpine Dairy",
    "name": "rhino",
    "router": "rhino",
    "a_router": "rhino",
    "z_router": "hippo",
    "site": "Zürich",
    "interface": "host-cust1",
    "port_name": "rhino:host-cust1",
    "frame": 1514,
    "max_frame": 9022,
    "speed_bps": 10_000_000_000,
    "link_bps": 10_000_000_000,
    "bookable_bps": 10_000_000_000,
    "oversubscription_percent": 100,
    "booked_bps": 1_000_000_000,
    "free_bps": 9_000_000_000,
    "vni": 4711,
    "gre_key": None,
    "lifecycle": "active",
    "state": "completed",
    "status": "verified",
    "tunnel_address": "10.255.0.1",
    "failure": None,
    "cause": None,
    "reason": None,
    "unpoliced_reason": None,
    "next": None,
    "step_s": 300,
    "ordered_by": "alice",
    "orderer_may_order": None,
}
_BY_FORMAT = {
    "uuid": _VLL,
    "date-time": "2026-11-21T09:30:00.000000Z",
    "date": "2026-11-21",
    "uri": f"{_BASE}/vlls",
    "email": "alice@example.net",
    "ipv4": "10.255.0.1",
    "ipv6": "fd00:255::1",
}


def add_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add examples to bodies and parameters that have none. drf-spectacular calls this after generation."""
    components = result.get("components", {}).get("schemas", {})
    for item in result["paths"].values():
        for operation in (item[method] for method in _METHODS if method in item):
            contents = [operation.get("requestBody", {}), *operation["responses"].values()]
            for media in (media for part in contents for media in part.get("content", {}).values()):
                if "schema" in media and not {"example", "examples"} & set(media):
                    component = media["schema"].get("$ref", "").rsplit("/", 1)[-1]
                    media["example"] = BODIES.get(component) or example_of(media["schema"], components)
            for parameter in operation.get("parameters", []):
                _parameter_example(parameter, components)
    return result


def example_of(schema: dict[str, Any], components: dict[str, Any], name: str = "") -> Any:
    """Return an example value that is valid for this schema. ``name``: the name of the member, or ""."""
    if "$ref" in schema:
        return example_of(components[schema["$ref"].rsplit("/", 1)[-1]], components, name)
    for given in ("example", "default", "const"):
        if given in schema:
            return schema[given]
    if "allOf" in schema:
        return example_of(schema["allOf"][0], components, name)
    if name in _BY_NAME and _accepts(schema, _BY_NAME[name]):
        return _BY_NAME[name]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            return example_of(schema[choice][0], components, name)
    return _of_kind(schema, components, name)


def _of_kind(schema: dict[str, Any], components: dict[str, Any], name: str) -> Any:
    match _kinds(schema):
        case ["object", *_]:
            members = schema.get("properties", {})
            return {inner: example_of(part, components, inner) for inner, part in members.items()}
        case ["array", *_]:
            return [example_of(schema.get("items", {}), components, name)]
        case ["integer" | "number", *_]:
            return schema.get("minimum", 1)
        case ["boolean", *_]:
            return True
        case ["string", *_]:
            text = _BY_FORMAT.get(schema.get("format", ""), "text")
            return text[: schema.get("maxLength", len(text))]
        case _:
            return None


def _kinds(schema: dict[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _accepts(schema: dict[str, Any], value: Any) -> bool:
    """Return whether this example value is valid for the schema: type, choice, format and bounds.

    This check is necessary because the value was chosen by the member's name, and members with the same name
    can have different schemas.
    """
    kind = {type(None): "null", bool: "boolean", int: "integer", str: "string"}[type(value)]
    choices = [schema, *schema.get("oneOf", []), *schema.get("anyOf", [])]
    return any(
        kind in _kinds(choice)
        and ("enum" not in choice or value in choice["enum"])
        and (choice.get("format") != "uuid" or value == _VLL)
        and choice.get("format") not in ("date-time", "date", "email")
        and (kind != "integer" or choice.get("minimum", value) <= value <= choice.get("maximum", value))
        for choice in choices
    )


def _parameter_example(parameter: dict[str, Any], components: dict[str, Any]) -> None:
    if parameter["in"] == "path" or parameter.get("required"):
        schema = parameter["schema"]
        parameter.setdefault(
            "example", _PARAMETERS.get(parameter["name"]) or example_of(schema, components, "id")
        )


_PARAMETERS = {"If-Match": '"9b1f0c5a7e3d4f6288d0a1b2c3d4e5f6"'}


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
    """Return the example in each language, by language. LANGUAGES has the languages' names."""
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
        # HTTPie removes a backslash before a separator. JSON text has no such backslash.
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
