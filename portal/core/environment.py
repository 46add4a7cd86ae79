"""Settings from the environment, or, where ``<NAME>_FILE`` names a file, from what is in it.

So secrets need not be in the environment, which child processes inherit and `docker inspect` shows.
"""

import environ
from environ.fileaware_mapping import FileAwareMapping


class _Files(FileAwareMapping):
    """An editor ends a file with a line feed that is no part of the secret."""

    def __getitem__(self, key: str) -> str:
        value: str = super().__getitem__(key)
        return value.rstrip("\r\n")


class Environment(environ.Env):
    ENVIRON = _Files()
