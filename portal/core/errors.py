"""Every error that a person can cause and mend: its code, its facts, and its sentence for a reader."""

import re
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import singledispatch
from typing import Any, ClassVar, dataclass_transform

from django.utils.translation import gettext as _

from portal.core.reader_zone import moment_text

# Where it is, the other refusals that are reported with it, and whose leases conflict.
_NOT_FACTS = ("field", "also", "refusals", "holders")


@dataclass_transform(eq_default=False, kw_only_default=True)
@dataclass(eq=False)
class DomainError(Exception):
    """Carries facts, as a dataclass by keywords; the words for them are in the apps' ``error_messages``.

    ``code`` is the stable name for programs: ``vlan-taken`` of ``VlanTaken``. ``field`` is the path of the
    input at fault in the REST shape, such as ``a_end.outer_vlan``, or "" when no single field is.
    """

    code: ClassVar[str]
    field = ""

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        dataclass(eq=False, kw_only=True)(cls)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in vars(self).items())

    @classmethod
    def fact_names(cls) -> list[str]:
        return [each.name for each in fields(cls) if each.name not in _NOT_FACTS]

    @property
    def facts(self) -> dict[str, Any]:
        """As JSON values; sizes in bytes, rates in bit/s."""
        return {name: _plain(getattr(self, name)) for name in self.fact_names()}

    @property
    def sentence(self) -> str:
        """The sentence: what, why, and what to do about it; one or two sentences for a reader."""
        return wording(self)


class Conflict(DomainError):
    """The input is well formed, but what it asks for is taken, full or in the wrong state."""


class TooSoon(DomainError):
    """The same will be done from ``again_at`` on: too much of it was asked for lately."""

    again_at: datetime

    @property
    def sentence(self) -> str:
        # The next full minute: never one that is still too soon.
        again = moment_text(self.again_at + timedelta(minutes=1))
        return _(TEXTS[type(self)]).format(**{**self.facts, "again_at": again})


# The sentences that are a text with the error's facts in it; the apps' ``error_messages`` fill it.
TEXTS: dict[type[DomainError], str] = {}


@singledispatch
def wording(error: DomainError) -> str:
    """The sentence of an error; ``error_messages`` register those that are more than a text with facts."""
    return _(TEXTS[type(error)]).format(**{name: _text(getattr(error, name)) for name in error.fact_names()})


def errors_with_words() -> set[type[DomainError]]:
    """All kinds that can be said to a reader, once the apps have filled both."""
    return {*TEXTS, *wording.registry} - {object}


def _text(value: Any) -> Any:
    """As it is read in a sentence."""
    return moment_text(value) if isinstance(value, datetime) else _plain(value)


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case object(_asdict=members):
            return members()
        case list() | tuple() | set() | frozenset():
            return [_plain(inner) for inner in value]
        case _:
            return str(value)
