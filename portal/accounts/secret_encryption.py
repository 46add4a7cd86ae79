"""Encryption of secrets that must be readable, with a key derived from SECRET_KEY."""

import base64

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

SECOND_FACTOR = "second factor"


def encrypt_secret(text: str, *, purpose: str = SECOND_FACTOR) -> str:
    """Encrypt and authenticate ``text`` (Fernet), with a separate key for each purpose."""
    return _fernet(purpose).encrypt(text.encode()).decode()


def decrypt_secret(sealed: str, *, purpose: str = SECOND_FACTOR) -> str:
    """Decrypt the secret, also with a key in SECRET_KEY_FALLBACKS. Raises InvalidToken."""
    return _fernet(purpose).decrypt(sealed.encode()).decode()


def _fernet(purpose: str) -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(key, purpose)) for key in keys])


def _derived(key: str, purpose: str) -> bytes:
    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=f"longline {purpose}".encode())
    return base64.urlsafe_b64encode(derivation.derive(key.encode()))
