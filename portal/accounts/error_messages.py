"""Error messages about people and tokens, with the facts of the errors."""

from django.utils.translation import gettext_noop

from portal.accounts import errors
from portal.core.errors import TEXTS

TEXTS |= {
    errors.LastAdmin: gettext_noop(
        "{customer} would be left without an admin. Make somebody else an admin first."
    ),
    errors.LastNocAdmin: gettext_noop(
        "{username} is the NOC's last admin. Make somebody else an admin of the NOC first."
    ),
    errors.AccountClosed: gettext_noop("The account of {username} is closed. Reopen it first."),
    errors.NoAddress: gettext_noop(
        "{username} has no e-mail address, so a link to choose a password cannot be sent."
    ),
    errors.AlreadyMember: gettext_noop("{email} is already a member of {customer}. Change the role instead."),
    errors.AlreadyInvited: gettext_noop(
        "{email} already has an open invitation. Withdraw it before you send another."
    ),
    errors.TooManyInvitations: gettext_noop(
        "{customer} has sent {maximum} invitations in the last 24 hours, which is the limit. Send the "
        "next one after {again_at}."
    ),
    errors.InvitedTooOften: gettext_noop(
        "{email} has been invited {maximum} times in the last 24 hours, which is the limit. Send "
        "another invitation after {again_at}."
    ),
    errors.InvitationUsed: gettext_noop(
        "This invitation is no longer valid: it was used, withdrawn or has expired. Ask for a new one."
    ),
    errors.InvitationForSomebodyElse: gettext_noop(
        "This invitation is for {email}. Sign out, then open the link again."
    ),
    errors.AccountNotClosed: gettext_noop(
        "The account of {email} is active. Open the link again and sign in to accept."
    ),
    errors.UsernameTaken: gettext_noop("{username} is taken. Choose another name."),
    errors.AddressTaken: gettext_noop("{email} already belongs to an account."),
    errors.EmailChangeOver: gettext_noop(
        "This link is no longer valid: it was used, is more than a day old, or your address or "
        "password has changed since. Ask for a new one."
    ),
    errors.ScopeNotForYou: gettext_noop(
        "You cannot give a token the scope {scope}: noc is for NOC staff, team for admins of a customer "
        "or of the NOC."
    ),
    errors.ScopeNotGranted: gettext_noop(
        "A token can create tokens only with its own scopes; {scope} is not one of them."
    ),
    errors.NetworkNotGranted: gettext_noop(
        "A token can create tokens only for its own networks. {network} is outside of these networks."
    ),
    errors.OutlivesItsMaker: gettext_noop(
        "A token created with another token expires with it, at {latest} at the latest."
    ),
    errors.MakerRevoked: gettext_noop("This token was revoked, so it cannot create others."),
    errors.TooManyTokens: gettext_noop(
        "You have {maximum} API tokens that are neither revoked nor expired, which is the limit."
        " Revoke one that you do not use."
    ),
    errors.ExpiryInThePast: gettext_noop("The expiry is in the past. Choose a later one, or none."),
}
