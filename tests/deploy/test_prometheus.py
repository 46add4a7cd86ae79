"""promtool accepts the files in deploy/, and each alert has a test in which it fires and one without."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from devstack import packages
from devstack.folders import ROOT

FOLDER = ROOT / "deploy" / "prometheus"


@pytest.fixture
def promtool() -> None:
    """Skip with a reason if promtool is missing; `make test` unpacks it if possible."""
    try:
        packages.promtool()
    except packages.PromtoolMissing as reason:
        pytest.skip(str(reason))


@pytest.mark.usefixtures("promtool")
def test_the_configuration_and_its_rules_are_valid() -> None:
    packages.run_promtool("check", "config", str(FOLDER / "prometheus.yml"))


@pytest.mark.usefixtures("promtool")
def test_the_alerts_pass_their_own_tests() -> None:
    packages.run_promtool("test", "rules", str(FOLDER / "alerts.test.yml"))


@pytest.mark.usefixtures("promtool")
def test_a_wrong_expectation_is_found(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    tests = tmp_path / "alerts.test.yml"
    tests.write_text(tests.read_text().replace("value: 1}", "value: 2}", 1))
    with pytest.raises(packages.Complaint):
        packages.run_promtool("test", "rules", str(tests))


def rules() -> list[dict[str, object]]:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("name", [str(rule["alert"]) for rule in rules()])
def test_each_alert_has_a_test_with_and_without_an_alert(name: str) -> None:
    values = set()
    for test in yaml.safe_load((FOLDER / "alerts.test.yml").read_text())["tests"]:
        for check in test["promql_expr_test"]:
            if f'"{name}"' in check["expr"]:
                values.add(check["exp_samples"][0]["value"])
    assert 1 in values, "no test lets it fire"
    # Certificate alerts compare dates. In their tests another certificate stays quiet; else two would fire.
    assert 0 in values or "Certificate" in name, "no test keeps it quiet"


def test_an_alerts_action_names_an_existing_section() -> None:
    for rule in rules():
        annotations = rule["annotations"]
        assert isinstance(annotations, dict)
        found = re.search(r"docs/([a-z/-]+\.md)(?:, ([^.]+))?\.", annotations["action"])
        assert found, rule["alert"]
        text = (ROOT / "docs" / found[1]).read_text()
        if found[2]:
            assert re.search(rf"^#+ {re.escape(found[2])}$", text, re.MULTILINE), (
                f"{rule['alert']}: no {found[2]}"
            )
