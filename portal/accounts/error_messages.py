"""The words for refusals about people and tokens, with the errors' facts in them."""

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
    errors.AccountClosed: gettext_noop("The account of {username} is closed. Open it again first."),
    errors.NoAddress: gettext_noop(
        "{username} has no e-mail address, so no link to choose a password by can be sent."
    ),
    errors.AlreadyMember: gettext_noop("{email} is a member of {customer} already. Change the role instead."),
    errors.AlreadyInvited: gettext_noop("{email} has an open invitation. Take it back first to invite anew."),
    errors.TooManyInvitations: gettext_noop(
        "{customer} has sent {maximum} invitations in a day, as many as it may. The next one goes out after"
        " {again_at}."
    ),
    errors.InvitedTooOften: gettext_noop(
        "{email} was invited {maximum} times in a day, as often as it may be. Invite it again after"
        " {again_at}."
    ),
    errors.InvitationUsed: gettext_noop(
        "This invitation is no longer good: it was used, taken back, or is too old. Ask for a new one."
    ),
    errors.InvitationForSomebodyElse: gettext_noop(
        "This invitation is for {email}. Sign out, and open it again."
    ),
    errors.AccountNotClosed: gettext_noop(
        "The account of {email} is open. Open the link again, and sign in to accept."
    ),
    errors.UsernameTaken: gettext_noop("{username} is taken. Choose another name."),
    errors.AddressTaken: gettext_noop("{email} belongs to an account already."),
    errors.EmailChangeOver: gettext_noop(
        "This link is no longer good: it was used, it is older than a day, or your address or password was"
        " changed since. Ask for a new one."
    ),
    errors.ScopeNotForYou: gettext_noop(
        "You cannot put {scope} on a token: noc is for NOC staff, team for admins of a customer or the NOC."
    ),
    errors.ScopeNotHeld: gettext_noop(
        "A token can only make tokens with scopes of its own; {scope} is not one of them."
    ),
    errors.NetworkNotHeld: gettext_noop(
        "A token can only make tokens for networks of its own; {network} is in none of them."
    ),
    errors.OutlivesItsMaker: gettext_noop("A token made with a token ends with it, {latest} at the latest."),
    errors.MakerRevoked: gettext_noop("This token was revoked, so it makes no others."),
    errors.ExpiryInThePast: gettext_noop("The expiry is in the past. Choose a later one, or none."),
}
