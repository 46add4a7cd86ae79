"""A field for IP networks, of PostgreSQL's type ``cidr``."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

Network = IPv4Network | IPv6Network


def network_of(text: str) -> Network:
    """Return the network for a text such as ``192.0.2.0/24``, or for a single address.

    Raises ValidationError, also if host bits are set.
    """
    try:
        return ip_network(text.strip())
    except ValueError as error:
        raise ValidationError(
            _("%(text)s is not a network such as 192.0.2.0/24.") % {"text": text}
        ) from error


class CidrField(models.Field):  # type: ignore[type-arg]
    """PostgreSQL's ``cidr``: an IPv4 or IPv6 network without host bits."""

    def db_type(self, connection: Any) -> str:
        return "cidr"

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Network | None:
        return None if value is None else ip_network(value)

    def to_python(self, value: Any) -> Any:
        return network_of(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else str(value)
