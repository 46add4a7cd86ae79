"""The user's account: name, language, e-mail address, choice of mails, and the forms to sign in."""

from typing import Any

from allauth.account.decorators import reauthentication_required
from allauth.account.forms import ChangePasswordForm, LoginForm, ResetPasswordKeyForm, SetPasswordForm
from allauth.core.ratelimit import consume_or_429
from allauth.mfa.models import Authenticator
from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import activate, get_language, gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import permissions
from portal.accounts.language import language_choose
from portal.accounts.models import User
from portal.accounts.own_account import email_change, email_change_of, email_change_request, name_change
from portal.accounts.tokens import tokens_of
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
from portal.web.page.base import SignedInRequest, requires
from portal.web.team.team import PASSWORD_HELP


class NameForm(TablerForm):
    """The user's name, as other users see it."""

    first_name = forms.CharField(
        label=_("First name"),
        max_length=150,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "given-name"}),
    )
    last_name = forms.CharField(
        label=_("Last name"),
        max_length=150,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "family-name"}),
    )


class LanguageForm(TablerForm):
    """The language of pages and mails.

    The list names each language in that language, so that users can always find their own.
    """

    language = forms.ChoiceField(
        label=_("Language"), choices=settings.LANGUAGES, help_text=_("For pages, and for mails to you")
    )


class EmailForm(TablerForm):
    """A new e-mail address for the account. It must differ from the present address."""

    email = forms.EmailField(
        label=_("New e-mail address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._present = user.email

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        if email == self._present:
            raise forms.ValidationError(_("This is already your address. Enter another one."))
        return email


UNPROCESSABLE, GONE = 422, 410


@requires(permissions.may_sign_in)
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: SignedInRequest) -> HttpResponse:
    """Show the account (GET), or change the user's name (POST)."""
    user = request.user
    form = NameForm(
        request.POST if request.method == "POST" else None,
        initial={"first_name": user.first_name, "last_name": user.last_name},
    )
    if form.is_valid():
        name_change(user=user, **form.cleaned_data)
        messages.success(request, gettext("Your name is saved."))
        return redirect("web:account")
    context = {
        "form": form,
        "language_form": LanguageForm(initial={"language": get_language()}),
        "memberships": user.memberships.select_related("customer").order_by("customer__name"),
        "has_totp": Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists(),
        "token_count": tokens_of(user).count(),
    }
    return render(request, "account/account.html", context, status=UNPROCESSABLE if form.errors else None)


@requires(permissions.may_sign_in)
@require_POST
def language(request: SignedInRequest) -> HttpResponse:
    """Set the language of the user's pages and mails. The response is already in the new language."""
    form = LanguageForm(request.POST)
    if not form.is_valid():
        raise SuspiciousOperation("a language that the page does not offer")
    language_choose(user=request.user, language=form.cleaned_data["language"])
    activate(form.cleaned_data["language"])
    messages.success(request, gettext("Pages and mails are in this language from now on."))
    return redirect("web:account")


@requires(permissions.may_sign_in)
@reauthentication_required
@require_http_methods(["GET", "HEAD", "POST"])
def email(request: SignedInRequest) -> HttpResponse:
    """Show the form for a new e-mail address (GET), or send a mail with a link to the new address (POST).

    The address is changed only when the user opens the link and confirms.
    """
    form = EmailForm(request.POST if request.method == "POST" else None, user=request.user)
    if not form.is_valid():
        return render(
            request, "account/email.html", {"form": form}, status=UNPROCESSABLE if form.errors else None
        )
    too_often: HttpResponse | None = consume_or_429(request, action="manage_email", user=request.user)
    if too_often is not None:
        return too_often
    email_change_request(user=request.user, email=form.cleaned_data["email"], now=clock.now())
    return render(request, "account/email_sent.html", {"email": form.cleaned_data["email"]})


@requires(permissions.may_sign_in)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def email_confirm(request: SignedInRequest, signed: str) -> HttpResponse:
    """Show a button to confirm a new e-mail address (GET), or set the address (POST).

    GET alone does not set the address, because mail scanners follow all links. The link works only for the
    account that requested the change, because a mistyped address may belong to another person.
    """
    try:
        if request.method != "POST":
            new = email_change_of(signed, user=request.user)
            return render(request, "account/email_confirm.html", {"email": new})
        new = email_change(user=request.user, signed=signed, now=clock.now())
    except DomainError as error:
        return render(request, "account/email_over.html", {"why": error.sentence}, status=GONE)
    messages.success(request, gettext("Your e-mail address is %(email)s now.") % {"email": new})
    return redirect("web:account")


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


class SignInForm(LoginForm):
    """The form to sign in with the user name or e-mail address, and the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = _("User name or e-mail")
        self.fields["login"].widget.attrs |= {"autocomplete": "username", "autocapitalize": "none"}


class _TwiceForm(forms.Form):
    """A form with a new password that the user enters twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password1"].label = _("New password")
        self.fields["password1"].help_text = PASSWORD_HELP
        self.fields["password2"].label = _("New password, again")


class OtherPasswordForm(_TwiceForm, ChangePasswordForm):
    """The form to change the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["oldpassword"].label = _("Current password")


class FirstPasswordForm(_TwiceForm, SetPasswordForm):
    """The form to set a password for a user who has none."""


class ForgottenPasswordForm(_TwiceForm, ResetPasswordKeyForm):
    """The form to set a new password after the user has followed the link in a mail."""
