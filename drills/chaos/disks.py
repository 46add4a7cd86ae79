"""Small disks that can be filled: tmpfs in a mount namespace of our own, so that none is left behind."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# PostgreSQL's log alone may grow to 2 GB; it does not in minutes.
DATABASE_BYTES = 2_000_000_000
AGENT_BYTES = 20_000_000
_BALLAST = "ballast"


@dataclass
class Disks:
    """By the names that the plan has for them: the folders that they are mounted on."""

    folders: dict[str, Path]
    _mounted: list[Path] = field(default_factory=list)

    def mount(self) -> None:
        for name, folder in self.folders.items():
            size = DATABASE_BYTES if name == "disk-postgres" else AGENT_BYTES
            folder.mkdir(parents=True, exist_ok=True)
            options = f"size={size},mode=0711"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
            self._mounted.append(folder)

    def unmount(self) -> None:
        while self._mounted:
            subprocess.run(["umount", "--lazy", str(self._mounted.pop())], check=False)

    def fill(self, name: str) -> None:
        """To the last page."""
        with (self.folders[name] / _BALLAST).open("ab") as ballast:
            stat = os.fstatvfs(ballast.fileno())
            free = stat.f_bavail * stat.f_bsize
            try:
                os.posix_fallocate(ballast.fileno(), 0, free)
            except OSError:
                # Somebody else has taken some of it meanwhile.
                pass

    def empty(self, name: str) -> None:
        (self.folders[name] / _BALLAST).unlink(missing_ok=True)
