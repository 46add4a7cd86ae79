"""The texts can be taken out, translated, and are then what a reader sees."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import translation

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]


def test_a_translation_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    locale = tmp_path / "locale"
    settings.LOCALE_PATHS = [locale]
    monkeypatch.chdir(ROOT)
    call_command(
        "makemessages",
        locale=["eo"],
        extensions=["html", "txt", "py"],
        ignore_patterns=[".venv/*", "tests/*"],
        verbosity=0,
    )
    catalogue = locale / "eo" / "LC_MESSAGES" / "django.po"
    texts = catalogue.read_text()
    for english in ("Order a line", "Repair now", "Open orders"):
        assert f'"{english}' in texts, english
    catalogue.write_text(
        texts.replace('msgid "Page not found"\nmsgstr ""', 'msgid "Page not found"\nmsgstr "Paĝo ne trovita"')
    )
    subprocess.run(["msgfmt", "-o", str(catalogue.with_suffix(".mo")), str(catalogue)], check=True)
    settings.LANGUAGE_CODE = "eo"
    translation.trans_real._translations.clear()  # type: ignore[attr-defined]
    try:
        with translation.override("eo"):
            shown = Client().get("/nowhere/").content.decode()
    finally:
        translation.trans_real._translations.clear()  # type: ignore[attr-defined]
    assert "Paĝo ne trovita" in shown
    assert '<html lang="eo">' in shown
