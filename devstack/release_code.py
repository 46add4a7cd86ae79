"""Which code this is, and that of an earlier release, out of git, as processes of its own can run it."""

import os
import shutil
import subprocess
from pathlib import Path

from devstack.folders import ROOT, RUN

_HOME = RUN / "release-code"


class NotInThisClone(Exception):
    """The text says which revision is missing, and how to have it."""


def code_here() -> str:
    """The commit of this clone, with a + where tracked files differ from it; "unknown" without git."""
    describe = ("git", "describe", "--always", "--abbrev=8", "--exclude=*", "--dirty=+")
    try:
        told = subprocess.run(
            describe, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
    except FileNotFoundError:
        return "unknown"
    return told.stdout.strip() or "unknown"


def code_of(revision: str) -> Path:
    """The folder that the files of a tag or commit are in. Raises NotInThisClone."""
    known = ("git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    found = subprocess.run(known, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        raise NotInThisClone(f"{revision} is not in this clone: `git fetch --unshallow --tags`")
    folder = _HOME / found.stdout.strip()
    if not folder.exists():
        for cut_off in _HOME.glob("*.*"):
            shutil.rmtree(cut_off, ignore_errors=True)
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
        unfinished.mkdir(parents=True)
        archive = subprocess.run(
            ("git", "archive", folder.name), cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(("tar", "--extract"), cwd=unfinished, input=archive.stdout, check=True)
        unfinished.rename(folder)
    return folder
