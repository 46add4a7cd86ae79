"""The second factor of NOC staff. NOC staff see all customers, so a password alone is not enough to sign
in.
"""

from collections.abc import Callable

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import ResolverMatch

from portal.accounts.models import User

SETUP = "mfa_activate_totp"
_TOTP = Authenticator.objects.filter(type=Authenticator.Type.TOTP)
# The views that a user without a second factor can open, to set up a second factor or to sign out.
_ALWAYS_OPEN = {
    SETUP,
    "mfa_index",
    "mfa_view_recovery_codes",
    "mfa_reauthenticate",
    "account_reauthenticate",
    "account_logout",
    "account_login",
    "account_change_password",
}


def second_factor_reset(*, person: User) -> None:
    """Delete the authenticator app and the recovery codes of a user who has lost both.

    After the next sign-in, NOC staff can open only the page to set up a new second factor.
    """
    Authenticator.objects.filter(user=person).delete()


def with_second_factor(people: QuerySet[User]) -> QuerySet[User]:
    """Return ``people`` with the annotation ``has_second_factor``."""
    return people.annotate(has_second_factor=Exists(_TOTP.filter(user=OuterRef("pk"))))


class SecondFactorMiddleware:
    """Redirect NOC staff without TOTP to the page that sets up TOTP, except from views in _ALWAYS_OPEN.

    The setting LONGLINE_NOC_NEEDS_TOTP enables this. API tokens need no second factor.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponseBase | None:
        match = request.resolver_match
        if not settings.LONGLINE_NOC_NEEDS_TOTP or _open(match) or not _lacks_second_factor(request):
            return None
        return redirect(SETUP)


def _open(match: ResolverMatch | None) -> bool:
    return match is not None and match.view_name in _ALWAYS_OPEN


def _lacks_second_factor(request: HttpRequest) -> bool:
    user = request.user
    return isinstance(user, User) and user.is_noc and not _TOTP.filter(user=user).exists()
