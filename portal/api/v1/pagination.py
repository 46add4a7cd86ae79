"""Keyset paging: the last page costs what the first does."""

from typing import Any

from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.response import Response


class KeysetPagination(CursorPagination):
    """``{"results": [...], "next": url or null}``; ``?limit=`` up to 200."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 200
    ordering: Any = "id"

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> Any:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, ValidationError) as error:
            # A cursor is ours; one whose position cannot be read was edited.
            raise NotFound(self.invalid_cursor_message) from error

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self.get_next_link()})


class NewestVllFirst(KeysetPagination):
    ordering = ("-created_at", "-id")


class NewestOrderFirst(KeysetPagination):
    ordering = ("-ordered_at", "-id")
