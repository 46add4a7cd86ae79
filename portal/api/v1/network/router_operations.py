"""Operations on a router: certificates of its agent, actions of the NOC, calibration and drain."""

import json
from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ErrorDetail
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField
from rest_framework.views import APIView

from portal.allocation.packet_capacity import calibration_of, calibration_read, transport_costs
from portal.api.rest.access_control import IsNocAdmin, NocOnly, PerAddress, caller, token_of
from portal.api.rest.conditional_requests import NO_STORE
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import KeysetPagination
from portal.api.rest.request_bodies import StrictBooleanField, StrictCharField, StrictSerializer, validated
from portal.api.rest.views import VisibleListView
from portal.api.v1.network.inventory_serializers import RouterSerializer
from portal.core import clock
from portal.core.network.encapsulations import Transport
from portal.inventory.certificates import LIFETIME, certificates_revoke, enrolment_offer, router_enrol
from portal.inventory.models import Router, RouterCertificate
from portal.inventory.models.router import LONGEST_REASON
from portal.vll.convergence.requests import generation_adopt_request
from portal.vll.models import VllEnd
from portal.vll.router_operations import actions, drain
from portal.vll.router_operations.freeze import freeze_acknowledge, router_freeze, router_unfreeze


class EnrolmentSerializer(serializers.Serializer[Any]):
    """A one-time token for ``longline-agent enroll``. A newer token makes it void."""

    router = serializers.CharField()
    token = serializers.CharField(help_text="It is not shown again.")
    expires_at = serializers.DateTimeField()


class CertificateSerializer(serializers.ModelSerializer[RouterCertificate]):
    class Meta:
        model = RouterCertificate
        fields = ["serial", "fingerprint", "issued_at", "expires_at", "revoked_at"]


class RevocationSerializer(StrictSerializer):
    """The certificates to revoke. ``serial`` null: all certificates of the router."""

    serial = StrictCharField(max_length=40, allow_null=True)


class RevokedSerializer(serializers.Serializer[Any]):
    """The serial numbers of the certificates that this request revoked."""

    revoked = serializers.ListField(child=serializers.CharField())


class EnrolmentView(APIView):
    permission_classes = [IsNocAdmin]

    # ``once_per_key`` is missing on purpose: it would store the token with the response.
    @extend_schema(request=None, responses={201: EnrolmentSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Create a one-time token for the router's agent. For NOC admins. Only this response contains it."""
        router, now = get_object_or_404(Router, pk=pk), clock.now()
        token = enrolment_offer(router=router, user=caller(request), made_with=token_of(request), now=now)
        document = {"router": router.name, "token": token, "expires_at": now + LIFETIME}
        return Response(EnrolmentSerializer(document).data, status=status.HTTP_201_CREATED, headers=NO_STORE)


class CertificatesView(VisibleListView[RouterCertificate]):
    """The certificates that were issued to a router, including revoked certificates. For NOC staff."""

    permission_classes = [NocOnly]
    serializer_class = CertificateSerializer
    pagination_class = KeysetPagination

    def visible_rows(self) -> QuerySet[RouterCertificate]:
        return get_object_or_404(Router, pk=self.kwargs["pk"]).certificates.all()


class RevocationView(APIView):
    permission_classes = [NocOnly]

    @extend_schema(request=RevocationSerializer, responses={200: RevokedSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Revoke one certificate of a router, or all. For NOC staff. It takes effect immediately and cannot
        be undone.
        """
        router = get_object_or_404(Router, pk=pk)
        body = validated(RevocationSerializer, request.data)
        serials = certificates_revoke(router=router, serial=body["serial"], now=clock.now())
        return Response({"revoked": serials})


class EnrolSerializer(StrictSerializer):
    """A certificate request. ``csr_pem``: PKCS #10 (RFC 2986); names in it are ignored.

    ``router``: the router's name in the agent's configuration. If the token is for another router, it is
    refused and stays valid.
    """

    token = StrictCharField(max_length=100)
    csr_pem = StrictCharField(max_length=10_000, trim_whitespace=False, several_lines=True)
    router = StrictCharField(max_length=63, required=False)


class EnrolledSerializer(StrictSerializer):
    """The certificate for the key in the request, and the CA that portal and agents trust."""

    router = CharField()
    certificate_pem = CharField()
    ca_pem = CharField()


class EnrolView(APIView):
    """Exchange a one-time token and a certificate request for a router's certificate.

    A repeated request with the same token and the same key gets the same certificate.
    """

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]
    throttle_classes = [PerAddress]

    @extend_schema(request=EnrolSerializer, responses={201: EnrolledSerializer})
    def post(self, request: Request) -> Response:
        body = validated(EnrolSerializer, request.data)
        row, certificate_pem, ca_pem = router_enrol(now=clock.now(), **body)
        document = {"router": row.router.name, "certificate_pem": certificate_pem, "ca_pem": ca_pem}
        return Response(EnrolledSerializer(document).data, status=status.HTTP_201_CREATED, headers=NO_STORE)


CARE = (
    *("maintenance-begin", "maintenance-end", "drain-begin", "drain-end", "hold", "release", "retry"),
    *("reconcile", "declare-dead", "declare-alive", "freeze", "unfreeze", "freeze-looked"),
)


class RouterActionSerializer(StrictSerializer):
    """An action on a router.

    * ``accept_affected``: allows a drain even if lines in service no longer fit the remaining paths.
    * ``reason``: required for `declare-dead` (only NOC admins) and `freeze`.
    * ``until``: the end of a freeze.
    """

    do = serializers.ChoiceField(choices=CARE)
    accept_affected = StrictBooleanField(required=False, default=False)
    reason = StrictCharField(required=False, max_length=500, several_lines=True)
    until = serializers.DateTimeField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        wrong: dict[str, ErrorDetail] = {}
        if attrs["do"] in ("declare-dead", "freeze") and "reason" not in attrs:
            wrong["reason"] = ErrorDetail(_("Give a reason: it is kept with the router."), code="required")
        if attrs["do"] == "freeze" and len(attrs.get("reason", "")) > LONGEST_REASON:
            too_long = _("Enter a reason for the freeze, of up to {n} characters.").format(n=LONGEST_REASON)
            wrong["reason"] = ErrorDetail(too_long, code="max_length")
        if attrs["do"] == "freeze" and "until" not in attrs:
            wrong["until"] = ErrorDetail(_("Enter the end of the freeze."), code="required")
        if wrong:
            raise serializers.ValidationError({name: [detail] for name, detail in wrong.items()})
        return attrs


class CalibrationWriteSerializer(StrictSerializer):
    """A calibration. ``calibration``: the output of ``longline-agent calibrate -json`` on this router. With
    null, the shipped table applies again. ``accept_affected`` allows the change even if the router's lines
    then need more cores than the router has.
    """

    calibration = serializers.DictField(allow_null=True)
    accept_affected = StrictBooleanField(required=False, default=False)


class TransportCostSerializer(serializers.Serializer[Any]):
    """The cost of a transport on a router.

    * ``clocks``: measured clocks per frame of 64 bytes; null if not measured.
    * ``mpps_per_core``: the rate that order checks use, in millions of such frames per second and core.
    * ``mpps_by_table``: the rate in the shipped table, in the same unit.
    """

    transport = serializers.ChoiceField(choices=[transport.value for transport in Transport])
    clocks = serializers.FloatField(allow_null=True)
    mpps_per_core = serializers.FloatField()
    mpps_by_table = serializers.FloatField()


class CalibrationSerializer(serializers.Serializer[Any]):
    """The cost of each transport on a router. ``measured_at``, ``vpp_version``, ``cpu`` and ``clock_hz`` are
    null if the shipped cost table applies because no calibration has been accepted.
    """

    measured_at = serializers.DateTimeField(allow_null=True)
    vpp_version = serializers.CharField(allow_null=True)
    cpu = serializers.CharField(allow_null=True)
    clock_hz = serializers.FloatField(allow_null=True)
    transports = TransportCostSerializer(many=True)


class DrainProgressSerializer(serializers.Serializer[Any]):
    """The progress of a drain. ``carrying``: the number of ends that forward or may forward. ``leaving``: the
    number of ends that moved away but whose removal the router has not confirmed.
    """

    drained_since = serializers.DateTimeField(allow_null=True)
    carrying = serializers.IntegerField()
    stopped = serializers.IntegerField()
    leaving = serializers.IntegerField()
    is_drained = serializers.BooleanField()


class DrainEndSerializer(serializers.ModelSerializer[VllEnd]):
    """An end on the router, and the next step for its line."""

    description = serializers.CharField(source="vll.description")
    customer = serializers.CharField(source="vll.customer.name")
    lifecycle = serializers.CharField(source="vll.lifecycle")
    port_name = serializers.CharField(source="port.__str__")
    step = serializers.SerializerMethodField(
        help_text="move: the customer has a port on another router; suspend: the customer has none; wait: an"
        " order is under way; stopped: the end forwards nothing."
    )

    class Meta:
        model = VllEnd
        fields = ["vll", "side", "description", "customer", "lifecycle", "port", "port_name", "step"]

    def get_step(self, end: VllEnd) -> drain.DrainStep:
        return drain.drain_step(end)


_ROUTERS = Router.objects.filter(retired_at__isnull=True).select_related("site")
_DO: dict[str, Callable[..., Any]] = {
    "maintenance-begin": lambda **request: actions.router_maintenance_set(on=True, **request),
    "maintenance-end": lambda **request: actions.router_maintenance_set(on=False, **request),
    "drain-begin": drain.drain_begin,
    "drain-end": drain.drain_end,
    "hold": lambda **request: actions.router_lock_set(on=True, **request),
    "release": lambda **request: actions.router_lock_set(on=False, **request),
    "retry": actions.router_retry,
    "reconcile": generation_adopt_request,
    "declare-dead": actions.router_declare_dead,
    "declare-alive": actions.router_declare_alive,
    "freeze": router_freeze,
    "unfreeze": router_unfreeze,
    "freeze-looked": freeze_acknowledge,
}


class RouterActionsView(APIView):
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
    permission_classes = [NocOnly]

    @extend_schema(responses={200: DrainProgressSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """The progress of a drain: the numbers of ends that are still on the router. For NOC staff."""
        router = get_object_or_404(_ROUTERS, pk=pk)
        found = drain.drain_progress(router)
        document: dict[str, Any] = {
            "drained_since": router.drained_since,
            "carrying": found.carrying,
            "stopped": found.steps[drain.DrainStep.STOPPED],
            "leaving": found.leaving,
            "is_drained": found.is_drained,
        }
        return Response(DrainProgressSerializer(document).data)


class RouterEndsView(VisibleListView[VllEnd]):
    """The ends on a router whose lines have not ended, and for each end the next step of a drain. For NOC
    staff.
    """

    permission_classes = [NocOnly]
    serializer_class = DrainEndSerializer
    pagination_class = KeysetPagination

    def visible_rows(self) -> QuerySet[VllEnd]:
        return drain.ends_to_drain(get_object_or_404(_ROUTERS, pk=self.kwargs["pk"]))


class RouterCalibrationView(APIView):
    permission_classes = [NocOnly]

    @extend_schema(responses={200: CalibrationSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """The costs of transports that order checks use for this router. For NOC staff."""
        return Response(_document(get_object_or_404(Router, pk=pk)))

    @extend_schema(request=CalibrationWriteSerializer, responses={200: CalibrationSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Use a calibration of this router. For NOC staff. With null, the shipped table applies again. The
        load of the router's lines is booked again.
        """
        router = get_object_or_404(Router, pk=pk)
        body = validated(CalibrationWriteSerializer, request.data)
        document = body["calibration"]
        actions.router_calibration_set(
            router=router,
            calibration=None
            if document is None
            else calibration_read(json.dumps(document), router=router.name),
            accept_affected=body["accept_affected"],
            user=caller(request),
            now=clock.now(),
        )
        return Response(_document(Router.objects.get(pk=pk)))


def _document(router: Router) -> dict[str, Any]:
    calibration = calibration_of(router)
    taken = {
        name: getattr(calibration, name, None) for name in ("measured_at", "vpp_version", "cpu", "clock_hz")
    }
    return dict(CalibrationSerializer({**taken, "transports": transport_costs(router)}).data)
