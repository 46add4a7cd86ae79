"""One operation's part of the schema: what DRF cannot tell drf-spectacular, told once for all views."""

from typing import Any

from drf_spectacular.openapi import AutoSchema
from rest_framework.permissions import SAFE_METHODS

from portal.accounts.models import Scope
from portal.api.openapi.problem_details import problem_answers
from portal.api.v1.etags import ConditionalRetrieveView
from portal.api.v1.permission_classes import IsNoc, IsNocAdmin
from portal.api.v1.serializers.strict_fields import StrictSerializer
from portal.api.v1.views.inventory_crud import InventoryListView, NocAlone, NocWrites

_HEADERS = {
    "ETag": {
        "description": "The strong validator of this answer; send it as If-Match or If-None-Match.",
        "schema": {"type": "string", "pattern": '^"[0-9a-f]{32}"$'},
    },
    "Location": {
        "description": "Where to watch the order, or where the new object is.",
        "schema": {"type": "string", "format": "uri"},
    },
    "Retry-After": {
        "description": "Seconds to wait before asking again.",
        "schema": {"type": "integer", "minimum": 1},
    },
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Draw one per write, such as a UUID. The same request with the same key gets the first"
    " answer again for 24 hours, and nothing is done twice. A refusal by a state that passes (409)"
    " is not kept: the same request later is another try.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!#-~]+$"},
}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the answer that you have; 304 if it would be the same.",
    "schema": {"type": "string"},
}
# They say what an order, or a hold for one, is refused for.
_ORDERS = {"vlls_create", "vlls_partial_update", "vlls_validate_create", "holds_create"}


class DocumentedOperation(AutoSchema):
    """Adds conditional and idempotent requests, the headers of answers, and every problem that may come."""

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
        for answer in operation["responses"].values():
            if "text/csv" in answer.get("content", {}):
                # Also where it is a list's: one text, and no array of them.
                answer["content"]["text/csv"]["schema"] = {"type": "string"}
        _describe_headers(operation, conditional=must_match is not None or _IF_NONE_MATCH in parameters)
        if _IF_NONE_MATCH in parameters:
            operation["responses"]["304"] = {"description": "Unchanged since the answer whose ETag you sent."}
        statuses = self._statuses(operation, must_match)
        orders = operation["operationId"] in _ORDERS
        operation["responses"] |= problem_answers(self.registry, statuses, orders=orders)
        return operation

    def _is_create_operation(self) -> bool:
        """Lists that the NOC adds to answer 201, although DRF has no mixin for it."""
        return super()._is_create_operation() or (
            self.method == "POST" and isinstance(self.view, InventoryListView)
        )

    def get_summary(self) -> str | None:
        """The first sentence of the description."""
        return (
            super().get_summary() or self.get_description().split(". ")[0].split("\n")[0].rstrip(".") or None
        )

    def get_operation_id(self) -> str:
        """Without the dot of ``vlls.csv``, which is no part of a name in most languages."""
        return super().get_operation_id().replace(".", "_")

    def get_auth(self) -> list[dict[str, Any]]:
        """What signs a request, and the scopes that a token needs for it: any of the entries is enough."""
        signed: list[dict[str, Any]] = super().get_auth()
        if not any(signed):
            return signed
        return [dict.fromkeys(signed[0], scopes) for scopes in self._scopes()]

    def _scopes(self) -> list[list[str]]:
        """The choices of scopes, as BearerTokenAuthentication and the view's permission take them together.

        ``noc_alone`` is of views that refuse everybody else only once the object was found.
        """
        writes = self.method not in SAFE_METHODS and getattr(self.view, "writes", True)
        needed = getattr(self.view, "writes_with", None) if writes else None
        kinds = self.view.permission_classes
        nocs = getattr(self.view, "noc_alone", False) or {IsNoc, IsNocAdmin, NocAlone} & set(kinds)
        if nocs or (writes and NocWrites in kinds):
            return [[str(Scope.NOC), *([str(needed)] if needed else [])]]
        if needed:
            return [[str(needed)]]
        return [[str(Scope.ORDER)], [str(Scope.NOC)]] if writes else [[]]

    def get_request_serializer(self) -> Any:
        """The serializer of what a view reads, where that differs from what it shows."""
        return getattr(self.view, "write_serializer", None) or super().get_request_serializer()

    def get_response_serializers(self) -> Any:
        """The responses; 201 where a list is added to."""
        shown = super().get_response_serializers()
        return {201: shown} if self.method == "POST" and hasattr(self.view, "write_serializer") else shown

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)
        if direction == "request" and isinstance(serializer, StrictSerializer):
            schema["additionalProperties"] = False
        return schema

    def _statuses(self, operation: dict[str, Any], must_match: bool | None) -> list[int]:
        """The problems that this operation can end in."""
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
        "description": "The ETag of the version that you saw; 412 if it has changed since. `*` for any.",
        "schema": {"type": "string", "minLength": 1},
    }


def _describe_headers(operation: dict[str, Any], *, conditional: bool) -> None:
    for status, answer in operation["responses"].items():
        names = []
        if status == "202":
            names = ["Location", "Retry-After"]
        elif status == "200" and conditional:
            names = ["ETag"]
        if names:
            answer["headers"] = {name: _HEADERS[name] for name in names}
        if not answer.get("description"):
            answer["description"] = _MEANING.get(status, "Done.")


_MEANING = {
    "200": "Done.",
    "201": "Created.",
    "202": "Accepted: its effect follows. Watch it at Location.",
    "204": "Done; the answer has no body.",
}
