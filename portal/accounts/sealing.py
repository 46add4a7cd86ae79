"""Secrets that have to be read again, sealed with a key derived from SECRET_KEY."""

import base64

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


def seal(text: str) -> str:
    """``text`` encrypted and authenticated (Fernet)."""
    return _fernet().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """What was sealed, also under a key in SECRET_KEY_FALLBACKS. Raises InvalidToken."""
    return _fernet().decrypt(sealed.encode()).decode()


def _fernet() -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(key: str) -> bytes:
    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"longline second factor")
    return base64.urlsafe_b64encode(derivation.derive(key.encode()))
