"""Small disks for faults that fill a disk.

They are tmpfs mounts in a private mount namespace, so that none remains after the drill.
"""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# PostgreSQL's WAL alone may grow to 2 GB, but it does not do so within minutes.
DATABASE_BYTES = 2_000_000_000
AGENT_BYTES = 20_000_000
_BALLAST = "ballast"


@dataclass
class Disks:
    """Disks by the names that the plan uses, with the folders on which they are mounted."""

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
        """Fill a disk completely."""
        with (self.folders[name] / _BALLAST).open("ab") as ballast:
            stat = os.fstatvfs(ballast.fileno())
            free = stat.f_bavail * stat.f_bsize
            try:
                os.posix_fallocate(ballast.fileno(), 0, free)
            except OSError:
                # Another process has used some of the space in the meantime.
                pass

    def empty(self, name: str) -> None:
        (self.folders[name] / _BALLAST).unlink(missing_ok=True)
