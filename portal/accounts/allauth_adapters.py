"""Adapters of django-allauth: who may sign in, from where, and how secrets are stored."""

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
    """Accounts come from invitations and from the NOC. There is no sign-up page."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the address by which rate limits count; callers on a Unix socket share one name."""
        return str(client_address(request) or "local")

    def login(self, request: HttpRequest, user: User) -> None:
        """Store the language of the browser at the first sign-in, as the language of the account."""
        super().login(request, user)
        language_keep_first(user=user, language=translation.get_language())
        translation.activate(language_of(user))

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("web:account")


class SocialAdapter(DefaultSocialAccountAdapter):
    """OpenID Connect verifies the identity of users; the portal alone decides on their rights."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Link an identity by its verified e-mail address only, never to the user who is
        currently signed in.
        """
        if sociallogin.state.get("process") == AuthProcess.CONNECT:
            raise ImmediateHttpResponse(redirect("socialaccount_login_error"))

    def authenticate_by_email(self, sociallogin: SocialLogin) -> tuple[User, str] | None:
        """Return the user of the address that the provider has verified.

        Addresses of users are unique. They are set by the NOC or by an invitation that was mailed to them, so
        the portal trusts them like addresses that it verified itself.
        """
        for address in sociallogin.email_addresses:
            if not address.verified or not address.email:
                continue
            user = account_at(address.email, among=User.objects.filter(is_active=True))
            if user is not None:
                # Without the mark as verified, allauth removes the password, because others may know the
                # account.
                EmailAddress.objects.update_or_create(
                    user=user, email=user.email.lower(), defaults={"verified": True}
                )
                return user, user.email
        return None


class MfaAdapter(DefaultMFAAdapter):
    """TOTP seeds and recovery codes are encrypted: the database alone does not open an account."""

    def encrypt(self, text: str) -> str:
        return secret_encryption.encrypt_secret(text)

    def decrypt(self, encrypted_text: str) -> str:
        return secret_encryption.decrypt_secret(encrypted_text)
