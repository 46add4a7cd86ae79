"""The members of a customer: list, invite, change roles, and remove; and the link of an invitation."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.utils import perform_login
from django import forms
from django.contrib import messages
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import invitations, people, permissions
from portal.accounts.invitations import account_at
from portal.accounts.models import Customer, Invitation, Membership, User
from portal.audit.provenance import made_by_member, member_remove_with
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.http import public
from portal.web.fields.base import TablerForm
from portal.web.page.base import SignedInRequest, proves_identity, requires, result_message

PASSWORD_HELP = _("At least 12 characters, and not one of the usual ones.")


class InviteForm(TablerForm):
    """The form to invite a person, with a role."""

    email = forms.EmailField(label=_("E-mail address"), max_length=254)
    role = forms.ChoiceField(
        label=_("Role"),
        choices=Membership.Role.choices,
        help_text=_(
            "Viewers can see everything, operators can also order and change lines, admins can also"
            " manage the team."
        ),
    )


class RoleForm(forms.Form):
    """The form to change a member's role."""

    role = forms.ChoiceField(choices=Membership.Role.choices)


class NewPasswordForm(TablerForm):
    """A form with a new password. The password must not resemble the account's name or address."""

    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=256,
        help_text=PASSWORD_HELP,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, *args: Any, account: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._account = account

    def clean(self) -> dict[str, Any]:
        wanted = super().clean() or {}
        self._account.username = wanted.get("username", self._account.username)
        if "password" in wanted:
            try:
                validate_password(wanted["password"], user=self._account)
            except forms.ValidationError as error:
                self.add_error("password", error)
        return wanted


class NewAccountForm(NewPasswordForm):
    """The form to create an account for an invited person, with a user name and a password."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    field_order = ("username", "password")


@public
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, signed: str) -> HttpResponse:
    """Show the invitation (GET), or accept it (POST). If the link is not valid, the status is 410.

    With the link, a person without an account creates one, and a user becomes a member. If the user's account
    was closed because its customer was retired, the account is reopened.
    """
    try:
        found = invitations.invitation_of(signed, now=clock.now())
    except DomainError as error:
        return render(request, "team/invitation_gone.html", {"why": error.sentence}, status=410)
    if isinstance(request.user, User):
        return _as_oneself(request, request.user, found)
    account = account_at(found.email)
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
    if user := form.submit(partial(invitations.accept_as_new, invitation=found, now=clock.now())):
        get_adapter().login(request, user)
        return _welcome(request, found)
    return _form(request, found, form)


def _as_somebody_returning(request: HttpRequest, account: User, found: Invitation) -> HttpResponse:
    form = NewPasswordForm(request.POST or None, account=account)
    if user := form.submit(partial(invitations.accept_reopening, invitation=found, now=clock.now())):
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
    messages.success(request, gettext("Welcome to %(customer)s.") % {"customer": found.customer.name})


@dataclass(frozen=True, slots=True)
class Team:
    """The members of a customer, as the object of a permission (portal.web.page.base.Owned)."""

    customer: Customer


def visible_team(user: User, customer_id: int) -> Team:
    return Team(get_object_or_404(permissions.visible_customers(user), pk=customer_id))


def visible_member(user: User, customer_id: int, membership_id: int) -> Membership:
    return get_object_or_404(people.members(user), pk=membership_id, customer=customer_id)


def visible_invitation(user: User, customer_id: int, invitation_id: int) -> Invitation:
    mine = permissions.visible_customers(user).filter(pk=customer_id)
    return get_object_or_404(
        Invitation.objects.select_related("customer"), pk=invitation_id, customer__in=mine
    )


@requires(permissions.may_sign_in)
def teams(request: SignedInRequest) -> HttpResponse:
    """Show the customers whose members the user may see.

    If there is only one customer, redirect to its page.
    """
    found = list(permissions.visible_customers(request.user).order_by("name"))
    if len(found) == 1:
        return redirect("web:team", customer_id=found[0].pk)
    return render(request, "team/teams.html", {"customers": found})


@requires(permissions.may_see, of=visible_team)
@require_http_methods(["GET", "HEAD"])
def page(request: SignedInRequest, found: Team) -> HttpResponse:
    """Show the members of a customer. ``?role=`` preselects the role in the form to invite a person."""
    role = request.GET.get("role", "")
    form = InviteForm(initial={"role": role} if role in Membership.Role.values else None)
    return _page(request, found.customer, form)


@requires(permissions.may_manage_team, of=visible_team)
@proves_identity
@require_POST
def invite(request: SignedInRequest, found: Team) -> HttpResponse:
    """Invite a person. If the form is refused, show the page with the errors."""
    form = InviteForm(request.POST)
    operation = partial(invitations.invite, by=request.user, customer=found.customer, now=clock.now())
    if form.submit(operation):
        messages.success(request, gettext("The invitation is on its way."))
        return redirect("web:team", customer_id=found.customer.pk)
    return _page(request, found.customer, form, status=422)


@requires(permissions.may_manage_team, of=visible_member)
@proves_identity
@require_POST
def change_role(request: SignedInRequest, member: Membership) -> HttpResponse:
    form = RoleForm(request.POST)
    if form.is_valid():
        with result_message(request, done=gettext("The role is changed.")):
            people.role_change(membership=member, role=form.cleaned_data["role"], now=clock.now())
    return redirect("web:team", customer_id=member.customer_id)


@requires(permissions.may_manage_team, of=visible_member)
@proves_identity
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: SignedInRequest, member: Membership) -> HttpResponse:
    """Show the objects that the member created (GET), or remove the member (POST).

    A POST also ends the objects that the user has ticked.
    """
    now = clock.now()
    made = made_by_member(member, viewer=request.user, now=now)
    if request.method != "POST":
        return render(request, "team/remove_member.html", {"member": member, "made": made})
    with result_message(request, done=gettext("The member is removed.")):
        ending = made.chosen(request.POST.getlist("end"))
        member_remove_with(membership=member, ending=ending, now=now)
    still_visible = permissions.may_see(request.user, member.customer)
    return redirect("web:team", customer_id=member.customer_id) if still_visible else redirect("web:overview")


@requires(permissions.may_manage_team, of=visible_invitation)
@require_POST
def revoke(request: SignedInRequest, invitation: Invitation) -> HttpResponse:
    with result_message(request, done=gettext("The invitation is withdrawn.")):
        invitations.invitation_revoke(invitation=invitation, now=clock.now())
    return redirect("web:team", customer_id=invitation.customer_id)


def _page(
    request: SignedInRequest, customer: Customer, form: InviteForm, status: int | None = None
) -> HttpResponse:
    context = {
        "customer": customer,
        "members": customer.memberships.select_related("user").order_by("user__username"),
        "roles": Membership.Role.choices,
        "invitations": invitations.open_invitations(clock.now()).filter(customer=customer).order_by("email"),
        "may_manage": permissions.may_manage_team(request.user, customer),
        "form": form,
        "to_invite": form.is_bound or bool(form.initial),
    }
    return render(request, "team/team.html", context, status=status)
