"""Settings from files; an empty file sets nothing."""

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


@pytest.mark.parametrize("nothing", ["", "\n"])
def test_an_empty_file_does_not_override_the_environment(tmp_path: Path, nothing: str) -> None:
    assert setting(tmp_path, in_file=nothing, plain="from the environment") == "from the environment"


def test_an_empty_file_alone_leaves_the_setting_unset(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        setting(tmp_path, in_file="", plain=None)
