"""Standard Webhooks 1.0: symmetric secrets, and the headers that sign a message."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime

_PREFIX = "whsec_"
# The specification requires 24 to 64.
_SECRET_BYTES = 32


def new_secret() -> str:
    """Return a random secret as its reader gets it: ``whsec_`` and base64."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(
    body: bytes, *, message_id: str, at: datetime, secrets: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the three headers, with one signature per secret: during a change a receiver knows one of them.

    ``at`` is the time of this attempt. A receiver refuses replays by it.
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
