"""Schemas that are written by hand: their parts, and the problem documents (RFC 9457)."""

from http import HTTPStatus
from typing import Any

from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent

from portal.api.problem_details import CONTENT_TYPE, ERRORS_PAGE

Schema = dict[str, Any]

COUNT: Schema = {"type": "integer", "minimum": 0}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
INSTANT: Schema = {"type": "string", "format": "date-time"}


def record(**members: Schema) -> Schema:
    """Return the schema of an object that has all of these members."""
    return {"type": "object", "required": list(members), "properties": members}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def about(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


_REASON = record(
    field=about(TEXT, "For example `a_end.outer_vlan`; may be empty."),
    code=TEXT,
    detail=TEXT,
    facts=about({"type": "object"}, "Sizes in bytes, rates in bit/s."),
)
_PROBLEM: Schema = {
    "type": "object",
    "description": "RFC 9457: what went wrong, why, and what to do next.",
    "required": ["type", "title", "status", "detail", "request_id"],
    "properties": {
        "type": {
            **TEXT,
            "format": "uri",
            "pattern": "/api/docs/errors/#[a-z0-9-]+$",
            "description": "The address of an explanation. The part after the # is the stable code, for"
            " programs.",
        },
        "title": TEXT,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": about(TEXT, "One or two sentences for people."),
        "request_id": about(TEXT, "Quote it when you report an error."),
        "errors": {
            "type": "array",
            "description": "The reasons; all at once if possible.",
            "items": {**_REASON, "required": ["field", "code", "detail"]},
        },
    },
}
# For each status: its meaning, and the code and sentence of the example.
_PROBLEMS: dict[int, tuple[str, str, str]] = {
    400: ("The request cannot be read.", "parse-error", "The body is not valid JSON: JSONDecodeError."),
    401: ("No valid API token.", "authentication-failed", "This API token is unknown, expired or revoked."),
    403: ("You may not do this.", "permission-denied", "Only NOC staff may see this."),
    404: (
        "No such object, or none that you may see.",
        "not-found",
        "There is no such object, or you may not see it.",
    ),
    406: (
        "No media type of the Accept header is available.",
        "not-acceptable",
        "Could not satisfy the request Accept header.",
    ),
    409: (
        "In use, full, or in a state that does not allow it.",
        "idempotency-key-in-flight",
        "A request with this Idempotency-Key is being worked on. Send it again in a second.",
    ),
    412: (
        "Changed since you read it.",
        "precondition-failed",
        "It has changed since you read it; nothing was done. Read it again, then decide.",
    ),
    413: ("The body is too large.", "too-large", "The body may have at most 1048576 bytes."),
    415: (
        "The body is not JSON.",
        "unsupported-media-type",
        'Unsupported media type "text/plain" in request.',
    ),
    422: (
        "The request can be read, but not carried out.",
        "invalid",
        "1 field cannot be accepted; nothing was done.",
    ),
    428: (
        "If-Match is missing.",
        "precondition-required",
        "State the version that you are changing: send the ETag that you read as If-Match.",
    ),
    429: ("Too many requests.", "throttled", "Request was throttled. Expected available in 20 seconds."),
    503: (
        "The database does not answer.",
        "unavailable",
        "The database does not answer; nothing was done. Try again in a few seconds.",
    ),
}
# For each status: the example for operations that order a line.
_OF_ORDERS: dict[int, tuple[str, str, str]] = {
    409: (
        _PROBLEMS[409][0],
        "vlan-taken",
        "On rhino:host-cust1, dot1q 100 is already taken by another line."
        " Choose another VLAN, or leave the choice to us.",
    ),
    422: (
        _PROBLEMS[422][0],
        "path-too-narrow",
        "Link rhino:bb-next — hippo:bb-prev has an IP MTU of 9000 bytes; 9008 are needed, 8 more.",
    ),
}
_RETRY_AFTER = {
    "Retry-After": {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds to wait."}
}


def problem_responses(registry: ComponentRegistry, statuses: list[int], *, orders: bool) -> dict[str, Any]:
    """Return the problem responses for these statuses. All of them share one schema component.

    ``orders`` is true for operations that order a line.
    """
    component = ResolvedComponent(
        name="Problem", type=ResolvedComponent.SCHEMA, schema=_PROBLEM, object="portal.api.problem_details"
    )
    registry.register_on_missing(component)
    problems = _PROBLEMS | _OF_ORDERS if orders else _PROBLEMS
    return {str(status): _response(status, problems[status], component.ref) for status in statuses}


def _response(status: int, problem: tuple[str, str, str], schema: Any) -> dict[str, Any]:
    meaning, kind, detail = problem
    example = {
        "type": f"https://portal.example.net/{ERRORS_PAGE}#{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "request_id": "4f6e1b3a0c0d4bb1a2d95f0f2f3c7a51",
    }
    response = {"description": meaning, "content": {CONTENT_TYPE: {"schema": schema, "example": example}}}
    return {**response, "headers": _RETRY_AFTER} if status in (429, 503) else response
