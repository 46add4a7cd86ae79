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
# Asked for by every request; a prefix is unique.
_LIVE_TOKENS = CompiledQuery[ApiToken](
    lambda prefix: ApiToken.objects.select_related("user").filter(prefix=prefix, revoked_at__isnull=True)
)
_USED_RESOLUTION = timedelta(minutes=1)


def _digest(secret: str) -> bytes:
    return hmac.new(settings.TOKEN_PEPPER.encode(), secret.encode(), hashlib.sha256).digest()


def scopes_for(user: User) -> list[str]:
    """Scopes that a user may grant: ``noc`` to NOC staff, ``team`` and ``webhooks`` to who runs a team."""
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
    """A new token and its only plain text. Without ``scopes`` it has all that the user may put on it.

    Made with another token, it may nothing that one may not, and ends with it: Raises ScopeNotHeld,
    NetworkNotHeld, OutlivesItsMaker, MakerRevoked. Raises ScopeNotForYou, ExpiryInThePast, TooManyTokens.
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
    """Check that the user may have another live token; one at a time. Raises TooManyTokens."""
    most = settings.LONGLINE_API_TOKENS_EACH
    if not most:
        return
    # The row itself, so that two requests at one moment do not count the same tokens.
    User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list("pk").first()
    expired = Q(expires_at__isnull=False, expires_at__lte=now)
    if ApiToken.objects.filter(user=user, revoked_at__isnull=True).exclude(expired).count() >= most:
        raise TooManyTokens(maximum=most)


def maker_lock(maker: ApiToken) -> None:
    """For whoever makes something that ends with its maker: a revocation finds the new one, or this finds
    the revocation. Raises MakerRevoked."""
    if not ApiToken.objects.select_for_update().filter(pk=maker.pk, revoked_at__isnull=True):
        raise MakerRevoked


def _check_within(
    maker: ApiToken, scopes: Collection[str], networks: Sequence[Network], expires_at: datetime | None
) -> None:
    for scope in sorted(set(scopes) - set(maker.scopes)):
        raise ScopeNotHeld(scope=scope)
    for network in networks:
        if maker.allowed_networks and not any(
            network.version == held.version and network.subnet_of(held) for held in maker.allowed_networks
        ):
            raise NetworkNotHeld(network=str(network))
    if maker.expires_at is not None and (expires_at is None or expires_at > maker.expires_at):
        raise OutlivesItsMaker(latest=maker.expires_at.isoformat())


def token_find(plain: str, *, now: datetime) -> ApiToken | None:
    """The live token that ``plain`` opens, or None; notes its use to the minute."""
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
    """Whether it may be used from there. A caller without an address is in no network."""
    return not token.allowed_networks or (
        address is not None and any(address in network for network in token.allowed_networks)
    )


@transaction.atomic
def token_revoke(*, token: ApiToken, now: datetime) -> None:
    """End it at once, with all that were made with it, or with these, and the open invitations that any of
    them asked for; done twice is done."""
    _end_with_offspring([token.pk], now)


def tokens_end(users: Collection[int], *, now: datetime) -> None:
    """End all tokens of these people: in the transaction that closes their accounts, or opens them again, as
    one may have been in the making while an account was closed."""
    ApiToken.objects.filter(user__in=users, revoked_at__isnull=True).update(revoked_at=now)


@transaction.atomic
def noc_tokens_revoke(*, user: User, now: datetime) -> None:
    """End the user's tokens that act for the NOC, with all that were made with them."""
    held = ApiToken.objects.filter(user=user, scopes__contains=[Scope.NOC], revoked_at__isnull=True)
    _end_with_offspring(list(held.values_list("pk", flat=True)), now)


def _end_with_offspring(ending: list[int], now: datetime) -> None:
    """From the maker on downwards: a token is locked before those that were made with it are looked for."""
    for tokens in _generations(ending):
        ApiToken.objects.filter(pk__in=tokens, revoked_at__isnull=True).update(revoked_at=now)
        Invitation.objects.filter(
            made_with__in=tokens, accepted_at__isnull=True, revoked_at__isnull=True
        ).update(revoked_at=now)


def lineage(token: ApiToken) -> list[int]:
    """It, those that were made with it, and with these, revoked ones too."""
    return [pk for tokens in _generations([token.pk]) for pk in tokens]


def _generations(tokens: list[int]) -> Iterator[list[int]]:
    """These, those that were made with them, and so on; each is looked for when the one before it is done."""
    while tokens:
        yield tokens
        tokens = list(ApiToken.objects.filter(made_with__in=tokens).values_list("pk", flat=True))


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """The user's own tokens that were not revoked, newest first."""
    return ApiToken.objects.filter(user=user, revoked_at__isnull=True).order_by("-created_at", "-id")
