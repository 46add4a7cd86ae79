"""The tasks of accounts, by the names that Celery knows."""

CLEAR_SESSIONS = "accounts.clear_sessions"
SEND_INVITATION = "accounts.send_invitation"
RESEND_INVITATIONS = "accounts.resend_invitations"
