"""Base views: the rows that a caller may see, as a list, as one object, or from a replica of the database."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from django.utils.cache import get_conditional_response
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from portal.accounts.models import User
from portal.api.rest.access_control import caller
from portal.api.rest.conditional_requests import PreconditionFailed, etag_of
from portal.core.db import replica
from portal.core.db.replica import from_replica

Row = TypeVar("Row", bound=Model)


def located(document: Any, name: str, *args: Any, request: Request, code: int = 201) -> Response:
    """Return a response with the address of a new object, or with ``code`` 202, of work that has begun.

    ``name`` and ``args``: the path of the object. The client polls the address of work every second.
    """
    headers = {"Location": reverse(f"api-v1:{name}", args=args, request=request)}
    if code == status.HTTP_202_ACCEPTED:
        headers["Retry-After"] = "1"
    return Response(document, status=code, headers=headers)


class VisibleRows(generics.GenericAPIView[Row]):
    """A view of the rows that the caller may see.

    ``rows(user)`` returns these rows. A view whose rows also depend on the path overrides ``visible_rows``. A
    view with the same rows for all callers has a ``queryset`` instead.
    """

    rows: ClassVar[Callable[[User], QuerySet[Any]]]

    def get_queryset(self) -> QuerySet[Row]:
        if type(self).queryset is not None:
            return super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            # The schema is generated without a caller, and needs only the model.
            serializer: Any = self.serializer_class
            return QuerySet[Row](serializer.Meta.model).none()
        return self.visible_rows()

    def visible_rows(self) -> QuerySet[Row]:
        return type(self).rows(caller(self.request))


class VisibleListView(VisibleRows[Row], generics.ListAPIView[Row]):
    """A list of the rows that the caller may see."""


class VisibleRowView(VisibleRows[Row], generics.RetrieveAPIView[Row]):
    """One of the rows that the caller may see."""


class ConditionalRetrieveView(VisibleRowView[Row]):
    """A view of one object. Responses have a strong ETag. The status is 304 if the client's copy
    is current.
    """

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        found = self.get_object()
        document = self.get_serializer(found).data
        etag = etag_of(document)
        # Caches must always revalidate: routers report every 10 s, and an older state would mislead readers.
        headers = {"ETag": etag, "Cache-Control": "private, no-cache", **self.retrieved_headers(found)}
        if get_conditional_response(request._request, etag=etag, response=None) is None:
            return Response(document, headers=headers)
        if request.headers.get("If-Match") is not None:
            raise PreconditionFailed
        return Response(status=status.HTTP_304_NOT_MODIFIED, headers=headers)

    def retrieved_headers(self, found: Row) -> dict[str, str]:
        """Return additional headers for a response that contains this object."""
        return {}


def confirmed(request: Request, rows: Any) -> Any:
    """Return the rows that the caller may see. If a replica exists, first read the caller's memberships from
    the primary.
    """
    return rows.confirmed_to(caller(request)) if replica.exists() else rows


class ReplicaListView(VisibleListView[Row]):
    """A paged list that may be read from a replica.

    The primary first decides which customers the caller may read. A replica could have outdated memberships.
    """

    def list(self, request: Request, *args: object, **kwargs: object) -> Response:
        rows = confirmed(request, self.filter_queryset(self.get_queryset()))
        return from_replica(request, lambda: self._page_of(rows))

    def _page_of(self, rows: QuerySet[Row]) -> Response:
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
