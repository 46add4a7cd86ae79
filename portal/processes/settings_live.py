"""The settings of the live process: the portal's, with only the middleware for access control."""

from portal.settings import *  # noqa: F403
from portal.settings import MIDDLEWARE as _ALL

_DECIDE = {
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.accounts.sign_in.SecondFactorMiddleware",
}
MIDDLEWARE = [each for each in _ALL if each in _DECIDE]
