"""API tokens: ``ll_<prefix>_<secret>``; the secret is shown once and stored as a peppered HMAC-SHA256."""

import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from portal.accounts.cidr_field import Network
from portal.accounts.errors import (
    ExpiryInThePast,
    MakerRevoked,
    NetworkNotHeld,
    OutlivesItsMaker,
    ScopeNotForYou,
    ScopeNotHeld,
    TooManyTokens,
)
from portal.accounts.models import ApiToken, Invitation, Scope, User
from portal.accounts.permissions import may_manage_teams
from portal.core.client_address import Address
from portal.core.compiled_query import CompiledQuery

_SCHEME = "ll"
# Each request looks up its token; a prefix is unique.
_LIVE_TOKENS = CompiledQuery[ApiToken](
    lambda prefix: ApiToken.objects.select_related("user").filter(prefix=prefix, revoked_at__isnull=True)
)
_USED_RESOLUTION = timedelta(minutes=1)


def _digest(secret: str) -> bytes:
    return hmac.new(settings.TOKEN_PEPPER.encode(), secret.encode(), hashlib.sha256).digest()


def scopes_for(user: User) -> list[str]:
    """Return the scopes that a user may grant: ``noc`` for NOC staff, ``team`` and ``webhooks`` for team
    managers.
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
    """Create a token; return it with its plain text, which is not stored.

    Without ``scopes`` the token gets all scopes that the user may grant. A token made with another one has no
    more rights and ends with it.

    Raises ScopeNotForYou, ExpiryInThePast, TooManyTokens; and for a token made with another one ScopeNotHeld,
    NetworkNotHeld, OutlivesItsMaker, MakerRevoked.
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
        digest=_digest(secret),
        scopes=[scope for scope in Scope.values if scope in scopes],
        allowed_networks=list(allowed_networks),
        created_at=now,
        expires_at=expires_at,
    )
    return token, f"{_SCHEME}_{prefix}_{secret}"


def _check_room(user: User, now: datetime) -> None:
    """Check that the user may have another live token; the row lock serializes callers. Raises
    TooManyTokens.
    """
    most = settings.LONGLINE_API_TOKENS_EACH
    if not most:
        return
    # Lock the user's row, so that two requests at one moment do not count the same tokens.
    User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list("pk").first()
    expired = Q(expires_at__isnull=False, expires_at__lte=now)
    if ApiToken.objects.filter(user=user, revoked_at__isnull=True).exclude(expired).count() >= most:
        raise TooManyTokens(maximum=most)


def maker_lock(maker: ApiToken) -> None:
    """Lock the token with which the caller creates something that ends with it.

    A revocation then either finds the new object, or is visible here. Raises MakerRevoked.
    """
    if not ApiToken.objects.select_for_update().filter(pk=maker.pk, revoked_at__isnull=True):
        raise MakerRevoked


def _check_within(
    maker: ApiToken, scopes: Collection[str], networks: Sequence[Network], expires_at: datetime | None
) -> None:
    for scope in sorted(set(scopes) - set(maker.scopes)):
        raise ScopeNotHeld(scope=scope)
    for network in networks:
        if maker.allowed_networks and not any(
            network.version == allowed.version and network.subnet_of(allowed)
            for allowed in maker.allowed_networks
        ):
            raise NetworkNotHeld(network=str(network))
    if maker.expires_at is not None and (expires_at is None or expires_at > maker.expires_at):
        raise OutlivesItsMaker(latest=maker.expires_at.isoformat())


def token_find(plain: str, *, now: datetime) -> ApiToken | None:
    """Return the live token of ``plain``, or None; record its last use to the minute."""
    scheme, _, rest = plain.partition("_")
    prefix, _, secret = rest.partition("_")
    if scheme != _SCHEME or not prefix or not secret:
        return None
    found = _LIVE_TOKENS(prefix)
    token = found[0] if found else None
    if token is None or not hmac.compare_digest(bytes(token.digest), _digest(secret)):
        return None
    if not token.user.is_active or (token.expires_at is not None and token.expires_at <= now):
        return None
    if token.last_used_at is None or now - token.last_used_at > _USED_RESOLUTION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def token_allows_address(token: ApiToken, address: Address | None) -> bool:
    """Return whether the token may be used from this address. A caller without an address is in
    no network.
    """
    return not token.allowed_networks or (
        address is not None and any(address in network for network in token.allowed_networks)
    )


@transaction.atomic
def token_revoke(*, token: ApiToken, now: datetime) -> None:
    """Revoke the token, all tokens made with it or with those, and the open invitations that any of them
    made.

    Revoking a token twice has no further effect.
    """
    _end_with_offspring([token.pk], now)


def tokens_end(users: Collection[int], *, now: datetime) -> None:
    """Revoke all tokens of these users.

    Call it in the transaction that closes their accounts or reopens them: a request may have created a token
    while the account was being closed.
    """
    ApiToken.objects.filter(user__in=users, revoked_at__isnull=True).update(revoked_at=now)


@transaction.atomic
def noc_tokens_revoke(*, user: User, now: datetime) -> None:
    """Revoke the user's tokens that act for the NOC, with all tokens that were made with them."""
    tokens = ApiToken.objects.filter(user=user, scopes__contains=[Scope.NOC], revoked_at__isnull=True)
    _end_with_offspring(list(tokens.values_list("pk", flat=True)), now)


def _end_with_offspring(ending: list[int], now: datetime) -> None:
    """Revoke tokens and their descendants. Each token is locked before its descendants are read."""
    for tokens in _generations(ending):
        ApiToken.objects.filter(pk__in=tokens, revoked_at__isnull=True).update(revoked_at=now)
        Invitation.objects.filter(
            made_with__in=tokens, accepted_at__isnull=True, revoked_at__isnull=True
        ).update(revoked_at=now)


def lineage(token: ApiToken) -> list[int]:
    """Return the ids of the token and all its descendants, including revoked ones."""
    return [pk for tokens in _generations([token.pk]) for pk in tokens]


def _generations(tokens: list[int]) -> Iterator[list[int]]:
    """Yield these tokens, those made with them, and so on. Each generation is read after the caller has
    processed the previous one.
    """
    while tokens:
        yield tokens
        tokens = list(ApiToken.objects.filter(made_with__in=tokens).values_list("pk", flat=True))


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Return the user's tokens that are not revoked, newest first."""
    return ApiToken.objects.filter(user=user, revoked_at__isnull=True).order_by("-created_at", "-id")
