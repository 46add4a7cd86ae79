"""Certificates of agents: enrolment, renewal and revocation."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField
from rest_framework.views import APIView

from portal.api.rest.etags import NO_STORE
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.pagination import KeysetPagination
from portal.api.rest.permission_classes import IsNocAdmin, NocOnly, caller, token_of
from portal.api.rest.strict_fields import StrictCharField, StrictSerializer, validated
from portal.api.rest.throttling import PerAddress
from portal.api.rest.views import VisibleListView
from portal.core import clock
from portal.inventory.certificates import LIFETIME, certificates_revoke, enrolment_offer, router_enrol
from portal.inventory.models import Router, RouterCertificate


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
