"""NetBox's own webhook, which says that something has changed: the next import comes at once."""

import hashlib
import hmac

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from portal.api.problem_details import problem_answer
from portal.core import clock
from portal.core.view_permission import public
from portal.netbox_sync.run_queue import change_announced

# NetBox sends a whole object and how it was before.
MAX_BODY = 1024 * 1024


@csrf_exempt
@public
def netbox_hook(request: HttpRequest) -> HttpResponse:
    """``POST /api/netbox/hook/``: 204 when the body is signed by NetBox; nothing else is read of it.

    NetBox has no account here, so its signature is looked at: HMAC-SHA512 in hex, in ``X-Hook-Signature``.
    Who repeats a message only has NetBox looked at once more, and many messages make one look.
    """
    if not (settings.NETBOX_URL and settings.NETBOX_WEBHOOK_SECRET):
        raise Http404
    if request.method != "POST":
        detail = f"{request.method} is not taken here"
        return problem_answer("method-not-allowed", detail, headers={"Allow": "POST"})
    body = request.read(MAX_BODY + 1)
    if len(body) > MAX_BODY:
        return problem_answer("too-large", f"at most {MAX_BODY} bytes")
    if not _is_netboxs(body, request.headers.get("X-Hook-Signature", "")):
        detail = (
            "The signature is missing or wrong. NetBox's webhook and NETBOX_WEBHOOK_SECRET need one secret."
        )
        return problem_answer("bad-signature", detail)
    change_announced(now=clock.now())
    return HttpResponse(status=204)


def _is_netboxs(body: bytes, signature: str) -> bool:
    expected = hmac.new(settings.NETBOX_WEBHOOK_SECRET.encode(), body, hashlib.sha512).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode(errors="replace"))
