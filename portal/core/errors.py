"""The base of every error that a person can cause and mend."""

from dataclasses import dataclass
from datetime import datetime


class DomainError(Exception):
    """Carries facts, no wording for a reader: the doors (HTML, JSON) choose the words.

    ``field`` is the path of the input at fault in the REST shape, such as ``a_end.outer_vlan``,
    or "" when no single field is.
    """

    field: str = ""

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in vars(self).items())


class Conflict(DomainError):
    """The input is well formed, but what it asks for is taken, full or in the wrong state."""


@dataclass(eq=False, kw_only=True)
class TooSoon(DomainError):
    """The same will be done from ``again_at`` on: too much of it was asked for lately."""

    again_at: datetime
