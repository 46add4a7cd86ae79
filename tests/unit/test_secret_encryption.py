"""Sealed secrets stay readable when SECRET_KEY changes, as long as the old one is named."""

from typing import Any

import pytest
from cryptography.fernet import InvalidToken

from portal.accounts.secret_encryption import decrypt_secret, encrypt_secret
from portal.core.environment import Environment


def test_a_new_key_reads_what_the_old_one_sealed(settings: Any) -> None:
    settings.SECRET_KEY = "the first"
    sealed = encrypt_secret("JBSWY3DPEHPK3PXP")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "the third", ["the second", "the first"]
    assert decrypt_secret(sealed) == "JBSWY3DPEHPK3PXP"
    settings.SECRET_KEY_FALLBACKS = ["the second"]
    with pytest.raises(InvalidToken):
        decrypt_secret(sealed)


def test_what_is_sealed_for_one_purpose_opens_for_no_other() -> None:
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
    # What a file held is read once.
    name = f"SOME_{len(keys)}_KEYS"
    monkeypatch.setenv(f"{name}_FILE", str(tmp_path / "keys"))
    assert Environment().list(name, default=[]) == keys
