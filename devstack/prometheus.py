"""promtool, the tool of Prometheus that checks metrics, rules and configurations."""

import os
import shutil
import subprocess
from pathlib import Path

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


def check_metrics(exposition: str) -> None:
    """Check the metrics of a scrape. Raises Complaint and PromtoolMissing."""
    _run("check", "metrics", stdin=exposition)


def check_config(path: Path) -> None:
    """Check a prometheus.yml and the files of rules that it names. Raises Complaint and PromtoolMissing."""
    _run("check", "config", str(path))


def test_rules(path: Path) -> None:
    """Run unit tests of alerting rules. Raises Complaint and PromtoolMissing."""
    _run("test", "rules", str(path))


def _run(*arguments: str, stdin: str = "") -> None:
    done = subprocess.run([promtool(), *arguments], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Complaint(f"promtool {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
