"""The choice of emails, and the link that unsubscribes from one kind."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.http import public
from portal.notifications.mail_recipients import (
    groups_for,
    mails_choose,
    mails_stop,
    unsubscribe_of,
    wanted_groups,
)
from portal.notifications.models import Group
from portal.web.fields.base import TablerForm
from portal.web.page.page_guard import SignedInRequest, requires

LABELS = {
    Group.ORDERS: _("Orders: accepted, waiting for approval, changes done, rejected, cancelled"),
    Group.FAILURES: _("Orders that failed"),
    Group.LINES: _("Lines that are in service, suspended or removed"),
    Group.STATUS: _("Lines that have been down, or up again, for two minutes"),
    Group.REPORTS: _("The monthly report with the 95th percentiles"),
    Group.WEBHOOKS: _("Webhooks that were disabled because they failed"),
    Group.NOC: _("For the NOC: orders to approve, overdue orders, configuration drift"),
}


class MailsForm(TablerForm):
    """The form to choose mails, with a checkbox for each group of mails that the user can receive."""

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        wanted = wanted_groups(user)
        for group in groups_for(user):
            self.fields[group.value] = forms.BooleanField(
                label=LABELS[group],
                required=False,
                initial=group in wanted,
                widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
            )

    def wanted(self) -> list[str]:
        return [name for name, is_wanted in self.cleaned_data.items() if is_wanted]


@requires(permissions.may_sign_in)
@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: SignedInRequest) -> HttpResponse:
    form = MailsForm(request.POST if request.method == "POST" else None, user=request.user)
    if form.is_valid():
        mails_choose(user=request.user, wanted=form.wanted(), now=clock.now())
        messages.success(request, gettext("Your choice is saved."))
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
