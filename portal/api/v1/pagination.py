"""Keyset paging: the last page costs what the first does."""

from typing import Any

from rest_framework.pagination import CursorPagination
from rest_framework.response import Response


class KeysetPagination(CursorPagination):
    """``{"results": [...], "next": url or null}``; ``?limit=`` up to 200."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 200
    ordering: Any = "id"

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self.get_next_link()})


class NewestVllFirst(KeysetPagination):
    ordering = ("-created_at", "-id")


class NewestOrderFirst(KeysetPagination):
    ordering = ("-ordered_at", "-id")
