"""The forms to add NOC staff and to change their roles."""

from functools import partial

from django import forms, template
from django.contrib import messages
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import permissions
from portal.accounts.models import ApiToken, User
from portal.accounts.people import account_reopen, noc_role_change, noc_staff, staff_add
from portal.accounts.sign_in import second_factor_reset, with_second_factor
from portal.audit.provenance import account_close_with, made_by
from portal.core import clock
from portal.notifications.mail_delivery import first_password_mail
from portal.web.fields.base import TablerForm
from portal.web.page.base import SignedInRequest, proves_identity, requires, result_message

NOC_ROLES = {
    User.NocRole.NOC.value: _("NOC user"),
    User.NocRole.NOC_ADMIN.value: _("NOC admin"),
    User.NocRole.NONE.value: _("Not NOC staff"),
}
_STAFF = [(role, label) for role, label in NOC_ROLES.items() if role != User.NocRole.NONE]


register = template.Library()


@register.filter
def noc_role(role: str) -> str:
    """Return the name of a NOC role."""
    return str(NOC_ROLES[role])


class StaffForm(TablerForm):
    """The form to add a person to the NOC's staff, with a role."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        help_text=_("For somebody who already has an account: the name and address of that account."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    email = forms.EmailField(label=_("E-mail address"), max_length=254)
    role = forms.ChoiceField(label=_("Role"), choices=_STAFF)


class NocRoleForm(TablerForm):
    """The form to change a user's NOC role, or to remove it."""

    role = forms.ChoiceField(label=_("Role"), choices=list(NOC_ROLES.items()))


@requires(permissions.may_run_the_network)
@require_http_methods(["GET", "HEAD"])
def staff(request: SignedInRequest) -> HttpResponse:
    return _staff(request, StaffForm())


@requires(permissions.may_manage_people)
@proves_identity
@require_POST
def add(request: SignedInRequest) -> HttpResponse:
    """Add a person to the NOC's staff. If the form is refused, show the page with the errors."""
    form = StaffForm(request.POST)
    if person := form.submit(partial(staff_add, now=clock.now())):
        messages.success(request, gettext("%(name)s is NOC staff now.") % {"name": person.username})
        return redirect("web:noc-staff")
    return _staff(request, form, status=422)


@requires(permissions.may_run_the_network)
@require_http_methods(["GET", "HEAD"])
def person(request: SignedInRequest, user_id: int) -> HttpResponse:
    """Show an account: its roles, its sign-in methods, and actions for NOC admins."""
    found = get_object_or_404(with_second_factor(User.objects.select_related("closed_with")), pk=user_id)
    context = {
        "person": found,
        "memberships": found.memberships.select_related("customer").order_by("customer__name"),
        "first_mail": first_password_mail(found),
        "live_tokens": ApiToken.objects.filter(user=found, revoked_at__isnull=True).count(),
        "may_manage": permissions.may_manage_people(request.user),
        "role_form": NocRoleForm(initial={"role": found.noc_role}),
    }
    return render(request, "noc/staff/person.html", context)


@requires(permissions.may_manage_people)
@proves_identity
@require_POST
def role(request: SignedInRequest, user_id: int) -> HttpResponse:
    form = NocRoleForm(request.POST)
    found = get_object_or_404(User, pk=user_id)
    if form.is_valid():
        with result_message(request, done=gettext("The role is changed.")):
            noc_role_change(person=found, role=form.cleaned_data["role"], now=clock.now())
    return redirect("web:noc-person", user_id=user_id)


@requires(permissions.may_manage_people)
@proves_identity
@require_http_methods(["GET", "HEAD", "POST"])
def close(request: SignedInRequest, user_id: int) -> HttpResponse:
    """Show the objects that the account's owner created (GET), or close the account (POST).

    A POST also ends the objects that the user has ticked.
    """
    found, now = get_object_or_404(User, pk=user_id), clock.now()
    made = made_by(found, viewer=request.user, now=now)
    if request.method != "POST":
        return render(request, "noc/staff/close_account.html", {"person": found, "made": made})
    with result_message(
        request, done=gettext("The account is closed. Its sessions, API tokens and password no longer work.")
    ):
        account_close_with(person=found, ending=made.chosen(request.POST.getlist("end")), now=now)
    return redirect("web:noc-person", user_id=user_id)


@requires(permissions.may_manage_people)
@proves_identity
@require_POST
def reopen(request: SignedInRequest, user_id: int) -> HttpResponse:
    found = get_object_or_404(User, pk=user_id)
    with result_message(
        request, done=gettext("The account is open. A link to choose a password is on its way.")
    ):
        account_reopen(person=found, now=clock.now())
    return redirect("web:noc-person", user_id=user_id)


@requires(permissions.may_manage_people)
@proves_identity
@require_http_methods(["GET", "HEAD", "POST"])
def second_factor(request: SignedInRequest, user_id: int) -> HttpResponse:
    """Ask for confirmation (GET), or reset the second factor of an account (POST)."""
    found = get_object_or_404(User, pk=user_id)
    if request.method != "POST":
        return render(request, "noc/staff/reset_second_factor.html", {"person": found})
    second_factor_reset(person=found)
    messages.success(request, gettext("The second factor and its recovery codes are gone."))
    return redirect("web:noc-person", user_id=user_id)


def _staff(request: SignedInRequest, form: StaffForm, status: int | None = None) -> HttpResponse:
    context = {
        "staff": with_second_factor(noc_staff()),
        "may_manage": permissions.may_manage_people(request.user),
        "form": form,
    }
    return render(request, "noc/staff/staff.html", context, status=status)
