"""API tokens of the form ``ll_<prefix>_<secret>``.

The secret is shown only once. The portal stores its peppered HMAC-SHA256.
"""

import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from portal.accounts.errors import (
    ExpiryInThePast,
    MakerRevoked,
    NetworkNotGranted,
    OutlivesItsMaker,
    ScopeNotForYou,
    ScopeNotGranted,
    TooManyTokens,
)
from portal.accounts.models import ApiToken, Invitation, Network, Scope, User
from portal.accounts.permissions import may_manage_teams
from portal.core.db.statements import CompiledQuery
from portal.core.http import Address

_SCHEME = "ll"
# The query for the token of a request. Prefixes are unique.
_LIVE_TOKENS = CompiledQuery[ApiToken](
    lambda prefix: ApiToken.objects.select_related("user").filter(prefix=prefix, revoked_at__isnull=True)
)
_USED_RESOLUTION = timedelta(minutes=1)


def secret_digest(secret: str) -> bytes:
    """Return the peppered HMAC of a secret, which is stored in its place."""
    return hmac.new(settings.TOKEN_PEPPER.encode(), secret.encode(), hashlib.sha256).digest()


def scopes_for(user: User) -> list[str]:
    """Return the scopes that the user may give to a token.

    ``noc`` is only for NOC staff. ``team`` and ``webhooks`` are only for users who manage a customer.
    """
    runs = may_manage_teams(user)
    beyond = {Scope.NOC: user.is_noc, Scope.TEAM: runs, Scope.WEBHOOKS: runs}
    return [scope for scope in Scope.values if beyond.get(Scope(scope), True)]


@transaction.atomic
def token_create(
    *,
    user: User,
    name: str,
    now: datetime,
    expires_at: datetime | None = None,
    scopes: Collection[str] | None = None,
    allowed_networks: Sequence[Network] = (),
    made_with: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Create a token. Return it and its plain text, which is not stored.

    If ``scopes`` is None, the token gets all scopes that the user may give. ``made_with``: the token that the
    user uses to create the new token, if any. The new token has at most the rights of ``made_with``, and does
    not expire later.

    Raises ScopeNotForYou, ExpiryInThePast or TooManyTokens; with ``made_with`` also ScopeNotGranted,
    NetworkNotGranted, OutlivesItsMaker or MakerRevoked.
    """
    offered = scopes_for(user)
    scopes = offered if scopes is None else scopes
    if expires_at is not None and expires_at <= now:
        raise ExpiryInThePast
    if made_with is not None:
        expires_at = expires_at or made_with.expires_at
        allowed_networks = allowed_networks or made_with.allowed_networks
        _check_within(made_with, scopes, allowed_networks, expires_at)
        maker_lock(made_with)
    for scope in sorted(set(scopes) - set(offered)):
        raise ScopeNotForYou(scope=scope)
    _check_room(user, now)
    prefix, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        made_with=made_with,
        name=name,
        prefix=prefix,
        digest=secret_digest(secret),
        scopes=[scope for scope in Scope.values if scope in scopes],
        allowed_networks=list(allowed_networks),
        created_at=now,
        expires_at=expires_at,
    )
    return token, f"{_SCHEME}_{prefix}_{secret}"


def _check_room(user: User, now: datetime) -> None:
    """Check that the user may have another token. Raises TooManyTokens.

    Tokens that are revoked or expired do not count.
    """
    most = settings.LONGLINE_API_TOKENS_EACH
    if not most:
        return
    # The lock on the user's row prevents concurrent requests from exceeding the limit.
    User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list("pk").first()
    expired = Q(expires_at__isnull=False, expires_at__lte=now)
    if ApiToken.objects.filter(user=user, revoked_at__isnull=True).exclude(expired).count() >= most:
        raise TooManyTokens(maximum=most)


def maker_lock(maker: ApiToken) -> None:
    """Lock the token ``maker``, with which the caller is about to create an object. Raises MakerRevoked.

    The object must be revoked together with the token. Because of the lock, a concurrent revocation either
    comes later and finds the new object, or comes first and is detected here.
    """
    if not ApiToken.objects.select_for_update().filter(pk=maker.pk, revoked_at__isnull=True):
        raise MakerRevoked


def _check_within(
    maker: ApiToken, scopes: Collection[str], networks: Sequence[Network], expires_at: datetime | None
) -> None:
    for scope in sorted(set(scopes) - set(maker.scopes)):
        raise ScopeNotGranted(scope=scope)
    for network in networks:
        if maker.allowed_networks and not any(
            network.version == allowed.version and network.subnet_of(allowed)
            for allowed in maker.allowed_networks
        ):
            raise NetworkNotGranted(network=str(network))
    if maker.expires_at is not None and (expires_at is None or expires_at > maker.expires_at):
        raise OutlivesItsMaker(latest=maker.expires_at.isoformat())


def token_find(plain: str, *, now: datetime) -> ApiToken | None:
    """Return the token with the plain text ``plain``; None if it is unknown, revoked or expired.

    Tokens of closed accounts are not returned. The time of the last use is stored at most once a minute.
    """
    scheme, _, rest = plain.partition("_")
    prefix, _, secret = rest.partition("_")
    if scheme != _SCHEME or not prefix or not secret:
        return None
    found = _LIVE_TOKENS(prefix)
    token = found[0] if found else None
    if token is None or not hmac.compare_digest(bytes(token.digest), secret_digest(secret)):
        return None
    if not token.user.is_active or (token.expires_at is not None and token.expires_at <= now):
        return None
    if token.last_used_at is None or now - token.last_used_at > _USED_RESOLUTION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def token_allows_address(token: ApiToken, address: Address | None) -> bool:
    """Return whether the token may be used from this address.

    A caller without an address may only use a token without networks.
    """
    return not token.allowed_networks or (
        address is not None and any(address in network for network in token.allowed_networks)
    )


@transaction.atomic
def token_revoke(*, token: ApiToken, now: datetime) -> None:
    """Revoke a token, its descendants, and the open invitations that were created with any of these tokens.

    Descendants are tokens that were created with the token, also indirectly. A second call has no effect.
    """
    _end_with_offspring([token.pk], now)


def tokens_end(users: Collection[int], *, now: datetime) -> None:
    """Revoke all tokens of these users.

    Call it in the transaction that closes or reopens their accounts. For a reopened account the call is
    needed because a request may have created a token while the account was being closed.
    """
    ApiToken.objects.filter(user__in=users, revoked_at__isnull=True).update(revoked_at=now)


@transaction.atomic
def noc_tokens_revoke(*, user: User, now: datetime) -> None:
    """Revoke the user's tokens with the scope ``noc``, and their descendants."""
    tokens = ApiToken.objects.filter(user=user, scopes__contains=[Scope.NOC], revoked_at__isnull=True)
    _end_with_offspring(list(tokens.values_list("pk", flat=True)), now)


def _end_with_offspring(ending: list[int], now: datetime) -> None:
    """Revoke these tokens, their descendants, and the open invitations that were created with any of them.
    The update locks each token before its descendants are read.
    """
    for tokens in _generations(ending):
        ApiToken.objects.filter(pk__in=tokens, revoked_at__isnull=True).update(revoked_at=now)
        Invitation.objects.filter(
            made_with__in=tokens, accepted_at__isnull=True, revoked_at__isnull=True
        ).update(revoked_at=now)


def lineage(token: ApiToken) -> list[int]:
    """Return the ids of a token and all its descendants, including revoked tokens."""
    return [pk for tokens in _generations([token.pk]) for pk in tokens]


def _generations(tokens: list[int]) -> Iterator[list[int]]:
    """Yield the ids of these tokens, then of the tokens created with them, and so on.

    Each generation is read after the caller has processed the previous generation.
    """
    while tokens:
        yield tokens
        tokens = list(ApiToken.objects.filter(made_with__in=tokens).values_list("pk", flat=True))


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Return the user's tokens that are not revoked, newest first."""
    return ApiToken.objects.filter(user=user, revoked_at__isnull=True).order_by("-created_at", "-id")
