"""Names of the Celery tasks of accounts."""

CLEAR_SESSIONS = "accounts.clear_sessions"
SEND_INVITATION = "accounts.send_invitation"
RESEND_INVITATIONS = "accounts.resend_invitations"
