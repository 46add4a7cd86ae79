"""The release before this release, from previous-release.toml. It still serves while this release's
migrations run.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "previous-release.toml"


@dataclass(frozen=True, slots=True)
class PreviousRelease:
    """A tag or commit of this repository, and the last migration of each app in it."""

    revision: str
    migrations: dict[str, str]

    def write(self, root: Path) -> None:
        lines = [
            "# The release that serves while this one's migrations run. Its code is tested on the new",
            "# tables, and migrations that it lacks are linted. `make release` writes this file.",
            f'revision = "{self.revision}"',
            "",
            "[migrations]",
            *(f'{app} = "{name}"' for app, name in sorted(self.migrations.items())),
        ]
        (root / NAME).write_text("\n".join(lines) + "\n")


def previous_release(root: Path = ROOT) -> PreviousRelease:
    return PreviousRelease(**tomllib.loads((root / NAME).read_text()))


def last_migrations(root: Path) -> dict[str, str]:
    """Return the name of the last migration of each app.

    Django requires that the migrations of an app form a chain.
    """
    found = sorted(path for path in root.glob("portal/*/migrations/[0-9]*.py"))
    return {path.parent.parent.name: path.stem for path in found}
