"""Standard Webhooks 1.0: symmetric secrets, and the headers that sign a message."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime

_PREFIX = "whsec_"
# The specification requires 24 to 64 bytes.
_SECRET_BYTES = 32


def new_secret() -> str:
    """Return a new random secret in the form that users get: ``whsec_`` and base64."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(
    body: bytes, *, message_id: str, at: datetime, secrets: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the three headers that sign a message, with one signature for each secret.

    During a change of the secret, a receiver knows only one of the two secrets. ``at``: the time of the
    attempt. Receivers check it to detect replays.
    """
    timestamp = int(at.timestamp())
    signatures = [_signature(secret, f"{message_id}.{timestamp}.".encode() + body) for secret in secrets]
    return [
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", " ".join(signatures)),
    ]


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
