"""The command and the environment of a unit, as systemd would derive them from the unit's file
and drop-ins.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from devstack.folders import ROOT

_UNITS = ROOT / "deploy" / "systemd"


@dataclass(frozen=True, slots=True)
class Command:
    argv: list[str]
    env: dict[str, str]
    cwd: str
    user: str


def command(unit: str, root: Path) -> Command:
    """Return the command of a unit, for example longline-web or longline-worker@provisioning.

    `root` is the folder that contains the machine's etc. The field `user` of the result is the account in the
    unit's file; this account may not exist.
    """
    template, _, instance = unit.partition("@")
    name = f"{template}@.service" if instance else f"{template}.service"
    own = root / "etc/systemd/system"
    files = [
        own / name if (own / name).exists() else _UNITS / name,
        *sorted((own / f"{name}.d").glob("*.conf")),
    ]
    execute, cwd, user = "", "/", "root"
    env: dict[str, str] = {}
    for file in files:
        for line in file.read_text().splitlines():
            key, _, value = line.partition("=")
            value = value.replace("%i", instance).replace("%%", "%")
            if key == "ExecStart":
                execute = value
            elif key == "WorkingDirectory":
                cwd = value
            elif key == "User":
                user = value
            elif key == "Environment":
                env |= dict(each.split("=", 1) for each in shlex.split(value))
            elif key == "EnvironmentFile":
                env |= environment_file(root / value.removeprefix("-").lstrip("/"))
    argv = [re.sub(r"\$\{(\w+)\}", lambda found: env[found[1]], word) for word in shlex.split(execute)]
    return Command(argv, env, cwd, user)


def environment_file(path: Path) -> dict[str, str]:
    """Return the NAME=value lines of a file, as systemd reads them. Return nothing if the file
    does not exist.
    """
    if not path.exists():
        return {}
    lines = [line for line in path.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}
