"""The NOC's actions on a router, the progress of a drain, and the ends on a router."""

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.idempotency import once_per_key
from portal.api.v1.pagination import KeysetPagination
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.inventory import RouterSerializer
from portal.api.v1.serializers.router_actions import (
    DrainEndSerializer,
    DrainProgressSerializer,
    RouterActionSerializer,
)
from portal.api.v1.serializers.strict_fields import validated
from portal.api.v1.views.inventory_crud import NocOnly
from portal.core import clock
from portal.inventory.models import Router
from portal.vll.models import VllEnd
from portal.vll.router_operations.actions import (
    generation_adopt_request,
    router_declare_alive,
    router_declare_dead,
    router_lock_set,
    router_maintenance_set,
    router_retry,
)
from portal.vll.router_operations.drain import (
    DrainStep,
    drain_begin,
    drain_end,
    drain_progress,
    ends_to_drain,
)
from portal.vll.router_operations.freeze import freeze_acknowledge, router_freeze, router_unfreeze

_ROUTERS = Router.objects.filter(retired_at__isnull=True).select_related("site")
_DO: dict[str, Callable[..., Any]] = {
    "maintenance-begin": lambda **request: router_maintenance_set(on=True, **request),
    "maintenance-end": lambda **request: router_maintenance_set(on=False, **request),
    "drain-begin": drain_begin,
    "drain-end": drain_end,
    "hold": lambda **request: router_lock_set(on=True, **request),
    "release": lambda **request: router_lock_set(on=False, **request),
    "retry": router_retry,
    "reconcile": generation_adopt_request,
    "declare-dead": router_declare_dead,
    "declare-alive": router_declare_alive,
    "freeze": router_freeze,
    "unfreeze": router_unfreeze,
    "freeze-looked": freeze_acknowledge,
}


class RouterActionsView(APIView):
    """The NOC's actions on a router."""

    permission_classes = [NocOnly]

    @extend_schema(request=RouterActionSerializer, responses={200: RouterSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Carry out an action on a router. For NOC staff; only NOC admins can declare a router dead or alive.

        The member `do` names the action:

        * `maintenance-begin`, `maintenance-end`, `drain-begin`, `drain-end`, `freeze`, `unfreeze`.
        * `hold` and `release`: stop sending to the router, and resume.
        * `freeze-looked`: acknowledge the differences that exist after a freeze.
        * `retry`: send the intent immediately.
        * `reconcile`: continue from the agent's generation.
        * `declare-dead`: removals no longer wait for the router. `declare-alive`: removals wait for it again.
        """
        router = get_object_or_404(_ROUTERS, pk=pk)
        body = validated(RouterActionSerializer, request.data)
        do: str = body["do"]
        more: dict[str, Any] = {}
        if do.startswith("drain"):
            more["accept_affected"] = body["accept_affected"]
        elif do == "declare-dead":
            more["reason"] = body["reason"]
        elif do == "freeze":
            more |= {"reason": body["reason"], "until": body["until"]}
        _DO[do](router=router, user=caller(request), now=clock.now(), **more)
        return Response(RouterSerializer(_ROUTERS.get(pk=pk)).data)


class RouterDrainView(APIView):
    """The progress of a drain."""

    permission_classes = [NocOnly]

    @extend_schema(responses={200: DrainProgressSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """The progress of a drain: the numbers of ends that are still on the router. For NOC staff."""
        router = get_object_or_404(_ROUTERS, pk=pk)
        found = drain_progress(router)
        document: dict[str, Any] = {
            "drained_since": router.drained_since,
            "carrying": found.carrying,
            "stopped": found.steps[DrainStep.STOPPED],
            "leaving": found.leaving,
            "is_drained": found.is_drained,
        }
        return Response(DrainProgressSerializer(document).data)


class RouterEndsView(generics.ListAPIView[VllEnd]):
    """The ends on a router whose lines have not ended, and for each end the next step of a drain. For NOC
    staff.
    """

    permission_classes = [NocOnly]
    queryset = VllEnd.objects.none()
    serializer_class = DrainEndSerializer
    pagination_class = KeysetPagination

    def get_queryset(self) -> QuerySet[VllEnd]:
        if "pk" not in self.kwargs:
            return VllEnd.objects.none()
        return ends_to_drain(get_object_or_404(_ROUTERS, pk=self.kwargs["pk"]))
