"""Lists of the API that can be read from a replica of the database."""

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.rest.permission_classes import caller
from portal.core.db import replica
from portal.core.db.replica import from_replica

Row = TypeVar("Row", bound=Model)


def confirmed(request: Request, rows: Any) -> Any:
    """Return the rows that the caller may see. If a replica exists, first read the caller's memberships from
    the primary.
    """
    return rows.confirmed_to(caller(request)) if replica.exists() else rows


class ReplicaListView(generics.ListAPIView[Row]):
    """A paged list that may be read from a replica.

    The primary first decides which customers the caller may read. A replica could have outdated memberships.
    """

    def list(self, request: Request, *args: object, **kwargs: object) -> Response:
        rows = confirmed(request, self.filter_queryset(self.get_queryset()))
        return from_replica(request, lambda: self._page_of(rows))

    def _page_of(self, rows: QuerySet[Row]) -> Response:
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
