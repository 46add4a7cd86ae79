"""The code of this clone and of earlier releases, extracted from git, for separate processes."""

import os
import shutil
import subprocess
from pathlib import Path

from devstack.folders import ROOT, RUN

_HOME = RUN / "release-code"


class NotInThisClone(Exception):
    """A revision is missing in this clone. The text names it and says how to get it."""


def code_here() -> str:
    """Return the commit of this clone, with a + if tracked files changed, or "unknown" without git."""
    describe = ("git", "describe", "--always", "--abbrev=8", "--exclude=*", "--dirty=+")
    try:
        described = subprocess.run(
            describe, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
    except FileNotFoundError:
        return "unknown"
    return described.stdout.strip() or "unknown"


def code_of(revision: str) -> Path:
    """Return a folder with the files of a tag or commit. Raises NotInThisClone."""
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


def agent_of(code: Path) -> Path:
    """Return the agent of the release in ``code``. An earlier agent is built once, as a static program.

    During an upgrade, the portal is upgraded before the agents.
    """
    program = code / "build" / "longline-agent"
    if code != ROOT and not program.exists():
        go = os.environ.get("GO") or shutil.which("go") or "/usr/local/go/bin/go"
        program.parent.mkdir(exist_ok=True)
        unfinished = program.with_name(f"longline-agent.{os.getpid()}")
        build = (go, "build", "-trimpath", "-buildvcs=false", "-o", unfinished, "./cmd/longline-agent")
        subprocess.run(build, cwd=code / "agent", check=True, env=os.environ | {"CGO_ENABLED": "0"})
        unfinished.rename(program)
    return program
