"""The base views of the inventory: lists that the NOC can extend, and items that the NOC can
change and remove.
"""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils.translation import gettext_noop as _
from rest_framework import generics, status
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.serializers import Serializer

from portal.api.rest.etags import ConditionalRetrieveView, etag_of, if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.pagination import KeysetPagination
from portal.api.rest.partial_update import changed_members
from portal.api.rest.permission_classes import caller
from portal.api.rest.strict_fields import validated
from portal.core import clock
from portal.inventory.operations import Writes


class NocWrites(BasePermission):
    """Allows all users to read within their tenant scope, NOC staff to write, and NOC admins to remove."""

    message = _("Only NOC staff may change this, and only NOC admins remove it.")

    def has_permission(self, request: Request, view: Any) -> bool:
        user = caller(request)
        if request.method in SAFE_METHODS:
            return True
        return user.is_noc_admin if request.method == "DELETE" else user.is_noc


class NocOnly(NocWrites):
    """Allows only NOC staff to read and write, and only NOC admins to remove."""

    message = _("Only NOC staff may see this, and only NOC admins remove it.")

    def has_permission(self, request: Request, view: Any) -> bool:
        return caller(request).is_noc and super().has_permission(request, view)


class InventoryView(generics.GenericAPIView[Any]):
    """The common part of the views of a kind of row.

    ``writes``: the operations of the kind. ``keyword``: the name of the argument by which ``writes.change``
    and ``writes.remove`` get the row.
    """

    write_serializer: ClassVar[type[Serializer[Any]]]
    writes: ClassVar[Writes]
    keyword: ClassVar[str]


class InventoryListView(InventoryView, generics.ListAPIView[Any]):
    """A list."""

    pagination_class = KeysetPagination

    @once_per_key
    def post(self, request: Request) -> Response:
        """Add an object. For NOC staff."""
        body = validated(self.write_serializer, request.data)
        made = self.writes.create(user=caller(request), now=clock.now(), **body)
        document = self.get_serializer(self.get_queryset().get(pk=made.pk)).data
        item = self.keyword.replace("_", "-")
        location = reverse(f"api-v1:{item}", args=[made.pk], request=request)
        headers = {"Location": location, "ETag": etag_of(document)}
        return Response(document, status=status.HTTP_201_CREATED, headers=headers)


class InventoryItemView(InventoryView, ConditionalRetrieveView[Any]):
    """An item."""

    @once_per_key
    @if_match(required=True)
    def patch(self, request: Request, found: Any) -> Response:
        """Change the object. For NOC staff. Members that are equal to the current values change nothing."""
        document = self.get_serializer(found).data
        body = changed_members(request.data, document, self.write_serializer())
        if body:
            changes = validated(self.write_serializer, body, partial=True)
            self.writes.change(**{self.keyword: found}, user=caller(request), now=clock.now(), **changes)
            rows: QuerySet[Any] = self.get_queryset()
            document = self.get_serializer(rows.get(pk=found.pk)).data
        return Response(document, headers={"ETag": etag_of(document)})

    @once_per_key
    @if_match(required=False)
    def delete(self, request: Request, found: Any) -> Response:
        """Remove the object. For NOC admins. An object that is in use cannot be removed."""
        self.writes.remove(**{self.keyword: found}, user=caller(request), now=clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
