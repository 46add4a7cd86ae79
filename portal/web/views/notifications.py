"""The page to choose mails, and the page of the unsubscribe link in mails."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from portal.accounts import permissions
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.view_permission import public
from portal.notifications.mail_preferences import mails_choose, mails_stop, unsubscribe_of
from portal.web.forms.notifications import LABELS, MailsForm
from portal.web.page_guard import SignedInRequest, requires


@requires(permissions.may_sign_in)
@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: SignedInRequest) -> HttpResponse:
    form = MailsForm(request.POST if request.method == "POST" else None, user=request.user)
    if form.is_valid():
        mails_choose(user=request.user, wanted=form.wanted(), now=clock.now())
        messages.success(request, _("Your choice is saved."))
        return redirect("web:notifications")
    return render(request, "notifications/notifications.html", {"form": form})


# The view is exempt from the CSRF check, because mail programs send this POST without a session or a cookie
# (RFC 8058, section 3.1).
@csrf_exempt
@public
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, signed: str) -> HttpResponse:
    """Show a button to unsubscribe (GET), or disable the mails of the group (POST).

    GET alone does not unsubscribe, because mail scanners follow all links.
    """
    try:
        user, group = unsubscribe_of(signed)
    except DomainError as error:
        why = {"why": error.sentence}
        return render(request, "notifications/unknown_link.html", why, status=404)
    if request.method == "POST":
        mails_stop(user=user, group=group, now=clock.now())
    context = {"what": LABELS[group], "done": request.method == "POST"}
    return render(request, "notifications/unsubscribe.html", context)
