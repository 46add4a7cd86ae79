"""The codes that an authenticator app shows."""

import time

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth

from portal.accounts.models import User


def code_of(secret: str) -> str:
    """The code of this moment (RFC 6238: six digits, 30 s)."""
    return auth.format_hotp_value(auth.hotp_value(secret, int(time.time()) // 30))


def with_totp(user: User) -> str:
    """Give ``user`` an authenticator app and recovery codes; its secret."""
    secret = auth.generate_totp_secret()
    auth.TOTP.activate(user, secret)
    RecoveryCodes.activate(user)
    return secret


def recovery_code_of(user: User) -> str:
    code: str = Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes()[0]
    return code
