"""Answers that nobody on the way may keep (RFC 9111, 5.2.2.5): with a secret, or what one was changed for."""

NO_STORE = {"Cache-Control": "no-store"}
