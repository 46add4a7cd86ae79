"""The receiver of NetBox's webhook. After a change in NetBox, the portal starts the next import
immediately.
"""

import hashlib
import hmac

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from portal.api.problem_details import problem_response
from portal.core import clock
from portal.core.http.view_permission import public
from portal.netbox_sync.sync_run import change_announced

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
