"""Enrolment for ``longline-agent enroll``. The endpoint belongs to the public API, because an agent that
enrols has no certificate yet.
"""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField
from rest_framework.views import APIView

from portal.api.v1.cache_control import NO_STORE
from portal.api.v1.serializers.strict_fields import StrictCharField, StrictSerializer, validated
from portal.api.v1.throttling import PerAddress
from portal.core import clock
from portal.inventory.operations import router_enrol


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
