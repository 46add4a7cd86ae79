"""The code of the release before this one."""

from pathlib import Path

import pytest

from devstack.release_code import NotInThisClone, code_of
from scripts.previous_release import previous_release


def previous_code() -> Path:
    """Return the folder of its files. Skip the test if git's history does not reach back so far."""
    try:
        return code_of(previous_release().revision)
    except NotInThisClone as reason:
        pytest.skip(f"the previous release's code: {reason}")
