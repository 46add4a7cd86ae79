"""The code of the release before this one, out of git."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from devstack.paths import ROOT, RUN
from scripts.previous_release import previous_release

_HOME = RUN / "previous-release"


def previous_code() -> Path:
    """The folder that its files are in. Skips the test where git has no history that reaches so far back."""
    revision = previous_release().revision
    known = ("git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    found = subprocess.run(known, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        pytest.skip(
            f"the previous release's code, {revision}, is not in this clone: `git fetch --unshallow --tags`"
        )
    folder = _HOME / found.stdout.strip()
    if not folder.exists():
        shutil.rmtree(_HOME, ignore_errors=True)
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
        unfinished.mkdir(parents=True)
        archive = subprocess.run(
            ("git", "archive", folder.name), cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(("tar", "--extract"), cwd=unfinished, input=archive.stdout, check=True)
        unfinished.rename(folder)
    return folder
