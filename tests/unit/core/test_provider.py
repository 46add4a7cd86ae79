"""The provider's settings: accepted values, and errors at the start that say what to write instead."""

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.core.provider import READABLE, Provider, contrast, lightened

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def read(**written: str) -> Provider:
    empty = dict.fromkeys(("logo", "colour", "terms_url", "support_email", "support_phone", "help_url"), "")
    return Provider.read(**{"name": "Savanna Networks", **empty, **written})  # type: ignore[arg-type]


def test_contrast_agrees_with_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#ffffff") == pytest.approx(1)
    # The lightest grey that WCAG's own examples call readable on white.
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)


def test_a_colour_is_lightened_only_until_it_is_readable() -> None:
    assert lightened("#ffffff", behind=("#000000",)) == "#ffffff"
    light = lightened("#0b5cad", behind=("#18202a",))
    assert READABLE <= contrast(light, "#18202a") < READABLE + 0.3


def test_without_settings_the_provider_has_only_a_name() -> None:
    provider = read(name="Longline")
    assert (provider.name, provider.logo, provider.style) == ("Longline", None, None)
    assert not provider.has_contact


def test_all_settings_are_read(tmp_path: Path) -> None:
    logo = tmp_path / "logo"
    logo.write_bytes(b'<svg xmlns="http://www.w3.org/2000/svg"/>')
    provider = read(
        logo=str(logo),
        colour="#0f5f5c",
        terms_url="https://savanna.example/terms",
        support_email=" noc@savanna.example ",
        support_phone="+254 (20) 555-0100",
        help_url="https://help.savanna.example/",
    )
    assert provider.logo is not None
    assert provider.logo.content_type == "image/svg+xml"
    assert provider.support_email == "noc@savanna.example"
    assert provider.phone_uri == "tel:+254205550100"
    assert provider.has_contact


def test_light_and_dark_pages_have_an_accent_that_can_be_read() -> None:
    style = read(colour="#0f5f5c").style
    assert style is not None
    light, dark = (part.partition(";")[0] for part in style.content.decode().split("--ll-accent:")[1:])
    assert light == "#0f5f5c"
    assert all(contrast(dark, behind) >= READABLE for behind in ("#18202a", "#10161e", "#222d39", "#0b1a2a"))


def test_another_colour_has_another_digest() -> None:
    one, other = read(colour="#0f5f5c").style, read(colour="#0b5cad").style
    assert one is not None
    assert other is not None
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("setting", "written", "message"),
    [
        ("name", "", "write a name"),
        ("name", "A\nBcc: b@example.net", "in one line"),
        ("name", "x" * 61, "60 characters"),
        ("colour", "teal", "#rrggbb"),
        ("colour", "#ffcc00", "contrast is 1.38, and WCAG AA wants 4.5. Choose a darker one"),
        ("terms_url", "www.savanna.example", "whole address"),
        ("help_url", "javascript:alert(1)", "whole address"),
        ("support_email", "noc at savanna", "noc@example.net"),
        ("support_phone", "020 555 0100", "country's code"),
        ("logo", "/nowhere/logo.svg", "cannot be read"),
    ],
)
def test_an_invalid_setting_is_refused_with_an_example(setting: str, written: str, message: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"LONGLINE_PROVIDER_{setting.upper()} is .*{message}"):
        read(**{setting: written})


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"GIF89a", "neither SVG nor PNG nor WebP"), (b"", "neither"), (PNG + bytes(65536), "65536 at most")],
)
def test_a_logo_is_a_small_picture(tmp_path: Path, content: bytes, message: Any) -> None:
    logo = tmp_path / "logo.png"
    logo.write_bytes(content)
    with pytest.raises(ImproperlyConfigured, match=message):
        read(logo=str(logo))
