"""`make release`: check whether this commit can be released, build the files of the release, and print how to
tag it.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path

from scripts.previous_release import NAME, PreviousRelease, last_migrations, previous_release

ROOT = Path(__file__).resolve().parent.parent


class NotReady(Exception):
    """The commit cannot be released. The text has the reason and what to do about it."""


def version(root: Path) -> str:
    """Return the version in pyproject.toml. No other file contains it."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def tag_text(changelog: str, release: str) -> str:
    """Return the message of the tag: a title, and the section of the release in the changelog.

    Raises NotReady if the section is missing, empty or without a date, or if there are unreleased changes.
    """
    parts = re.split(r"^## +(.+?) *$", changelog, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    headings = [heading for heading in sections if heading.split(" ")[0] == release]
    if not headings:
        today = datetime.now(UTC).date()
        raise NotReady(
            f"CHANGELOG.md has no section for {release}, so nobody would know what is new. "
            f'Move what is under "## Unreleased" to a section "## {release} - {today}".'
        )
    heading = headings[0]
    try:
        date.fromisoformat(heading.removeprefix(f"{release} - "))
    except ValueError:
        raise NotReady(
            f'CHANGELOG.md\'s section "{heading}" has no date: make it "## {release} - YYYY-MM-DD".'
        ) from None
    if not sections[heading].strip():
        raise NotReady(f'CHANGELOG.md\'s section "{heading}" is empty: list what is new.')
    if sections.get("Unreleased", "").strip():
        raise NotReady(
            f'CHANGELOG.md has changes under "Unreleased", which this commit would release: '
            f'move them to "{heading}".'
        )
    return f"Longline {release}\n\n{sections[heading].strip()}\n"


def require_a_clean_tree(root: Path) -> None:
    changed = _git(root, "status", "--porcelain")
    if changed:
        raise NotReady(
            "the working tree has changes, so the build would differ from the tagged commit. "
            f"Commit, ignore or remove:\n{changed}"
        )


def require_a_new_tag(root: Path, tag: str) -> None:
    if _git(root, "tag", "--list", tag):
        raise NotReady(f"The tag {tag} exists: raise the version in pyproject.toml.")


def require_the_current_openapi(root: Path) -> None:
    _run(root, "docs/openapi.yaml cannot be generated: fix the errors above.", "make", "openapi")
    if _git(root, "diff", "--name-only", "--", "docs/openapi.yaml"):
        raise NotReady(
            "docs/openapi.yaml was out of date. It has been generated again: review it and commit it."
        )


def require_true_documents(root: Path) -> None:
    command = (sys.executable, "-m", "pytest", "--services", "none", "--quiet", "tests/docs")
    _run(root, "the documents are wrong: fix the failures above.", *command)


def require_the_long_tests(root: Path) -> None:
    """Run the slow tests, which are not part of `make test`."""
    _run(root, "a slow test failed: fix the failures above.", "make", "test-release")


def require_the_previous_release(root: Path) -> None:
    """Raise NotReady unless previous-release.toml names the newest tag.

    Operators upgrade from the release of the newest tag, so its code must have been tested on the tables of
    this release.
    """
    tags = _git(root, "tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname").split()
    named = previous_release(root).revision
    if tags and named != tags[0]:
        raise NotReady(
            f"{NAME} names {named} as the release before this one, but that is {tags[0]}: commit the file "
            f"that `make release` wrote for that tag, and run `make check` and `make test` again."
        )


def sha256sums(folder: Path) -> str:
    """Return the digests of the files in a folder, in the format of `sha256sum --check`."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())
    )


def release(root: Path) -> None:
    number = version(root)
    tag = f"v{number}"
    require_a_clean_tree(root)
    require_a_new_tag(root, tag)
    require_the_previous_release(root)
    text = tag_text((root / "CHANGELOG.md").read_text(), number)
    require_the_current_openapi(root)
    require_true_documents(root)
    require_the_long_tests(root)

    folder = root / "build" / "release" / number
    shutil.rmtree(folder, ignore_errors=True)
    _run(root, "the packages cannot be built: fix the errors above.", "make", "agent-packages")
    (folder / "SHA256SUMS").write_text(sha256sums(folder))
    (folder / "tag.txt").write_text(text)
    where = folder.relative_to(root)
    print(f"\n{where}/ contains the release {number}. To tag it:")
    # By default, Git removes lines that begin with #. In this text they are headings.
    print(f"  git tag --annotate --cleanup=whitespace --file {where}/tag.txt {tag}")
    print(f"  git push origin {tag}")
    # Later commits are tested against the release that is tagged now.
    PreviousRelease(tag, last_migrations(root)).write(root)
    print("Afterwards, so that later commits are tested against it:")
    print(f"  git commit --message 'Test later commits against {tag}' {NAME}")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.rstrip()


def _run(root: Path, otherwise: str, *command: str) -> None:
    # MAKEFLAGS contains the flags of this make. A make that the command starts must not use them.
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    if subprocess.run(command, cwd=root, env=environment, check=False).returncode:
        raise NotReady(otherwise)


if __name__ == "__main__":
    try:
        release(ROOT)
    except NotReady as problem:
        sys.exit(f"release: {problem}")
