"""Settings from the environment, or, where ``<NAME>_FILE`` names a file, from what is in it.

So secrets need not be in the environment, which child processes inherit and `docker inspect` shows.
"""

import environ
from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping

from portal.core.errors import DomainError
from portal.core.quantities import whole_rate


class _Files(FileAwareMapping):
    """A line feed at a file's end is no part of the secret; a file without anything else says nothing."""

    def __getitem__(self, key: str) -> str:
        value: str = super().__getitem__(key)
        return value.rstrip("\r\n") or self.env[key]


class Environment(environ.Env):
    ENVIRON = _Files()

    def rate(self, name: str, default: int) -> int:
        """A rate in bit/s, written as in a file: ``1000000`` or ``1M``. Raises ImproperlyConfigured."""
        try:
            return whole_rate(self.str(name, default=str(default)))
        except DomainError as error:
            message = f"{name}: not one rate, such as 1000000 or 1M ({error})"
            raise ImproperlyConfigured(message) from None
