"""API tokens: ``ll_<prefix>_<secret>``; the secret is shown once and stored as a peppered HMAC-SHA256."""

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from django.conf import settings

from portal.accounts.models import ApiToken, User

_SCHEME = "ll"
_USED_RESOLUTION = timedelta(minutes=1)


def _digest(secret: str) -> bytes:
    return hmac.new(settings.TOKEN_PEPPER.encode(), secret.encode(), hashlib.sha256).digest()


def token_create(
    *, user: User, name: str, now: datetime, expires_at: datetime | None = None
) -> tuple[ApiToken, str]:
    """A new token and its only plain text."""
    prefix, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user, name=name, prefix=prefix, digest=_digest(secret), created_at=now, expires_at=expires_at
    )
    return token, f"{_SCHEME}_{prefix}_{secret}"


def token_find(plain: str, *, now: datetime) -> ApiToken | None:
    """The live token that ``plain`` opens, or None; notes its use to the minute."""
    scheme, _, rest = plain.partition("_")
    prefix, _, secret = rest.partition("_")
    if scheme != _SCHEME or not prefix or not secret:
        return None
    token = ApiToken.objects.select_related("user").filter(prefix=prefix, revoked_at__isnull=True).first()
    if token is None or not hmac.compare_digest(bytes(token.digest), _digest(secret)):
        return None
    if not token.user.is_active or (token.expires_at is not None and token.expires_at <= now):
        return None
    if token.last_used_at is None or now - token.last_used_at > _USED_RESOLUTION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token
