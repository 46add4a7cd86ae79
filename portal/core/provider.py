"""The provider that runs this portal, as its customers know it: name, logo, colour, terms,
contact and help.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from re import fullmatch
from typing import Self
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email

from portal.core.colours import READABLE, contrast, lightened

# Backgrounds of the accent colour: --ll-surface, --ll-page and --ll-button of static/css/longline.css.
_LIGHT, _DARK = ("#ffffff", "#f3f5f8"), ("#18202a", "#10161e", "#222d39")
_ON_LIGHT, _ON_DARK = "#ffffff", "#0b1a2a"
# Identified by the first bytes. A file name proves nothing, and a secret of a container has no extension.
_LOGO_TYPES = {
    b"\x89PNG\r\n": "image/png",
    b"RIFF": "image/webp",
    b"<svg": "image/svg+xml",
    b"<?xml": "image/svg+xml",
}
_LOGO_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Served:
    """A file that the portal serves from memory. ``digest`` names its bytes, so the URL's content never
    changes.
    """

    content: bytes
    content_type: str
    digest: str

    @classmethod
    def of(cls, content: bytes, content_type: str) -> Self:
        return cls(content, content_type, sha256(content).hexdigest()[:16])


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The provider. Without a setting, a text is "", and ``logo`` and ``style`` are None."""

    name: str
    logo: Served | None = None
    # A style sheet with the accent colour of light and of dark pages.
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
        """Return whether the provider has set anything besides the name."""
        return bool(self.terms_url or self.support_email or self.support_phone or self.help_url)

    @classmethod
    def read(
        cls,
        *,
        name: str,
        logo: str,
        colour: str,
        terms_url: str,
        support_email: str,
        support_phone: str,
        help_url: str,
    ) -> Self:
        """Read the settings LONGLINE_PROVIDER_*. Raises ImproperlyConfigured."""
        return cls(
            name=_name(name.strip()),
            logo=_logo(logo.strip()),
            style=_style(colour.strip()),
            terms_url=_web_address("TERMS_URL", terms_url.strip()),
            support_email=_mail_address(support_email.strip()),
            support_phone=_phone(support_phone.strip()),
            help_url=_web_address("HELP_URL", help_url.strip()),
        )


def _refuse(name: str, written: str, want: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"LONGLINE_PROVIDER_{name} is {written!r}: {want}")


def _name(written: str) -> str:
    """Return the name, which must be one line because it is part of a mail header."""
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
    """Return a style sheet for links and buttons; on dark pages the colour is lightened until
    it is readable.
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
    """Return a number with the country code, as people write it (ITU-T E.123)."""
    if written and not fullmatch(r"\+\d[\d ()/.-]{4,28}\d", written):
        raise _refuse("SUPPORT_PHONE", written, "write it with the country's code, such as +254 20 123 4567")
    return written
