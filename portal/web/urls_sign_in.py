"""The addresses for signing in and out, with the views of django-allauth.

Pages of django-allauth that the portal does not offer, such as sign-up, have no address.
"""

from allauth.account import views as account
from allauth.account.decorators import reauthentication_required
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.socialaccount import views as social
from allauth.socialaccount.providers.openid_connect import views as openid
from django.urls import path
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from portal.accounts import permissions
from portal.core.http import public
from portal.notifications.mail_delivery import mails_are_late
from portal.web.page.base import requires

signed_in = requires(permissions.may_sign_in)

urlpatterns = [
    # The language for visitors who are not signed in. A cookie stores it.
    path("language/", public(require_POST(set_language)), name="set_language"),
    path("login/", public(account.login), name="account_login"),
    path("login/second-factor/", public(mfa.authenticate), name="mfa_authenticate"),
    path("login/inactive/", public(account.account_inactive), name="account_inactive"),
    path("logout/", public(require_POST(account.logout)), name="account_logout"),
    path("login/oidc/<slug:provider_id>/", public(openid.login), name="openid_connect_login"),
    path("login/oidc/<slug:provider_id>/callback/", public(openid.callback), name="openid_connect_callback"),
    path("login/oidc-cancelled/", public(social.login_cancelled), name="socialaccount_login_cancelled"),
    path("login/oidc-error/", public(social.login_error), name="socialaccount_login_error"),
    path("login/again/", signed_in(account.reauthenticate), name="account_reauthenticate"),
    path("login/again/second-factor/", signed_in(mfa.reauthenticate), name="mfa_reauthenticate"),
    path("password/forgotten/", public(account.password_reset), name="account_reset_password"),
    path(
        "password/forgotten/sent/",
        public(account.PasswordResetDoneView.as_view(extra_context={"mails_are_late": mails_are_late})),
        name="account_reset_password_done",
    ),
    path(
        # The slash separates id and key, because the key contains hyphens.
        "password/new/<str:uidb36>/<str:key>/",
        public(account.password_reset_from_key),
        name="account_reset_password_from_key",
    ),
    path(
        "password/new/done/",
        public(account.password_reset_from_key_done),
        name="account_reset_password_from_key_done",
    ),
    path("account/password/", signed_in(account.password_change), name="account_change_password"),
    # For users without a password, for example after single sign-on.
    path(
        "account/password/set/",
        signed_in(reauthentication_required(account.password_set)),
        name="account_set_password",
    ),
    path("account/security/", signed_in(mfa.index), name="mfa_index"),
    path("account/security/totp/", signed_in(totp.activate_totp), name="mfa_activate_totp"),
    path("account/security/totp/remove/", signed_in(totp.deactivate_totp), name="mfa_deactivate_totp"),
    path(
        "account/security/recovery-codes/",
        signed_in(recovery_codes.view_recovery_codes),
        name="mfa_view_recovery_codes",
    ),
    path(
        "account/security/recovery-codes/new/",
        signed_in(recovery_codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
]
