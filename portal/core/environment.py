"""Settings from the environment, or, where ``<NAME>_FILE`` names a file, from what is in it.

So secrets need not be in the environment, which child processes inherit and `docker inspect` shows.
"""

import environ
from environ.fileaware_mapping import FileAwareMapping


class _Files(FileAwareMapping):
    """A line feed at a file's end is no part of the secret; a file without anything else says nothing."""

    def __getitem__(self, key: str) -> str:
        value: str = super().__getitem__(key)
        return value.rstrip("\r\n") or self.env[key]


class Environment(environ.Env):
    ENVIRON = _Files()
