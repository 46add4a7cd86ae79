"""Settings from the environment. If ``<NAME>_FILE`` names a file, its content is the value of ``<NAME>``.

Files keep secrets out of the environment, which child processes inherit and `docker inspect` shows.

The URL of a database is read as libpq does, also with several hosts. Timeouts that detect a silent host are
added. https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS
"""

from enum import StrEnum
from typing import Any, Self

import environ
import psycopg
from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping
from psycopg.conninfo import conninfo_to_dict

from portal.core.errors import DomainError
from portal.core.quantities import whole_rate


class _Files(FileAwareMapping):
    """Settings from the environment or from files.

    Line breaks at the end of a file are not part of the value. If a file is empty, ``<NAME>`` in the
    environment is used.
    """

    def __getitem__(self, key: str) -> str:
        value: str = super().__getitem__(key)
        return value.rstrip("\r\n") or self.env[key]


class Environment(environ.Env):
    ENVIRON = _Files()

    def rate(self, name: str, default: int) -> int:
        """Return a setting as a rate in bit/s. It is written ``1000000`` or ``1M``, for example.

        Raises ImproperlyConfigured.
        """
        try:
            return whole_rate(self.str(name, default=str(default)))
        except DomainError as error:
            message = f"{name}: not one rate, such as 1000000 or 1M ({error})"
            raise ImproperlyConfigured(message) from None


# Defaults for parameters that the URL does not set. libpq ignores them for Unix sockets.
_LIMITS = {
    # In seconds, for each host. An unreachable host does not respond at all.
    "connect_timeout": 3,
    # If the server becomes unreachable before it responds, the connection fails after 5 + 3 * 2 s.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    # If the server does not acknowledge sent data, the connection fails after this time in ms.
    "tcp_user_timeout": 8000,
}
_IN_DJANGO = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
_FORM = "postgres://user:password@host:5432,other:5432/name?option=value"


def read_database_url(url: str, *, variable: str, takes_writes: bool = True) -> dict[str, Any]:
    """Return an entry of Django's DATABASES. ``variable``: the setting that contains ``url``, for errors.

    If the URL names several hosts, libpq connects only to a host that takes writes. If ``takes_writes`` is
    False, libpq may use any host. A ``target_session_attrs`` in the URL overrides both rules. Raises
    ImproperlyConfigured. Its message never contains the password.
    """
    given = _parsed(url, variable)
    if not takes_writes:
        given = {"target_session_attrs": "any", **given}
    elif "," in str(given.get("host", "")):
        given = {"target_session_attrs": "read-write", **given}
    parameters = {**_LIMITS, **given}
    entry: dict[str, Any] = {name: parameters.pop(ours, "") for ours, name in _IN_DJANGO.items()}
    return {"ENGINE": "portal.core.db", **entry, "OPTIONS": parameters}


def _parsed(url: str, variable: str) -> dict[str, Any]:
    if not url.startswith(("postgres://", "postgresql://")):
        raise _wrong(variable, "it has to begin with postgres://")
    try:
        parsed = dict(conninfo_to_dict(url))
    except psycopg.ProgrammingError as error:
        raise _wrong(variable, _without_secrets(str(error))) from None
    if not parsed.get("dbname") and "service" not in parsed:
        raise _wrong(variable, "it names no database")
    hosts, ports = (str(parsed.get(name, "")).split(",") for name in ("host", "port"))
    if any("@" in host for host in hosts):
        raise _wrong(variable, "an @ within the user or the password is written %40")
    # A single port applies to every host.
    if len(ports) > 1 and len(ports) != len(hosts):
        raise _wrong(variable, f"it has {len(hosts)} hosts and {len(ports)} ports")
    for port in ports:
        if port and not (port.isdecimal() and 0 < int(port) < 65536):
            raise _wrong(variable, "a port is a number from 1 to 65535; a : within a password is written %3A")
    return parsed


def _without_secrets(message: str) -> str:
    """Return libpq's message if it names an unknown option, and otherwise a general message.

    Other messages of libpq may quote a part of the password.
    """
    first = message.strip().splitlines()[0]
    return first if first.startswith("invalid URI query parameter:") else "libpq cannot read it"


def _wrong(variable: str, why: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"{variable} is not a PostgreSQL address: {why}. Write {_FORM}, with %XX for special characters."
    )


class ActivationTestMode(StrEnum):
    """Whether a line must pass an activation test before the portal hands it over.

    ``required``: the line must pass. ``advisory``: the line is tested, but handed over even if the test
    fails. ``off``: no test.
    """

    REQUIRED = "required"
    ADVISORY = "advisory"
    OFF = "off"

    @classmethod
    def read(cls, written: str) -> Self:
        """Return the mode of this name. Raises ImproperlyConfigured."""
        try:
            return cls(written)
        except ValueError as error:
            raise ImproperlyConfigured(
                f"LONGLINE_LINE_TEST is {written!r}: write one of {', '.join(cls)}"
            ) from error
