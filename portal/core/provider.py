"""The ISP that runs this portal, as its customers see it: name, logo, colour, terms, contact and help."""

from colorsys import hls_to_rgb, rgb_to_hls
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from re import fullmatch
from typing import Self
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email

# The smallest contrast between text and its background (level AA).
READABLE = 4.5

Rgb = tuple[int, int, int]


def rgb(colour: str) -> Rgb:
    """Return the red, green and blue parts of ``#rrggbb``, each from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def lightened(colour: str, *, behind: tuple[str, ...]) -> str:
    """Return ``colour``, lightened as little as possible until it is readable on all of ``behind``.

    Lightness rises in steps of 2 %. The last step is white.
    """
    hue, lightness, saturation = rgb_to_hls(*(part / 255 for part in rgb(colour)))
    for percent in range(0, 101, 2):
        parts = hls_to_rgb(hue, lightness + (1 - lightness) * percent / 100, saturation)
        light = "#{:02x}{:02x}{:02x}".format(*(round(part * 255) for part in parts))
        if all(contrast(light, each) >= READABLE for each in behind):
            break
    return light


def _luminance(colour: str) -> float:
    """Return the relative luminance, 0 for black and 1 for white (WCAG 2.2, "relative luminance")."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (each / 255 for each in rgb(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# The backgrounds behind the accent colour (--ll-surface, --ll-page and --ll-button of
# static/css/longline.css), and the text colours on it.
_LIGHT, _DARK = ("#ffffff", "#f3f5f8"), ("#18202a", "#10161e", "#222d39")
_ON_LIGHT, _ON_DARK = "#ffffff", "#0b1a2a"
# Media types by the first bytes: file names are no evidence, and a container's secret has no extension.
_LOGO_TYPES = {
    b"\x89PNG\r\n": "image/png",
    b"RIFF": "image/webp",
    b"<svg": "image/svg+xml",
    b"<?xml": "image/svg+xml",
}
_LOGO_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Served:
    """A file that the portal serves from memory.

    ``digest`` is part of the file's URL, so that the content of a URL never changes.
    """

    content: bytes
    content_type: str
    digest: str

    @classmethod
    def of(cls, content: bytes, content_type: str) -> Self:
        return cls(content, content_type, sha256(content).hexdigest()[:16])


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The provider's settings. If a setting is missing, a text is "", and ``logo`` and ``style`` are None."""

    name: str
    logo: Served | None = None
    # A style sheet with the accent colours for light and dark pages.
    style: Served | None = None
    terms_url: str = ""
    support_email: str = ""
    support_phone: str = ""
    help_url: str = ""

    @property
    def phone_uri(self) -> str:
        """Return the URI that dials ``support_phone`` (RFC 3966)."""
        return "tel:" + "".join(each for each in self.support_phone if each.isdigit() or each == "+")

    @property
    def has_contact(self) -> bool:
        """Return whether the terms, a support address, a phone number or a help page is set."""
        return bool(self.terms_url or self.support_email or self.support_phone or self.help_url)

    @classmethod
    def read(cls, **written: str) -> Self:
        """Read the settings LONGLINE_PROVIDER_*, by name in lower case. Raises ImproperlyConfigured."""
        given = {name: text.strip() for name, text in written.items()}
        return cls(
            name=_name(given["name"]),
            logo=_logo(given["logo"]),
            style=_style(given["colour"]),
            terms_url=_web_address("TERMS_URL", given["terms_url"]),
            support_email=_mail_address(given["support_email"]),
            support_phone=_phone(given["support_phone"]),
            help_url=_web_address("HELP_URL", given["help_url"]),
        )


def _refuse(name: str, written: str, want: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"LONGLINE_PROVIDER_{name} is {written!r}: {want}")


def _name(written: str) -> str:
    """Return the name. It must be one line, because it is part of a mail header."""
    if not written.isprintable() or not 0 < len(written) <= 60:
        raise _refuse("NAME", written, "write a name in one line, of 60 characters at most")
    return written


def _logo(written: str) -> Served | None:
    if not written:
        return None
    try:
        content = Path(written).read_bytes()
    except OSError as error:
        raise _refuse("LOGO", written, f"the file cannot be read ({error.strerror})") from error
    types = (kind for begins, kind in _LOGO_TYPES.items() if content.lstrip().startswith(begins))
    if (content_type := next(types, None)) is None:
        raise _refuse("LOGO", written, "its content is neither SVG nor PNG nor WebP")
    if len(content) > _LOGO_BYTES:
        raise _refuse("LOGO", written, f"it has {len(content)} bytes, and {_LOGO_BYTES} at most are sent")
    return Served.of(content, content_type)


def _style(written: str) -> Served | None:
    """Return a style sheet with the accent colour; None without a setting.

    The colour must be readable on light pages. For dark pages it is lightened until it is readable.
    """
    if not written:
        return None
    if not fullmatch(r"#[0-9a-fA-F]{6}", written):
        raise _refuse("COLOUR", written, "write it as #rrggbb, such as #0b5cad")
    behind = min(_LIGHT, key=lambda each: contrast(written, each))
    if (ratio := contrast(written, behind)) < READABLE:
        raise _refuse(
            "COLOUR",
            written,
            f"links in it could not be read on {behind}, nor white text on it: the contrast is {ratio:.2f},"
            f" and WCAG AA wants {READABLE}. Choose a darker one",
        )
    dark = lightened(written, behind=(*_DARK, _ON_DARK))
    css = (
        f":root{{--ll-accent:{written};--ll-on-accent:{_ON_LIGHT}}}"
        f'[data-bs-theme="dark"]{{--ll-accent:{dark};--ll-on-accent:{_ON_DARK}}}'
    )
    return Served.of(css.encode(), "text/css; charset=utf-8")


def _web_address(name: str, written: str) -> str:
    if written and (urlsplit(written).scheme not in ("https", "http") or not urlsplit(written).hostname):
        raise _refuse(name, written, "write a whole address, such as https://www.example.net/help")
    return written


def _mail_address(written: str) -> str:
    if written:
        try:
            validate_email(written)
        except ValidationError as error:
            raise _refuse("SUPPORT_EMAIL", written, "write an address such as noc@example.net") from error
    return written


def _phone(written: str) -> str:
    """Return the phone number. It must have the form of ITU-T E.123, with the country code."""
    if written and not fullmatch(r"\+\d[\d ()/.-]{4,28}\d", written):
        raise _refuse("SUPPORT_PHONE", written, "write it with the country's code, such as +254 20 123 4567")
    return written
