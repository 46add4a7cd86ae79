"""Settings from the environment. If ``<NAME>_FILE`` names a file, its content is the value of ``<NAME>``.

Files keep secrets out of the environment, which child processes inherit and `docker inspect` shows.
"""

import environ
from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping

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
