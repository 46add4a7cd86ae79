"""Widely used generators make clients from docs/openapi.yaml, and the clients compile.

`make check-clients` builds the generators before it runs this file. The generated code stays in
``build/clients``, so that Go's cache compiles it again only after a change.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from devstack.folders import ROOT

DOCUMENT = ROOT / "docs" / "openapi.yaml"
PINS = ROOT / "tools" / "clients"
BUILD = ROOT / "build" / "clients"
GO = os.environ.get("GO", "go")
# A value of each type that a difference of a plan may have, and a member without a value.
DIFFERENCES = '[{"before": "vxlan4", "after": 7}, {"before": true, "after": null}]'
USE_OAPI_CODEGEN = """package main

import (
	"encoding/json"
	"fmt"
	"log"

	"longline.dev/tools/clients/oapi"
)

func main() {
	var differences []oapi.Difference
	if err := json.Unmarshal([]byte(`DIFFERENCES`), &differences); err != nil {
		log.Fatal(err)
	}
	transport, err := differences[0].Before.AsDifferenceBefore0()
	if err != nil {
		log.Fatal(err)
	}
	vni, err := differences[0].After.AsDifferenceAfter1()
	if err != nil {
		log.Fatal(err)
	}
	policed, err := differences[1].Before.AsDifferenceBefore2()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(transport, " ", vni, " ", policed)
}
"""


def ran(*command: str | Path, cwd: Path) -> str:
    """Run a command and return its output; fail the test with both of its streams."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def module() -> Path:
    """Return a Go module with the pinned versions, in which clients are generated."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(PINS / name, BUILD / name)
    return BUILD


def test_oapi_codegens_client_compiles_and_reads_differences_of_several_types(
    module: Path,
) -> None:
    folder = module / "oapi"
    folder.mkdir(exist_ok=True)
    ran(
        BUILD / "bin" / "oapi-codegen",
        *("-generate", "types,client", "-package", "oapi", "-o", folder / "client.gen.go"),
        DOCUMENT,
        cwd=module,
    )
    use = module / "use" / "main.go"
    use.parent.mkdir(exist_ok=True)
    use.write_text(USE_OAPI_CODEGEN.replace("DIFFERENCES", DIFFERENCES))
    assert ran(GO, "run", "./use", cwd=module) == "vxlan4 7 true"


def test_ogens_client_compiles(module: Path) -> None:
    ran(
        BUILD / "bin" / "ogen",
        *("--target", "ogen", "--package", "ogen", "--clean", "--config", PINS / "ogen.yml"),
        DOCUMENT,
        cwd=module,
    )
    ran(GO, "build", "./ogen", cwd=module)


def test_openapi_python_clients_output_has_no_warning_and_can_be_imported() -> None:
    python = BUILD / "python" / "bin"
    ran(
        python / "openapi-python-client",
        *("generate", "--path", DOCUMENT, "--config", PINS / "openapi-python-client.yml"),
        *("--meta", "none", "--output-path", "longline_client", "--overwrite", "--fail-on-warning"),
        cwd=BUILD,
    )
    modules = [
        ".".join(path.relative_to(BUILD).with_suffix("").parts)
        for path in (BUILD / "longline_client").rglob("*.py")
    ]
    assert any(module.endswith("vlls_create") for module in modules)
    ran(python / "python", "-c", f"import {', '.join(sorted(modules))}", cwd=BUILD)
