"""Parts of operations' schemas that drf-spectacular cannot derive from a view; added for all views."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework.permissions import SAFE_METHODS

from portal.accounts.models import Scope
from portal.api.openapi.schemas import problem_responses
from portal.api.rest.access_control import IsNoc, IsNocAdmin, NocOnly, NocWrites
from portal.api.rest.request_bodies import StrictSerializer
from portal.api.rest.views import ConditionalRetrieveView

_HEADERS = {
    "ETag": {
        "description": "The strong validator of this response; send it as If-Match or If-None-Match.",
        "schema": {"type": "string", "pattern": '^"[0-9a-f]{32}"$'},
    },
    "Location": {
        "description": "The address of the order or of the new object.",
        "schema": {"type": "string", "format": "uri"},
    },
    "Retry-After": {
        "description": "Seconds to wait before the next request.",
        "schema": {"type": "integer", "minimum": 1},
    },
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A new one for each write, such as a UUID. A repetition of the request with the same key"
    " within 24 hours gets the first response again, and nothing is done twice. Refusals because of a"
    " temporary state (409) are not stored: the repetition is then another try.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!#-~]+$"},
}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the response that you have; 304 if the object is unchanged.",
    "schema": {"type": "string"},
}
# The examples of problems of these operations show reasons why an order is refused.
_ORDERS = {"vlls_create", "vlls_partial_update", "vlls_validate_create", "holds_create"}


class BearerTokenScheme(OpenApiAuthenticationExtension):
    target_class = "portal.api.rest.access_control.BearerTokenAuthentication"
    # Generators of Go clients name a type after this name. "token" would collide with the schema "Token".
    name = "bearerToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token, such as `ll_0123456789ab_…`; it acts as the user who created it.",
        }


class DocumentedOperation(AutoSchema):
    """Add conditional and idempotent requests, the headers of responses, and all possible problems."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        handler = getattr(self.view, self.method.lower())
        parameters = operation.setdefault("parameters", [])
        if getattr(handler, "once_per_key", False):
            parameters.append(_IDEMPOTENCY_KEY)
        must_match = getattr(handler, "if_match_required", None)
        if must_match is not None:
            parameters.append(_if_match(required=must_match))
        if self.method == "GET" and isinstance(self.view, ConditionalRetrieveView):
            parameters.append(_IF_NONE_MATCH)
        for response in operation["responses"].values():
            if "text/csv" in response.get("content", {}):
                # The schema of a CSV file is one text, even if the view returns a list.
                response["content"]["text/csv"]["schema"] = {"type": "string"}
        _describe_headers(operation, conditional=must_match is not None or _IF_NONE_MATCH in parameters)
        if _IF_NONE_MATCH in parameters:
            operation["responses"]["304"] = {"description": "Unchanged since the response with this ETag."}
        statuses = self._statuses(operation, must_match)
        orders = operation["operationId"] in _ORDERS
        operation["responses"] |= problem_responses(self.registry, statuses, orders=orders)
        return operation

    def get_summary(self) -> str | None:
        """Return the first sentence of the description."""
        first_paragraph = self.get_description().split("\n\n")[0].replace("\n", " ")
        return super().get_summary() or first_paragraph.split(". ")[0].rstrip(".") or None

    def get_operation_id(self) -> str:
        """Return the operation's id. Dots (as in ``vlls.csv``) become ``_``, because most languages forbid
        dots in names.
        """
        return super().get_operation_id().replace(".", "_")

    def get_auth(self) -> list[dict[str, Any]]:
        """Return the authentication methods, each with the scopes that a token needs. A client needs only one
        of these methods.
        """
        signed: list[dict[str, Any]] = super().get_auth()
        if not any(signed):
            return signed
        return [dict.fromkeys(signed[0], scopes) for scopes in self._scopes()]

    def _scopes(self) -> list[list[str]]:
        """Return the alternative lists of scopes. A token needs all scopes of one list.

        The lists follow from BearerTokenAuthentication and from the view's permissions. A view with
        ``noc_only`` checks the role only after it has found the object; such a view also needs the scope
        ``noc``.
        """
        writes = self.method not in SAFE_METHODS and getattr(self.view, "writes", True)
        needed = getattr(self.view, "writes_with", None) if writes else None
        kinds = self.view.permission_classes
        nocs = getattr(self.view, "noc_only", False) or {IsNoc, IsNocAdmin, NocOnly} & set(kinds)
        if nocs or (writes and NocWrites in kinds):
            return [[str(Scope.NOC), *([str(needed)] if needed else [])]]
        if needed:
            return [[str(needed)]]
        return [[str(Scope.ORDER)], [str(Scope.NOC)]] if writes else [[]]

    def get_request_serializer(self) -> Any:
        """Return the serializer of requests: ``write_serializer`` if the view has one; None for no body."""
        if hasattr(self.view, "write_serializer"):
            return self.view.write_serializer
        return super().get_request_serializer()

    def get_response_serializers(self) -> Any:
        """Return the serializers of responses. A ``POST`` that adds an object to a list has status 201."""
        shown = super().get_response_serializers()
        return {201: shown} if self.method == "POST" and hasattr(self.view, "write_serializer") else shown

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)
        if direction == "request" and isinstance(serializer, StrictSerializer):
            schema["additionalProperties"] = False
        return schema

    def _statuses(self, operation: dict[str, Any], must_match: bool | None) -> list[int]:
        """Return the statuses of all problem documents that this operation can return."""
        statuses = {401, 403, 406, 429, 503}
        places = {parameter["in"] for parameter in operation["parameters"]}
        if "path" in places or any(p["name"] == "cursor" for p in operation["parameters"]):
            statuses.add(404)
        if "query" in places:
            statuses.add(422)
        if "requestBody" in operation:
            statuses |= {400, 413, 415, 422}
        if self.method not in SAFE_METHODS:
            statuses |= {400, 409, 413, 422}
        if must_match is not None:
            statuses |= {412, 428} if must_match else {412}
        return sorted(statuses)


def _if_match(*, required: bool) -> dict[str, Any]:
    return {
        "name": "If-Match",
        "in": "header",
        "required": required,
        "description": "The ETag of the version that you read; 412 if it has changed since. `*` matches any.",
        "schema": {"type": "string", "minLength": 1},
    }


def _describe_headers(operation: dict[str, Any], *, conditional: bool) -> None:
    for status, response in operation["responses"].items():
        names = []
        if status == "202":
            names = ["Location", "Retry-After"]
        elif status == "200" and conditional:
            names = ["ETag"]
        if names:
            response["headers"] = {name: _HEADERS[name] for name in names}
        if not response.get("description"):
            response["description"] = _MEANING.get(status, "Done.")


_MEANING = {
    "200": "Done.",
    "201": "Created.",
    "202": "Accepted: the portal carries it out. Follow it at Location.",
    "204": "Done; the response has no body.",
}
