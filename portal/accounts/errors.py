"""Errors about people and tokens: types with facts, worded by ``portal.accounts.error_messages``."""

from portal.core.errors import Conflict, DomainError, TooSoon


class LastAdmin(Conflict):
    """A customer without an admin could never invite anybody again."""

    customer: str
    field: str = "role"


class LastNocAdmin(Conflict):
    """A NOC without an admin could neither remove anything nor help anybody."""

    username: str
    field: str = "role"


class AccountClosed(Conflict):
    """A person who cannot sign in gets no role."""

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
    """The customer has sent the maximum of invitations for a day."""

    customer: str
    maximum: int


class InvitedTooOften(TooSoon):
    """The customer has invited that address the maximum of times for a day."""

    email: str
    maximum: int
    field: str = "email"


class InvitationUsed(Conflict):
    """The invitation was accepted, was revoked or has expired. Only the admin learns which of these."""


class InvitationForSomebodyElse(Conflict):
    """The reader is signed in with another address than the invited one."""

    email: str


class AccountNotClosed(Conflict):
    """The account of that address is open, so its owner signs in instead of reopening it."""

    email: str


class UsernameTaken(Conflict):
    """Another user signs in by that name, perhaps written in other case."""

    username: str
    field: str = "username"


class AddressTaken(Conflict):
    """The address belongs to another account."""

    email: str
    field: str = "email"


class EmailChangeOver(Conflict):
    """The link that verifies an address is too old or belongs to another user, or the account has changed
    since.
    """


class ScopeNotForYou(DomainError):
    """Users cannot give a token rights that they lack: the token would gain the rights when the user gets
    them.
    """

    scope: str
    field: str = "scopes"


class ScopeNotHeld(DomainError):
    """A token passes on only scopes that it has itself."""

    scope: str
    field: str = "scopes"


class NetworkNotHeld(DomainError):
    """A token passes on only networks that it may be used from."""

    network: str
    field: str = "allowed_networks"


class OutlivesItsMaker(DomainError):
    """A token made with a token ends no later than that token."""

    latest: str
    field: str = "expires_at"


class MakerRevoked(Conflict):
    """The token that requests another one was revoked meanwhile, and with it all tokens that it makes."""


class TooManyTokens(Conflict):
    """The user has the maximum of live API tokens."""

    maximum: int


class ExpiryInThePast(DomainError):
    """A token must expire in the future."""

    field = "expires_at"
