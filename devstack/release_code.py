"""The code of this clone and of an earlier release, out of git, for separate processes to run."""

import os
import shutil
import subprocess
from pathlib import Path

from devstack.folders import ROOT, RUN

_HOME = RUN / "release-code"


class NotInThisClone(Exception):
    """Error: a revision is missing; the text says which one and how to get it."""


def code_here() -> str:
    """Return this clone's commit, with a + if tracked files differ from it; "unknown" without git."""
    describe = ("git", "describe", "--always", "--abbrev=8", "--exclude=*", "--dirty=+")
    try:
        described = subprocess.run(
            describe, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
    except FileNotFoundError:
        return "unknown"
    return described.stdout.strip() or "unknown"


def code_of(revision: str) -> Path:
    """Return the folder with the files of a tag or commit. Raises NotInThisClone."""
    command = ("git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    found = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        raise NotInThisClone(f"{revision} is not in this clone: `git fetch --unshallow --tags`")
    folder = _HOME / found.stdout.strip()
    if not folder.exists():
        for unfinished in _HOME.glob("*.*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
        unfinished.mkdir(parents=True)
        archive = subprocess.run(
            ("git", "archive", folder.name), cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(("tar", "--extract"), cwd=unfinished, input=archive.stdout, check=True)
        unfinished.rename(folder)
    return folder
