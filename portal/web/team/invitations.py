"""The page of an invitation's link.

A person without an account creates one. A user becomes a member. If the user's account was closed because its
customer was retired, the account is reopened.
"""

from allauth.account.adapter import get_adapter
from allauth.account.utils import perform_login
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from portal.accounts import invitations
from portal.accounts.models import Invitation, User
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.http.view_permission import public
from portal.web.team.team_forms import NewAccountForm, NewPasswordForm


@public
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, signed: str) -> HttpResponse:
    """Show the invitation (GET), or accept it (POST). If the link is not valid, the status is 410."""
    try:
        found = invitations.invitation_of(signed, now=clock.now())
    except DomainError as error:
        return render(request, "team/invitation_gone.html", {"why": error.sentence}, status=410)
    if isinstance(request.user, User):
        return _as_oneself(request, request.user, found)
    account = invitations.account_of(found)
    if account is None:
        return _as_somebody_new(request, found)
    if account.closed_with_id is not None:
        return _as_somebody_returning(request, account, found)
    return render(request, "team/invitation_sign_in.html", {"invitation": found, "account": account})


def _as_oneself(request: HttpRequest, user: User, found: Invitation) -> HttpResponse:
    refusal = ""
    if request.method == "POST":
        try:
            invitations.accept_as(user=user, invitation=found, now=clock.now())
        except DomainError as error:
            refusal = error.sentence
        else:
            return _welcome(request, found)
    context = {"invitation": found, "refusal": refusal}
    return render(request, "team/invitation.html", context, status=409 if refusal else None)


def _as_somebody_new(request: HttpRequest, found: Invitation) -> HttpResponse:
    form = NewAccountForm(request.POST or None, account=User(email=found.email))
    if form.is_valid():
        try:
            user = invitations.accept_as_new(invitation=found, now=clock.now(), **form.cleaned_data)
        except DomainError as error:
            form.refuse(error)
        else:
            get_adapter().login(request, user)
            return _welcome(request, found)
    return _form(request, found, form)


def _as_somebody_returning(request: HttpRequest, account: User, found: Invitation) -> HttpResponse:
    form = NewPasswordForm(request.POST or None, account=account)
    if form.is_valid():
        try:
            user = invitations.accept_reopening(invitation=found, now=clock.now(), **form.cleaned_data)
        except DomainError as error:
            form.refuse(error)
        else:
            # Users with a second factor must enter it, as on the sign-in page.
            signed_in: HttpResponse = perform_login(request, user, redirect_url=reverse("web:overview"))
            _welcome_message(request, found)
            return signed_in
    return _form(request, found, form, account)


def _form(
    request: HttpRequest, found: Invitation, form: NewPasswordForm, account: User | None = None
) -> HttpResponse:
    context = {"invitation": found, "form": form, "account": account}
    return render(request, "team/invitation.html", context, status=422 if request.method == "POST" else None)


def _welcome(request: HttpRequest, found: Invitation) -> HttpResponse:
    _welcome_message(request, found)
    return redirect("web:overview")


def _welcome_message(request: HttpRequest, found: Invitation) -> None:
    messages.success(request, _("Welcome to %(customer)s.") % {"customer": found.customer.name})
