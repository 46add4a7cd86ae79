"""Errors about people and tokens, with their facts."""

from django.utils.translation import gettext_lazy as _

from portal.core.errors import Conflict, DomainError, TooSoon


class LastAdmin(Conflict):
    """The user is the customer's only admin. Without an admin, nobody could invite members."""

    text = _("{customer} would be left without an admin. Make somebody else an admin first.")
    customer: str
    field: str = "role"


class LastNocAdmin(Conflict):
    """The user is the NOC's only admin. Without an admin, nobody could manage the NOC's accounts."""

    text = _("{username} is the NOC's last admin. Make somebody else an admin of the NOC first.")
    username: str
    field: str = "role"


class AccountClosed(Conflict):
    """The account is closed, so it cannot get a role."""

    text = _("The account of {username} is closed. Reopen it first.")
    username: str
    field: str = "username"


class NoAddress(Conflict):
    """The owner of the account has no e-mail address."""

    text = _("{username} has no e-mail address, so a link to choose a password cannot be sent.")
    username: str


class AlreadyMember(Conflict):
    """The address belongs to a member of the customer."""

    text = _("{email} is already a member of {customer}. Change the role instead.")
    email: str
    customer: str
    field: str = "email"


class AlreadyInvited(Conflict):
    """An invitation to that address is open."""

    text = _("{email} already has an open invitation. Withdraw it before you send another.")
    email: str
    field: str = "email"


class TooManyInvitations(TooSoon):
    """The customer has sent the maximum number of invitations in 24 hours."""

    text = _(
        "{customer} has sent {maximum} invitations in the last 24 hours, which is the limit. Send the "
        "next one after {again_at}."
    )
    customer: str
    maximum: int


class InvitedTooOften(TooSoon):
    """The customer has invited that address the maximum number of times in 24 hours."""

    text = _(
        "{email} has been invited {maximum} times in the last 24 hours, which is the limit. Send "
        "another invitation after {again_at}."
    )
    email: str
    maximum: int
    field: str = "email"


class InvitationUsed(Conflict):
    """The invitation was accepted or revoked, or has expired. Only the customer's admins see the reason."""

    text = _("This invitation is no longer valid: it was used, withdrawn or has expired. Ask for a new one.")


class InvitationForSomebodyElse(Conflict):
    """The signed-in user's address is not the invited address."""

    text = _("This invitation is for {email}. Sign out, then open the link again.")
    email: str


class AccountNotClosed(Conflict):
    """The account with that address is open. Its owner can sign in and need not reopen it."""

    text = _("The account of {email} is active. Open the link again and sign in to accept.")
    email: str


class UsernameTaken(Conflict):
    """Another user has that name. The comparison ignores upper and lower case."""

    text = _("{username} is taken. Choose another name.")
    username: str
    field: str = "username"


class AddressTaken(Conflict):
    """The address belongs to another account."""

    text = _("{email} already belongs to an account.")
    email: str
    field: str = "email"


class EmailChangeOver(Conflict):
    """The link that verifies a new address is no longer valid.

    The link is too old or belongs to another user, or the account has changed since the link was created.
    """

    text = _(
        "This link is no longer valid: it was used, is more than a day old, or your address or "
        "password has changed since. Ask for a new one."
    )


class ScopeNotForYou(DomainError):
    """The user does not have the rights of a scope, and therefore cannot give the scope to a token.

    Otherwise the token would get these rights as soon as the user gets them.
    """

    text = _(
        "You cannot give a token the scope {scope}: noc is for NOC staff, team for admins of a customer "
        "or of the NOC."
    )
    scope: str
    field: str = "scopes"


class ScopeNotGranted(DomainError):
    """A token cannot create a token with a scope that it does not have."""

    code = "scope-not-held"
    text = _("A token can create tokens only with its own scopes; {scope} is not one of them.")
    scope: str
    field: str = "scopes"


class NetworkNotGranted(DomainError):
    """The new token would allow networks that the token of the request does not allow."""

    code = "network-not-held"
    text = _("A token can create tokens only for its own networks. {network} is outside of these networks.")
    network: str
    field: str = "allowed_networks"


class OutlivesItsMaker(DomainError):
    """The new token would expire later than the token of the request."""

    text = _("A token created with another token expires with it, at {latest} at the latest.")
    latest: str
    field: str = "expires_at"


class MakerRevoked(Conflict):
    """The token that requests a new token has been revoked, and with it all tokens that it created."""

    text = _("This token was revoked, so it cannot create others.")


class TooManyTokens(Conflict):
    """The user has the maximum number of API tokens that are neither revoked nor expired."""

    text = _(
        "You have {maximum} API tokens that are neither revoked nor expired, which is the limit."
        " Revoke one that you do not use."
    )
    maximum: int


class ExpiryInThePast(DomainError):
    """The requested expiry of the token is in the past."""

    text = _("The expiry is in the past. Choose a later one, or none.")
    field = "expires_at"
