"""The state of the synchronization with NetBox, and the receiver of NetBox's webhook."""

import hashlib
import hmac
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.problem_details import problem_response
from portal.api.rest.access_control import IsNoc
from portal.core import clock
from portal.core.http import public
from portal.netbox_sync.netbox_status import netbox_status
from portal.netbox_sync.sync_run import change_announced


class NetboxSerializer(serializers.Serializer[Any]):
    """The state of the synchronization. If no NetBox is configured, ``configured`` is false and all other
    members are null.
    """

    configured = serializers.BooleanField()
    release = serializers.CharField(allow_null=True)
    stale = serializers.BooleanField(
        allow_null=True, help_text="Whether the last complete import is older than two intervals."
    )
    imported_at = serializers.DateTimeField(
        allow_null=True, help_text="The time of the last import that read all of NetBox."
    )
    exported_at = serializers.DateTimeField(
        allow_null=True, help_text="The time of the last check that found every line in NetBox up to date."
    )
    failing_since = serializers.DateTimeField(allow_null=True)
    retry_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(
        allow_null=True, help_text="The reason for the failure, and the action that it needs."
    )
    lines_waiting = serializers.IntegerField(
        allow_null=True, help_text="The number of lines that are not in NetBox yet."
    )
    lines_in_error = serializers.IntegerField(
        allow_null=True, help_text="The number of lines that NetBox refuses."
    )


class NetboxView(APIView):
    permission_classes = [IsNoc]

    @extend_schema(responses={200: NetboxSerializer})
    def get(self, request: Request) -> Response:
        """The state of the synchronization with NetBox: the last import and export, and lines not yet
        written.

        For NOC staff.
        """
        found = netbox_status(clock.now())
        if found is None:
            nothing = dict.fromkeys(NetboxSerializer().fields)
            return Response(NetboxSerializer(nothing | {"configured": False}).data)
        state = found.state
        document = {
            "configured": True,
            "release": state.release or None,
            "stale": found.stale,
            "imported_at": state.imported_at,
            "exported_at": state.exported_at,
            "failing_since": state.failing_since,
            "retry_at": state.retry_at,
            "error": found.error or None,
            "lines_waiting": found.waiting,
            "lines_in_error": found.in_error,
        }
        return Response(NetboxSerializer(document).data)


# Bytes. NetBox sends the whole object as it was before the change and as it is after the change.
MAX_BODY = 1024 * 1024


@csrf_exempt
@public
def netbox_hook(request: HttpRequest) -> HttpResponse:
    """Handle ``POST /api/netbox/hook/``: start an import if NetBox signed the body, and respond with 204.

    The content of the body does not matter. NetBox has no account in the portal. The signature in the header
    ``X-Hook-Signature`` (HMAC-SHA512 in hex) shows that NetBox sent the message. A repeated message causes
    another import. Many messages in a short time cause only one import.
    """
    if not (settings.NETBOX_URL and settings.NETBOX_WEBHOOK_SECRET):
        raise Http404
    if request.method != "POST":
        detail = f"The method {request.method} is not supported here."
        return problem_response("method-not-allowed", detail, headers={"Allow": "POST"})
    body = request.read(MAX_BODY + 1)
    if len(body) > MAX_BODY:
        return problem_response("too-large", f"The body may have at most {MAX_BODY} bytes.")
    if not _is_signed_by_netbox(body, request.headers.get("X-Hook-Signature", "")):
        detail = (
            "The signature is missing or wrong."
            " NETBOX_WEBHOOK_SECRET must have the same value as the secret of NetBox's webhook."
        )
        return problem_response("bad-signature", detail)
    change_announced(now=clock.now())
    return HttpResponse(status=204)


def _is_signed_by_netbox(body: bytes, signature: str) -> bool:
    expected = hmac.new(settings.NETBOX_WEBHOOK_SECRET.encode(), body, hashlib.sha512).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode(errors="replace"))
