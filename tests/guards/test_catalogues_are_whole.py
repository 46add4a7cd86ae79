"""Every text is translated into every language of the portal, with the same placeholders."""

import json
import re
import shutil
import subprocess
from gettext import GNUTranslations
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

ROOT = Path(__file__).parents[2]
SOURCES = ("portal", "provisioning", "templates", "locale")
LANGUAGES = [code for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
# %(name)s, %s and {name}, without the formatting of the value.
_PLACEHOLDERS = re.compile(r"%\((\w+)\)|%[sd]|\{(\w*)")


def catalogue(language: str, root: Path = ROOT) -> Path:
    return root / "locale" / language / "LC_MESSAGES" / "django.po"


def entries(language: str, kind: str) -> list[str]:
    """Return the texts of a catalogue that are ``untranslated``, ``only-fuzzy`` or ``only-obsolete``."""
    found = subprocess.run(
        ["msgattrib", f"--{kind}", "--no-wrap", catalogue(language)],
        capture_output=True,
        text=True,
        check=True,
    )
    return [text for text in re.findall(r"^(?:#~ )?msgid (.+)$", found.stdout, re.MULTILINE) if text != '""']


def translations(language: str, folder: Path) -> dict[Any, str]:
    """Return the translations by English text, with the number of the plural form if there are several."""
    compiled = folder / "django.mo"
    subprocess.run(["msgfmt", "--check-format", "--output-file", compiled, catalogue(language)], check=True)
    with compiled.open("rb") as file:
        found: dict[Any, str] = GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    return found


def plurals(language: str) -> dict[str, str]:
    """Return the English plural texts by their singular texts."""
    command = ["msgattrib", "--no-wrap", catalogue(language)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pairs = re.findall(r"^msgid (.+)\nmsgid_plural (.+)$", found, re.MULTILINE)
    return {json.loads(one): json.loads(several) for one, several in pairs}


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources with the catalogues that ``make messages`` generates from them."""
    copy = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "migrations"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(copy)
        patch.setattr(settings, "LOCALE_PATHS", [copy / "locale"])
        call_command("makemessages", verbosity=0)
    return copy


@pytest.mark.parametrize("language", LANGUAGES)
class TestCatalogue:
    def test_it_has_exactly_the_texts_of_the_sources(self, regenerated: Path, language: str) -> None:
        """If this fails, run ``make messages`` and translate the new texts."""
        assert catalogue(language).read_text() == catalogue(language, regenerated).read_text()

    def test_every_text_is_translated(self, language: str) -> None:
        assert entries(language, "untranslated") == []

    @pytest.mark.parametrize("kind", ["only-fuzzy", "only-obsolete"])
    def test_it_has_no_entries_of_changed_texts(self, language: str, kind: str) -> None:
        assert entries(language, kind) == []

    def test_every_translation_has_the_placeholders_of_its_text(self, language: str, tmp_path: Path) -> None:
        several = plurals(language)
        wrong = {}
        for english, translated in translations(language, tmp_path).items():
            one, form = english if isinstance(english, tuple) else (english, None)
            text = several[one] if form else one
            if placeholders(translated) != placeholders(text) and text:
                wrong[english] = translated
        assert wrong == {}


def placeholders(text: str) -> set[str]:
    """Return the names of a text's placeholders."""
    return {"".join(match) or "%" for match in _PLACEHOLDERS.findall(text)}


def test_placeholders_of_every_notation_are_found() -> None:
    assert placeholders("%(count)s of {name} %s {at:%H:%M}") == {"count", "name", "%", "at"}
