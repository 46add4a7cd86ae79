"""API tokens: the form, the list, and revocation."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from portal.accounts import permissions
from portal.accounts.models import Network, Scope, User, network_of
from portal.accounts.permissions import may_manage_teams
from portal.accounts.tokens import token_create, tokens_of
from portal.audit.provenance import made_with, token_revoke_with
from portal.core import clock
from portal.web.fields.base import TablerForm
from portal.web.page.base import SignedInRequest, proves_identity, requires
from portal.web.page.list_filters import newest_first

MAX_NETWORKS = 20
_SCOPES = {
    Scope.READ: _("Read"),
    Scope.ORDER: _("Order and change"),
    Scope.NOC: _("Act as the NOC"),
}
_LIVES = [
    ("30", _("after 30 days")),
    ("90", _("after 90 days")),
    ("365", _("after a year")),
    ("", _("never, until it is revoked")),
]


class TokenForm(TablerForm):
    """The form to create a token, with its name, scopes, networks and lifetime."""

    name = forms.CharField(label=_("What is it for?"), max_length=100)
    scope = forms.ChoiceField(label=_("Access"))
    team = forms.BooleanField(
        label=_("Also invite people and manage members"),
        required=False,
        help_text=_(
            "For admins of a customer or the NOC. The access that it grants remains when the token is "
            "revoked."
        ),
    )
    webhooks = forms.BooleanField(
        label=_("Also manage webhooks"),
        required=False,
        help_text=_(
            "For admins of a customer or the NOC. The webhooks that it adds receive everything that happens."
        ),
    )
    days = forms.ChoiceField(label=_("Expires"), choices=_LIVES, required=False)
    networks = forms.CharField(
        label=_("Only from these networks"),
        required=False,
        max_length=1000,
        help_text=_("For example 192.0.2.0/24; separate several with spaces. Empty: from anywhere."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        offered = [scope for scope in _SCOPES if scope != Scope.NOC or user.is_noc]
        choices = [(scope.value, _SCOPES[scope]) for scope in offered]
        self.fields["scope"].choices = choices  # type: ignore[attr-defined]

    def clean_team(self) -> bool:
        return self._for_who_runs_a_team("team")

    def clean_webhooks(self) -> bool:
        return self._for_who_runs_a_team("webhooks")

    def _for_who_runs_a_team(self, name: str) -> bool:
        """Return whether the box is ticked. Raises ValidationError if it is ticked but the user manages no
        customer.

        The permission is checked only here, so that showing the form needs no database query.
        """
        ticked: bool = self.cleaned_data[name]
        if ticked and not may_manage_teams(self._user):
            raise forms.ValidationError(_("Only admins of a customer and NOC admins may do this."))
        return ticked

    def clean_networks(self) -> list[Network]:
        texts = self.cleaned_data["networks"].replace(",", " ").split()
        if len(texts) > MAX_NETWORKS:
            raise forms.ValidationError(_("At most %(n)d networks.") % {"n": MAX_NETWORKS})
        return [network_of(text) for text in texts]

    def wanted(self, now: datetime) -> dict[str, Any]:
        """Return the arguments of ``token_create``.

        ``scopes`` has all scopes up to the chosen scope, and the ticked scopes.
        """
        ladder = list(_SCOPES)
        scopes = ladder[: ladder.index(Scope(self.cleaned_data["scope"])) + 1]
        ticked = [scope for scope in (Scope.TEAM, Scope.WEBHOOKS) if self.cleaned_data[scope.value]]
        days = self.cleaned_data["days"]
        return {
            "name": self.cleaned_data["name"],
            "scopes": [*scopes, *ticked],
            "allowed_networks": self.cleaned_data["networks"],
            "expires_at": now + timedelta(days=int(days)) if days else None,
        }


@requires(permissions.may_sign_in)
@proves_identity
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: SignedInRequest) -> HttpResponse:
    """Show the user's tokens (GET), or create a token (POST).

    Only the response to the POST shows the token's plain text.
    """
    now, secret = clock.now(), ""
    form = TokenForm(request.POST if request.method == "POST" else None, user=request.user)
    if made := form.submit(lambda **_: token_create(user=request.user, now=now, **form.wanted(now))):
        _token, secret = made
        form = TokenForm(user=request.user)
    page = newest_first(tokens_of(request.user), by="created_at", after=request.GET.get("after", ""))
    context = {
        "page": page,
        "form": form,
        "to_make": form.is_bound or not page.rows,
        "secret": secret,
        "now": now,
    }
    return render(request, "tokens/tokens.html", context, status=422 if form.is_bound else None)


@requires(permissions.may_sign_in)
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: SignedInRequest, token_id: int) -> HttpResponse:
    """Show the objects that were created with a token (GET), or revoke the token (POST).

    A POST also ends the objects that the user has ticked.
    """
    token, now = get_object_or_404(tokens_of(request.user), pk=token_id), clock.now()
    made = made_with(token, viewer=request.user, now=now)
    if request.method != "POST":
        return render(request, "tokens/revoke.html", {"token": token, "made": made})
    token_revoke_with(token=token, ending=made.chosen(request.POST.getlist("end")), now=now)
    messages.success(request, gettext("The token is revoked."))
    return redirect("web:tokens")
