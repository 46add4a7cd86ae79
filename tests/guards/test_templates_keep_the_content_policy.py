"""No template has inline script or style, which the content security policy blocks in the browser."""

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[2] / "templates"
INLINE = {
    "a script without src": re.compile(r"<script(?![^>]*\bsrc=)", re.IGNORECASE),
    "a style element": re.compile(r"<style\b", re.IGNORECASE),
    "a style attribute": re.compile(r"<[^>{]*\sstyle=", re.IGNORECASE),
    "an event handler": re.compile(r"<[^>{]*\son[a-z]+=", re.IGNORECASE),
    "a script of htmx": re.compile(r"\bhx-on\b|\bhx-vals=[\"']js:", re.IGNORECASE),
    "a foreign address": re.compile(r"\b(?:src|href)=[\"'](?:https?:)?//", re.IGNORECASE),
}


def templates() -> list[Path]:
    found = sorted(TEMPLATES.rglob("*.html"))
    assert found
    return found


@pytest.mark.parametrize("template", templates(), ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_a_template_has_nothing_inline(template: Path) -> None:
    text = template.read_text()
    assert [what for what, pattern in INLINE.items() if pattern.search(text)] == []
