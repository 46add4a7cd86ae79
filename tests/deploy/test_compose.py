"""The compose file, as far as it can be checked without containers."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from devstack.folders import ROOT
from portal.core.background_work import queue_names

COMPOSE = ROOT / "docker-compose.yml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text())["services"]
ONE_SHOT = {name for name, service in SERVICES.items() if service.get("restart") == "no"}
# These VPPs have no health check of their own: their agents report whether they run.
WITHOUT_HEALTHCHECK = {"vpp-rhino", "vpp-hippo"}
URLS_WITH_PASSWORDS = ("DATABASE_URL", "REDIS_URL", "EMAIL_URL")
SET_BY_THE_IMAGE = {
    "LONGLINE_PKI_DIR",
    "LONGLINE_METRICS_DIR",
    "LONGLINE_ALIVE_FILE",
    "LONGLINE_DOCS_DIR",
    "STATIC_ROOT",
}
# Public services must not show debug pages to visitors; rate limits use REDIS_URL.
OF_NO_USE = {"DEBUG", "CACHE_URL"}


def read_by_settings() -> set[str]:
    """Return the variables that the portal's settings read."""
    return set(re.findall(r'env\.\w+\(\s*"(\w+)"', (ROOT / "portal" / "settings.py").read_text()))


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_runs_as_root_or_can_become_root(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] not in ("root", "0", "0:0")
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service


def test_compose_builds_each_image_of_the_portal_once() -> None:
    # docker-compose 1.29 builds an image again for each service with `build`.
    built = [service["image"].partition(":")[0] for service in SERVICES.values() if "build" in service]
    assert built.count("longline-portal") == built.count("longline-demo") == 1
    images = {service["image"].partition(":")[0] for service in SERVICES.values()}
    assert {image for image in images if image.startswith("longline-")} == set(built)


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - ONE_SHOT - WITHOUT_HEALTHCHECK))
def test_each_lasting_service_has_a_health_check(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"]
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_the_demonstration_runs_with_stand_in_vpps_or_with_real_ones() -> None:
    both = {name: service["profiles"] for name, service in SERVICES.items() if "profiles" in service}
    shared = {name for name, profiles in both.items() if profiles == ["demo", "vpp"]}
    assert shared >= {"demo-seed", "enrol-rhino", "agent-rhino", "agent-hippo", "demo-order"}
    assert {name for name, profiles in both.items() if profiles == ["demo"]} == WITHOUT_HEALTHCHECK
    # Services of both profiles must not wait for a service of one profile.
    for name in shared:
        waits_for = SERVICES[name].get("depends_on", {})
        assert not [other for other in waits_for if other in both and other not in shared], name


@pytest.mark.parametrize("router", ["rhino", "hippo"])
def test_an_agent_finds_both_kinds_of_vpp_at_the_same_path(router: str) -> None:
    socket_folder = f"{router}-vpp:/run/vpp"
    for name in (f"agent-{router}", f"vpp-{router}", f"real-vpp-{router}"):
        assert socket_folder in SERVICES[name]["volumes"], name


def queues_of(command: list[str]) -> set[str]:
    return set(command[command.index("-Q") + 1].split(",")) if "-Q" in command else set()


def test_every_queue_has_a_worker_in_containers_and_in_the_target_of_the_units() -> None:
    served: set[str] = set().union(*(queues_of(service.get("command", [])) for service in SERVICES.values()))
    assert set(queue_names()) <= served
    target = (ROOT / "deploy" / "systemd" / "longline-workers.target").read_text()
    for queue in queue_names():
        assert f"longline-worker@{queue}.service" in target, queue


def test_there_is_one_beat() -> None:
    assert [name for name, service in SERVICES.items() if "beat" in service.get("command", [])] == ["beat"]


def test_all_of_the_portal_waits_for_the_migrations() -> None:
    waits = {"service_completed_successfully"}
    for name, service in SERVICES.items():
        if service.get("image", "").startswith("longline-portal") and name != "setup":
            assert service["depends_on"]["setup"]["condition"] in waits, name


def test_no_secret_has_a_default_or_is_in_the_environment() -> None:
    text = COMPOSE.read_text()
    for name in ("SECRET", "SECRET_KEY", "FALLBACKS", "PEPPER", "PASSWORD", "TOKEN", *URLS_WITH_PASSWORDS):
        assert not re.search(rf"^\s*\w*{name}\s*:", text, re.MULTILINE), name
        assert not re.search(rf"\$\{{\w*{name}", text), name
    files = yaml.safe_load(text)["secrets"].values()
    assert all(secret["file"].startswith("./secrets/") for secret in files)


def test_no_secret_is_in_the_repository() -> None:
    """make-secrets writes the secrets into the clone."""
    assert "secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    if (ROOT / ".git").exists() and shutil.which("git"):
        tracked = subprocess.run(
            ["git", "ls-files", "secrets"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert tracked.stdout == ""


def test_every_secret_file_belongs_to_a_setting() -> None:
    """NAME_FILE works for every variable; an unknown variable would be ignored silently."""
    known = read_by_settings()
    for name in ("web", "notifications", "netbox"):
        for variable in SERVICES[name]["environment"]:
            assert variable in known or variable.removesuffix("_FILE") in known, variable


@pytest.mark.parametrize("name", sorted(read_by_settings() - SET_BY_THE_IMAGE - OF_NO_USE))
def test_a_setting_reaches_the_containers(name: str) -> None:
    """It comes from .env under its own name or, as a secret, from a file in secrets/, or has a default."""
    readers = [service for service in SERVICES.values() if {name, f"{name}_FILE"} & environment_of(service)]
    assert readers
    for service in readers:
        if f"{name}_FILE" in service["environment"]:
            assert service["environment"][f"{name}_FILE"] == f"/run/secrets/{name.lower()}"
            assert name.lower() in service["secrets"]


def environment_of(service: dict[str, Any]) -> set[str]:
    return set(service.get("environment", {}))


def test_a_process_gets_exactly_the_secrets_that_it_uses() -> None:
    """An intruder in the NetBox worker finds no password of the mail server, and vice versa."""
    everybodys = {
        "secret_key",
        "secret_key_fallbacks",
        "token_pepper",
        "database_url",
        "redis_url",
        "authorities",
        "provider_logo",
    }
    own = {
        "web": {"oidc_client_secret", "netbox_webhook_secret"},
        "notifications": {"email_url"},
        "netbox": {"netbox_token"},
    }
    for name, service in SERVICES.items():
        if service.get("image", "").startswith(("longline-portal", "longline-demo")):
            assert set(service["secrets"]) == everybodys | own.get(name, set()), name
            files = {key for key in environment_of(service) if key.endswith("_FILE")}
            read = {key.removesuffix("_FILE").lower() for key in files - {"LONGLINE_WEBHOOK_CA_FILE"}}
            assert read == set(service["secrets"]) - {"authorities", "provider_logo"}, name


def test_variables_that_the_image_sets_are_not_set_again() -> None:
    dockerfile = (ROOT / "deploy" / "docker" / "portal.Dockerfile").read_text()
    for name in SET_BY_THE_IMAGE:
        assert re.search(rf"^\s+{name}=/", dockerfile, re.MULTILINE), name
    assert not (SET_BY_THE_IMAGE | OF_NO_USE) & SERVICES["web"]["environment"].keys()


def test_the_images_are_pinned_to_a_release() -> None:
    texts = [COMPOSE.read_text(), *(p.read_text() for p in (ROOT / "deploy" / "docker").glob("*.Dockerfile"))]
    images = re.findall(r"(?:_IMAGE:-|ARG \w+_IMAGE=)([^}\s]+)", "\n".join(texts))
    assert len(images) == 6
    for image in images:
        name, _, tag = image.partition(":")
        assert re.match(r"\d", tag), f"{name} has the tag {tag!r}"


def test_the_images_contain_no_secrets_and_no_history() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignored
    assert not {"!.git", "!secrets", "!.run", "!.venv"} & set(ignored)
    for dockerfile in (ROOT / "deploy" / "docker").glob("*.Dockerfile"):
        text = dockerfile.read_text()
        assert not re.search(r"^(ARG|ENV)\s+\w*(PASSWORD|TOKEN|SECRET|KEY)", text, re.MULTILINE)
        # The last USER line of an image applies.
        assert re.findall(r"^USER (\S+)", text, re.MULTILINE)[-1] == "10001:10001"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    subprocess.run([ROOT / "deploy" / "compose" / "make-secrets", folder], check=True, capture_output=True)
    return folder


def test_secrets_are_generated_only_once(secrets: Path) -> None:
    before = {path.name: path.read_bytes() for path in secrets.iterdir()}
    assert before.keys() >= {
        Path(secret["file"]).name for secret in yaml.safe_load(COMPOSE.read_text())["secrets"].values()
    }
    subprocess.run([ROOT / "deploy" / "compose" / "make-secrets", secrets], check=True, capture_output=True)
    assert {path.name: path.read_bytes() for path in secrets.iterdir()} == before
    assert secrets.stat().st_mode & 0o777 == 0o700
    assert before["database_password"] in before["database_url"]
    assert len(before["secret_key"]) >= 64


def test_two_installations_have_different_secrets(secrets: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run([ROOT / "deploy" / "compose" / "make-secrets", other], check=True, capture_output=True)
    for name in ("secret_key", "token_pepper", "database_password", "redis_password", "web_key"):
        assert (secrets / name).read_bytes() != (other / name).read_bytes(), name


def test_docker_compose_accepts_the_file() -> None:
    """Try both generations: the Python program of Debian 12, and the plugin."""
    tools = [["docker-compose"]] if shutil.which("docker-compose") else []
    if (
        shutil.which("docker")
        and not subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    ):
        tools.append(["docker", "compose"])
    if not tools:
        pytest.skip("neither docker-compose nor docker compose is installed: the file was only read as YAML")
    for tool in tools:
        # The check does not need the files of the secrets.
        subprocess.run([*tool, "--file", COMPOSE, "config", "--quiet"], check=True, cwd=ROOT, env=os.environ)


def test_settings_read_a_file_without_its_line_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from portal.core.environment import Environment

    secret = tmp_path / "secret"
    secret.write_text("postgres://longline:pw@database:5432/longline\n")
    monkeypatch.delenv("SOME_URL", raising=False)
    monkeypatch.setenv("SOME_URL_FILE", str(secret))
    env = Environment()
    assert env.str("SOME_URL") == "postgres://longline:pw@database:5432/longline"
    assert env.db_url("SOME_URL")["NAME"] == "longline"
    assert settings.SECRET_KEY == "for-tests-only"
