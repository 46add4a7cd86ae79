"""Encryption of stored secrets that the portal must be able to read, with a key derived from SECRET_KEY."""

import base64

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

SECOND_FACTOR = "second factor"


def encrypt_secret(text: str, *, purpose: str = SECOND_FACTOR) -> str:
    """Return ``text`` encrypted and authenticated (Fernet). Each purpose has a separate key."""
    return _fernet(purpose).encrypt(text.encode()).decode()


def decrypt_secret(sealed: str, *, purpose: str = SECOND_FACTOR) -> str:
    """Return the decrypted secret. Keys in SECRET_KEY_FALLBACKS also work. Raises InvalidToken."""
    return _fernet(purpose).decrypt(sealed.encode()).decode()


def _fernet(purpose: str) -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(key, purpose)) for key in keys])


def _derived(key: str, purpose: str) -> bytes:
    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=f"longline {purpose}".encode())
    return base64.urlsafe_b64encode(derivation.derive(key.encode()))
