"""Sealed secrets stay readable when SECRET_KEY changes, as long as the old one is configured."""

from typing import Any

import pytest
from cryptography.fernet import InvalidToken

from portal.accounts.secret_encryption import decrypt_secret, encrypt_secret
from portal.core.environment import Environment


def test_secrets_of_the_old_key_are_readable_with_a_new_key(settings: Any) -> None:
    settings.SECRET_KEY = "the first"
    sealed = encrypt_secret("JBSWY3DPEHPK3PXP")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "the third", ["the second", "the first"]
    assert decrypt_secret(sealed) == "JBSWY3DPEHPK3PXP"
    settings.SECRET_KEY_FALLBACKS = ["the second"]
    with pytest.raises(InvalidToken):
        decrypt_secret(sealed)


def test_a_secret_can_only_be_decrypted_for_its_purpose() -> None:
    with pytest.raises(InvalidToken):
        decrypt_secret(encrypt_secret("JBSWY3DPEHPK3PXP"), purpose="webhook secrets")


@pytest.mark.parametrize(
    ("text", "keys"),
    [("", []), ("the second,the first", ["the second", "the first"])],
    ids=["an empty file", "two keys"],
)
def test_old_keys_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, text: str, keys: list[str]
) -> None:
    (tmp_path / "keys").write_text(f"{text}\n")
    # A file's content is read once.
    name = f"SOME_{len(keys)}_KEYS"
    monkeypatch.setenv(f"{name}_FILE", str(tmp_path / "keys"))
    assert Environment().list(name, default=[]) == keys
