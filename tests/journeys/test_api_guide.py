"""The examples of the API guide, run one after the other in one shell, do what the guide says."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from devstack.folders import ROOT
from devstack.stack import Stack

GUIDE = ROOT / "docs" / "integrate" / "api.md"


def examples() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def test_every_example_of_the_api_guide_works(live_stack: Stack, tmp_path: Path) -> None:
    for tool in ("curl", "jq"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed, so the examples were not run")
    texts = examples()
    assert len(texts) >= 10
    # Each example prints its number, so that a failure names the example.
    script = "\n".join(f"echo '# example {n}'\n{text}" for n, text in enumerate(texts, 1))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PORTAL": live_stack.url,
            "TOKEN": live_stack.loaded["customer_token"],
            "no_proxy": "*",
        },
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert f"# example {len(texts)}" in done.stdout


def test_the_guide_shows_no_token_that_could_be_real() -> None:
    assert re.findall(r"ll_[A-Za-z0-9]{4,}", GUIDE.read_text()) == []
