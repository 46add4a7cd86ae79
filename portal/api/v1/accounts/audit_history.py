"""The history of objects: who changed which column, when."""

from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Model
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.allocation.models import ReservedVniRange
from portal.api.openapi.schemas import INSTANT, TEXT, array, record
from portal.api.rest.access_control import IsNoc, caller
from portal.api.v1.lines.serializers import visible_line
from portal.audit import history
from portal.inventory.models import BackboneLink, Port, Site
from portal.notifications.models import Webhook

_COLUMNS = {"type": ["object", "null"], "description": "The changed columns, by name."}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_BY = ("username", "token", "task", "request_id")
HISTORY = record(
    results=array(
        record(
            at=INSTANT,
            object=TEXT,
            operation=TEXT,
            by={"type": "object", "properties": dict.fromkeys(_BY, _TEXT_OR_NULL)},
            before=_COLUMNS,
            after=_COLUMNS,
        )
    )
)


class VllHistoryView(APIView):
    """The latest 200 changes of the VLL, its ends and its orders, newest first."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: HISTORY})
    def get(self, request: Request, pk: UUID) -> Response:
        return _response(history.vll_history(visible_line(request, pk)))


class InventoryHistoryView(APIView):
    """The base of histories of an object with an id: the changes of a row of ``model``, or ``changes``."""

    model: ClassVar[type[Model]]
    changes: ClassVar[Callable[[int], list[history.Change]] | None] = None

    @extend_schema(responses={200: HISTORY})
    def get(self, request: Request, pk: int) -> Response:
        self.check_reader(request, pk)
        changes = type(self).changes
        found = changes(pk) if changes else history.object_history(self.model, pk)
        if not found:
            raise Http404
        return _response(found)

    def check_reader(self, request: Request, pk: int) -> None:
        """Raise Http404 if the caller may not see the object. Views that customers can use override this."""


class SharedHistoryView(InventoryHistoryView):
    """The history of an object that customers may see. A customer who requests the history gets 403."""

    noc_only = True
    model: ClassVar[type[Port | Webhook]]

    def check_reader(self, request: Request, pk: int) -> None:
        if not caller(request).is_noc:
            get_object_or_404(self.model.objects.visible_to(caller(request)), pk=pk)
            raise PermissionDenied(IsNoc.message)


class SiteHistoryView(InventoryHistoryView):
    """The latest 200 changes of a site, newest first. The site may be removed. For NOC staff."""

    permission_classes = [IsNoc]
    model = Site


class RouterHistoryView(InventoryHistoryView):
    """The latest 200 changes of a router, its certificates and enrolments, newest first. The router may be
    removed. For NOC staff.
    """

    permission_classes = [IsNoc]
    changes = history.router_history


class PortHistoryView(SharedHistoryView):
    """The latest 200 changes of a port, newest first. The port may be removed. For NOC staff."""

    permission_classes = [IsAuthenticated]
    model = Port


class LinkHistoryView(InventoryHistoryView):
    """The latest 200 changes of a link, newest first. The link may be removed. For NOC staff."""

    permission_classes = [IsNoc]
    model = BackboneLink


class VniRangeHistoryView(InventoryHistoryView):
    """The latest 200 changes of a reserved range, newest first. The range may be removed. For NOC staff."""

    permission_classes = [IsNoc]
    model = ReservedVniRange


class CustomerHistoryView(InventoryHistoryView):
    """The latest 200 changes of a customer, its members, invitations and reservations, newest first. For NOC
    staff.
    """

    permission_classes = [IsNoc]
    changes = history.customer_history


class WebhookHistoryView(SharedHistoryView):
    """The latest 200 changes of a webhook, newest first. The webhook may be removed. For NOC staff."""

    permission_classes = [IsAuthenticated]
    model = Webhook


class PersonHistoryView(InventoryHistoryView):
    """The latest 200 changes of an account, its roles and its sign-in methods, newest first.

    Everybody can read the history of their own account. NOC staff can read the histories of all accounts.
    """

    permission_classes = [IsAuthenticated]

    changes = history.person_history

    def check_reader(self, request: Request, pk: int) -> None:
        if pk != caller(request).pk and not caller(request).is_noc:
            raise Http404


def _response(found: list[history.Change]) -> Response:
    return Response({"results": [_change(change) for change in found]})


def _change(change: history.Change) -> dict[str, Any]:
    by = change.by
    return {
        "at": change.at,
        "object": change.what,
        "operation": change.operation,
        "by": {name: by.get(name) for name in _BY},
        "before": _plain(change.before),
        "after": _plain(change.after),
    }


def _plain(value: Any) -> Any:
    """Return the value for JSON, with IP networks as text."""
    match value:
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
        case IPv4Network() | IPv6Network():
            return str(value)
        case _:
            return value
