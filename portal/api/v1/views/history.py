"""What was changed on a VLL, from what to what, and by whom."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.openapi.history import HISTORY
from portal.api.v1.permissions import caller
from portal.audit.history import Change, vll_history
from portal.vll.models import Vll


class VllHistoryView(APIView):
    """The newest 200 changes of the VLL, its ends and its orders, newest first."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: HISTORY})
    def get(self, request: Request, pk: UUID) -> Response:
        vll = get_object_or_404(Vll.objects.visible_to(caller(request)), pk=pk)
        return Response({"results": [_change(change) for change in vll_history(vll)]})


def _change(change: Change) -> dict[str, Any]:
    by = change.by
    return {
        "at": change.at,
        "object": change.what,
        "operation": change.operation,
        "by": {name: by.get(name) for name in ("username", "token", "task", "request_id")},
        "before": change.before,
        "after": change.after,
    }
