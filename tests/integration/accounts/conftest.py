"""The mail server of notifications: mails about accounts go the same way."""

from tests.integration.notifications.conftest import server

__all__ = ["server"]
