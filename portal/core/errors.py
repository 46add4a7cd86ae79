"""The base class of all errors that a person can cause and fix, with a code, facts and a sentence."""

import re
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import singledispatch
from typing import Any, ClassVar, dataclass_transform

from django.utils.translation import gettext as _

from portal.core.reader_zone import moment_text

# Attributes that are not facts: the path of the wrong input, further refusals that are reported with this
# error, and the owners of conflicting leases.
_NOT_FACTS = ("field", "also", "refusals", "owners")


@dataclass_transform(eq_default=False, kw_only_default=True)
@dataclass(eq=False)
class DomainError(Exception):
    """An error with facts. Each subclass is a dataclass with keyword arguments.

    The module ``error_messages`` of each app contains the sentences. ``code``: the stable name for programs,
    such as ``vlan-taken`` for ``VlanTaken``. ``field``: the path of the wrong input in the REST API, such as
    ``a_end.outer_vlan``; "" if no single field is wrong.
    """

    code: ClassVar[str]
    field = ""

    def __init_subclass__(cls) -> None:
        # A class that has been renamed keeps its old code, because programs know the code.
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        dataclass(eq=False, kw_only=True)(cls)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in vars(self).items())

    @classmethod
    def fact_names(cls) -> list[str]:
        return [each.name for each in fields(cls) if each.name not in _NOT_FACTS]

    @property
    def facts(self) -> dict[str, Any]:
        """Return the facts as JSON values; sizes in bytes, rates in bit/s."""
        return {name: _plain(getattr(self, name)) for name in self.fact_names()}

    @property
    def sentence(self) -> str:
        """Return one or two sentences for a reader: the problem, its reason and its remedy."""
        return wording(self)


class Conflict(DomainError):
    """The input is well formed, but the requested resource is in use, full or in the wrong state."""


class TooSoon(DomainError):
    """The caller did the same thing too often in a short time.

    The portal accepts the next request at ``again_at``.
    """

    again_at: datetime

    @property
    def sentence(self) -> str:
        # Round up to a full minute, so that a caller who waits until the named minute is never too early.
        again = moment_text(self.again_at + timedelta(minutes=1))
        return _(TEXTS[type(self)]).format(**{**self.facts, "again_at": again})


# The sentences of errors, with placeholders for facts. The apps' ``error_messages`` add them.
TEXTS: dict[type[DomainError], str] = {}


@singledispatch
def wording(error: DomainError) -> str:
    """Return the sentence of an error, from TEXTS.

    For sentences that need code, the apps' ``error_messages`` register functions here.
    """
    return _(TEXTS[type(error)]).format(**{name: _text(getattr(error, name)) for name in error.fact_names()})


def errors_with_sentences() -> set[type[DomainError]]:
    """Return all types of errors that have a sentence. Call it after all apps are loaded."""
    return {*TEXTS, *wording.registry} - {object}


def _text(value: Any) -> Any:
    """Return the value of a fact as text in a sentence."""
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
