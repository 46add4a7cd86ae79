"""`make release`: may this commit be released? Then build what it ships, and say how to tag it."""

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
    """The problem, and what to do about it."""


def version(root: Path) -> str:
    """As pyproject.toml has it, the one place where it is written."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def tag_text(changelog: str, release: str) -> str:
    """The tag's message: a title, and the release's section of the changelog."""
    parts = re.split(r"^## +(.+?) *$", changelog, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    headings = [heading for heading in sections if heading.split(" ")[0] == release]
    if not headings:
        today = datetime.now(UTC).date()
        raise NotReady(
            f"CHANGELOG.md has no section for {release}: who upgrades would not know what is new. "
            f'Rename "## Unreleased" to "## {release} - {today}".'
        )
    heading = headings[0]
    try:
        date.fromisoformat(heading.removeprefix(f"{release} - "))
    except ValueError:
        raise NotReady(
            f'CHANGELOG.md\'s section "{heading}" has no date: make it "## {release} - YYYY-MM-DD".'
        ) from None
    if not sections[heading].strip():
        raise NotReady(f'CHANGELOG.md\'s section "{heading}" is empty: say what is new.')
    if sections.get("Unreleased", "").strip():
        raise NotReady(
            f'CHANGELOG.md has changes under "Unreleased" that this commit would release unsaid: '
            f'move them to "{heading}".'
        )
    return f"Longline {release}\n\n{sections[heading].strip()}\n"


def require_a_clean_tree(root: Path) -> None:
    changed = _git(root, "status", "--porcelain")
    if changed:
        raise NotReady(
            "the tree is not clean: what is built would not be what is tagged. "
            f"Commit, ignore or remove:\n{changed}"
        )


def require_a_new_tag(root: Path, tag: str) -> None:
    if _git(root, "tag", "--list", tag):
        raise NotReady(f"{tag} is there already: raise the version in pyproject.toml.")


def require_the_current_openapi(root: Path) -> None:
    _run(root, "docs/openapi.yaml cannot be made: mend what is said above.", "make", "openapi")
    if _git(root, "diff", "--name-only", "--", "docs/openapi.yaml"):
        raise NotReady(
            "docs/openapi.yaml was not what the views give. It was written anew: look at it and commit it."
        )


def require_true_documents(root: Path) -> None:
    command = (sys.executable, "-m", "pytest", "--services", "none", "--quiet", "tests/docs")
    _run(root, "the documents are wrong: mend what is said above.", *command)


def require_the_long_tests(root: Path) -> None:
    """They are not among those that every change has passed."""
    _run(root, "a long test failed: mend what is said above.", "make", "test-release")


def require_the_previous_release(root: Path) -> None:
    """Who upgrades has that one; its code was tried on the tables of this one."""
    tags = _git(root, "tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname").split()
    named = previous_release(root).revision
    if tags and named != tags[0]:
        raise NotReady(
            f"{NAME} names {named} as the release before this one, but that is {tags[0]}: commit the file "
            f"that `make release` wrote then, and run `make check` and `make test` again."
        )


def sha256sums(folder: Path) -> str:
    """As `sha256sum --check` reads it."""
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
    _run(root, "the packages cannot be built: mend what is said above.", "make", "agent-packages")
    (folder / "SHA256SUMS").write_text(sha256sums(folder))
    (folder / "tag.txt").write_text(text)
    where = folder.relative_to(root)
    print(f"\n{where}/ holds the release {number}. Nothing is tagged yet:")
    # Git would take the headings for comments.
    print(f"  git tag --annotate --cleanup=whitespace --file {where}/tag.txt {tag}")
    print(f"  git push origin {tag}")
    # For the commits that come after the tag.
    PreviousRelease(tag, last_migrations(root)).write(root)
    print("Afterwards, so that what comes next is tried against it:")
    print(f"  git commit --message 'Try what comes next against {tag}' {NAME}")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.rstrip()


def _run(root: Path, otherwise: str, *command: str) -> None:
    # Tests and linters speak on their own; make's own flags are for the one that was called.
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    if subprocess.run(command, cwd=root, env=environment, check=False).returncode:
        raise NotReady(otherwise)


if __name__ == "__main__":
    try:
        release(ROOT)
    except NotReady as problem:
        sys.exit(f"release: {problem}")
