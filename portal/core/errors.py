"""The base class of all errors that a person can cause and fix, with a code, facts and a sentence."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from django.db import IntegrityError, transaction

from portal.core.reader_texts import moment_text, rate_text

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


# Attributes that are not facts: the path of the wrong input, further refusals that are reported with this
# error, and the owners of conflicting leases.
_NOT_FACTS = ("field", "also", "refusals", "owners")


@dataclass_transform(eq_default=False, kw_only_default=True)
@dataclass(eq=False)
class DomainError(Exception):
    """An error with facts and a sentence. Each subclass is a dataclass with keyword arguments.

    * ``code``: the stable name for programs, such as ``vlan-taken`` for ``VlanTaken``; "" for a base class
      that is never raised.
    * ``status``: the HTTP status of the response.
    * ``text``: the sentence for users, with the names of facts in braces. A class whose sentence depends on
      its facts overrides ``sentence`` and has no text.
    * ``field``: the path of the wrong input in the REST API, such as ``a_end.outer_vlan``; "" if no single
      field is wrong.
    """

    code: ClassVar[str]
    status: ClassVar[int] = 422
    text: "ClassVar[str | _StrPromise]" = ""
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
        """Return one or two sentences in the reader's language: the problem, its reason and its remedy."""
        return self.filled(self.text)

    def filled(self, text: "str | _StrPromise", **others: object) -> str:
        """Return ``text`` with the facts and ``others`` in it. ``{free}`` is ``free_bps`` as a text."""
        facts = {name: getattr(self, name) for name in self.fact_names()}
        rates = {name[:-4]: rate_text(bps or 0) for name, bps in facts.items() if name.endswith("_bps")}
        return text.format(**{name: _shown(value) for name, value in facts.items()} | rates | others)


class Conflict(DomainError):
    """The input is well formed, but the requested resource is in use, full or in the wrong state."""

    code = ""
    status = 409


class TooSoon(DomainError):
    """The caller did the same thing too often in a short time.

    The portal accepts the next request at ``again_at``.
    """

    code = ""
    status = 429
    again_at: datetime

    @property
    def sentence(self) -> str:
        # Round up to a full minute, so that a caller who waits until the named minute is never too early.
        return self.filled(self.text, again_at=moment_text(self.again_at + timedelta(minutes=1)))


def error_types(base: type[DomainError] = DomainError) -> Iterator[type[DomainError]]:
    """Yield all types of errors that can be raised. Call it after all apps are loaded."""
    for kind in base.__subclasses__():
        if kind.code:
            yield kind
        yield from error_types(kind)


def _shown(value: Any) -> Any:
    """Return the value of a fact as text in a sentence."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
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


@contextmanager
def integrity_errors_as(refusals: Mapping[str, Callable[[], DomainError]]) -> Iterator[None]:
    """Run the block in a savepoint, and raise the error in ``refusals`` for a violated constraint.

    ``refusals``: for each name of a constraint, a function that creates the error. It is called after the
    savepoint is rolled back, so that it can query the database. Other integrity errors are raised unchanged.
    """
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
        refusal = refusals.get(name or "")
        if refusal is None:
            raise
        raise refusal() from error
