"""The tasks of accounts, by the names that Celery knows."""

CLEAR_SESSIONS = "accounts.clear_sessions"
SEND_INVITATION = "notifications.send_invitation"
RESEND_INVITATIONS = "notifications.sweep"
