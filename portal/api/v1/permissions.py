"""Who may use a view at all; what it then shows is a matter of tenant scope."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request


class IsNoc(BasePermission):
    """NOC staff only: the inside of the network is nobody else's business."""

    message = "Only NOC staff may see this."

    def has_permission(self, request: Request, view: Any) -> bool:
        return bool(request.user and request.user.is_authenticated and request.user.is_noc)
