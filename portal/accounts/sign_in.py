"""Sign-in: the adapters that configure django-allauth, and the second factor of NOC staff.

NOC staff see all customers, so a password alone is not enough to sign in.
"""

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import translation
from django.utils.deprecation import MiddlewareMixin

from portal.accounts import secret_encryption
from portal.accounts.invitations import account_at
from portal.accounts.language import language_keep_first, language_of
from portal.accounts.models import User
from portal.core.http import client_address


class AccountAdapter(DefaultAccountAdapter):
    """The adapter for accounts. There is no sign-up: accounts come from invitations and from the NOC."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the caller's address for rate limits. All callers on a Unix socket count as ``local``."""
        return str(client_address(request) or "local")

    def login(self, request: HttpRequest, user: User) -> None:
        """Sign in the user. At the first sign-in, the browser's language becomes the account's language."""
        super().login(request, user)
        language_keep_first(user=user, language=translation.get_language())
        translation.activate(language_of(user))

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("web:account")


class SocialAdapter(DefaultSocialAccountAdapter):
    """The adapter for OpenID Connect. The provider verifies users' identity; rights come from the portal."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Refuse to connect an identity with the signed-in user.

        Identities are linked only by their verified e-mail address.
        """
        if sociallogin.state.get("process") == AuthProcess.CONNECT:
            raise ImmediateHttpResponse(redirect("socialaccount_login_error"))

    def authenticate_by_email(self, sociallogin: SocialLogin) -> tuple[User, str] | None:
        """Return the active user whose address the provider has verified, and this address.

        Addresses of users are unique. The portal trusts them as if it had verified them itself, because they
        come from the NOC or from an invitation that was mailed to the address.
        """
        for address in sociallogin.email_addresses:
            if not address.verified or not address.email:
                continue
            user = account_at(address.email, among=User.objects.filter(is_active=True))
            if user is not None:
                # Mark the address as verified. Otherwise allauth removes the password, because somebody else
                # might have created the account.
                EmailAddress.objects.update_or_create(
                    user=user, email=user.email.lower(), defaults={"verified": True}
                )
                return user, user.email
        return None


class MfaAdapter(DefaultMFAAdapter):
    """The adapter for second factors. It encrypts TOTP seeds and recovery codes in the database."""

    def encrypt(self, text: str) -> str:
        return secret_encryption.encrypt_secret(text)

    def decrypt(self, encrypted_text: str) -> str:
        return secret_encryption.decrypt_secret(encrypted_text)


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


class SecondFactorMiddleware(MiddlewareMixin):
    """Redirect NOC staff without TOTP to the page that sets up TOTP, except from views in _ALWAYS_OPEN.

    The setting LONGLINE_NOC_NEEDS_TOTP enables this. API tokens need no second factor.
    """

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponseBase | None:
        match = request.resolver_match
        is_open = match is not None and match.view_name in _ALWAYS_OPEN
        if not settings.LONGLINE_NOC_NEEDS_TOTP or is_open:
            return None
        user = request.user
        lacks = isinstance(user, User) and user.is_noc and not _TOTP.filter(user=user).exists()
        return redirect(SETUP) if lacks else None
