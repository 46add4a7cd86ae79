"""Errors about people and tokens, with their facts. ``portal.accounts.error_messages`` has their messages."""

from portal.core.errors import Conflict, DomainError, TooSoon


class LastAdmin(Conflict):
    """The user is the customer's only admin. Without an admin, nobody could invite members."""

    customer: str
    field: str = "role"


class LastNocAdmin(Conflict):
    """The user is the NOC's only admin. Without an admin, nobody could manage the NOC's accounts."""

    username: str
    field: str = "role"


class AccountClosed(Conflict):
    """The account is closed, so it cannot get a role."""

    username: str
    field: str = "username"


class NoAddress(Conflict):
    """The owner of the account has no e-mail address."""

    username: str


class AlreadyMember(Conflict):
    """The address belongs to a member of the customer."""

    email: str
    customer: str
    field: str = "email"


class AlreadyInvited(Conflict):
    """An invitation to that address is open."""

    email: str
    field: str = "email"


class TooManyInvitations(TooSoon):
    """The customer has sent the maximum number of invitations in 24 hours."""

    customer: str
    maximum: int


class InvitedTooOften(TooSoon):
    """The customer has invited that address the maximum number of times in 24 hours."""

    email: str
    maximum: int
    field: str = "email"


class InvitationUsed(Conflict):
    """The invitation was accepted or revoked, or has expired. Only the customer's admins see which of these
    is the case.
    """


class InvitationForSomebodyElse(Conflict):
    """The signed-in user's address is not the invited address."""

    email: str


class AccountNotClosed(Conflict):
    """The account with that address is open. Its owner can sign in and need not reopen it."""

    email: str


class UsernameTaken(Conflict):
    """Another user has that name. The comparison ignores upper and lower case."""

    username: str
    field: str = "username"


class AddressTaken(Conflict):
    """The address belongs to another account."""

    email: str
    field: str = "email"


class EmailChangeOver(Conflict):
    """The link that verifies a new address is no longer valid.

    The link is too old or belongs to another user, or the account has changed since the link was created.
    """


class ScopeNotForYou(DomainError):
    """The user does not have the rights of a scope, and therefore cannot give the scope to a token.

    Otherwise the token would get these rights as soon as the user gets them.
    """

    scope: str
    field: str = "scopes"


class ScopeNotGranted(DomainError):
    """A token cannot create a token with a scope that it does not have."""

    code = "scope-not-held"
    scope: str
    field: str = "scopes"


class NetworkNotGranted(DomainError):
    """The new token would allow networks that the token of the request does not allow."""

    code = "network-not-held"
    network: str
    field: str = "allowed_networks"


class OutlivesItsMaker(DomainError):
    """The new token would expire later than the token of the request."""

    latest: str
    field: str = "expires_at"


class MakerRevoked(Conflict):
    """The token that requests a new token has been revoked, and with it all tokens that it created."""


class TooManyTokens(Conflict):
    """The user has the maximum number of API tokens that are neither revoked nor expired."""

    maximum: int


class ExpiryInThePast(DomainError):
    """The requested expiry of the token is in the past."""

    field = "expires_at"
