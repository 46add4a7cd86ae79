"""Settings from the environment. Where ``<NAME>_FILE`` names a file, the setting is the content of the file.

Secrets in files stay out of the environment, which child processes inherit and `docker inspect` shows.
"""

import environ
from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping

from portal.core.errors import DomainError
from portal.core.quantities import whole_rate


class _Files(FileAwareMapping):
    """Settings from files. A line feed at the end of a file is not part of the setting; an empty file sets
    nothing.
    """

    def __getitem__(self, key: str) -> str:
        value: str = super().__getitem__(key)
        return value.rstrip("\r\n") or self.env[key]


class Environment(environ.Env):
    ENVIRON = _Files()

    def rate(self, name: str, default: int) -> int:
        """Return a rate in bit/s, written as in a file: ``1000000`` or ``1M``. Raises
        ImproperlyConfigured.
        """
        try:
            return whole_rate(self.str(name, default=str(default)))
        except DomainError as error:
            message = f"{name}: not one rate, such as 1000000 or 1M ({error})"
            raise ImproperlyConfigured(message) from None
