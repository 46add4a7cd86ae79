"""Settings from files: an empty file of a secret counts as absent."""

from pathlib import Path

import pytest

from portal.core.environment import _Files


def setting(folder: Path, *, in_file: str, plain: str | None) -> str:
    (folder / "token").write_text(in_file)
    environment = {"NETBOX_TOKEN_FILE": str(folder / "token")}
    if plain is not None:
        environment["NETBOX_TOKEN"] = plain
    return _Files(environment)["NETBOX_TOKEN"]


def test_a_file_overrides_the_environment_without_its_last_line_feed(tmp_path: Path) -> None:
    assert setting(tmp_path, in_file="from the file\n", plain="other") == "from the file"


@pytest.mark.parametrize("empty", ["", "\n"])
def test_an_empty_file_leaves_the_environments_value(tmp_path: Path, empty: str) -> None:
    assert setting(tmp_path, in_file=empty, plain="from the environment") == "from the environment"


def test_an_empty_file_alone_is_an_absent_setting(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        setting(tmp_path, in_file="", plain=None)
