"""The refusals of `make release`, and the tag message that it writes."""

import subprocess
from pathlib import Path

import pytest

from devstack.folders import ROOT
from scripts.previous_release import PreviousRelease, last_migrations, previous_release
from scripts.release import (
    NotReady,
    require_a_clean_tree,
    require_a_new_tag,
    require_the_previous_release,
    sha256sums,
    tag_text,
    version,
)

CHANGELOG = """# Changelog

## Unreleased

## 1.2.0 - 2026-01-31

### Added

* New.

## 1.1.0 - 2025-12-01

* Old.
"""


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.net")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init")
    (tmp_path / "file").write_text("text\n")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--message", "first")
    return tmp_path


def test_make_builds_the_version_of_pyproject() -> None:
    done = subprocess.run(
        ["make", "--silent", "--eval=print-version: ; @echo $(VERSION)", "print-version"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == version(ROOT)


def test_the_tag_message_is_the_changelog_section_of_the_release() -> None:
    assert tag_text(CHANGELOG, "1.2.0") == "Longline 1.2.0\n\n### Added\n\n* New.\n"


@pytest.mark.parametrize(
    ("changelog", "complaint"),
    [
        (CHANGELOG.replace("1.2.0", "1.2.0rc1"), "no section for 1.2.0"),
        (CHANGELOG.replace(" - 2026-01-31", ""), "has no date"),
        (CHANGELOG.replace("2026-01-31", "2026-02-31"), "has no date"),
        (CHANGELOG.replace("### Added\n\n* New.\n", ""), "is empty"),
        (CHANGELOG.replace("Unreleased\n", "Unreleased\n\n* Late.\n"), "which this commit would release"),
    ],
)
def test_a_changelog_without_a_complete_section_is_refused(changelog: str, complaint: str) -> None:
    with pytest.raises(NotReady, match=complaint):
        tag_text(changelog, "1.2.0")


def test_uncommitted_files_are_refused_by_name(clone: Path) -> None:
    require_a_clean_tree(clone)
    (clone / "new").touch()
    (clone / "file").write_text("other\n")
    with pytest.raises(NotReady, match=r" M file\n\?\? new"):
        require_a_clean_tree(clone)


def test_an_existing_tag_is_refused(clone: Path) -> None:
    require_a_new_tag(clone, "v1.2.0")
    git(clone, "tag", "v1.2.0")
    with pytest.raises(NotReady, match="raise the version"):
        require_a_new_tag(clone, "v1.2.0")


def test_the_previous_release_has_to_be_the_newest_tag(clone: Path) -> None:
    PreviousRelease("a commit before any tag", {"vll": "0012_link_losses"}).write(clone)
    require_the_previous_release(clone)
    git(clone, "tag", "v1.9.0")
    git(clone, "tag", "v1.10.0")
    with pytest.raises(NotReady, match=r"names a commit before any tag .*, but that is v1\.10\.0"):
        require_the_previous_release(clone)
    PreviousRelease("v1.10.0", last_migrations(ROOT)).write(clone)
    require_the_previous_release(clone)
    assert previous_release(clone).migrations == last_migrations(ROOT)


def test_sha256sum_accepts_the_written_sums(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    sums = sha256sums(tmp_path)
    subprocess.run(["sha256sum", "--check", "--strict"], input=sums, text=True, cwd=tmp_path, check=True)
    assert sums.count("\n") == 2
