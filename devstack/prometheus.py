"""promtool, the tool of Prometheus that checks metrics, rules and configurations."""

import os
import shutil
import subprocess

from devstack.packages import TOOLS


class PromtoolMissing(Exception):
    """No promtool was found.

    `python3 -m devstack.packages test` unpacks it from Debian's package into build/tools.
    """


class Complaint(Exception):
    """promtool has found an error. The text is promtool's output."""


def promtool() -> str:
    """Return the path of promtool. Raises PromtoolMissing."""
    found = shutil.which("promtool", path=f"{TOOLS}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise PromtoolMissing("promtool is not installed: python3 -m devstack.packages test")
    return found


def run_promtool(*arguments: str, stdin: str = "") -> None:
    """Run a check, such as ``check config FILE``, or unit tests of rules (``test rules FILE``).

    Raises Complaint and PromtoolMissing.
    """
    done = subprocess.run([promtool(), *arguments], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Complaint(f"promtool {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
