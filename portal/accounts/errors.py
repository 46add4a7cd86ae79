"""Refusals about people and tokens: types with facts, worded by ``portal.accounts.error_messages``."""

from portal.core.errors import Conflict, DomainError, TooSoon


class LastAdmin(Conflict):
    """A customer without an admin could never invite anybody again."""

    customer: str
    field: str = "role"


class LastNocAdmin(Conflict):
    """The NOC without an admin could neither remove anything nor help anybody."""

    username: str
    field: str = "role"


class AccountClosed(Conflict):
    """Whoever cannot sign in gets no role."""

    username: str
    field: str = "username"


class NoAddress(Conflict):
    """Nothing can be mailed to the owner of the account."""

    username: str


class AlreadyMember(Conflict):
    """The address belongs to somebody who is a member of the customer."""

    email: str
    customer: str
    field: str = "email"


class AlreadyInvited(Conflict):
    """An invitation to that address is open."""

    email: str
    field: str = "email"


class TooManyInvitations(TooSoon):
    """The customer sent as many invitations in a day as it may."""

    customer: str
    maximum: int


class InvitedTooOften(TooSoon):
    """The customer invited that address as often in a day as it may."""

    email: str
    maximum: int
    field: str = "email"


class InvitationUsed(Conflict):
    """The invitation was accepted, revoked or has expired; which, is nobody's business but the admin's."""


class InvitationForSomebodyElse(Conflict):
    """The reader is signed in with another address than the one invited."""

    email: str


class AccountNotClosed(Conflict):
    """The account of that address is open, so its owner signs in instead of opening it again."""

    email: str


class UsernameTaken(Conflict):
    """Somebody signs in by that name already, perhaps written in other case."""

    username: str
    field: str = "username"


class AddressTaken(Conflict):
    """The address belongs to an account already."""

    email: str
    field: str = "email"


class EmailChangeOver(Conflict):
    """The link that proves an address is somebody else's or too old, or the account has changed since."""


class ScopeNotForYou(DomainError):
    """Nobody puts rights on a token that they do not have: it would wait for the day when they get them."""

    scope: str
    field: str = "scopes"


class ScopeNotHeld(DomainError):
    """A token hands on only what it may itself."""

    scope: str
    field: str = "scopes"


class NetworkNotHeld(DomainError):
    """A token hands on only the networks that it may be used from."""

    network: str
    field: str = "allowed_networks"


class OutlivesItsMaker(DomainError):
    """A token made with a token ends no later than that one."""

    latest: str
    field: str = "expires_at"


class MakerRevoked(Conflict):
    """The token that asks for another was revoked meanwhile, and takes all with it that it makes."""


class TooManyTokens(Conflict):
    """The user has as many live API tokens as one user may have."""

    maximum: int


class ExpiryInThePast(DomainError):
    """A token that is dead before it lives."""

    field = "expires_at"
