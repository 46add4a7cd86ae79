"""The portal's answers to django-allauth: who may come in, from where, and how secrets are kept."""

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import translation

from portal.accounts import secret_encryption
from portal.accounts.email_lookup import account_at
from portal.accounts.language import language_keep_first, language_of
from portal.accounts.models import User
from portal.core.client_address import client_address


class AccountAdapter(DefaultAccountAdapter):
    """Accounts come from invitations and from the NOC, never from a sign-up page."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """The address that rate limits count by; callers on a Unix socket share one name."""
        return str(client_address(request) or "local")

    def login(self, request: HttpRequest, user: User) -> None:
        """The first time, what the browser reads is kept; from then on it is the account's language."""
        super().login(request, user)
        language_keep_first(user=user, language=translation.get_language())
        translation.activate(language_of(user))

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("web:account")


class SocialAdapter(DefaultSocialAccountAdapter):
    """OpenID Connect proves who somebody is; what they may do is decided here alone."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """An identity is linked by its verified e-mail address only, not by whoever is signed in just now."""
        if sociallogin.state.get("process") == AuthProcess.CONNECT:
            raise ImmediateHttpResponse(redirect("socialaccount_login_error"))

    def authenticate_by_email(self, sociallogin: SocialLogin) -> tuple[User, str] | None:
        """The user whose address the provider vouches for.

        Addresses of users are unique and are set by the NOC or by an invitation that was mailed to them,
        so the address on the user is as good as one that we verified.
        """
        for address in sociallogin.email_addresses:
            if not address.verified or not address.email:
                continue
            user = account_at(address.email, among=User.objects.filter(is_active=True))
            if user is not None:
                # Marked as verified, or allauth takes the password away from an account that others may know.
                EmailAddress.objects.update_or_create(
                    user=user, email=user.email.lower(), defaults={"verified": True}
                )
                return user, user.email
        return None


class MfaAdapter(DefaultMFAAdapter):
    """TOTP seeds and recovery codes are sealed: the database alone does not open an account."""

    def encrypt(self, text: str) -> str:
        return secret_encryption.encrypt_secret(text)

    def decrypt(self, encrypted_text: str) -> str:
        return secret_encryption.decrypt_secret(encrypted_text)
