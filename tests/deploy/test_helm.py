"""The Helm chart: linted, rendered and validated with Kubernetes' published schemas, but in no cluster."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from devstack.folders import ROOT
from portal.core.background_work import queue_names
from tests.deploy.test_compose import (
    OF_NO_USE,
    SERVICES,
    SET_BY_THE_IMAGE,
    read_by_settings,
)

HELM = ROOT / "build" / "helm"
CHART = ROOT / "deploy" / "helm" / "longline"
EXAMPLE = ROOT / "deploy" / "helm" / "example-values.yaml"
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
# The oldest release that Chart.yaml allows, and the newest release with published schemas.
KUBERNETES = ("1.31", kubernetes_validate.latest_version())
OPTIONAL_KEYS = SCHEMA["properties"]["secrets"]["properties"]["optionalKeys"]["items"]["enum"]
ALWAYS = {"secret_key", "token_pepper", "database_url", "redis_url"}
SET_BY_THE_CHART = {"BASE_URL", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "LONGLINE_TRUSTED_PROXIES"}
PEER = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}]
EVERYTHING = {
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "secrets": {"optionalKeys": OPTIONAL_KEYS},
    "settings": {
        "OIDC_SERVER_URL": "https://sso.example.net",
        "OIDC_CLIENT_ID": "longline",
        "LONGLINE_MIN_CIR_BPS": 1_000_000,
        "LONGLINE_CORE_HEADROOM": 0.5,
        "NETBOX_APPLY": False,
    },
    "metrics": {"processes": True, "service": {"annotations": {"prometheus.io/scrape": "true"}}},
    "networkPolicy": {"enabled": True, "ingressFrom": PEER, "metricsFrom": PEER, "agentsFrom": PEER},
    "agentApi": {
        "service": {
            "type": "LoadBalancer",
            "nodePort": 30443,
            "loadBalancerClass": "example.net/lb",
            "loadBalancerSourceRanges": ["192.0.2.0/24"],
        }
    },
    "nodeSelector": {"disk": "ssd"},
    "podAnnotations": {"team": "noc"},
    "priorityClassName": "high",
    "workers": {queue: {"replicas": 3} for queue in queue_names()},
}
LEAST = {
    "secrets": {"optionalKeys": []},
    "settings": {"NETBOX_URL": None, "NETBOX_CA": None},
    "pki": {"signs": False},
    "metrics": {"enabled": False},
    "ingress": {"enabled": False},
    "podDisruptionBudgets": False,
    "tolerations": [],
    "agentApi": {"service": {"type": "ClusterIP"}},
}

Manifest = dict[str, Any]
Render = Callable[..., list[Manifest]]


class Refused(Exception):
    """Helm's error message."""


@pytest.fixture(scope="module")
def helm() -> Callable[..., str]:
    """Return a function that runs Helm; skip with a reason if `make check` has not built it yet."""
    if not HELM.exists():
        pytest.skip("build/helm is missing: the chart was not rendered (`make check-chart` builds it)")

    def run(*arguments: object) -> str:
        done = subprocess.run(
            [HELM, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=CHART
        )
        if done.returncode:
            raise Refused(done.stdout + done.stderr)
        return done.stdout

    return run


@pytest.fixture(scope="module")
def render(helm: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Render:
    """Return ``render(values)``: the manifests of the example with these values added. It raises Refused."""
    file = tmp_path_factory.mktemp("values") / "values.yaml"

    def rendered(values: dict[str, Any], release: str = "longline", kubernetes: str = KUBERNETES[-1]) -> Any:
        file.write_text(yaml.safe_dump(values))
        output = helm(
            *("template", release, CHART, "--namespace", "isp", "--kube-version", kubernetes),
            *("--values", EXAMPLE, "--values", file),
        )
        return [each for each in yaml.safe_load_all(output) if each]

    return rendered


@pytest.fixture(scope="module")
def everything(render: Render) -> list[Manifest]:
    return render(EVERYTHING)


def validate(manifests: list[Manifest], kubernetes: str) -> None:
    """Raises kubernetes_validate.ValidationError, also for an unknown field."""
    for each in manifests:
        kubernetes_validate.validate(each, kubernetes, strict=True)


def pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Return the pods' templates by component."""
    found = [each["spec"]["template"] for each in manifests if each["kind"] in ("Deployment", "Job")]
    return {each["metadata"]["labels"]["app.kubernetes.io/component"]: each for each in found}


def main_container(pod: Manifest) -> Manifest:
    found: Manifest = pod["spec"]["containers"][0]
    return found


def keys_of(pod: Manifest, volume: str) -> set[str]:
    """Return the keys of a Secret that the pod's processes can read."""
    (found,) = [each for each in pod["spec"]["volumes"] if each["name"] == volume] or [{}]
    return {item["key"] for item in found["secret"]["items"]} if found else set()


def environment(container: Manifest) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"]}


def test_helm_lint_reports_nothing(helm: Callable[..., str]) -> None:
    helm("lint", CHART, "--strict", "--values", EXAMPLE)


@pytest.mark.parametrize("kubernetes", KUBERNETES)
@pytest.mark.parametrize("values", [{}, EVERYTHING, LEAST], ids=["example", "everything", "least"])
def test_kubernetes_knows_every_field(render: Render, values: dict[str, Any], kubernetes: str) -> None:
    made = render(values, kubernetes=kubernetes)
    assert len(pods(made)) >= 13
    validate(made, kubernetes)


def test_an_unknown_field_is_found(render: Render) -> None:
    made = render({"tolerations": [{"key": "noc", "operator": "Exists", "tolerationSecond": 5}]})
    with pytest.raises(kubernetes_validate.ValidationError, match="'tolerationSecond' was unexpected"):
        validate(made, KUBERNETES[-1])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"secrets": {"existingSecret": ""}}, r"secrets\.existingSecret is empty: make a Secret"),
        ({"pki": {"existingSecret": ""}}, r"pki\.existingSecret is empty"),
        ({"image": {"repository": ""}}, r"image\.repository is empty"),
        ({"image": {"tag": ""}}, r"image\.tag is empty"),
        ({"host": ""}, "host is empty"),
        ({"host": "https://portal.example.net"}, "host"),
        ({"trustedProxies": []}, "trustedProxies is empty"),
        ({"ingress": {"tlsSecret": ""}}, r"ingress\.tlsSecret is empty"),
        ({"secrets": {"optionalKeys": ["authorities"]}}, r"settings\.NETBOX_URL needs a token"),
        ({"secrets": {"optionalKeys": ["netbox_token"]}}, r"settings\.NETBOX_CA is the file"),
        ({"secrets": {"optionalKeys": ["netbox_tokens"]}}, "optionalKeys"),
        ({"settings": {"OIDC_SERVER_URL": "https://sso.example.net"}}, r"settings\.OIDC_CLIENT_ID"),
        ({"settings": {"LONGLINE_LINETEST": "off"}}, "LONGLINE_LINETEST"),
        ({"settings": {"TOKEN_PEPPER": "secret"}}, "TOKEN_PEPPER"),
        ({"web": {"replica": 3}}, "replica"),
        ({"web": {"replicas": 0}}, "replicas"),
        ({"workers": {"provisionning": {"replicas": 3}}}, "provisionning"),
        ({"networkPolicy": {"enabled": True}}, r"networkPolicy\.ingressFrom is empty"),
    ],
    ids=str,
)
def test_a_missing_or_misspelt_value_is_named(render: Render, values: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        render(values)


def test_all_missing_values_are_named_at_once(helm: Callable[..., str]) -> None:
    with pytest.raises(Refused) as refused:
        helm("template", "longline", CHART)
    for name in ("image.repository", "image.tag", "host", "secrets.existingSecret", "pki.existingSecret"):
        assert f"* {name} is empty" in str(refused.value), name


def test_manifests_contain_names_of_secrets_but_no_values(everything: list[Manifest], render: Render) -> None:
    """A process gets the secrets that it uses, as in the compose file."""
    assert not [each for each in everything if each["kind"] in ("Secret", "ConfigMap")]
    of_all, of_least = pods(everything), pods(render(LEAST))
    compose = {"metrics": "metrics", "upgrade": "setup", "webhooks_doubtful": "webhooks-doubtful"}
    for component, pod in of_all.items():
        secrets = set(SERVICES[compose.get(component, component)]["secrets"])
        assert keys_of(pod, "secrets") == secrets | {
            "database_direct_url",
            "database_replica_url",
            "cache_url",
        }, component
        for each in pod["spec"]["containers"]:
            files = {name: value for name, value in environment(each).items() if name.endswith("_FILE")}
            assert {Path(value).name for value in files.values()} >= ALWAYS
            assert {Path(value).name for value in files.values()} <= keys_of(pod, "secrets"), component
    assert {frozenset(keys_of(pod, "secrets")) for pod in of_least.values()} == {frozenset(ALWAYS)}


def test_only_signing_processes_have_the_key_of_the_ca(everything: list[Manifest], render: Render) -> None:
    public = {"ca.pem", "portal.pem", "portal.key"}
    of_all = {component: keys_of(pod, "pki") for component, pod in pods(everything).items()}
    assert {component for component, keys in of_all.items() if "ca.key" in keys} == {"web", "agent-api"}
    assert all(keys in (set(), public, public | {"ca.key"}) for keys in of_all.values())
    for queue in queue_names():
        assert of_all[queue] == public, queue
    assert all("ca.key" not in keys_of(pod, "pki") for pod in pods(render(LEAST)).values())


def test_every_process_of_the_compose_file_is_in_the_chart(everything: list[Manifest]) -> None:
    """Its command is the same, so that containers and the chart run the same program."""
    here = pods(everything)
    for name, service in SERVICES.items():
        if not service.get("image", "").startswith("longline-portal") or name == "setup":
            continue
        pod = here.pop(name if name in here else name.replace("-", "_"))
        command = [re.sub(r"\$\{\w+:-(\w+)\}", r"\1", str(part)) for part in service["command"]]
        assert main_container(pod)["command"] == command, name
        assert {each["image"] for each in pod["spec"]["containers"]} == {
            "registry.example.net/longline-portal@sha256:" + "0" * 64
        }
    assert here.keys() == {"upgrade"}
    assert main_container(here["upgrade"])["command"] == ["python3", "manage.py", "upgrade"]


def test_the_migrations_run_before_anything_else(everything: list[Manifest]) -> None:
    (job,) = [each for each in everything if each["kind"] == "Job"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    # Objects that a hook refers to have to exist already, and no object of the chart does.
    (spec,) = [job["spec"]["template"]["spec"]]
    assert {each["secret"]["secretName"] for each in spec["volumes"] if "secret" in each} == {"longline"}
    assert not [each for each in main_container({"spec": spec})["env"] if "valueFrom" in each]


def test_every_queue_has_a_worker(render: Render) -> None:
    assert set(DEFAULTS["workers"]) == set(queue_names())
    # Without a NetBox the queue of NetBox stays empty.
    assert set(queue_names()) - pods(render(LEAST)).keys() == {"netbox"}


def test_each_setting_is_available_as_a_value() -> None:
    """It has its own name, or is a key of the Secret; a misspelt name is refused."""
    secrets = {key.upper() for key in ALWAYS | set(OPTIONAL_KEYS)}
    by_name = set(SCHEMA["properties"]["settings"]["properties"])
    others = SET_BY_THE_IMAGE | SET_BY_THE_CHART | OF_NO_USE | secrets
    missing = read_by_settings() - others - by_name
    assert not missing, "add them to `settings` of values.schema.json, or the secret ones to optionalKeys"
    assert not by_name - read_by_settings(), "no setting has these names"


def test_settings_arrive_unchanged(everything: list[Manifest]) -> None:
    of_web, of_beat = (environment(main_container(pods(everything)[name])) for name in ("web", "beat"))
    assert of_web["LONGLINE_MIN_CIR_BPS"] == "1000000"
    assert of_web["LONGLINE_CORE_HEADROOM"] == "0.5"
    assert of_web["NETBOX_APPLY"] == "false"
    assert of_web["BASE_URL"] == "https://portal.example.net"
    assert of_web["LONGLINE_TRUSTED_PROXIES"] == "10.244.0.0/16"
    # Single sign-on needs a secret that other processes do not get.
    assert {name for name in of_web.keys() - of_beat.keys() if name.startswith("OIDC")} == {
        "OIDC_CLIENT_ID",
        "OIDC_CLIENT_SECRET_FILE",
        "OIDC_SERVER_URL",
    }


def test_no_pod_has_privileges(everything: list[Manifest]) -> None:
    """Pods meet the Pod Security Standard "restricted", and have a read-only file system."""
    for component, pod in pods(everything).items():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, component
        assert spec["enableServiceLinks"] is False, component
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, component
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}, component
            assert "memory" in container["resources"]["limits"], component
            mounted = {each["name"] for each in container["volumeMounts"]}
            assert mounted <= {each["name"] for each in spec["volumes"]}, component
            assert {each["mountPath"] for each in container["volumeMounts"]} >= {"/tmp"}  # noqa: S108


def test_each_lasting_process_has_probes(everything: list[Manifest]) -> None:
    for component, pod in pods(everything).items():
        if component != "upgrade":
            assert main_container(pod).keys() >= {"readinessProbe", "livenessProbe"}, component


def selectors(manifests: list[Manifest]) -> Iterator[tuple[Manifest, dict[str, Any], list[Any]]]:
    """Yield each manifest that selects pods, with its selector and the ports that it names."""
    for each in manifests:
        spec = each["spec"]
        if each["kind"] == "Service":
            yield each, {"matchLabels": spec["selector"]}, [port["targetPort"] for port in spec["ports"]]
        elif each["kind"] in ("Deployment", "PodDisruptionBudget"):
            yield each, spec["selector"], []
        elif each["kind"] == "NetworkPolicy":
            ports = [port["port"] for rule in spec["ingress"] for port in rule["ports"]]
            yield each, spec["podSelector"], ports


def test_each_selector_finds_pods_with_the_ports_that_it_names(everything: list[Manifest]) -> None:
    kinds = set()
    for manifest, selector, ports in selectors(everything):
        chosen = [
            pod
            for component, pod in pods(everything).items()
            if selector["matchLabels"].items() <= pod["metadata"]["labels"].items()
            and all(component in each["values"] for each in selector.get("matchExpressions", ()))
        ]
        kinds.add(manifest["kind"])
        named = {
            port["name"]
            for pod in chosen
            for container in pod["spec"]["containers"]
            for port in container.get("ports", ())
        }
        assert chosen, manifest["metadata"]["name"]
        assert set(ports) <= named, manifest["metadata"]["name"]
    assert kinds == {"Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"}


def test_the_ingress_leads_to_services_of_the_chart(everything: list[Manifest]) -> None:
    names = {each["metadata"]["name"] for each in everything if each["kind"] == "Service"}
    (ingress,) = [each for each in everything if each["kind"] == "Ingress"]
    (rule,) = ingress["spec"]["rules"]
    paths = {path["path"]: path["backend"]["service"]["name"] for path in rule["http"]["paths"]}
    assert paths == {"/": "longline-web", "/live/": "longline-live"}
    assert set(paths.values()) <= names
    # deploy/compose/nginx.conf has the same value.
    nginx = (ROOT / "deploy" / "compose" / "nginx.conf").read_text()
    assert "client_max_body_size 9m;" in nginx
    assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"] == "9m"


def test_two_releases_share_no_name(render: Render, everything: list[Manifest]) -> None:
    def names(manifests: list[Manifest]) -> set[tuple[str, str]]:
        return {(each["kind"], each["metadata"]["name"]) for each in manifests}

    assert not names(render(EVERYTHING, release="other")) & names(everything)
    assert {each["metadata"]["namespace"] for each in everything} == {"isp"}


def test_the_readme_names_untried_features_and_every_value() -> None:
    readme = (CHART / "README.md").read_text()
    assert "It was not run in a cluster." in readme
    assert set(SCHEMA["properties"]) - {"global"} == set(DEFAULTS)
